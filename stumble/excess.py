"""Whether runs with a fault end wrong more often than their clean twins: the noise of one fork."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import comb


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcessFailures:
    """Wrong ends with the fault and without it, of the runs whose end is known."""

    wrong: int
    runs: int
    twins_wrong: int
    twins: int

    @property
    def excess(self) -> float:
        """The share of wrong ends with the fault, less that without."""
        return self.wrong / self.runs - self.twins_wrong / self.twins

    @property
    def p(self) -> float:
        """The chance of as many wrong ends or more if the fault does nothing.

        Fisher's exact test, one-sided ("Statistical Methods for Research Workers", 1934).
        """
        total, wrong = self.runs + self.twins, self.wrong + self.twins_wrong
        ways = sum(
            comb(wrong, k) * comb(total - wrong, self.runs - k)
            for k in range(self.wrong, min(wrong, self.runs) + 1)
        )
        return ways / comb(total, self.runs)

    def to_dict(self) -> dict[str, object]:
        """The counts with what follows from them, as plain data."""
        return asdict(self) | {"excess": self.excess, "p": self.p}

    def to_line(self) -> str:
        """The same in words."""
        return (
            f"ends wrong: {self.wrong} of {self.runs} with the fault, {self.twins_wrong} of "
            f"{self.twins} clean twins; a fault that does nothing gives as much with "
            f"p = {self.p:.2g}"
        )


def compare_ends(
    faulted: Iterable[bool | None], twins: Iterable[bool | None]
) -> ExcessFailures | None:
    """The comparison of ends that are known to be right or wrong; None if either has none."""
    with_fault = [each for each in faulted if each is not None]
    without = [each for each in twins if each is not None]
    if not with_fault or not without:
        return None
    return ExcessFailures(
        wrong=with_fault.count(False),
        runs=len(with_fault),
        twins_wrong=without.count(False),
        twins=len(without),
    )
