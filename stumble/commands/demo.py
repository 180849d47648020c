"""`stumble demo`: the main job on the practice world, without network or key."""

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.exits import Exits, Wrong

if TYPE_CHECKING:
    pass


@click.command(short_help="See the whole job done on the practice world.")
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Where to keep the runs; .stumble/demo by default, made anew each time.",
)
def demo(store: Path | None) -> None:
    """Record, replay and break a practice agent of three skills, and say what differs.

    12 tasks for each skill: recorded, replayed strictly, then forked at one tool call with
    five faults, a sham and three clean twins. About 400 runs of a real agent over real HTTP.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from stumble import demo as demonstration
    from stumble.demoreport import report
    from stumble.home import authority, store_root
    from traces.store import Store

    root = store or store_root() / "demo"
    if store is None and root.exists():
        shutil.rmtree(root)
    if store is not None and (store / "tapes").exists():
        raise Wrong(f"{store} holds tapes already; name a new folder")
    console, began = Console(stderr=True), time.monotonic()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )
    with bar:
        runs = bar.add_task("practice runs", total=demonstration.total())
        left = demonstration.run(root, authority(), lambda count: bar.advance(runs, count))
    if left:
        for why in left[:3]:
            click.echo(f"diverged: {why}", err=True)
        raise SystemExit(Exits.DIVERGED)
    with Store(root).connect() as connection:
        report(connection, Console(width=None if sys.stdout.isatty() else 110))
    took = time.monotonic() - began
    click.echo(f"\n{demonstration.total()} runs in {took:.0f} s. Ask more of them:")
    click.echo(f'  STUMBLE_STORE={_near(root)} stumble sql "select * from recovery_by_site"')


def _near(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
