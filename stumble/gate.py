"""Whether a rate is on the right side of a limit: the bound of its interval decides, not the point.

A rate passes where the whole interval is on the right side, fails where the whole interval is on
the wrong one, and is undecided between. How many cases would decide is Wilson's score test turned
round: a bound touches the limit L at n = t^2 L (1 - L) / (rate - L)^2 effective cases.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

type Verdict = Literal["pass", "fail", "unknown"]
type Measure = Literal["recovery", "handled", "ends_right", "silent"]

FEWEST = 5
"""Traces below which no interval is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A row of the question `gate`: a rate over traces with both bounds, None where unknown."""

    agent: str | None
    model: str | None
    world: str | None
    part: str
    """The operator or family it is of, or `all`."""
    ops: Sequence[str]
    measure: Measure
    hits: int
    cases: int
    traces: int
    n_eff: float | None
    t: float | None
    """How many standard errors a bound is away."""
    rate: float | None
    lo: float | None
    hi: float | None
    reason: str | None
    by_budget: int = 0
    """Runs among them that were ended by their budget."""
    other_rate: float | None = None
    """The rate if those are counted the other way: left out, or as failures."""
    parts: int = 1
    """Operators or families that are held against a limit together."""
    confidence: float = 0.95
    """Of the interval; above what was asked for if there are several parts."""

    @property
    def whose(self) -> str:
        """The agent, model and world, and what part of the faults."""
        who = " ".join(filter(None, (self.agent, self.model))) or "an agent that has no name"
        world = {"fresh": "", "recorded": ", tools from the tape"}.get(self.world or "", "")
        return f"{who}{world}" + ("" if self.part == "all" else f", {self.part}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What a rate must be at least, or at most, and how sure of it we want to be."""

    measure: Measure
    value: float
    least: bool
    confidence: float

    def __str__(self) -> str:
        return f"{self.measure} at {'least' if self.least else 'most'} {self.value:g}"

    def verdict(self, rate: Rate) -> Verdict:
        """Pass or fail where the whole interval says so."""
        if rate.lo is None or rate.hi is None:
            return "unknown"
        if self.least:
            return (
                "pass" if rate.lo >= self.value else "fail" if rate.hi < self.value else "unknown"
            )
        return "pass" if rate.hi <= self.value else "fail" if rate.lo > self.value else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One rate held against one limit."""

    limit: Limit
    rate: Rate

    @property
    def verdict(self) -> Verdict:
        """Of this rate at this limit."""
        return self.limit.verdict(self.rate)

    @property
    def needed(self) -> int | None:
        """How many more cases would decide if the rate stays as it is; None where none would."""
        rate = self.rate
        if self.verdict != "unknown":
            return 0
        if rate.rate is None:
            return None
        traces = self._traces(rate.rate)
        if traces is None:
            return None
        more = max(FEWEST, math.ceil(traces)) - rate.traces
        return max(1, math.ceil(more * rate.cases / rate.traces))

    def _traces(self, rate: float) -> float | None:
        """After how many traces a bound touches the limit."""
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
        return f"{self.limit}: {said(self.rate)}"


def said(rate: Rate) -> str:
    """The rate with its interval and what it counts, in words."""
    if rate.rate is None:
        return "no fault was judged"
    counted = f"{rate.hits} of {rate.cases} in {rate.traces} trace{'s' * (rate.traces != 1)}"
    if rate.lo is None or rate.hi is None:
        return f"{rate.rate:.3f} ({counted}), no interval: {rate.reason}"
    return f"{rate.rate:.3f} [{rate.lo:.3f}, {rate.hi:.3f}] ({counted})"


def checks(rates: Iterable[Rate], limits: Sequence[Limit]) -> tuple[Check, ...]:
    """Every limit at every rate of its measure."""
    return tuple(
        Check(limit=limit, rate=rate)
        for rate in rates
        for limit in limits
        if limit.measure == rate.measure
    )


def overall(checks: Sequence[Check]) -> Verdict:
    """One failure fails; what is not known is no pass; nothing at all is not known."""
    verdicts = {check.verdict for check in checks}
    return "fail" if "fail" in verdicts else "pass" if verdicts == {"pass"} else "unknown"
