"""Progress of a running campaign: a bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stumble.campaigns.scheduler import CampaignProgress, ProgressListener
from stumble.notices import print_notice

if TYPE_CHECKING:
    from rich.console import Console

PRINT_INTERVAL_SECONDS = 10.0
"""Seconds between two plain lines."""


@contextmanager
def show_progress_bar(console: "Console") -> Iterator[ProgressListener]:
    """Show a bar, and remove it at the end."""
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

        def tell(now: CampaignProgress) -> None:
            laying = now.laid < now.sources
            done, total = (now.laid, now.sources) if laying else (now.before + now.done, now.wanted)
            what = "recording" if laying else "runs"
            shown.update(
                task,
                description=what,
                completed=done,
                total=total,
                more=format_campaign_progress(now),
            )

        yield tell


@contextmanager
def print_progress_lines(_: "Console") -> Iterator[ProgressListener]:
    """Print a line every PRINT_INTERVAL_SECONDS."""
    due = time.monotonic() + PRINT_INTERVAL_SECONDS

    def tell(now: CampaignProgress) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + PRINT_INTERVAL_SECONDS
            if now.laid < now.sources:
                print_notice(f"{now.laid} of {now.sources} traces are ready")
                return
            done = now.before + now.done
            print_notice(f"{done} of {now.wanted} runs, {format_campaign_progress(now)}")

    yield tell


def format_campaign_progress(now: CampaignProgress) -> str:
    """Format progress as `2 running, $0.1234, 3:20 left`."""
    parts = [f"{now.running} running"]
    if now.cost or not now.unpriced:
        parts.append(f"${now.cost:.4f}")
    if (eta := now.eta) is not None:
        minutes, seconds = divmod(round(eta), 60)
        parts.append(f"{minutes}:{seconds:02} left")
    if now.diverged:
        parts.append(f"{len(now.diverged)} diverged")
    return ", ".join(parts)
