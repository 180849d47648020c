"""`stumble pipeline run --workload yatcc`: an agent on a stand-in for a checkout, graded by it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.yatcc_checkout import configure_checkout

AGENT = """#!/bin/sh
# Hands in 70 for each task, and for task 2 too little.
case $STUMBLE_STAGE in
T2) echo 30 > task/2/points.txt ;;
*) echo 70 > task/"${STUMBLE_STAGE#T}"/points.txt ;;
esac
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a configured checkout and an agent."""
    configure_checkout(tmp_path / "checkout")
    (tmp_path / "agent").write_text(AGENT)
    (tmp_path / "agent").chmod(0o755)
    return tmp_path


def run(here: Path, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "stumble", "pipeline", "run", "--agent", f"{here}/agent"]
    ran = subprocess.run(
        [*command, "--workload", "yatcc", *words],
        cwd=here,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran


@pytest.mark.thorough
def test_an_agent_goes_through_the_tasks_of_a_copy(here: Path) -> None:
    files = [path for path in (here / "checkout").rglob("*.*") if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    ran = run(
        here,
        *("--checkout", "checkout", "--i-have-permission"),
        *("--stages", "T1,T2,T3", "--sandbox", "none", "--json"),
    )
    assert "forbids its use to train" in ran.stderr
    stages = json.loads(ran.stdout)["stages"]
    assert [each["score"] for each in stages] == [69.75, 29.75, 69.75]
    assert [each["provenance"] for each in stages] == ["golden", "golden", "golden"]
    assert [each["resurrected"] for each in stages] == [False, True, False]
    assert {each["workload"] for each in stages} == {"yatcc"}
    assert {path: path.read_bytes() for path in before} == before


def test_without_permission_there_is_the_notice_and_nothing_else(here: Path) -> None:
    ran = run(here, "--checkout", "checkout", code=2)
    assert "forbids its use to train or to validate machine-learning systems" in ran.stderr
    assert "nothing was run: YatCC needs --i-have-permission" in ran.stderr
    assert not list((here / ".stumble").rglob("*.tape"))
    assert not (here / ".stumble" / "pipelines").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "YatCC needs --checkout DIR, a configured checkout"),
        (("--checkout", "nowhere"), "nowhere is no folder"),
        (("--checkout", "agents"), "agents has no CMakeLists.txt, config.cmake, task/0 and more"),
        (("--checkout", "checkout", "--mode", "autonomous"), "always needs its framework"),
    ],
)
def test_what_cannot_be_driven_is_named_before_the_agent_starts(
    here: Path, words: tuple[str, ...], said: str
) -> None:
    (here / "agents").mkdir()
    assert said in run(here, "--i-have-permission", *words, code=2).stderr
