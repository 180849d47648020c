"""`stumble scrub`: a tape written once more without its secrets."""

import os
from pathlib import Path

import click

from stumble import options
from stumble.exits import Wrong


@click.command(short_help="Take secrets out of a recording.")
@options.tape_path
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The new tape; by default beside the old one, as NAME.scrubbed.tape.",
)
@click.option("--in-place", is_flag=True, help="Put the new tape in the place of the old one.")
@click.option(
    "--secret-env",
    "names",
    multiple=True,
    metavar="NAME",
    help="A variable whose value is a secret too, whatever it is called.",
)
def scrub(tape: Path, output: Path | None, in_place: bool, names: tuple[str, ...]) -> None:
    """Write a recording once more without its secrets.

    For one that was made with --no-redact, or before a pattern was known. What looks like a
    key goes, and the values of variables that are named like keys or by --secret-env.

    \b
    stumble scrub refund.tape -o clean.tape
    SHOP_PIN=h4x0r-77 stumble scrub refund.tape --secret-env SHOP_PIN --in-place
    """
    from traces.credentials import SHORTEST
    from traces.redact import secrets
    from traces.scrub import scrub as write

    if in_place and output is not None:
        raise Wrong("--in-place and -o: one of them")
    for name in names:
        if len(os.environ.get(name, "")) < SHORTEST:
            raise Wrong(f"--secret-env {name}: unset, or under {SHORTEST} bytes")
    new = tape.resolve() if in_place else output or tape.with_suffix(".scrubbed.tape")
    if new.exists() and not in_place:
        raise Wrong(f"{new} is there already; a tape is never written over")
    known = {*secrets(os.environ), *(os.environ[name] for name in names)}
    try:
        done = write(tape, new, secrets=sorted(known), over=in_place)
    except (OSError, ValueError) as error:
        raise Wrong(str(error)) from None
    click.echo(f"scrubbed {new}: {done.changed} of {done.exchanges} exchanges changed", err=True)
    if done.lost:
        click.echo(f"warning: {done.lost} bytes of {tape} could not be read; left out", err=True)
    if in_place:
        _index_anew(new)


def _index_anew(tape: Path) -> None:
    """Let the store forget the old tape and its rows, and make them of the new one."""
    from stumble import indexing
    from stumble.home import store_root
    from traces.store import Store
    from traces.tape import read

    if not store_root().is_dir():
        return
    store, id = Store(store_root()), read(tape).trajectory.id
    kept = store.tapes / f"{id}.tape"
    if kept.exists() and not kept.samefile(tape):
        # It was a link to the old file, which would outlive its name there.
        kept.unlink()
        indexing.adopt(store, tape, id)
    store.drop(id)
    with store.reading() as connection:
        rows = "select count(*) from trajectories where trajectory_id = ?"
        left = connection.execute(rows, [id]).fetchone()
    if left and left[0]:
        click.echo(
            f"warning: {store.root} still has rows of the old tape, made with others of its "
            "batch; delete its folder index, and the next command makes it anew",
            err=True,
        )
    indexing.refresh(store)
