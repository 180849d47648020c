"""Comparison of a rate with a limit by the bounds of its interval.

A rate passes if the complete interval is on the right side, fails if it is on the wrong side, and
is undecided otherwise. The number of traces that would decide is Wilson's score test solved for n:
a bound touches the limit L at n = t^2 L (1 - L) / (rate - L)^2 effective cases.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from stumble.errors import ExitCode

type GateVerdict = Literal["pass", "fail", "unknown"]
type GateMeasure = Literal["recovery", "handled", "ends_right", "silent"]

GATE_EXITS: Mapping[GateVerdict, ExitCode] = {
    "pass": ExitCode.OK,
    "fail": ExitCode.FINDING,
    "unknown": ExitCode.NOT_ENOUGH,
}
"""Exit codes of a gate."""
NO_INTERVAL_REASONS = ("mixed_judges", "mixed_verifiers", "unfinished_plan")
"""Reasons for no interval that more cases do not remove."""
MIN_TRACES = 5
"""Fewest traces for an interval."""


class JudgeError(Struct, frozen=True, kw_only=True):
    """The judge's error over labelled runs, and the rate behind it with its interval.

    None where there is no label of the kind, or the judge is no better than chance.
    """

    positives: int
    """Labelled runs that are a hit by their labels."""
    negatives: int
    sensitivity: float | None
    specificity: float | None
    rate: float | None
    lo: float | None
    hi: float | None

    def __str__(self) -> str:
        if self.lo is None or self.hi is None or self.rate is None:
            return f"no rate by {self.positives + self.negatives} labelled runs"
        return (
            f"{self.rate:.3f} [{self.lo:.3f}, {self.hi:.3f}] with the judge's error "
            f"(sensitivity {self.sensitivity:.2f} of {self.positives}, "
            f"specificity {self.specificity:.2f} of {self.negatives})"
        )


class GateRate(Struct, frozen=True, kw_only=True):
    """A row of the question `gate`: a rate over traces with both bounds, None where unknown."""

    agent: str | None
    model: str | None
    world: str | None
    part: str
    """The operator or family, or `all`."""
    ops: Sequence[str]
    measure: GateMeasure
    hits: int
    cases: int
    traces: int
    n_eff: float | None
    t: float | None
    """Distance of a bound in standard errors."""
    rate: float | None
    lo: float | None
    """Lower bound of the interval with all unknown cases counted against."""
    hi: float | None
    """Upper bound of the interval with all unknown cases counted for."""
    reason: str | None
    unknown: int = 0
    """Cases of this measure whose value is not known; in `lo` and `hi`, not in `rate`."""
    least: float | None = None
    """The rate with all unknown cases against."""
    most: float | None = None
    """The rate with all unknown cases for."""
    known_lo: float | None = None
    known_hi: float | None = None
    """The interval of the known cases alone."""
    fired: int = 0
    left_out: int = 0
    """Injected faults without a class."""
    left_out_as: str | None = None
    """The most frequent reason."""
    next_step: str | None = None
    """How to get a rate with an interval, if known."""
    by_budget: int = 0
    """Runs ended by their budget."""
    other_rate: float | None = None
    """The rate with those counted the other way: left out, or as failures."""
    parts: int = 1
    """Number of operators or families compared with a limit together."""
    confidence: float = 0.95
    """Confidence of the interval; above the requested one if there are several parts."""
    judge_error: JudgeError | None = None
    """With labels, for measures that a judge reads; its bounds then decide."""

    @property
    def deciding_bounds(self) -> tuple[float | None, float | None]:
        """The bounds that are compared with a limit."""
        judged = self.judge_error
        return (self.lo, self.hi) if judged is None else (judged.lo, judged.hi)

    @property
    def is_open(self) -> bool:
        """Whether the unknown cases move the rate by more than its interval is wide."""
        if not self.unknown or self.least is None or self.most is None:
            return False
        if self.known_lo is None or self.known_hi is None:
            return True
        return self.most - self.least > self.known_hi - self.known_lo

    @property
    def subject(self) -> str:
        """The agent, model and world, and the part of the faults."""
        who = " ".join(filter(None, (self.agent, self.model))) or "an agent that has no name"
        world = {"fresh": "", "recorded": ", tools from the tape"}.get(self.world or "", "")
        return f"{who}{world}" + ("" if self.part == "all" else f", {self.part}")


class GateLimit(Struct, frozen=True, kw_only=True):
    """A lower or upper limit of a rate, with a confidence."""

    measure: GateMeasure
    value: float
    least: bool
    confidence: float

    def __str__(self) -> str:
        return f"{self.measure} at {'least' if self.least else 'most'} {self.value:g}"

    def verdict(self, rate: GateRate) -> GateVerdict:
        """Return pass or fail if the complete interval decides, else unknown."""
        lo, hi = rate.deciding_bounds
        if lo is None or hi is None:
            return "unknown"
        if self.least:
            return "pass" if lo >= self.value else "fail" if hi < self.value else "unknown"
        return "pass" if hi <= self.value else "fail" if lo > self.value else "unknown"


class GateCheck(Struct, frozen=True, kw_only=True):
    """One rate compared with one limit."""

    limit: GateLimit
    rate: GateRate

    @property
    def verdict(self) -> GateVerdict:
        """The verdict on this rate at this limit."""
        return self.limit.verdict(self.rate)

    @property
    def needed(self) -> int | None:
        """Additional traces that would decide at an unchanged rate; None if no number would.

        Not cases: more injections into the same recordings say little more about others.
        """
        rate = self.rate
        if self.verdict != "unknown":
            return 0
        if rate.rate is None or rate.reason in NO_INTERVAL_REASONS or rate.judge_error:
            return None
        nearest = self._find_nearest_rate(rate.rate)
        traces = None if nearest is None else self._count_traces_needed(nearest)
        if traces is None:
            return None
        return max(1, max(MIN_TRACES, math.ceil(traces)) - rate.traces)

    def _find_nearest_rate(self, rate: float) -> float | None:
        """Return the rate nearest to the limit that unknown cases allow; None if either side."""
        minimum, most = self.rate.least, self.rate.most
        if not self.rate.unknown or minimum is None or most is None:
            return rate
        if minimum <= self.limit.value <= most:
            return None
        return most if most < self.limit.value else minimum

    def _count_traces_needed(self, rate: float) -> float | None:
        """Return the number of traces at which a bound touches the limit."""
        limit = self.limit.value
        if rate in (0, 1):
            agreeing = limit if rate == 1 else 1 - limit
            if agreeing == 1:
                return None
            return math.log(1 - self.rate.confidence) / math.log(agreeing) if agreeing else 0
        if rate == limit or self.rate.n_eff is None or self.rate.t is None:
            return None
        effective = self.rate.t**2 * limit * (1 - limit) / (rate - limit) ** 2
        return self.rate.traces * effective / self.rate.n_eff

    def __str__(self) -> str:
        judged = self.rate.judge_error
        found = f"{self.limit}: {format_gate_rate(self.rate)}"
        return found if judged is None else f"{found}; {judged}"


def format_gate_rate(rate: GateRate) -> str:
    """Format the rate with its interval and counts."""
    if rate.rate is None:
        return "no fault was judged" + (f" of {rate.fired} that fired" if rate.fired else "")
    counted = f"{rate.hits} of {rate.cases} in {rate.traces} trace{'s' * (rate.traces != 1)}"
    lo, hi = (rate.known_lo, rate.known_hi) if rate.unknown else (rate.lo, rate.hi)
    if lo is None or hi is None:
        known = f"{rate.rate:.3f} ({counted}), no interval: {rate.reason}"
    else:
        known = f"{rate.rate:.3f} [{lo:.3f}, {hi:.3f}] ({counted})"
    if not rate.unknown or rate.least is None or rate.most is None:
        return known
    bounds = f"{rate.least:.3f} to {rate.most:.3f} by {rate.unknown} unknown"
    return f"{bounds}; of the known {known}" if rate.is_open else f"{known}; {bounds}"


def check_gate_limits(
    rates: Iterable[GateRate], limits: Sequence[GateLimit]
) -> tuple[GateCheck, ...]:
    """Check every limit at every rate of its measure."""
    return tuple(
        GateCheck(limit=limit, rate=rate)
        for rate in rates
        for limit in limits
        if limit.measure == rate.measure
    )


class DecidedCheck(Protocol):
    """A check with its verdict."""

    @property
    def verdict(self) -> GateVerdict: ...


def join_gate_verdicts(checks: Sequence[DecidedCheck]) -> GateVerdict:
    """Return fail if any check fails, pass if all pass, else unknown."""
    verdicts = {check.verdict for check in checks}
    return "fail" if "fail" in verdicts else "pass" if verdicts == {"pass"} else "unknown"
