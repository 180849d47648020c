"""`stumble demo`: record, replay and inject in the practice world, without network or key."""

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.errors import ExitCode, UsageError
from stumble.notices import print_warning

if TYPE_CHECKING:
    from scenarios.practice.real.chat_model import RealChatModel


@click.command()
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Store for the runs; default: .stumble/demo, which is emptied first.",
)
@click.option("--real", is_flag=True, help="Use a real model, SmolLM2 with 135M parameters.")
def demo(store: Path | None, real: bool) -> None:
    """Record and replay a practice agent with three skills, inject faults, and compare.

    12 tasks for each skill are recorded, replayed strictly, then forked at one tool call with
    five faults, a sham and three clean twins: about 400 agent runs over HTTP on loopback, in
    about a minute.

    With --real, two short tasks by a real model on this machine, and three policies of its agent
    about failed calls: 42 runs, in one to ten minutes. It needs two packages, which it names.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from stumble.demo import runner as demonstration
    from stumble.demo.report import print_demo_report
    from stumble.user_data.paths import prepare_ca_folder, store_root
    from traces.store.trace_store import TraceStore

    root = store or store_root() / ("demo-real" if real else "demo")
    model = _load_model() if real else None
    if store is None and root.exists():
        shutil.rmtree(root)
    if store is not None and (store / "tapes").exists():
        raise UsageError(f"{store} has tapes already; give a new folder")
    if model is not None:
        _run_with_real_model(model, root)
        return
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


def _load_model() -> "RealChatModel":
    from scenarios.practice.real.weights import RealModelMissing
    from stumble.demo.real import load_demo_model

    try:
        return load_demo_model()
    except RealModelMissing as error:
        raise UsageError(str(error)) from None


def _run_with_real_model(model: "RealChatModel", root: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from stumble.campaigns.runner import CampaignDisplay
    from stumble.cli.inject_judge.campaign import count_processes, show_campaign_progress
    from stumble.demo.real import RUNS, fetch_demo_endings, run_real_demo
    from stumble.user_data.paths import prepare_ca_folder
    from traces.store.trace_store import TraceStore

    began = time.monotonic()
    display = CampaignDisplay(show_campaign_progress, print_warning)
    run_real_demo(model, root, prepare_ca_folder(), min(2, count_processes(None)), display)
    table = Table(
        "policy",
        "fault",
        "fault was",
        "class",
        "ends right",
        "runs",
        title=f"{model.name}, temperature 0",
    )
    with TraceStore(root).connect() as connection:
        for row in fetch_demo_endings(connection):
            table.add_row(*(str(cell) for cell in row))
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    click.echo(f"replies by class: {dict(sorted(model.classes.items()))}")
    click.echo(f"\n{RUNS} runs in {time.monotonic() - began:.0f} s. Query them with:")
    click.echo(
        f'  STUMBLE_STORE={_to_cwd_relative(root)} stumble sql "select * from judged_injections"'
    )


def _to_cwd_relative(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
