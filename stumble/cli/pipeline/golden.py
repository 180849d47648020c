"""`stumble pipeline golden`: check that clang reproduces the golden artifacts."""

import click

from stumble.errors import ExitCode, HarnessError, UsageError


@click.command(short_help="Regenerate the golden artifacts, and compare.")
@click.option("--write", is_flag=True, help="Replace the frozen artifacts instead of comparing.")
def golden(write: bool) -> None:
    """Compile all programs again and compare with the frozen artifacts; exit 1 on a difference."""
    from scenarios.pipeline.compiler import golden as artifacts
    from scenarios.pipeline.compiler import toolchain

    if missing := toolchain.explain_missing_tools():
        raise UsageError(missing)
    made = artifacts.regenerate_golden()
    if write:
        artifacts.write_golden(made)
        click.echo(f"frozen: {len(made.artifacts)} artifacts of {len(made.counts)} programs")
        return
    try:
        frozen = artifacts.load_frozen_artifacts()
    except ValueError as error:
        raise HarnessError(
            f"{error}; reinstall stumble, or freeze the regenerated artifacts with --write"
        ) from error
    differing = artifacts.find_golden_differences(frozen, made)
    for name in differing:
        click.echo(name)
    if differing:
        click.echo(f"frozen with clang {frozen.clang}, regenerated with {made.clang}", err=True)
        raise SystemExit(ExitCode.FINDING)
    click.echo(f"{len(made.artifacts)} artifacts and {len(made.counts)} counts are as frozen")
