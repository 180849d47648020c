"""A checkout of YatCC is driven by its targets; here one of our own that offers the same ones."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.pipeline.compiler.types import ArtifactSlot, StageGrade
from scenarios.pipeline.yatcc import scores
from scenarios.pipeline.yatcc.checkout import (
    YatccCheckout,
    parse_cmake_settings,
    rewrite_cmake_settings,
)
from scenarios.pipeline.yatcc.grading import LIMITS, grade_yatcc_stage

STANDIN = Path(__file__).parents[2] / "data" / "yatcc"
GOLDEN = ArtifactSlot(stage="T1", provenance="golden")
OWN = ArtifactSlot(stage="T1", provenance="own")


@pytest.fixture
def checkout(tmp_path: Path) -> YatccCheckout:
    """The stand-in, configured by its user."""
    folder = tmp_path / "checkout"
    shutil.copytree(STANDIN, folder)
    configured = ["cmake", "-S", str(folder), "-B", str(folder / "build"), "-G", "Unix Makefiles"]
    subprocess.run(configured, check=True, capture_output=True)
    return YatccCheckout(folder=folder)


def handed_in(checkout: YatccCheckout, stage: str, word: str) -> Path:
    """A workspace in which a stage's program is this word."""
    workspace = checkout.folder.parent / f"workspace-{stage}-{word}"
    checkout.copy_to(workspace)
    (workspace / "task" / stage[1] / "points.txt").write_text(f"{word}\n")
    return workspace


def graded(
    checkout: YatccCheckout, stage: str, word: str, given: ArtifactSlot = GOLDEN
) -> StageGrade:
    limits = replace(LIMITS, wall=3) if word == "slow" else LIMITS
    workspace = handed_in(checkout, stage, word)
    return grade_yatcc_stage(checkout, stage, workspace, given, jobs=2, limits=limits)


def test_a_total_is_text_and_counts_before_the_mean_of_rounded_scores(
    checkout: YatccCheckout,
) -> None:
    found = graded(checkout, "T3", "82")
    assert (found.score, found.passed, found.result) == (82.25, True, "pass")
    [case] = found.cases
    assert (case.case, case.score, case.why) == ("group/a.c", 83, "wrong here")


def test_without_a_total_the_mean_of_the_tests_counts(checkout: YatccCheckout) -> None:
    assert graded(checkout, "T0", "100").score == 100


@pytest.mark.parametrize("stage", ["T4", "T5"])
def test_the_last_stages_have_targets_and_score_files_of_another_name(
    checkout: YatccCheckout, stage: str
) -> None:
    assert graded(checkout, stage, "70").score == 70.25


def test_what_a_stage_is_given_is_a_setting_that_is_rewritten(checkout: YatccCheckout) -> None:
    before = (checkout.folder / "config.cmake").read_bytes()
    assert graded(checkout, "T2", "80", given=OWN).score == 40
    assert graded(checkout, "T2", "80", given=GOLDEN).score == 80.25
    assert (checkout.folder / "config.cmake").read_bytes() == before


def test_only_the_tasks_of_a_workspace_are_graded(checkout: YatccCheckout) -> None:
    workspace = handed_in(checkout, "T1", "30")
    (workspace / "test" / "score.cmake").write_text('file(WRITE "${TO}" "{}")\n')
    (workspace / "config.cmake").write_text("message(FATAL_ERROR broken)\nset(TASK1_WITH \\q)\n")
    assert grade_yatcc_stage(checkout, "T1", workspace, GOLDEN, jobs=1).score == 30.25


@pytest.mark.parametrize(
    ("word", "result", "score", "why"),
    [
        ("broken", "agent_error", 0, "task1 does not build: CMake Error"),
        ("silent", "infrastructure_error", None, "task1-score left no score.json"),
        ("stale", "infrastructure_error", None, "score.json is older than this run"),
        ("garbled", "infrastructure_error", None, "score.json is no score file"),
        ("slow", "infrastructure_error", None, "task1-score left no score.json"),
    ],
)
def test_only_a_new_and_sound_score_file_is_a_score(
    checkout: YatccCheckout, word: str, result: str, score: float | None, why: str
) -> None:
    found = graded(checkout, "T1", word)
    assert (found.result, found.score) == (result, score)
    assert found.cases[0].why.startswith(why)


def test_a_checkout_that_does_not_build_by_itself_is_no_fault_of_the_agent(
    checkout: YatccCheckout,
) -> None:
    workspace = handed_in(checkout, "T2", "broken")
    (checkout.folder / "task" / "2" / "points.txt").write_text("broken\n")
    found = grade_yatcc_stage(checkout, "T2", workspace, GOLDEN, jobs=1)
    assert (found.result, found.score) == ("infrastructure_error", None)
    assert found.cases[0].why.startswith("the checkout does not build without the agent's tasks")


