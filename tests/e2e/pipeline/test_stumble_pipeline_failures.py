"""Why each stage of a recorded run failed is read off its tape, and the leaderboard counts it."""

import json
import re
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.pipeline_model import (
    AGENT,
    served,
)
from tests.support.yatcc_checkout import configure_checkout

TOO_LONG = "Range of input length should be [1, 1000]"


def answer(messages: list[dict[str, Any]]) -> tuple[int, dict[str, Any]]:
    """Fails at each task in a way of its own."""
    [task] = re.findall(r"Work at task (\d)", messages[0]["content"])
    told = messages[-1]["role"] == "tool"
    match task, told:
        case "1", _:
            return 200, said("I will skip the lexer and move on.")
        case "2", True:
            return 400, {"message": TOO_LONG}
        case "3", _:
            return 429, {"message": "slow down"}
        case "4", False:
            return 200, call("make nothing-of-that-name", task)
        case _, False:
            return 200, call(f"echo 40 > task/{task}/points.txt", task)
    return 200, said("All done.")


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(command: str, task: str) -> dict[str, Any]:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    calls = [{"id": f"call_{task}", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def stumble(*words: object, code: int = 0) -> str:
    command = [sys.executable, "-m", "stumble", *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout if code == 0 else ran.stdout + ran.stderr


@pytest.mark.thorough
def test_each_stage_fails_of_what_the_tape_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    configure_checkout(tmp_path / "checkout")
    Path("agent.py").write_text(AGENT)
    with served(answer) as port:
        stumble(
            *("pipeline", "run", "--agent", f"{sys.executable} {tmp_path}/agent.py {{task}}"),
            *("--workload", "yatcc", "--checkout", "checkout", "--i-have-permission"),
            *("--stages", "T1,T2,T3,T4,T5", "--name", "five-ways", "--sandbox", "none"),
            *("--host", f"model.example=127.0.0.1:{port}"),
        )
    asked = "select stage, failure, failure_evidence from stages order by stage"
    rows = json.loads(stumble("sql", "--json", asked))
    causes = {row["stage"]: row["failure"] for row in rows}
    assert causes == {
        "T1": "planning",
        "T2": "context",
        "T3": "provider",
        "T4": "tooling",
        "T5": "reasoning",
    }
    proofs = {row["stage"]: json.loads(row["failure_evidence"]) for row in rows}
    assert proofs["T1"]["text"] == "I will skip the lexer and move on."
    assert TOO_LONG in proofs["T2"]["text"]
    assert proofs["T3"]["text"].startswith("429")
    seq = proofs["T2"]["seq"]
    [[status]] = [
        list(row.values())
        for row in json.loads(
            stumble("sql", "--json", f"select status from exchanges where seq = {seq}")
        )
    ]
    assert status == 400

    board = json.loads(stumble("leaderboard", "--json"))
    [row] = board["rows"]
    assert (row["agent"], row["model"], row["workload"]) == ("five-ways", "script", "yatcc")
    assert (row["mr_reason"], row["aei_reason"]) == ("one_run", "some_stages")
    assert (row["gated_aei"], row["gated_aei_reason"]) == (None, "no_baseline")
    assert {each["cause"]: each["cells"] for each in board["attribution"]} == {
        cause: 1 for cause in causes.values()
    }


@pytest.mark.gate
def test_a_provider_that_never_answers_is_named_and_no_score_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("agent.py").write_text(AGENT)
    with closing(socket.socket()) as closed:
        closed.bind(("127.0.0.1", 0))  # and never listens
        shown = stumble(
            *("pipeline", "run", "--agent", f"{sys.executable} {tmp_path}/agent.py {{task}}"),
            *("--stages", "T0", "--sandbox", "none", "--programs-seed", "0"),
            *("--host", f"model.example=127.0.0.1:{closed.getsockname()[1]}"),
            code=6,
        )
    assert "the model did not answer in T0 (" in shown
    [row] = json.loads(stumble("sql", "--json", "select score, outcome, failure from stages"))
    assert row == {"score": None, "outcome": "provider", "failure": "provider"}
    asked = "select mr, infrastructure_errors from pipeline_runs"
    [run] = json.loads(stumble("sql", "--json", asked))
    assert run == {"mr": None, "infrastructure_errors": 1}
