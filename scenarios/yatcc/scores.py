"""Score files of YatCC: tests with whole scores, and a total that is text.

    {"tests": [{"name", "score", "max_score", "output", "output_path"}, ...],
     "leaderboard": [{"name", "value": "29.59", ...}]}

The total is what counts: each test's score in the file is rounded up. T0 has no total, there it
is the mean of its tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from scenarios.compiler.contract import CaseGrade

NAMES: Mapping[str, tuple[str, ...]] = {
    "T4": ("score-classic.json", "score.json"),
    "T5": ("score-classic.json", "score.json"),
}
"""Where a stage's score is, the first that is there; `score.json` for all others."""
TOTAL = "\u603b\u5206"
"""The name of the total in `leaderboard`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What a score file says, of 100."""

    total: float
    cases: tuple[CaseGrade, ...]


def names(stage: str) -> tuple[str, ...]:
    """The names of a stage's score file, in the order in which they count."""
    return NAMES.get(stage, ("score.json",))


def read(path: Path, *, reached: bool) -> Scored:
    """What a score file says; ValueError where it is none."""
    try:
        said = orjson.loads(path.read_bytes())
        tests = said["tests"]
        cases = tuple(_case(test, reached=reached) for test in tests)
        totals = [each["value"] for each in said["leaderboard"] if each["name"] == TOTAL]
        total = float(totals[0]) if totals else _mean(cases)
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise ValueError(f"{path.name} is no score file: {error!r}") from None
    if not cases or not 0 <= total <= 100:
        raise ValueError(f"{path.name} has {len(cases)} tests and a total of {total}")
    return Scored(total=total, cases=cases)


def _mean(cases: tuple[CaseGrade, ...]) -> float:
    return sum(case.score or 0.0 for case in cases) / len(cases)


def _case(test: Mapping[str, object], *, reached: bool) -> CaseGrade:
    score, most = test["score"], test["max_score"]
    if not isinstance(score, int | float) or not isinstance(most, int | float):
        raise TypeError(f"a score of {score!r} out of {most!r}")
    percent = 100.0 * score / most
    return CaseGrade(
        case=str(test["name"]),
        result="pass" if percent >= 100 else "fail",
        score=percent,
        reached=reached,
        why="" if percent >= 100 else str(test.get("output") or "")[:500],
    )
