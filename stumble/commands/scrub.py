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
        click.echo("rows that a store made of it before stay until it is indexed anew", err=True)
