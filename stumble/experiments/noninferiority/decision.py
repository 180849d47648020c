"""Pass, fail or inconclusive: the bounds of a difference against a margin.

A candidate passes if the lower bound of candidate minus baseline is above minus the margin, and
fails if the upper bound is below it: each is a one-sided test at the level of the look, of the
hypothesis that the candidate is worse by the margin. Between, and if the evidence has a gap, the
answer is inconclusive; a gap is never a pass.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

type ComparisonAnswer = Literal["pass", "fail", "inconclusive", "error"]

_ANSWER_RANK: tuple[ComparisonAnswer, ...] = ("error", "fail", "inconclusive", "pass")


class DifferenceBounds(Struct, frozen=True, kw_only=True):
    """Candidate minus baseline of the wanted rate, -1 to 1; None if unknown."""

    difference: float | None
    lower: float | None
    upper: float | None
    reason: str | None = None


def decide_answer(
    bounds: DifferenceBounds, margin: float, gaps: Sequence[str] = ()
) -> ComparisonAnswer:
    """Return the answer at one look; `gaps` are reasons why the evidence allows none."""
    if gaps or bounds.lower is None or bounds.upper is None:
        return "inconclusive"
    if bounds.lower > -margin:
        return "pass"
    return "fail" if bounds.upper < -margin else "inconclusive"


def find_worst_answer(answers: Sequence[ComparisonAnswer]) -> ComparisonAnswer:
    """Return the worst answer: error, fail, inconclusive, pass; inconclusive if there are none."""
    return min(answers, key=_ANSWER_RANK.index, default="inconclusive")


def count_fewest_roots(margin: float, level: float, most: int = 100_000) -> int | None:
    """Return the fewest roots with which a candidate equal to the baseline can pass.

    If none of K roots is lost, a share 1 - level^(1 / K) of lost roots remains possible
    (Clopper and Pearson, 1934). None if `most` roots are not enough.
    """
    low, high = 5, most
    if 1 - level ** (1 / high) >= margin:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if 1 - level ** (1 / middle) < margin else (middle + 1, high)
    return low
