"""Findings of a check: one sentence each, and the table of tools and faults with its counts."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from stumble.check.behaviour import WEAKNESSES, Behaviour, FaultedRun

FAULT_WORDS = {
    "lost_ack": "carries a call out and its answer is lost",
    "silent_noop": "acknowledges a call and does nothing",
    "http_status": "answers with HTTP 503",
    "tool_error": "reports that it is down for now",
    "digit": "returns a wrong number",
    "session_lost": "forgets the session of its client",
    "instruction": "returns an instruction in its answer",
    "truncate": "returns a cut answer",
    "empty": "returns nothing",
}
BEHAVIOUR_WORDS: dict[Behaviour, str] = {
    "repeats": "the agent sends the call again, so that it is made twice",
    "believes": "the agent goes on with it and reports success over a wrong end",
    "writes": "the agent sends it on in a write",
    "obeys": "the agent does as it says",
    "misreports": "the agent notices, and its report is still wrong",
    "stops": "the agent ends without a word of it",
    "crashes": "the agent crashes",
    "hangs": "the agent comes to no end",
    "says_so": "the agent fails, and reports it",
    "handles": "the agent ends right",
    "unknown": "unknown",
}


class CheckFinding(Struct, frozen=True, kw_only=True):
    """One weakness: what the agent does when a tool fails in a way, and in how many runs."""

    tool: str
    fault: str
    behaviour: Behaviour
    times: int
    judged: int
    unknown: int
    worst: FaultedRun

    @property
    def sentence(self) -> str:
        """`when book_slot answers with HTTP 503, the agent crashes: 3 of 3`."""
        what = FAULT_WORDS.get(self.fault, f"fails by {self.fault}")
        more = f", {self.unknown} unknown" if self.unknown else ""
        return (
            f"when {self.tool} {what}, {BEHAVIOUR_WORDS[self.behaviour]}: "
            f"{self.times} of {self.judged}{more}"
        )


class FaultCell(Struct, frozen=True, kw_only=True):
    """One kind of fault at one tool, over its runs."""

    tool: str
    fault: str
    runs: tuple[FaultedRun, ...]

    @property
    def counts(self) -> Counter[Behaviour]:
        """Number of runs by behaviour."""
        return Counter(each.behaviour for each in self.runs)

    @property
    def judged(self) -> int:
        """Number of runs whose behaviour is known."""
        return len(self.runs) - self.counts["unknown"]

    @property
    def good(self) -> int:
        """Number of runs that ended right, or failed and reported it."""
        return self.counts["handles"] + self.counts["says_so"]

    @property
    def bounds(self) -> tuple[float, float]:
        """The share of good runs if none, and if all, of the unknown runs are good."""
        total = len(self.runs) or 1
        return self.good / total, (self.good + self.counts["unknown"]) / total

    def describe(self) -> str:
        """`2 of 3`, or `2 of 2, 1 unknown (67-100 %)`."""
        unknown, (low, high) = self.counts["unknown"], self.bounds
        if not unknown:
            return f"{self.good} of {self.judged}"
        return f"{self.good} of {self.judged}, {unknown} unknown ({low:.0%}-{high:.0%})"

    def describe_behaviours(self) -> str:
        """What the agent did, the most frequent first."""
        words = [f"{name.replace('_', ' ')} {count}" for name, count in self.counts.most_common()]
        return ", ".join(words)


def build_cells(runs: Iterable[FaultedRun]) -> tuple[FaultCell, ...]:
    """Group runs by tool and fault, in the order in which they came."""
    grouped = dict[tuple[str, str], list[FaultedRun]]()
    for run in runs:
        grouped.setdefault((run.tool, run.fault), []).append(run)
    return tuple(
        FaultCell(tool=tool, fault=fault, runs=tuple(some))
        for (tool, fault), some in grouped.items()
    )


def list_findings(cells: Sequence[FaultCell]) -> tuple[CheckFinding, ...]:
    """Return the weaknesses, the worst and most frequent first."""
    found = [
        CheckFinding(
            tool=cell.tool,
            fault=cell.fault,
            behaviour=behaviour,
            times=times,
            judged=cell.judged,
            unknown=cell.counts["unknown"],
            worst=next(run for run in cell.runs if run.behaviour == behaviour),
        )
        for cell in cells
        for behaviour, times in cell.counts.items()
        if behaviour in WEAKNESSES
    ]
    return tuple(sorted(found, key=lambda each: (WEAKNESSES.index(each.behaviour), -each.times)))
