"""`stumble pull`: copy recordings from a team's bucket into the store."""

import json

import click

from stumble.errors import ExitCode


@click.command(
    epilog="Exit codes: 0 all is here, 1 a tape was refused, 6 the bucket cannot be used."
)
@click.argument("address", metavar="s3://BUCKET/PREFIX")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def pull(address: str, as_json: bool) -> None:
    """Copy the tapes of a bucket that the store lacks, with their workspaces.

    Each content is checked against its name. Nothing in the store is changed or removed; a pull
    that was cut off goes on.

    \b
    stumble pull s3://our-bucket/stumble
    """
    from stumble.team.object_store import ObjectStore
    from stumble.team.sync_store import pull_store
    from stumble.terminal_progress import show_terminal_progress
    from stumble.user_data.paths import store_root
    from traces.store.store_dir import StoreDirectory

    remote = ObjectStore(address)
    with show_terminal_progress("pulling tapes") as tell:
        done = pull_store(StoreDirectory(store_root()), remote, tell)
    if as_json:
        click.echo(json.dumps(done.to_dict()))
    else:
        click.echo(f"{address}: {done.tapes} tapes pulled, {done.present} were here")
        for line in done.refused:
            click.echo(f"not pulled: {line}", err=True)
    raise SystemExit(ExitCode.FINDING if done.refused else ExitCode.OK)
