"""Parse YatCC score files: tests with integer scores, and a total given as text.

    {"tests": [{"name", "score", "max_score", "output", "output_path"}, ...],
     "leaderboard": [{"name", "value": "29.59", ...}]}

The total counts, since each test's score in the file is rounded up. T0 has no total; its score is
the mean of its tests.
"""

from collections.abc import Mapping
from pathlib import Path

import orjson
from msgspec import Struct

from scenarios.pipeline.compiler.types import CaseGrade

NAMES: Mapping[str, tuple[str, ...]] = {
    "T4": ("score-classic.json", "score.json"),
    "T5": ("score-classic.json", "score.json"),
}
"""Names of a stage's score file, the first existing one counts; `score.json` for other stages."""
TOTAL = "\u603b\u5206"
"""The name of the total in `leaderboard`."""


class YatccScores(Struct, frozen=True, kw_only=True):
    """The scores of a score file, of 100."""

    total: float
    cases: tuple[CaseGrade, ...]


def list_score_files(stage: str) -> tuple[str, ...]:
    """Return the names of a stage's score file, in order of preference."""
    return NAMES.get(stage, ("score.json",))


def read_score_file(path: Path) -> YatccScores:
    """Parse a score file. Raises ValueError if it is invalid."""
    try:
        document = orjson.loads(path.read_bytes())
        tests = document["tests"]
        cases = tuple(_parse_test_grade(test) for test in tests)
        totals = [each["value"] for each in document["leaderboard"] if each["name"] == TOTAL]
        total = float(totals[0]) if totals else _compute_mean_score(cases)
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise ValueError(f"{path.name} is no score file: {error!r}") from None
    if not cases or not 0 <= total <= 100:
        raise ValueError(f"{path.name} has {len(cases)} tests and a total of {total}")
    return YatccScores(total=total, cases=cases)


def _compute_mean_score(cases: tuple[CaseGrade, ...]) -> float:
    return sum(case.score or 0.0 for case in cases) / len(cases)


def _parse_test_grade(test: Mapping[str, object]) -> CaseGrade:
    score, maximum = test["score"], test["max_score"]
    if not isinstance(score, int | float) or not isinstance(maximum, int | float):
        raise TypeError(f"a score of {score!r} out of {maximum!r}")
    percent = 100.0 * score / maximum
    return CaseGrade(
        case=str(test["name"]),
        result="pass" if percent >= 100 else "fail",
        score=percent,
        reached=True,
        why="" if percent >= 100 else str(test.get("output") or "")[:500],
    )
