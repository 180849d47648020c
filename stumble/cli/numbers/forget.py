"""`stumble forget`: remove imported runs from the store."""

from pathlib import Path

import click

from stumble.errors import ExitCode, UsageError


@click.command()
@click.argument("runs", nargs=-1)
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Forget all runs that are in this file; repeatable.",
)
def forget(runs: tuple[str, ...], files: tuple[Path, ...]) -> None:
    """Remove imported runs: their rows, their tapes, and the kept copies of their sources.

    RUNS are ids (`trajectory_id`). A kept source that has other runs too stays, which is reported.
    A later `stumble import` brings a forgotten run back. Recordings of your own are not touched.

    \b
    stumble forget tau-1f0c2d3e4a5b6c7d
    stumble forget --file gpt-4o-airline.json
    """
    from stumble.imports.forget_runs import forget_imported_runs, list_runs_of_file
    from stumble.user_data.paths import store_root
    from traces.store.trace_store import TraceStore

    if not runs and not files:
        raise UsageError("nothing to forget: give ids of runs, or --file")
    try:
        ids = (*runs, *(id for file in files for id in list_runs_of_file(file)))
    except ValueError as error:
        raise UsageError(str(error)) from None
    done = forget_imported_runs(TraceStore(store_root()), ids)
    n = len(done.forgotten)
    click.echo(f"forgot {n:,} run{'' if n == 1 else 's'}")
    for source, others in done.kept.items():
        click.echo(f"note: imports/{source} still has their text, beside {others:,} other runs")
    for id in done.unknown[:5]:
        click.echo(f"not an imported run: {id}", err=True)
    if len(done.unknown) > 5:
        click.echo(f"  and {len(done.unknown) - 5:,} more", err=True)
    if done.unknown:
        raise SystemExit(ExitCode.FINDING)
