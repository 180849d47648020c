"""The prepared solutions, graded as any agent's programs are."""

from pathlib import Path

import pytest

from scenarios.pipeline.compiler import golden, toolchain
from scenarios.pipeline.compiler.grading import PREVIOUS_STAGE, grade_stage
from scenarios.pipeline.compiler.solutions import QUALITIES, load_solution, write_solution
from scenarios.pipeline.compiler.starter_workspace import create_starter_workspace
from scenarios.pipeline.compiler.types import STAGES, StageGrade

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        toolchain.explain_missing_tools() is not None, reason=str(toolchain.explain_missing_tools())
    ),
]
LEAST = {"T0": 100.0, "T1": 100.0, "T2": 99.9, "T3": 100.0, "T4": 84.0, "T5": 100.0}
"""What a good solution scores at least, on golden artifacts."""


def graded(folder: Path, stage: str, quality: str) -> StageGrade:
    workspace = folder / "work"
    create_starter_workspace(workspace, "python", bare=False)
    write_solution(workspace, stage, quality)
    given = (
        golden.load_golden_slot(PREVIOUS_STAGE[stage])
        if stage in PREVIOUS_STAGE
        else golden.make_source_slot()
    )
    return grade_stage(stage, workspace, given, jobs=2)


@pytest.mark.parametrize("stage", STAGES)
def test_a_good_solution(tmp_path: Path, stage: str) -> None:
    found = graded(tmp_path, stage, "good")
    assert found.score is not None
    failed = [(case.case, case.why) for case in found.cases if case.score != 100]
    assert found.score >= LEAST[stage], failed[:5]


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
    score = graded(tmp_path, stage, quality).score
    assert score is not None
    assert least <= score < most


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
