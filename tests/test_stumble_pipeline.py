"""An agent is driven through the stages, graded, and all of it is on one tape."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from traces.tape import read

AGENT = """#!/bin/sh
folder=$(echo "$STUMBLE_STAGE" | tr T t)
case " $FAILS " in
*" $STUMBLE_STAGE "*) exit 3 ;;
esac
echo "$1" > "$folder/run"
"""


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent that asks no model and writes a file for each stage but those of $FAILS."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "agent"
    path.write_text(AGENT)
    path.chmod(0o755)
    return path


def stumble(*words: object, code: int = 0) -> str:
    """What a command says on both its streams."""
    ran = subprocess.run(
        [sys.executable, "-m", "stumble", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def rows(columns: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(
        stumble("sql", "--format", "json", f"select {columns} from stages order by stage")
    )
    return found


def test_each_stage_is_graded_and_a_failed_one_is_resurrected(agent, monkeypatch):
    monkeypatch.setenv("FAILS", "T1")
    said = stumble("pipeline", "run", "--agent", f"{agent} {{task}}", "--stages", "T0,T1,T2")
    assert "T1: 0.0 (fail)" in said
    assert rows("stage, score, passed, resurrected, provenance, agent_exit") == [
        {
            "stage": "T0",
            "score": 100.0,
            "passed": True,
            "resurrected": False,
            "provenance": "golden",
            "agent_exit": 0,
        },
        {
            "stage": "T1",
            "score": 0.0,
            "passed": False,
            "resurrected": True,
            "provenance": "golden",
            "agent_exit": 3,
        },
        {
            "stage": "T2",
            "score": 100.0,
            "passed": True,
            "resurrected": False,
            "provenance": "golden",
            "agent_exit": 0,
        },
    ]
    (path,) = Path(".stumble/tapes").glob("*.tape")
    names = [mark.name for mark in read(path).marks]
    assert names == ["pipeline", *("stage", "agent", "graded") * 2, "resurrection",
                     "stage", "agent", "graded"]  # fmt: skip
