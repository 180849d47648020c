"""A whole pipeline in docker: partial failures, resurrection, and its strict replay."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scenarios.practice import PRACTICE_KEY, model_server
from tests.support.servers.docker_sandboxes import image
from traces.tape.reader import read_tape

MODEL = "openai/practice/solver:T0=good,T1=good,T2=half,T3=good,T4=fair,T5=good"
LIMIT = 600
pytestmark = pytest.mark.timeout(1500)


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The practice model's, with an environment that leads to it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://model.practice/v1")
    monkeypatch.setenv("OPENAI_API_KEY", PRACTICE_KEY)
    found, over = list[int](), threading.Event()

    async def serve() -> None:
        async with model_server.serve_model() as listening:
            found.append(listening)
            up.set()
            await asyncio.to_thread(over.wait)

    up = threading.Event()
    serving = threading.Thread(target=lambda: asyncio.run(serve()))
    serving.start()
    assert up.wait(30)
    yield found[0]
    over.set()
    serving.join()


def stumble(*words: object, code: int = 0) -> str:
    """What a command says on both its streams."""
    command = [sys.executable, "-m", "stumble", *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def sql(query: str) -> list[list[Any]]:
    return [list(row.values()) for row in json.loads(stumble("sql", "--json", query))]


@pytest.mark.thorough
def test_a_whole_pipeline_in_docker_is_replayed(port):
    host = f"model.practice=127.0.0.1:{port}"
    stumble(
        "pipeline", "run", "--agent", "builtin", "--model", MODEL, "--sandbox", "docker",
        "--image", image(), "--host", host,
    )  # fmt: skip
    (tape,) = Path(".stumble/tapes").glob("*.tape")
    found = sql("select stage, passed, resurrected, provenance, sandbox from stages order by stage")
    assert found == [
        ["T0", True, False, "golden", "docker"],
        ["T1", True, False, "golden", "docker"],
        ["T2", False, True, "own", "docker"],
        ["T3", True, False, "golden", "docker"],
        ["T4", True, False, "own", "docker"],
        ["T5", True, False, "own", "docker"],
    ]
    assert all(x.response and x.response.status == 200 for x in read_tape(tape).exchanges)
    assert "0 diverged" in stumble("replay", tape)
