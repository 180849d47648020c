"""The prepared solutions, graded as any agent's programs are."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from scenarios.pipeline.compiler import golden, toolchain
from scenarios.pipeline.compiler.bands import load_measured_scores
from scenarios.pipeline.compiler.grading import PREVIOUS_STAGE, grade_stage
from scenarios.pipeline.compiler.program_cases import list_graded_cases
from scenarios.pipeline.compiler.solutions import QUALITIES, load_solution, write_solution
from scenarios.pipeline.compiler.starter_workspace import create_starter_workspace
from scenarios.pipeline.compiler.types import STAGES, ProgramCase, StageGrade

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        toolchain.explain_missing_tools() is not None, reason=str(toolchain.explain_missing_tools())
    ),
]
LEAST = {"T0": 100.0, "T1": 100.0, "T2": 99.9, "T3": 100.0, "T4": 84.0, "T5": 100.0}
"""What a good solution scores at least, on golden artifacts."""


def graded(
    folder: Path, stage: str, quality: str, cases: Sequence[ProgramCase] | None = None
) -> StageGrade:
    workspace = folder / "work"
    create_starter_workspace(workspace, "python", bare=False)
    write_solution(workspace, stage, quality)
    given = (
        golden.load_golden_slot(PREVIOUS_STAGE[stage])
        if stage in PREVIOUS_STAGE
        else golden.load_golden_slot("source")
    )
    return grade_stage(stage, workspace, given, jobs=2, cases=cases)


def assert_as_measured(grade: StageGrade, quality: str) -> None:
    """The scores are those that the bands of difficulty were made of."""
    measured = load_measured_scores()
    differing = {
        case.case: case.score
        for case in grade.cases
        if case.score != pytest.approx(measured[case.case][grade.stage, quality], rel=1e-5)
    }
    assert differing == {}


@pytest.mark.many(1)
@pytest.mark.parametrize("stage", STAGES)
def test_a_good_solution(tmp_path: Path, stage: str) -> None:
    found = graded(tmp_path, stage, "good")
    assert found.score is not None
    failed = [(case.case, case.why) for case in found.cases if case.score != 100]
    assert found.score >= LEAST[stage], failed[:5]
    if stage != "T0":
        assert_as_measured(found, "good")


@pytest.mark.many(1)
@pytest.mark.parametrize(
    ("stage", "quality", "least", "most"),
    [
        ("T1", "fair", 60, 80),
        ("T1", "half", 40, 60),
        ("T2", "half", 40, 60),
        ("T2", "broken", 0, 20),
        ("T3", "half", 30, 60),
        ("T4", "fair", 70, 80),
        ("T5", "half", 40, 60),
    ],
)
def test_a_lesser_one(tmp_path: Path, stage: str, quality: str, least: int, most: int) -> None:
    found = graded(tmp_path, stage, quality, list_graded_cases()[1::3])
    assert found.score is not None
    assert least <= found.score < most
    assert_as_measured(found, quality)


@pytest.mark.many(1)
@pytest.mark.parametrize(
    ("stage", "quality"),
    [
        ("T1", "broken"),
        ("T2", "fair"),
        ("T3", "fair"),
        ("T3", "broken"),
        ("T4", "half"),
        ("T4", "broken"),
        ("T5", "fair"),
        ("T5", "broken"),
    ],
)
def test_the_others_score_what_was_measured_on_some_programs(
    tmp_path: Path, stage: str, quality: str
) -> None:
    assert_as_measured(graded(tmp_path, stage, quality, list_graded_cases()[::13]), quality)


def test_every_quality_of_every_stage_is_a_program_that_python_can_read() -> None:
    programs = {}
    for stage in STAGES:
        for quality in QUALITIES[:-1]:
            whole = load_solution(stage, quality)
            assert whole is not None
            compile(whole, f"{stage} {quality}", "exec")
            programs[stage, quality] = whole
        assert load_solution(stage, "none") is None
    own = {key: whole for key, whole in programs.items() if key[0] != "T0"}
    assert len(set(own.values())) == len(own), "no two of them are the same"


def test_there_is_no_other_quality() -> None:
    with pytest.raises(ValueError, match="there is no quality superb"):
        load_solution("T1", "superb")
