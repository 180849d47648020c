"""An agent is driven through the stages, graded, and all of it is on one tape."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from scenarios.pipeline.compiler.types import ArtifactSlot
from stumble.pipeline.config import PipelineConfig
from stumble.pipeline.grader import grade_pipeline_stage
from stumble.pipeline.reference_workspaces import lay_out_golden
from traces.tape import read_tape

AGENT = """#!/bin/sh
# Puts the prepared program of its stage in place, unless that stage is named in `fails`.
mark() { echo "$STUMBLE_STAGE" >> "$HERE/started"; }
mark
if grep -q "$STUMBLE_STAGE" "$HERE/hangs" 2>/dev/null; then sleep 300; fi
if grep -q "$STUMBLE_STAGE" "$HERE/fails" 2>/dev/null; then exit 3; fi
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


@pytest.fixture
def here(tmp_path: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an agent that asks no model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HERE", str(tmp_path))
    (tmp_path / "prepared").symlink_to(prepared)
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
    known = ("--programs-seed", "0")  # whose answers the agent has
    return stumble("pipeline", "run", *own, *known, *words)


def rows(columns: str) -> list[list[Any]]:
    """Columns of the only run's stages, in the order of the stages."""
    query = f"select {columns} from stages order by trajectory_id, stage"
    return [list(row.values()) for row in json.loads(stumble("sql", "--json", query))]


def tapes() -> list[Path]:
    return sorted(Path(".stumble/tapes").glob("*.tape"))


def test_a_failed_stage_is_resurrected_and_keeps_its_score(here):
    (here / "fails").write_text("T1")
    pipeline(here)
    one, two = rows("score, passed, outcome, resurrected, provenance, agent_exit, cases - solved")
    assert one[0] < 60
    assert one[1:6] == [False, "fail", True, "golden", 3]
    assert two == [100.0, True, "pass", False, "golden", 0, 0]
    (resurrection,) = [mark for mark in read_tape(*tapes()).marks if mark.name == "resurrection"]
    assert dict(resurrection.data) == {"stage": "T1", "reason": "fail", "score": one[0]}
    table, _, cases = stumble("pipeline", "show", *tapes(), "--cases").partition("\nT1: ")
    assert len(table.splitlines()) == 3
    first, *wrong, last = cases.splitlines()
    assert first == "0 of 63 cases right"
    assert len(wrong) == 63
    assert all("token" in line for line in wrong)
    assert last == "T2: 63 of 63 cases right"
    shown = json.loads(stumble("pipeline", "show", *tapes(), "--json"))["cases"]
    assert [case["why"] for case in shown if case["stage"] == "T2"] == [None] * 63


def test_without_resurrection_what_a_stage_left_flows_on(here):
    (here / "fails").write_text("T1 T2")
    pipeline(here, "--no-resurrection")
    _, two = rows("passed, resurrected, provenance, reached, arm")
    assert two == [False, False, "own", 0, "no-resurrection"]


def test_a_strict_replay_grades_the_same_and_says_where_it_does_not(here):
    pipeline(here, "--from-golden", stages="T2")
    assert rows("score, provenance, arm") == [[100.0, "golden", "from-golden"]]
    (tape,) = tapes()
    assert "0 diverged" in stumble("replay", tape)
    (here / "fails").write_text("T2")  # the agent does other work in a replay
    said = stumble("replay", tape, code=3)
    assert "diverged: T2: agent: exit 3, recorded 0" in said


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
    said = stumble("pipeline", "run", "--resume", folder.name)
    assert "pipeline: T0" not in said  # it is not graded again
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
        said = stumble("pipeline", "run", *words, code=127 if "found" in why else 2)
        assert why in said
        assert len(said.splitlines()) == 1
    assert not Path(".stumble/tapes").exists()


def test_a_grader_that_breaks_is_no_failure_of_the_agents(tmp_path):
    given = ArtifactSlot(stage="T1", provenance="golden")
    graded = grade_pipeline_stage(
        "no-such", "T2", tmp_path, given, jobs=1, known=tmp_path / "known" / "of", anew=False
    )
    assert (graded.result, graded.score, graded.passed) == ("infrastructure_error", None, None)
    assert "no workload is called 'no-such'" in graded.cases[0].why
