"""`stumble pipeline golden`: whether the golden artifacts are what clang makes of the programs."""

import click

from stumble.exits import Exits, Failed, Wrong


@click.command(short_help="Make the golden artifacts anew, and compare.")
@click.option("--write", is_flag=True, help="Keep what was made where it differs.")
def golden(write: bool) -> None:
    """Compile all programs anew and compare with what is frozen; exit 1 where anything differs."""
    from scenarios.compiler import golden as artifacts
    from scenarios.compiler import toolchain

    if missing := toolchain.missing():
        raise Wrong(missing)
    made = artifacts.regenerate()
    if write:
        artifacts.write(made)
        click.echo(f"frozen: {len(made.artifacts)} artifacts of {len(made.counts)} programs")
        return
    try:
        frozen = artifacts.frozen()
    except ValueError as error:
        raise Failed(
            f"{error}; install stumble anew, or keep what was made with --write"
        ) from error
    differing = artifacts.differences(frozen, made)
    for name in differing:
        click.echo(name)
    if differing:
        click.echo(f"made by clang {frozen.clang} and, anew, by clang {made.clang}", err=True)
        raise SystemExit(Exits.FINDING)
    click.echo(f"{len(made.artifacts)} artifacts and {len(made.counts)} counts are as frozen")
