"""`stumble push`: copy a store's recordings to a team's bucket."""

import json

import click

from stumble.errors import ExitCode


@click.command(
    epilog="Exit codes: 0 all is there, 1 a tape was refused, 6 the bucket cannot be used."
)
@click.argument("address", metavar="s3://BUCKET/PREFIX")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def push(address: str, as_json: bool) -> None:
    """Copy the tapes of the store, their workspaces and campaigns to a bucket.

    Only what is not there is written, each object once and whole: a push that was cut off goes on,
    and several people may push at once. A tape in which a secret is found is refused and named.
    Needs the extra `s3`, and the AWS variables for credentials and region (AWS_ENDPOINT_URL for
    another server).

    \b
    stumble push s3://our-bucket/stumble
    """
    from stumble.team.object_store import ObjectStore
    from stumble.team.sync_store import push_store
    from stumble.terminal_progress import show_terminal_progress
    from stumble.user_data.known_secrets import find_known_secrets
    from stumble.user_data.paths import store_root
    from traces.store.store_dir import StoreDirectory

    remote = ObjectStore(address)
    with show_terminal_progress("pushing tapes") as tell:
        done = push_store(StoreDirectory(store_root()), remote, tuple(find_known_secrets()), tell)
    if as_json:
        click.echo(json.dumps(done.to_dict()))
    else:
        click.echo(
            f"{address}: {done.tapes} tapes pushed with {done.objects} other objects, "
            f"{done.present} tapes were there"
        )
        for line in done.refused:
            click.echo(f"not pushed: {line}", err=True)
    raise SystemExit(ExitCode.FINDING if done.refused else ExitCode.OK)