def test_a_workspace_without_tasks_is_the_agents_doing(checkout: YatccCheckout) -> None:
    workspace = handed_in(checkout, "T1", "50")
    shutil.rmtree(workspace / "task")
    found = grade_yatcc_stage(checkout, "T1", workspace, GOLDEN, jobs=1)
    assert (found.result, found.score) == ("agent_error", 0)


def test_a_checkout_that_cannot_be_copied_is_no_fault_of_the_agent(checkout: YatccCheckout) -> None:
    workspace = handed_in(checkout, "T1", "50")
    os.mkfifo(checkout.folder / "pipe")
    found = grade_yatcc_stage(checkout, "T1", workspace, GOLDEN, jobs=1)
    assert (found.result, found.score) == ("infrastructure_error", None)
    assert found.cases[0].why.startswith("there is no copy to grade: ")


FORGES = """
set(forged "${CMAKE_BINARY_DIR}/test/task1/score.json")
if(NOT EXISTS "${forged}")
  file(WRITE "${forged}" "{}")
  execute_process(COMMAND touch -d 2099-01-01 "${forged}")
endif()
"""


def test_a_score_file_that_came_with_a_build_is_no_score(checkout: YatccCheckout) -> None:
    workspace = handed_in(checkout, "T1", "silent")
    lists = checkout.folder / "CMakeLists.txt"
    lists.write_text(lists.read_text() + FORGES)
    found = grade_yatcc_stage(checkout, "T1", workspace, GOLDEN, jobs=1)
    assert (found.result, found.score) == ("infrastructure_error", None)
    assert found.cases[0].why.startswith("score.json is older than this run")


def test_what_a_checkout_lacks_is_named(checkout: YatccCheckout, tmp_path: Path) -> None:
    assert checkout.find_obstacle() is None
    nowhere = YatccCheckout(folder=tmp_path / "nowhere").find_obstacle()
    assert nowhere == f"{tmp_path}/nowhere is no folder: --checkout names a checkout of YatCC"

    shutil.rmtree(checkout.folder / "test" / "task3")
    subprocess.run(["git", "init", "-q", "-b", "older", checkout.folder], check=True)
    committed = ["git", "-C", str(checkout.folder), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*committed, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    assert checkout.find_obstacle() == (
        f"{checkout.folder} (on branch older) has no test/task3: "
        "check out a branch that has all six tasks"
    )


def test_a_checkout_that_is_not_configured_is_named(checkout: YatccCheckout) -> None:
    shutil.rmtree(checkout.folder / "build")
    assert "is not configured, there is no build/CMakeCache.txt" in (checkout.find_obstacle() or "")


def test_a_target_that_is_not_there_is_named(checkout: YatccCheckout) -> None:
    lists = checkout.folder / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("task5-classic-score", "task5-other"))
    build = ["cmake", "-S", str(checkout.folder), "-B", str(checkout.folder / "build")]
    subprocess.run(build, check=True, capture_output=True)
    missing = checkout.find_obstacle()
    assert missing == f"{checkout.folder}/build has no target task5-score: configure it anew"


def test_settings_are_rewritten_and_the_others_stay() -> None:
    config = (STANDIN / "config.cmake").read_text()
    found = rewrite_cmake_settings(config, {"TASK3_REVIVE": "OFF", "TASK5_REVIVE": "OFF"})
    assert (
        found == config.replace("TASK3_REVIVE ON", "TASK3_REVIVE OFF") + "set(TASK5_REVIVE OFF)\n"
    )
    changed = parse_cmake_settings(found).items() - parse_cmake_settings(config).items()
    assert changed == {("TASK3_REVIVE", "OFF"), ("TASK5_REVIVE", "OFF")}
    assert parse_cmake_settings(found)["STUDENT_NAME"] == "nobody"


@pytest.mark.parametrize(
    ("name", "tests", "total"),
    [
        ("task0-score", 1, 100),
        ("task1-score", 73, 100),
        ("task2-score", 73, 100),
        ("task3-score", 73, 100),
        ("task4-score-classic", 12, 29.59),
        ("task5-score-classic", 64, 100),
        ("task5-score-llm", 6, 100),
    ],
)
def test_real_score_files_are_read(shared: Path, name: str, tests: int, total: float) -> None:
    found = scores.read_score_file(shared / "yatcc" / f"{name}.json", reached=True)
    assert (len(found.cases), found.total) == (tests, total)


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"tests": [], "leaderboard": []}', '{"tests": [{"name": "a"}], "leaderboard": []}',
     '{"tests": [{"name": "a", "score": 1, "max_score": 0}], "leaderboard": []}'],
)  # fmt: skip
def test_what_is_no_score_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "score.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"score\.json"):
        scores.read_score_file(path, reached=True)
