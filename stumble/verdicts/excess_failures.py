"""Comparison of wrong ends with a fault and in clean twins, for one fork."""

from collections.abc import Iterable
from math import comb

from msgspec import Struct
from msgspec.structs import asdict

from faults.judging.judge import ENDINGS_FAILED
from traces.model import RunEnding


class ExcessFailures(Struct, frozen=True, kw_only=True):
    """Wrong ends with and without the fault, of runs with a known end."""

    wrong: int
    runs: int
    twins_wrong: int
    twins: int

    @property
    def excess(self) -> float:
        """The share of wrong ends with the fault minus the share without."""
        return self.wrong / self.runs - self.twins_wrong / self.twins

    @property
    def p(self) -> float:
        """The probability of at least as many wrong ends if the fault has no effect.

        Fisher's exact test, one-sided ("Statistical Methods for Research Workers", 1934).
        """
        total, wrong = self.runs + self.twins, self.wrong + self.twins_wrong
        ways = sum(
            comb(wrong, k) * comb(total - wrong, self.runs - k)
            for k in range(self.wrong, min(wrong, self.runs) + 1)
        )
        return ways / comb(total, self.runs)

    def to_dict(self) -> dict[str, object]:
        """Return counts, excess and p as plain data."""
        return asdict(self) | {"excess": self.excess, "p": self.p}

    def to_line(self) -> str:
        """Format counts and p as a line."""
        return (
            f"ends wrong: {self.wrong} of {self.runs} with the fault, {self.twins_wrong} of "
            f"{self.twins} clean twins (p = {self.p:.2g} if the fault had no effect)"
        )


def compare_ends(
    faulted: Iterable[bool | None], twins: Iterable[bool | None]
) -> ExcessFailures | None:
    """Compare the known ends; None if either side has none."""
    with_fault = [each for each in faulted if each is not None]
    without_fault = [each for each in twins if each is not None]
    if not with_fault or not without_fault:
        return None
    return ExcessFailures(
        wrong=with_fault.count(False),
        runs=len(with_fault),
        twins_wrong=without_fault.count(False),
        twins=len(without_fault),
    )


def is_right_ending(ending: RunEnding) -> bool | None:
    """What is known of an end; one that came by a crash or a budget is wrong."""
    return False if ending.ended in ENDINGS_FAILED else ending.passed
