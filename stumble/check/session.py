"""One session of a check: clean runs, then faults until decided or at the budget, then the result.

All its runs are those of a campaign, which the next session, SQL, report and UI go on with.
"""

from collections.abc import Sequence

from stumble.campaigns.completed_runs import find_completed_runs
from stumble.check.clean_phase import CleanPhase
from stumble.check.fault_phase import FaultPhase
from stumble.check.findings import FaultCell
from stumble.check.result import CheckResult
from stumble.check.setup import BudgetClock, CheckSetup
from stumble.check.stored_runs import count_clean_runs, load_cells
from stumble.runs.environment.worlds import FRESH_COPY_RESET
from stumble.store import index

MAX_NAMED = 4
"""Most faults named in a line."""


class CheckSession:
    """One session; `run` returns what is known at its end."""

    def __init__(self, setup: CheckSetup) -> None:
        self.setup = setup
        self._clock = BudgetClock(setup.budget)
        self._clean = CleanPhase(setup, self._clock)
        self._faults = FaultPhase(self._clean, self._clock)

    def run(self) -> CheckResult:
        """Check the agent. Raises UsageError if it may not be run, or cannot be."""
        try:
            index.refresh_index(self.setup.store)
            self._clean.record_tasks()
            if self._clean.may_inject():
                self._faults.inject()
            return self._build_result(self._faults.stopped_by)
        except KeyboardInterrupt:
            return self._build_result("Ctrl-C")

    def _build_result(self, stopped: str) -> CheckResult:
        setup, recordings = self.setup, self._clean.recordings
        index.refresh_index(setup.store)
        done = find_completed_runs(setup.store, setup.name)
        failed, clean = count_clean_runs(setup.store, setup.name)
        cells = load_cells(setup.store, setup.name)
        unreached = self._describe_unreached(cells)
        return CheckResult(
            name=setup.name,
            touch=self._clean.touch,
            cells=cells,
            clean=clean,
            clean_failed=failed,
            left_out=(*unreached, *self._faults.left_out),
            notes=tuple(self._clean.notes),
            warnings=tuple(self._clean.warnings),
            seconds=self._clock.used,
            runs=len(done.runs) + len(self._clean.runs),
            cost=done.cost,
            stopped_by=stopped or ("budget" if unreached else ""),
            reset=setup.world.reset or FRESH_COPY_RESET if self._clean.are_tools_live else "",
            tapes=tuple(str(runs[0].tape.path) for runs in recordings.values()),
        )

    def _describe_unreached(self, cells: Sequence[FaultCell]) -> tuple[str, ...]:
        """Return a line about the chosen faults without a run, if there are any."""
        reached = {(cell.tool, cell.fault) for cell in cells}
        keys = [each.key for each in self._faults.chosen if each.key not in reached]
        if not keys:
            return ()
        named = ", ".join(f"{fault} at {tool}" for tool, fault in keys[:MAX_NAMED])
        more = f" and {len(keys) - MAX_NAMED} more" if len(keys) > MAX_NAMED else ""
        return (f"before the end came: {named}{more}; the same command goes on with them",)
