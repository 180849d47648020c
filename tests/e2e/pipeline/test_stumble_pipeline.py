"""An agent is driven through the stages, graded, and all of it is on one tape."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from scenarios.pipeline.compiler.types import ArtifactSlot
from scenarios.pipeline.grader import grade_pipeline_stage
from stumble.pipeline.config import PipelineConfig
from stumble.pipeline.reference_workspaces import lay_out_golden
from traces.tape.reader import read_tape

AGENT = """#!/bin/sh
# Puts the prepared program of its stage in place, unless that stage is named in `fails`; with
# `learns` it is named there once.
mark() { echo "$STUMBLE_STAGE" >> "$HERE/started"; }
mark
cat >> "$HERE/told"
if [ "$(grep -c . "$HERE/started")" -gt 1 ] && [ -e "$HERE/hangs-later" ]; then sleep 300; fi
if grep -q "$STUMBLE_STAGE" "$HERE/hangs" 2>/dev/null; then sleep 300; fi
if grep -q "$STUMBLE_STAGE" "$HERE/fails" 2>/dev/null; then
    if [ -e "$HERE/learns" ]; then sed -i "s/$STUMBLE_STAGE//" "$HERE/fails"; fi
    exit 3
fi
folder=$(echo "$STUMBLE_STAGE" | tr T t)
cp -r "$HERE/prepared/workspace/$folder/." "$folder/"
"""
LIMIT = 240


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that know the golden answers."""
    folder = tmp_path_factory.mktemp("prepared")
    PipelineConfig(agent="").write(folder)
    lay_out_golden(folder)
    return folder


KNOWN_PROGRAMS = ("--programs-seed", "0")
"""Those whose answers the agent has, and which are not chosen anew."""


