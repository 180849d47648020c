"""The progress of a running campaign as a file in its folder, for whoever watches it."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from stumble.campaigns.scheduler import CampaignProgress, ProgressListener

WRITE_INTERVAL_SECONDS = 1.0


class WrittenProgress(Struct, frozen=True, kw_only=True):
    """How far a campaign is, over all its sessions."""

    done: int
    wanted: int
    running: int
    cost: float
    unpriced: int
    seconds_left: float | None
    """None if unknown."""
    capped: bool
    """Whether the limit of its cost ended it."""
    written: float
    """Seconds since the epoch."""


def write_progress_to(
    path: Path, tell: ProgressListener, clock: Callable[[], float] = time.time
) -> ProgressListener:
    """Return a listener that tells `tell`, and writes the file at most once a second."""
    due = 0.0

    def tell_and_write(now: CampaignProgress) -> None:
        nonlocal due
        tell(now)
        if clock() >= due or not now.runs_left:
            due = clock() + WRITE_INTERVAL_SECONDS
            _write(path, _describe(now, clock()))

    return tell_and_write


def read_progress(path: Path) -> WrittenProgress | None:
    """Read the file; None if there is none, or one of another version."""
    try:
        return WrittenProgress(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _describe(now: CampaignProgress, when: float) -> WrittenProgress:
    return WrittenProgress(
        done=now.before + now.done,
        wanted=now.wanted,
        running=now.running,
        cost=now.cost,
        unpriced=now.unpriced,
        seconds_left=now.eta,
        capped=now.capped,
        written=when,
    )


def _write(path: Path, progress: WrittenProgress) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(asdict(progress)), encoding="utf-8")
    part.replace(path)
