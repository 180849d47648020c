"""A checkout of YatCC is driven by its targets; here one of our own that offers the same ones.

It is built and graded with g++, clang, java, cmake and ctest, whose temporary folder is read-only.
"""

import os
import shutil
import subprocess
from copy import replace
from pathlib import Path

import pytest

from scenarios.pipeline.compiler.types import StageGrade
from scenarios.pipeline.yatcc import scores
from scenarios.pipeline.yatcc.checkout import (
    YatccCheckout,
    parse_cmake_settings,
    rewrite_cmake_settings,
)
from scenarios.pipeline.yatcc.grading import LIMITS, grade_yatcc_stage
from tests.support.yatcc_checkout import STANDIN, configure_checkout, hand_in, run_cmake


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in, configured by its user."""
    folder = tmp_path_factory.mktemp("yatcc") / "checkout"
    configure_checkout(folder)
    return folder


@pytest.fixture
def checkout(configured: Path, tmp_path: Path) -> YatccCheckout:
    """A copy of it, which a test may change."""
    shutil.copytree(configured, tmp_path / "checkout")
    return YatccCheckout(folder=tmp_path / "checkout")


def handed_in(checkout: YatccCheckout, stage: str, word: str) -> Path:
    """A workspace in which a stage's program is this word."""
    workspace = checkout.folder.parent / f"workspace-{stage}-{word}"
    checkout.copy_to(workspace)
    hand_in(workspace, stage, word)
    return workspace


def grade(checkout: YatccCheckout, stage: str, workspace: Path, wall: float = 600) -> StageGrade:
    limits = replace(LIMITS, wall=wall)
    return grade_yatcc_stage(checkout, stage, workspace, jobs=2, limits=limits)


@pytest.mark.many(2)
@pytest.mark.parametrize(
    ("stage", "points", "total"),
    [
        ("T0", 100, 100),
        ("T1", 82, 81.75),
        ("T2", 70, 69.75),
        ("T4", 70, 69.75),
        ("T5", 100, 99.75),
    ],
)
def test_each_stage_is_graded_on_the_answers_of_the_one_before(
    checkout: YatccCheckout, stage: str, points: int, total: float
) -> None:
    """Text counts as a total, before the mean of rounded scores; without one the mean counts.

    Half of the points is lost where a program does not get what the checkout has as an answer.
    """
    before = (checkout.folder / "config.cmake").read_bytes()
    found = grade(checkout, stage, handed_in(checkout, stage, str(points)))
    assert (found.score, found.passed, found.result, found.given) == (
        total,
        True,
        "pass",
        "golden",
    ), found.cases
    names = ["ends well"] if stage == "T0" else ["group/a.c", "group/b.c"]
    assert [(case.case, case.score) for case in found.cases] == [(n, points) for n in names]
    assert (checkout.folder / "config.cmake").read_bytes() == before


@pytest.mark.thorough
def test_a_user_who_gives_no_answers_is_overruled_in_the_copy(checkout: YatccCheckout) -> None:
    config = checkout.folder / "config.cmake"
    config.write_text(config.read_text().replace("TASK4_REVIVE ON", "TASK4_REVIVE OFF"))
    assert grade(checkout, "T4", handed_in(checkout, "T4", "90")).score == 89.75


def test_only_the_program_of_a_workspace_is_graded(checkout: YatccCheckout) -> None:
    workspace = handed_in(checkout, "T1", "30")
    (workspace / "test" / "score.py").write_text("raise SystemExit\n")
    (workspace / "config.cmake").write_text("message(FATAL_ERROR broken)\nset(TASK1_WITH \\q)\n")
    assert grade(checkout, "T1", workspace).score == 29.75


