"""What is asked of a check, and its time."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from stumble.runs.environment.workspaces import RecordedWorkspace
from stumble.runs.environment.worlds import WorldCommands
from traces.store.trace_store import TraceStore

if TYPE_CHECKING:
    from stumble.campaigns.scheduler import ProgressListener


class CheckSetup(Struct, frozen=True, kw_only=True):
    """What is asked of a check."""

    name: str
    tasks: Mapping[str, tuple[str, ...]]
    """Commands of the agent by task."""
    store: TraceStore
    ca: Path
    workspace: RecordedWorkspace
    """The folder of the agent, of which each run gets a copy."""
    budget: float
    """Seconds for all."""
    dollars: float | None = None
    world: WorldCommands = WorldCommands()
    live: bool = False
    """Whether tools may be reached for real after a fault."""
    yes: bool = False
    """Whether the agent may be recorded although it writes outside of its copy."""
    confirm: Callable[[str], bool] | None = None
    """Asks the user; None if nobody can answer."""
    report: Callable[[str], object] = lambda line: None
    show: "Callable[[], AbstractContextManager[ProgressListener]]"


CLOSING_SECONDS, CLOSING_SHARE = 10.0, 0.1
"""Of a budget: kept for the end of running agents (5 s and their grace) and for the result."""


class BudgetClock:
    """The time that a check has used, and what is left of its budget for runs, in seconds."""

    def __init__(self, budget: float) -> None:
        self._began = time.monotonic()
        self._budget = budget - min(CLOSING_SECONDS, CLOSING_SHARE * budget)

    @property
    def used(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    @property
    def left(self) -> float:
        """Seconds that are left for runs; 0 or less when only the result is to be made."""
        return self._budget - self.used
