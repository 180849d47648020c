"""`stumble pipeline doctor` and `demo`: the first two commands of somebody without a key."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stumble.campaigns.run_matrix import place_in_stage
from traces.conversation.derived_steps import derive_tape_steps
from traces.model import Fault
from traces.tape.reader import read_tape

AGENT = Path(__file__).resolve().parents[3] / "examples/pipeline/agent.py"
ENV = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}


def stumble(folder: Path, *words: str, code: int = 0, **env: str) -> str:
    done = subprocess.run(
        (sys.executable, "-m", "stumble", "pipeline", *words),
        cwd=folder, env=ENV | env, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(300)
def test_the_demo_records_and_grades_without_a_key(tmp_path: Path) -> None:
    shown = json.loads(stumble(tmp_path, "demo", "--stages", "T2", "--json"))
    (parser,) = shown["stages"]
    assert (parser["calls"], parser["passed"], parser["resurrected"]) == (10, False, True)
    assert 0 <= parser["unwritten_bytes"] < parser["program_bytes"] / 20, "the model wrote it"
    assert Path(shown["tape"]).is_relative_to(tmp_path / ".stumble")
    tape = read_tape(Path(shown["tape"]))
    derived_steps = derive_tape_steps(tape)
    fault = Fault(name="digit", params={"min_digits": 2}, where={"stage": "T2"})
    placed = place_in_stage(tape, derived_steps, fault, seed=0, world=True)
    assert placed.nth is not None
    assert "ls t2" in derived_steps.tool_uses[0].arguments
    assert placed.nth > 1, "`ls` shows no number"


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_what_the_demo_prints_runs_as_printed(tmp_path: Path) -> None:
    """With an agent of one page, and without the model's server, which the fork starts itself."""
    agent = f"{sys.executable} {AGENT} {{model}} {{task}}"
    words = ("demo", "--stages", "T0", "--agent", agent, "--model", "practice/solver")
    env = ENV | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        (sys.executable, "-m", "stumble", "pipeline", *words),
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "T0: 100.0 (pass)" in done.stderr, "its build is mended in the sandbox"
    lines = done.stderr.split("Go on with:\n")[1].split("\n\n")[0].splitlines()
    assert len(lines) == 4
    for line in lines:
        ran = subprocess.run(
            line, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240
        )
        assert ran.returncode == 0, (line, ran.stdout, ran.stderr)
        if "fork" in line:
            assert "clean twins: 3" in ran.stdout
            assert "end state: right" in ran.stdout


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_demo_that_was_killed_is_graded_as_if_it_had_not_been(tmp_path: Path) -> None:
    """It is resumed as any run is, and its practice model answers again."""
    command = (sys.executable, "-m", "stumble", "pipeline", "demo", "--stages", "T0,T1")
    with subprocess.Popen(command, cwd=tmp_path, env=ENV, stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if b"T1: the agent works" in line:
                break
        running.kill()
    (folder,) = (tmp_path / ".stumble/pipelines").iterdir()
    shown = json.loads(stumble(tmp_path, "run", "--resume", folder.name, "--json"))
    stages = [(row["stage"], row["score"], row["failure"]) for row in shown["stages"]]
    assert stages == [("T0", 100.0, None), ("T1", 100.0, None)]
    assert shown["stages"][1]["calls"] > 0


def test_the_doctor_names_what_a_run_lacks(tmp_path: Path) -> None:
    fine = stumble(tmp_path, "doctor", PATH=str(Path(sys.executable).parent), XAI_API_KEY="k")
    assert "ok      workload embedded: can be graded" in fine
    assert "ok      --agent builtin: is here, with XAI_API_KEY" in fine
    assert "-       not installed: claude, codex" in fine
    words = ("doctor", "--workload", "yatcc", "--checkout", str(tmp_path))
    assert "MISSING workload yatcc: " in stumble(tmp_path, *words, code=1)
    assert list(tmp_path.iterdir()) == []
