"""`stumble scrub`: write a copy of a tape without secrets."""

import os
from copy import replace
from pathlib import Path

import click

from stumble.cli import options
from stumble.errors import UsageError


@click.command()
@options.changed_tape_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path of the new tape; default: NAME.scrubbed.tape next to the old one.",
)
@click.option("--in-place", is_flag=True, help="Replace the old tape.")
@click.option(
    "--secret-env",
    "names",
    multiple=True,
    metavar="NAME",
    help="Environment variable whose value is a secret; repeatable.",
)
def scrub(tape: Path, output: Path | None, in_place: bool, names: tuple[str, ...]) -> None:
    """Write a copy of a recording without secrets.

    For recordings made with --no-redact, or by a version that lacked a pattern. Replaces values
    that look like keys, and the values of environment variables with names of secrets or given
    with --secret-env.

    \b
    stumble scrub refund.tape -o clean.tape
    SHOP_PIN=h4x0r-77 stumble scrub refund.tape --secret-env SHOP_PIN --in-place
    """
    from tempfile import mkdtemp

    from stumble.runs.environment.workspaces import remove_afterwards
    from stumble.user_data.known_secrets import load_user_secrets
    from traces.redaction.detection.credential_names import MIN_SECRET_LENGTH
    from traces.redaction.scrub import scrub_tape as write

    if in_place and output is not None:
        raise UsageError("--in-place and -o exclude each other")
    for name in names:
        if len(os.environ.get(name, "")) < MIN_SECRET_LENGTH:
            raise UsageError(f"--secret-env {name}: unset, or under {MIN_SECRET_LENGTH} bytes")
    new = tape.resolve() if in_place else output or tape.with_suffix(".scrubbed.tape")
    if new.exists() and not in_place:
        raise UsageError(f"{new} exists already; a tape is never overwritten")
    known = load_user_secrets()
    also = {os.environ[name]: (name,) for name in names}
    try:
        folder = Path(mkdtemp(prefix=".scrub-", dir=new.parent))
        with remove_afterwards(folder, keep=False):
            done = write(
                tape,
                new,
                folder / new.name,
                secrets=replace(known, names=known.names | also),
                over=in_place,
            )
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    click.echo(f"scrubbed {new}: {done.changed} of {done.exchanges} exchanges changed", err=True)
    if done.lost:
        click.echo(f"warning: {done.lost} bytes of {tape} could not be read; left out", err=True)
    if in_place:
        _reindex_tape(new)


def _reindex_tape(tape: Path) -> None:
    """Replace the old tape's rows in the store with those of the new tape."""
    from stumble.store import index
    from stumble.store.tape_files import keep_tape
    from stumble.user_data.paths import store_root
    from traces.store.trace_store import TraceStore
    from traces.tape.reader import read_tape

    if not store_root().is_dir():
        return
    store, id = TraceStore(store_root()), read_tape(tape).trajectory.id
    stored_tape = store.tapes / f"{id}.tape"
    if stored_tape.exists() and not stored_tape.samefile(tape):
        stored_tape.unlink()
        keep_tape(store, tape, id)
    store.drop(id)
    with store.open_locked() as connection:
        rows = "select count(*) from trajectories where trajectory_id = ?"
        left = connection.execute(rows, [id]).fetchone()
    if left and left[0]:
        click.echo(
            f"warning: {store.root} still has rows of the old tape, made with others of its "
            "batch; delete its folder `index`, and the next command rebuilds it",
            err=True,
        )
    index.refresh_index(store)