SCORE = """
import json, sys
from pathlib import Path
control = Path(sys.argv[1]).parents[1] / "scored"
names = ["group/b.c", "group/a.c"] if not control.exists() else [{names}]
control.touch()
tests = [{{"name": name, "score": 100, "max_score": 100, "output": ""}} for name in names]
Path(sys.argv[1], "score.json").write_text(json.dumps({{"tests": tests, "leaderboard": []}}))
"""
FORGERIES = {
    "the script that scores": (
        'file(WRITE "${CMAKE_SOURCE_DIR}/test/score.py" "raise SystemExit")',
        "agent_error",
    ),
    "the target": ("add_custom_target(task1-score COMMAND true)", "agent_error"),
    "the scores, the answers and their cache, the tools": (
        'file(WRITE "${CMAKE_BINARY_DIR}/test/task1/score.json" "{}")\n'
        'file(WRITE "${CMAKE_BINARY_DIR}/test/task1/cases.cache" "group/a.c group/b.c")\n'
        'set(PYTHON_EXECUTABLE /bin/true CACHE FILEPATH "" FORCE)\n'
        'set(CMAKE_CTEST_COMMAND /bin/true CACHE INTERNAL "" FORCE)',
        "pass",
    ),
    "the other tree, in a step after the build": (
        "add_custom_command(TARGET task1 POST_BUILD COMMAND sh -c "
        '"sleep 600 & echo x >> ${CMAKE_SOURCE_DIR}/../tree/test/score.py")',
        "agent_error",
    ),
}


@pytest.mark.many(2)
@pytest.mark.parametrize("name", FORGERIES)
def test_cmake_files_of_the_agent_change_nothing_that_scores(
    checkout: YatccCheckout, name: str
) -> None:
    text, result = FORGERIES[name]
    workspace = handed_in(checkout, "T1", "80")
    lists = workspace / "task" / "1" / "CMakeLists.txt"
    lists.write_text(f"{lists.read_text()}{text}\n")
    found = grade(checkout, "T1", workspace)
    assert (found.result, found.score) == (result, 79.75 if result == "pass" else 0), found.cases
    if result == "pass":
        assert [case.case for case in found.cases] == ["group/a.c", "group/b.c"]


MEDDLES = """
  std::string to(argv[2]);
  chdir(to.substr(0, to.find("/test/task")).c_str());
  system("echo x > test/task1/group/b.c/answer.txt; echo x > test/task1/cases.cache");
"""


@pytest.mark.thorough
def test_a_program_that_changes_answers_while_it_is_scored_is_named(
    checkout: YatccCheckout,
) -> None:
    workspace = handed_in(checkout, "T1", "80")
    main = workspace / "task" / "main.cpp"
    at = "  char first[999]"
    program = main.read_text().replace(at, f"{MEDDLES}{at}")
    main.write_text(f"#include <cstdlib>\n#include <string>\n{program}")
    found = grade(checkout, "T1", workspace)
    assert (found.result, found.score) == ("agent_error", 0)
    assert found.cases[0].why == (
        "the answers were changed while the program ran: "
        "build/test/task1/cases.cache, build/test/task1/group/b.c/answer.txt"
    )


@pytest.mark.thorough
def test_scores_of_other_cases_do_not_count(checkout: YatccCheckout) -> None:
    workspace = handed_in(checkout, "T1", "80")
    (checkout.folder / "test" / "score.py").write_text(SCORE.format(names="'x', 'group/a.c'"))
    found = grade(checkout, "T1", workspace)
    assert (found.result, found.score) == ("agent_error", 0)
    assert found.cases[0].why == "scores of cases that the checkout does not have: x"
    (checkout.folder / "test" / "score.py").write_text(
        SCORE.format(names="'group/a.c', 'group/a.c'")
    )
    found = grade(checkout, "T1", workspace)
    assert found.cases[0].why == "2 scores for 2 cases of the checkout"


STALE = (
    SCORE.format(names="'group/a.c'")
    + """
import os
os.utime(Path(sys.argv[1], "score.json"), (1e9, 1e9))
"""
)


