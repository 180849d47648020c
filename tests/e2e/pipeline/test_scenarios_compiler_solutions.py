"""The prepared solutions, graded as any agent's programs are."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest

from scenarios.pipeline.compiler import golden, toolchain
from scenarios.pipeline.compiler.grading import PREVIOUS_STAGE, grade_stage
from scenarios.pipeline.compiler.program_cases import IN_BAND
from scenarios.pipeline.compiler.programs.grammar import BANDS
from scenarios.pipeline.compiler.solutions import QUALITIES, load_solution, write_solution
from scenarios.pipeline.compiler.starter_workspace import create_starter_workspace
from scenarios.pipeline.compiler.types import PASS, STAGES, ProgramCase, StageGrade
from tests.support.compiler_workspaces import script

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        toolchain.explain_missing_tools() is not None, reason=str(toolchain.explain_missing_tools())
    ),
]
LEAST = {"T0": 100.0, "T1": 100.0, "T2": 99.9, "T3": 100.0, "T4": 75.0, "T5": 100.0}
"""What a good solution scores at least, on golden artifacts."""


def graded(
    folder: Path, stage: str, quality: str, cases: Sequence[ProgramCase] | None = None
) -> StageGrade:
    workspace = folder / quality
    create_starter_workspace(workspace, "python", bare=False)
    write_solution(workspace, stage, quality)
    return grade_given(workspace, stage, cases)


def grade_given(
    workspace: Path, stage: str, cases: Sequence[ProgramCase] | None = None
) -> StageGrade:
    slot = golden.load_golden_slot(PREVIOUS_STAGE.get(stage, "source"))
    return grade_stage(stage, workspace, slot, jobs=2, cases=cases)


@pytest.mark.many(1)
@pytest.mark.parametrize("stage", STAGES)
def test_a_good_solution(tmp_path: Path, stage: str) -> None:
    found = graded(tmp_path, stage, "good")
    assert found.score is not None
    failed = [(case.case, case.why) for case in found.cases if case.score != 100]
    assert found.score >= LEAST[stage], failed[:5]


@pytest.mark.many(2)
@pytest.mark.parametrize("stage", STAGES)
def test_five_qualities_are_in_order_and_two_of_them_pass(tmp_path: Path, stage: str) -> None:
    """Of 21 programs, 7 of each band; T0 is right or wrong."""
    scores = [
        graded(tmp_path, stage, quality, golden.list_graded_cases()[::3]).score or 0.0
        for quality in QUALITIES
    ]
    assert [score >= PASS for score in scores] == [True, True, False, False, False]
    if stage == "T0":
        assert scores == [100.0, 100.0, 0.0, 0.0, 0.0]
    else:
        assert all(better - worse > 1 for better, worse in pairwise(scores)), scores


OPTIMISERS = {
    "untouched": None,
    "variables to registers": (
        ("ROUNDS = 6", "ROUNDS = 0"),
        ("        hoist(function)\n", ""),
        ("    expand(module)\n", ""),
    ),
    "folding as well": (("        hoist(function)\n", ""), ("    expand(module)\n", "")),
    "all": (),
}
"""Replacements in the good solution of T4."""


@pytest.mark.gate
def test_better_optimisers_score_more(tmp_path: Path) -> None:
    scores = {}
    for name, changes in OPTIMISERS.items():
        program = load_solution("T4", "good") if changes is not None else None
        for was, becomes in changes or ():
            assert program is not None
            assert program.count(was) == 1
            program = program.replace(was, becomes)
        script(tmp_path / name, "T4", program or '#!/bin/sh\ncp "$1" "$2"\n')
        scores[name] = grade_given(tmp_path / name, "T4", golden.list_graded_cases()[::4]).score
    figures = [score or 0.0 for score in scores.values()]
    assert figures[0] == 0.0
    assert all(one < other for one, other in pairwise(figures)), scores
    assert figures[1] > PASS


@pytest.mark.thorough
@pytest.mark.parametrize("stage", STAGES[1:])
def test_each_band_is_harder_than_the_one_before(tmp_path: Path, stage: str) -> None:
    """Means of the three lesser solutions on all programs of a seed."""
    means = dict.fromkeys(BANDS, 0.0)
    for quality in ("fair", "half", "broken"):
        cases = graded(tmp_path, stage, quality).cases
        for at, band in enumerate(BANDS):
            part = cases[at * IN_BAND : (at + 1) * IN_BAND]
            means[band] += fmean(case.score or 0.0 for case in part) / 3
    assert all(easier > harder for easier, harder in pairwise(means.values())), means


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
