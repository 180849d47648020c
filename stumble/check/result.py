"""The result of a check, as plain values."""

from msgspec import Struct

from stumble.check.behaviour import MIN_CLEAN_RUNS
from stumble.check.findings import CheckFinding, FaultCell, list_findings
from stumble.check.touch import AgentTouch
from stumble.errors import ExitCode
from stumble.runs.environment.worlds import FRESH_COPY_RESET


class CheckResult(Struct, frozen=True, kw_only=True):
    """What is known of an agent after a check."""

    name: str
    """The campaign with all its runs."""
    touch: AgentTouch
    cells: tuple[FaultCell, ...]
    clean: int
    """Clean runs that came to an end."""
    clean_failed: int
    left_out: tuple[str, ...]
    """Faults that were not tried, each with the reason."""
    notes: tuple[str, ...]
    seconds: float
    runs: int
    cost: float
    """Known cost of all runs in US dollars."""
    warnings: tuple[str, ...] = ()
    """Traffic of the agent that no recording has."""
    stopped_by: str = ""
    """`budget`, `money` or `Ctrl-C`; empty if all was done."""
    tapes: tuple[str, ...] = ()
    """The first recording of each task."""
    reset: str = FRESH_COPY_RESET
    """The command before each run; empty if tools are answered from the recording, as a fork's are
    not."""

    @property
    def findings(self) -> tuple[CheckFinding, ...]:
        """The weaknesses, the worst first."""
        return list_findings(self.cells)

    @property
    def has_unsteady_runs(self) -> bool:
        """Whether some runs without a fault fail, and others do not."""
        return 0 < self.clean_failed < self.clean

    @property
    def code(self) -> ExitCode:
        """The exit code: a finding, nothing found, or not enough evidence for either."""
        verdicts = [cell.judged for cell in self.cells]
        if self.findings or (self.has_unsteady_runs and any(verdicts)):
            return ExitCode.FINDING
        is_known = all(verdicts) and sum(verdicts) >= MIN_CLEAN_RUNS
        if self.notes or self.stopped_by == "Ctrl-C" or not is_known:
            return ExitCode.NOT_ENOUGH
        return ExitCode.OK