@pytest.fixture
def here(tmp_path: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an agent that asks no model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HERE", str(tmp_path))
    shutil.copytree(prepared, tmp_path / "prepared")  # the sandbox shows the agent's own folder
    (tmp_path / "agent").write_text(AGENT)
    (tmp_path / "agent").chmod(0o755)
    return tmp_path


def stumble(*words: object, code: int = 0) -> str:
    """What a command says on both its streams."""
    command = [sys.executable, "-m", "stumble", *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def pipeline(here: Path, *words: str, stages: str = "T1,T2", sandbox: str = "process") -> str:
    own = ("--agent", f"{here}/agent", "--env", "HERE", "--sandbox", sandbox, "--stages", stages)
    return stumble("pipeline", "run", *own, *KNOWN_PROGRAMS, *words)


def rows(columns: str) -> list[list[Any]]:
    """Columns of the only run's stages, in the order of the stages."""
    query = f"select {columns} from stages order by trajectory_id, stage"
    return [list(row.values()) for row in json.loads(stumble("sql", "--json", query))]


def tapes() -> list[Path]:
    return sorted(Path(".stumble/tapes").glob("*.tape"))


@pytest.mark.thorough
def test_a_failed_stage_is_resurrected_and_keeps_its_score(here):
    (here / "fails").write_text("T1")
    shown = pipeline(here)
    assert "T2: 100% of its program (" in shown
    assert "bytes) is in no answer of the model: t2/" in shown, "the agent has no model"
    assert rows("unwritten_bytes = program_bytes and program_bytes > 10000")[1] == [True]
    one, two = rows("score, passed, outcome, resurrected, provenance, agent_exit, cases - solved")
    assert one[0] < 60
    assert one[1:6] == [False, "fail", True, "golden", 3]
    assert two == [100.0, True, "pass", False, "golden", 0, 0]
    (path,) = tapes()
    (resurrection,) = [mark for mark in read_tape(path).marks if mark.name == "resurrection"]
    assert dict(resurrection.data) == {"stage": "T1", "reason": "fail", "score": one[0]}
    table, _, cases = stumble("pipeline", "show", *tapes(), "--cases").partition("\nT1: ")
    assert len(table.splitlines()) == 4
    first, *wrong, last = cases.splitlines()
    assert first == "0 of 63 cases right (easy 0 of 21, middle 0 of 21, hard 0 of 21)"
    assert len(wrong) == 63
    assert all("token" in line for line in wrong)
    assert last.startswith("T2: 63 of 63 cases right (easy 21 of 21, ")
    shown = json.loads(stumble("pipeline", "show", *tapes(), "--json"))["cases"]
    assert [case["why"] for case in shown if case["stage"] == "T2"] == [None] * 63


@pytest.mark.thorough
def test_a_stage_may_be_tried_as_often_as_was_allowed(here):
    (here / "fails").write_text("T1")
    (here / "learns").touch()
    shown = pipeline(here, "--attempts", "3", stages="T1", sandbox="none")
    assert started(here) == ["T1", "T1"]
    assert "pipeline: T1: 0.0 in attempt 1 of 3" in shown
    assert rows("attempts, attempts_allowed, attempt_scores, passed, agent_exit") == [
        [2, 3, "[0.0, 100.0]", True, 0]
    ]
    query = "select zero_shot_pass, resurrections, mr_told from pipeline_runs"
    (told,) = json.loads(stumble("sql", "--json", query))
    assert list(told.values()) == [False, 0, pytest.approx(100 * 2 / 15)]  # without the bonus
    first, again, *_ = (here / "told").read_text().split("Now work at stage")[1:]
    assert "This is attempt 1 of 3 at this stage. 2 more are left: while the score is" in first
    assert "attempt 2 of 3 at this stage. The one before scored nothing. 1 more is left" in again
    (tape,) = tapes()
    assert "2 of 3" in stumble("pipeline", "show", tape)
    (attempt,) = [mark.data for mark in read_tape(tape).marks if mark.name == "attempt"]
    assert "cost_usd" not in attempt, "a replay that knows no price would differ"


@pytest.mark.thorough
def test_no_more_attempts_are_made_than_allowed_also_after_a_kill(here):
    (here / "fails").write_text("T0")
    (here / "hangs-later").touch()
    words = ["--agent", f"{here}/agent", "--env", "HERE", "--sandbox", "none", "--stages", "T0"]
    command = [sys.executable, "-m", "stumble", "pipeline", "run", *words, "--attempts", "2"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as running:
        until = time.monotonic() + LIMIT
        while started(here) != ["T0", "T0"]:
            assert time.monotonic() < until
            time.sleep(0.05)
        os.kill(running.pid, signal.SIGKILL)
    (here / "hangs-later").unlink()
    (folder,) = Path(".stumble/pipelines").iterdir()
    stumble("pipeline", "run", "--resume", folder.name)
    assert started(here) == ["T0", "T0", "T0"], "the second attempt is made once more, and no third"
    assert rows("attempts, attempts_allowed, attempt_scores")[-1] == [2, 2, "[0.0, 0.0]"]


@pytest.mark.thorough
def test_without_resurrection_what_a_stage_left_flows_on(here):
    (here / "fails").write_text("T1 T2")
    pipeline(here, "--no-resurrection")
    _, two = rows("passed, resurrected, provenance, reached, arm")
    assert two == [False, False, "own", 0, "no-resurrection"]


@pytest.mark.thorough
def test_a_strict_replay_grades_the_same_and_says_where_it_does_not(here):
    pipeline(here, "--from-golden", stages="T2")
    assert rows("score, provenance, arm") == [[100.0, "golden", "from-golden"]]
    (tape,) = tapes()
    assert "0 diverged" in stumble("replay", tape)
    (here / "fails").write_text("T2")  # the agent does other work in a replay
    result = stumble("replay", tape, code=3)
    assert "diverged: T2: agent: exit 3, recorded 0" in result


def test_what_was_graded_is_not_lost_when_all_is_killed(here):
    (here / "hangs").write_text("T1")
    words = [
        "pipeline",
        "run",
        "--agent",
        f"{here}/agent",
        "--sandbox",
        "none",
        "--stages",
        "T0,T1",
        *KNOWN_PROGRAMS,
    ]
    command = [sys.executable, "-m", "stumble", *words]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as running:
        until = time.monotonic() + LIMIT
        while started(here) != ["T0", "T1"]:
            assert time.monotonic() < until
            time.sleep(0.05)
        os.kill(running.pid, signal.SIGKILL)
    (killed,) = tapes()
    (here / "hangs").unlink()
    (folder,) = Path(".stumble/pipelines").iterdir()
    result = stumble("pipeline", "run", "--resume", folder.name)
    assert "pipeline: T0" not in result  # it is not graded again
    assert started(here) == ["T0", "T1", "T1"]
    resumed = read_tape(tapes()[-1])
    assert resumed.trajectory.parent == killed.stem
    graded = [mark.data for mark in resumed.marks if mark.name == "graded"]
    assert [(data["stage"], data.get("before")) for data in graded] == [("T0", True), ("T1", None)]
    assert "0 diverged" in stumble("replay", resumed.path)
    stumble("pipeline", "run", "--resume", folder.name, code=2)


def started(here: Path) -> list[str]:
    """The stages at which an agent was started."""
    return (here / "started").read_text().split() if (here / "started").exists() else []


FORGER = """#!/usr/bin/env python3
import json, os, re, socket
from pathlib import Path

found = set(map(str, Path("/tmp").glob("stumble-*/marks")))
for each in Path("/proc").glob("[0-9]*/environ"):
    try:
        found |= set(re.findall(r"STUMBLE_MARKS=([^\\0]+)", each.read_bytes().decode()))
    except OSError:
        pass
said = []
for path in sorted(found):
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(5)
    try:
        line.connect(path)
        line.sendall(json.dumps(["graded", {"stage": "T1", "score": 100}]).encode() + b"\\n")
        said.append(line.recv(100).decode())
    except OSError as error:
        said.append(type(error).__name__)
Path("said").write_text(json.dumps([len(found), said, os.environ.get("STUMBLE_MARKS")]))
"""


@pytest.mark.thorough
def test_an_agent_tells_no_facts_of_its_own(here):
    (here / "agent").write_text(FORGER)
    pipeline(here, stages="T0", sandbox="none")
    (folder,) = Path(".stumble/pipelines").iterdir()
    tried, said, named = json.loads((folder / "workspace" / "said").read_text())
    assert named is None
    assert tried > 0
    assert set(said) <= {"FileNotFoundError", "ConnectionRefusedError"}
    (tape,) = tapes()
    assert [mark.name for mark in read_tape(tape).marks] == [
        "pipeline", "stage", "sandbox", "agent", "graded", "resurrection",
    ]  # fmt: skip


def test_what_an_agent_does_to_its_workspace_is_contained_and_scored(here):
    (here / "agent").write_text('#!/bin/sh\nhead -c 20000000 /dev/zero\nrm -rf "$PWD"\n')
    pipeline(here, stages="T0", sandbox="none")
    assert rows("score, outcome, agent_exit") == [[0.0, "agent_error", 0]]
    (folder,) = Path(".stumble/pipelines").iterdir()
    assert (folder / "T0.log").stat().st_size == 16 << 20


def test_what_cannot_be_is_said_before_anything_starts(here):
    for words, why in (
        (["--agent", "no-such-agent"], "no-such-agent: command not found"),
        (["--agent", f"{here}/agent", "--stages", "T9"], "no stage 'T9'"),
        (["--agent", f"{here}/agent", "--mode", "progressive"], "cannot go on"),
        (["--resume", "nothing"], "no run 'nothing'"),
        ([], "no agent: give --agent"),
    ):
        result = stumble("pipeline", "run", *words, code=127 if "found" in why else 2)
        assert why in result
        assert len(result.splitlines()) == 1
    assert not Path(".stumble/tapes").exists()


@pytest.mark.thorough
def test_a_grader_that_breaks_is_no_failure_of_the_agents(tmp_path):
    given = ArtifactSlot(stage="T1", provenance="golden")
    graded = grade_pipeline_stage(
        "no-such", "T2", tmp_path, given, jobs=1, known=tmp_path / "known" / "of", anew=False
    )
    assert (graded.result, graded.score, graded.passed) == ("infrastructure_error", None, None)
    assert "no workload is called 'no-such'" in graded.cases[0].why