@pytest.mark.many(2)
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("raise SystemExit('error: not written')", "task1-score left no score.json: "),
        (STALE, "score.json is older than this run"),
        ("import sys; open(sys.argv[1] + '/score.json', 'w').write('{}')",
         "score.json is no score file"),
    ],
)  # fmt: skip
def test_only_a_new_and_sound_score_file_is_a_score(
    checkout: YatccCheckout, script: str, why: str
) -> None:
    (checkout.folder / "test" / "score.py").write_text(script)
    found = grade(checkout, "T1", handed_in(checkout, "T1", "50"))
    assert (found.result, found.score) == ("infrastructure_error", None)
    assert found.cases[0].why.startswith(f"the checkout's own program cannot be scored: {why}")


REBUILT = (
    SCORE.format(names="'group/a.c', 'group/b.c'")
    + """
program = next((Path(sys.argv[1]).parents[1] / "task").rglob("task1"))
program.write_bytes(program.read_bytes() + b"linked again")
"""
)


@pytest.mark.thorough
def test_a_program_that_the_checkout_builds_again_is_not_the_agents(
    checkout: YatccCheckout,
) -> None:
    """Ninja did that in a real checkout, whose own program then had the score of every agent."""
    (checkout.folder / "test" / "score.py").write_text(REBUILT)
    found = grade(checkout, "T1", handed_in(checkout, "T1", "50"))
    assert (found.result, found.score) == ("infrastructure_error", None)
    assert found.cases[0].why == "the checkout built its own program again before it scored"


@pytest.mark.thorough
def test_what_the_control_left_is_not_the_agents(checkout: YatccCheckout) -> None:
    hand_in(checkout.folder, "T1", "50")
    assert grade(checkout, "T1", handed_in(checkout, "T1", "nothing")).score == 0
    hand_in(checkout.folder, "T1", "nothing")
    assert grade(checkout, "T1", handed_in(checkout, "T1", "50")).score == 49.75


def test_a_program_that_does_not_build_is_the_agents_doing(checkout: YatccCheckout) -> None:
    found = grade(checkout, "T1", handed_in(checkout, "T1", "broken"))
    assert (found.result, found.score) == ("agent_error", 0)
    assert found.cases[0].why.startswith("task1 does not build: ")
    assert "error" in found.cases[0].why


@pytest.mark.thorough
def test_time_that_a_program_takes_is_the_agents(checkout: YatccCheckout) -> None:
    found = grade(checkout, "T1", handed_in(checkout, "T1", "slow"), wall=20)
    assert (found.result, found.score) == ("limit", 0)
    assert found.cases[0].why == "task1-score: it used up its wall"


def test_a_checkout_that_does_not_build_by_itself_is_no_fault_of_the_agent(
    checkout: YatccCheckout,
) -> None:
    workspace = handed_in(checkout, "T2", "broken")
    hand_in(checkout.folder, "T2", "broken")
    found = grade(checkout, "T2", workspace)
    assert (found.result, found.score) == ("infrastructure_error", None)
    assert found.cases[0].why.startswith("the checkout does not build without the agent's tasks")


def test_a_workspace_without_tasks_is_the_agents_doing(checkout: YatccCheckout) -> None:
    workspace = handed_in(checkout, "T1", "50")
    shutil.rmtree(workspace / "task")
    found = grade(checkout, "T1", workspace)
    assert (found.result, found.score) == ("agent_error", 0)


def test_a_checkout_that_cannot_be_copied_is_no_fault_of_the_agent(checkout: YatccCheckout) -> None:
    workspace = handed_in(checkout, "T1", "50")
    os.mkfifo(checkout.folder / "pipe")
    found = grade(checkout, "T1", workspace)
    assert (found.result, found.score) == ("infrastructure_error", None)
    assert found.cases[0].why.startswith("there is no copy to grade: ")


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
    lists = checkout.folder / "test" / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("task5-classic-score", "task5-other"))
    shutil.rmtree(checkout.folder / "build")
    run_cmake(checkout.folder)
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
    found = scores.read_score_file(shared / "yatcc" / f"{name}.json")
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
        scores.read_score_file(path)
