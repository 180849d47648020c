"""`stumble demo`: record, replay and inject in the practice world, without network or key."""

import shutil
import sys
import time
from pathlib import Path

import click

from stumble.cli.exit_codes import ExitCode, UsageError


@click.command()
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Store for the runs; default: .stumble/demo, which is emptied first.",
)
def demo(store: Path | None) -> None:
    """Record and replay a practice agent with three skills, inject faults, and compare.

    12 tasks for each skill are recorded, replayed strictly, then forked at one tool call with
    five faults, a sham and three clean twins: about 400 agent runs over HTTP on loopback, in
    about a minute.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from stumble.demo import runner as demonstration
    from stumble.demo.report import print_demo_report
    from stumble.user_data.paths import prepare_ca_folder, store_root
    from traces.store.trace_store import TraceStore

    root = store or store_root() / "demo"
    if store is None and root.exists():
        shutil.rmtree(root)
    if store is not None and (store / "tapes").exists():
        raise UsageError(f"{store} has tapes already; give a new folder")
    console, began = Console(stderr=True), time.monotonic()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )
    with bar:
        runs = bar.add_task("practice runs", total=demonstration.count_demo_runs())
        left = demonstration.run_demo(
            root, prepare_ca_folder(), lambda count: bar.advance(runs, count)
        )
    if left:
        for why in left[:3]:
            click.echo(f"diverged: {why}", err=True)
        raise SystemExit(ExitCode.DIVERGED)
    with TraceStore(root).connect() as connection:
        print_demo_report(connection, Console(width=None if sys.stdout.isatty() else 110))
    took = time.monotonic() - began
    click.echo(f"\n{demonstration.count_demo_runs()} runs in {took:.0f} s. Query them with:")
    click.echo(
        f'  STUMBLE_STORE={_to_cwd_relative(root)} stumble sql "select * from recovery_by_site"'
    )


def _to_cwd_relative(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
