"""How far a campaign is, while it runs: a bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from stumble.campaigns.conduct import Standing, Tell

if TYPE_CHECKING:
    from rich.console import Console

EVERY = 10.0
"""Seconds between two plain lines."""


@contextmanager
def bar(console: "Console") -> Iterator[Tell]:
    """A bar that goes when all is done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[more]}"),
        console=console,
        transient=True,
    ) as shown:
        task = shown.add_task("laying out", total=None, more="")

        def tell(now: Standing) -> None:
            laying = now.laid < now.sources
            done, total = (now.laid, now.sources) if laying else (now.before + now.done, now.wanted)
            what = "recording" if laying else "runs"
            shown.update(task, description=what, completed=done, total=total, more=more(now))

        yield tell


@contextmanager
def lines(_: "Console") -> Iterator[Tell]:
    """A line now and then."""
    due = time.monotonic() + EVERY

    def tell(now: Standing) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + EVERY
            if now.laid < now.sources:
                click.echo(f"{now.laid} of {now.sources} traces are ready", err=True)
                return
            done = now.before + now.done
            click.echo(f"{done} of {now.wanted} runs, {more(now)}", err=True)

    yield tell


def more(now: Standing) -> str:
    """`2 running, $0.1234, 3:20 left`."""
    said = [f"{now.running} running"]
    if now.cost or not now.unpriced:
        said.append(f"${now.cost:.4f}")
    if (eta := now.eta) is not None:
        minutes, seconds = divmod(round(eta), 60)
        said.append(f"{minutes}:{seconds:02} left")
    if now.diverged:
        said.append(f"{len(now.diverged)} diverged")
    return ", ".join(said)
