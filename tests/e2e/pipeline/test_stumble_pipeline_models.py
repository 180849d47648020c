"""Agents that ask models go through the stages: budgets end them, and faults strike one stage."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from stumble.pipeline.config import PipelineConfig
from stumble.pipeline.reference_workspaces import lay_out_golden
from tests.support.servers.pipeline_model import AGENT, call_shell, model, served
from traces.tape.reader import read_tape

LIMIT = 240
pytestmark = pytest.mark.timeout(280)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder with an agent, and the port of its model."""

    folder: Path
    port: int

    def run(self, *words: object, stages: str, code: int = 0) -> Path:
        """Go through stages; the tape."""
        agent = f"{sys.executable} {self.folder}/agent.py {{task}}"
        stumble(
            "pipeline", "run", "--agent", agent, "--from-golden", "--stages", stages,
            "--programs-seed", 0, "--allow", "model.example",
            "--host", f"model.example=127.0.0.1:{self.port}", *words, code=code,
        )  # fmt: skip
        return sorted(Path(".stumble/tapes").glob("*.tape"))[-1]


def stumble(*words: object, code: int = 0) -> str:
    """What a command says on both its streams."""
    command = [sys.executable, "-m", "stumble", *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def sql(query: str) -> list[list[Any]]:
    return [list(row.values()) for row in json.loads(stumble("sql", "--json", query))]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """An agent and a model that know the answers."""
    monkeypatch.chdir(tmp_path)
    known = tmp_path / "known"
    known.mkdir()
    PipelineConfig(agent="").write(known)
    lay_out_golden(known)
    (tmp_path / "agent.py").write_text(AGENT)
    with model(f"{known}/workspace") as port:
        yield Place(folder=tmp_path, port=port)


@pytest.mark.thorough
def test_a_budget_ends_an_agent_and_its_replay_at_the_same_question(place):
    tape = place.run("--calls", 2, stages="T2")
    assert sql("select score, calls, tokens, budget, agent_exit from stages") == [
        [100.0, 2, 200, "calls", None]
    ]
    last = read_tape(tape).exchanges[-1]
    assert last.response is not None
    assert (last.response.status, last.answered_by) == (402, "refused")
    assert "0 diverged" in stumble("replay", tape)


@pytest.mark.thorough
def test_a_fault_strikes_in_the_stage_that_was_named_and_is_judged_by_what_passes(place):
    tape = place.run(stages="T2,T4")
    result = stumble(
        "fork", tape, "--fault", "tool_error", "--where", "stage=T4", "--jobs", 2,
        "--host", f"model.example=127.0.0.1:{place.port}",
    )  # fmt: skip
    assert "outcome: recovered" in result
    injected = sql(
        "select i.op, o.class, o.passed, o.baseline_valid, t.world from outcomes as o"
        " join injections as i using (injection_id) join trajectories as t using (trajectory_id)"
    )
    assert injected == [["tool_error", "recovered", True, True, "fresh"]]
    (faulted,) = [each for each in Path(".stumble/tapes").glob("*.tape")
                  if read_tape(each).trajectory.condition == "fault"]  # fmt: skip
    run = read_tape(faulted)
    began = {mark.data["stage"]: mark.at for mark in run.marks if mark.name == "stage"}
    seq = run.injections[0].seq
    (hit,) = [each for each in run.exchanges if each.seq == seq]
    assert began["T2"] < began["T4"] < hit.started
    by = [each.answered_by for each in run.exchanges if each.started < began["T4"]]
    assert set(by) == {"recorded"}
    none = stumble("fork", tape, "--fault", "tool_error", "--where", "stage=T3", code=2)
    assert "but none with stage=T3; its stages are T2, T4" in none


@pytest.mark.thorough
def test_a_resumed_stage_counts_what_it_had_spent_before(place, tmp_path):
    """A failed attempt, one that is cut by a kill, and one more: three calls in all."""
    replies = [
        {"role": "assistant", "content": "I leave it."},
        call_shell("touch ../../../slept; sleep 60", "sleep", None),
        call_shell("ls t0", "look", None),
    ]
    agent = f"{sys.executable} {tmp_path}/agent.py {{task}}"
    with served(lambda messages: (200, replies.pop(0))) as port:
        words = ["pipeline", "run", "--agent", agent, "--stages", "T0", "--calls", "3"]
        words += ["--attempts", "3", "--sandbox", "none", "--allow", "model.example"]
        host = ["--host", f"model.example=127.0.0.1:{port}"]
        command = [sys.executable, "-m", "stumble", *words, *host]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as running:
            until = time.monotonic() + LIMIT
            while not Path(".stumble/slept").exists():
                assert time.monotonic() < until
                time.sleep(0.05)
            time.sleep(0.3)
            os.kill(running.pid, signal.SIGKILL)
        (folder,) = Path(".stumble/pipelines").iterdir()
        stumble("pipeline", "run", "--resume", folder.name, *host)
        assert replies == []
        tape = sorted(Path(".stumble/tapes").glob("*.tape"))[-1]
        found = sql("select calls, tokens, budget, attempts from stages")
        assert found == [[3, 300, "calls", 2]]
        (asked,) = [each for each in read_tape(tape).exchanges if each.answered_by != "refused"]
        assert b"3 model calls (1 left)" in asked.request.body
        ((seconds,),) = sql("select seconds from stages")
        (began,) = [mark.data for mark in read_tape(tape).marks if mark.name == "stage"]
        earlier = cast("dict[str, float]", began["before"])
        assert seconds > earlier["seconds"] > 0
        assert "0 diverged" in stumble("replay", tape)
