"""The reference server of MCP (server-everything), asked by both SDKs, over stdio and over HTTP.

It also asks its client: for sampling, elicitation and roots, and in the middle of a task.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.agents import LOCKS, environment, npm_agent
from tests.support.practice_shop import Said
from tests.support.servers import asking_model
from traces.dialects import mcp
from traces.tape.reader import read_tape

LIMIT = 120.0
SAID = [True, "Echo: hello", "The sum of 23 and 42 is 65."]
CALLS = ("echo", "get-sum")

pytestmark = [pytest.mark.thorough, pytest.mark.agents, pytest.mark.timeout(LIMIT * 3)]


def server(how: str) -> tuple[str, ...]:
    home = npm_agent("node-sdks").parent / "node_modules"
    program = home / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    return ("node", str(program), how)


def clients() -> dict[str, tuple[str, ...]]:
    return {
        "python": (str(environment("sdks")), str(LOCKS / "mcp_everything.py")),
        "node": ("node", str(npm_agent("node-sdks").with_name("mcp.mjs"))),
    }


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Where the server is served over streamable HTTP."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    env = {**os.environ, "PORT": str(port)}
    with subprocess.Popen(server("streamableHttp"), env=env, stderr=subprocess.PIPE) as serving:
        assert serving.stderr is not None
        try:
            for line in serving.stderr:
                if b"listening on port" in line:
                    break
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            serving.kill()


def stumble(folder: Path, *words: str) -> Said:
    env = {**os.environ, "STUMBLE_STORE": str(folder / ".stumble"), "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", "stumble", *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        stdin=subprocess.DEVNULL,
    )
    return Said(code=done.returncode, out=done.stdout, err=done.stderr)


def called(tape: Path) -> list[str]:
    """The tools that were called, each answered."""
    exchanges = [(x, mcp.read_client_message(x.request)) for x in read_tape(tape).exchanges]
    calls = [x for x, said in exchanges if said is not None and said.method == "tools/call"]
    assert all(x.response is not None and x.error is None for x in calls)
    return [str(json.loads(x.request.body)["params"]["name"]) for x in calls]


@pytest.mark.parametrize("client", ["python", "node"])
def test_a_session_over_http_is_recorded_and_replayed(
    client: str, url: str, tmp_path: Path
) -> None:
    command = (*clients()[client], url)
    result = stumble(tmp_path, "record", "-o", "a.tape", "--", *command)
    assert (result.code, json.loads(result.out)) == (0, SAID), result.err
    assert called(tmp_path / "a.tape") == [*CALLS]
    again = stumble(tmp_path, "replay", "a.tape")
    assert (again.code, again.out) == (0, result.out), again.err
    assert ", 0 upstream, 0 diverged" in again.err


@pytest.mark.parametrize("client", ["python", "node"])
def test_a_session_over_stdio_is_recorded_and_replayed(client: str, tmp_path: Path) -> None:
    tee = (sys.executable, "-m", "stumble", "mcp", "--name", "everything", "--", *server("stdio"))
    command = (*clients()[client], *tee)
    result = stumble(tmp_path, "record", "-o", "a.tape", "--", *command)
    assert (result.code, json.loads(result.out)) == (0, SAID), result.err
    assert called(tmp_path / "a.tape") == [*CALLS]
    again = stumble(tmp_path, "replay", "a.tape")
    assert (again.code, again.out) == (0, result.out), again.err
    assert ", 0 upstream, 0 diverged" in again.err


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_a_server_that_asks_its_client_is_recorded_replayed_and_faulted(
    transport: str, url: str, tmp_path: Path
) -> None:
    tee = (sys.executable, "-m", "stumble", "mcp", "--name", "everything", "--", *server("stdio"))
    tools = "trigger-sampling-request,trigger-elicitation-request,simulate-research-query"
    agent = ("node", str(npm_agent("node-sdks").with_name("mcp_asked.mjs")))
    asked: list[list[dict[str, object]]] = []
    with asking_model.serving(asked) as model:
        command = (*agent, model, tools, *((url,) if transport == "http" else tee))
        result = stumble(tmp_path, "record", "-o", "a.tape", "--", *command)
        assert result.code == 0, result.err
        assert result.out.startswith("DONE: # Research Report: python (programming)")
        fault = ("--fault", "truncate:keep=0.3", "--where", "tool=simulate-research-query")
        faulted = stumble(tmp_path, "record", "-o", "b.tape", *fault, "--", *command)
        assert "faulted simulate-research-query at mcp with truncate" in faulted.err
        told = str(asked[-1][-1]["content"])
        assert 20 < len(told) < len(result.out) * 0.4
    assert called(tmp_path / "a.tape") == tools.split(",")
    again = stumble(tmp_path, "replay", "a.tape")
    assert (again.code, again.out) == (0, result.out), again.err
    assert ", 0 upstream, 0 diverged" in again.err
