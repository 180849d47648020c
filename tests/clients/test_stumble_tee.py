"""Stdio MCP servers in real runs: by hand, and of real agents that know nothing of it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.agents import npm_agent
from tests.support.agents.mcp_tee_client import (
    ROOT,
    SMALL,
)
from tests.support.servers.scripted_model import (
    CALL_ID,
    Script,
    serving,
)
from traces.conversation.derived_steps import derive_tape_steps
from traces.tape.reader import Tape, read_tape

AGENT = (sys.executable, str(ROOT / "tests" / "support" / "agents" / "mcp_agent.py"))
STUMBLE = (sys.executable, "-m", "stumble")
LIMIT = 200.0


@dataclass(frozen=True, slots=True)
class Desk:
    """A folder in which `stumble` is run, with a HOME of its own."""

    folder: Path

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.env() | dict(env or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        return done.returncode, done.stdout, done.stderr

    def env(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def server(desk: Desk) -> tuple[str, ...]:
    """The small server, as long as it is there."""
    program = desk.folder / "server.py"
    program.write_bytes(Path(SMALL[-1]).read_bytes())
    return (*SMALL[:-1], str(program))


@pytest.mark.timeout(LIMIT)
def test_a_stdio_server_is_recorded_by_hand_and_replayed_without_it(desk: Desk) -> None:
    behind = (*STUMBLE, "mcp", "--name", "small", "--", *server(desk))
    agent = (*AGENT, "notify", "hello", *behind)
    code, out, err = desk.run(*STUMBLE, "record", "-o", "a.tape", "--", *agent)
    assert (code, json.loads(out)["content"][0]["text"]) == (0, "hello"), err
    (desk.folder / "server.py").unlink()

    assert desk.run(*STUMBLE, "replay", "a.tape")[:2] == (0, out)
    code, _, err = desk.run(*STUMBLE, "replay", "a.tape", "--", *AGENT, "echo", "other", *behind)
    assert code == 3
    assert "nothing recorded for MESSAGE stdio://small/" in err
    code, again, err = desk.run(*STUMBLE, "replay", "a.tape", "--live", "tools", "--in-place")
    assert code == 3
    assert "hello" not in again
    assert "server.py" in err


@pytest.mark.timeout(LIMIT)
def test_a_long_temporary_folder_is_no_hindrance(desk: Desk) -> None:
    deep = desk.folder / ("d" * 100)
    deep.mkdir()
    command = (*STUMBLE, "record", "-o", "a.tape", "--", "true")
    code, _, errors = desk.run(*command, env={"TMPDIR": str(deep)})
    assert code == 0, errors


def test_a_live_stdio_server_is_held_against_the_recording(desk: Desk) -> None:
    behind = (*STUMBLE, "mcp", "--name", "small", "--", *server(desk))
    agent = (*AGENT, "echo", "hello", *behind)
    assert desk.run(*STUMBLE, "record", "-o", "a.tape", "--", *agent)[0] == 0
    code, _, err = desk.run(*STUMBLE, "replay", "a.tape", "--live", "tools", "--in-place")
    assert code == 0, err
    program = desk.folder / "server.py"
    program.write_text(program.read_text().replace('str(arguments.get("text", ""))', '"changed"'))
    code, _, err = desk.run(*STUMBLE, "replay", "a.tape", "--live", "tools", "--in-place")
    assert code == 3
    assert "changed" in err


@pytest.mark.timeout(LIMIT)
def test_without_a_run_a_session_has_a_tape_of_its_own_and_says_so_once(desk: Desk) -> None:
    behind = (*STUMBLE, "mcp", "--name", "small", "--", *server(desk))
    code, out, err = desk.run(*AGENT, "echo", "hello", *behind)
    assert (code, json.loads(out)["content"][0]["text"]) == (0, "hello"), err
    said = [line for line in err.splitlines() if line.startswith("stumble mcp:")]
    assert len(said) == 1
    (path,) = (desk.folder / ".stumble" / "tapes").glob("*.tape")
    assert str(path) in said[0]
    until = time.monotonic() + 60
    while (tape := read_tape(path)).ending is None and time.monotonic() < until:
        time.sleep(0.02)
    assert tape.ending
    assert (tape.ending.ended, tape.ending.exit_code) == ("final", 0)
    assert [x.request.method for x in tape.exchanges] == ["START", "MESSAGE", "MESSAGE"]
    assert (desk.folder / ".stumble" / ".gitignore").read_text() == "*\n"


@pytest.mark.timeout(LIMIT)
def test_a_killed_client_leaves_a_tape_that_says_so(desk: Desk) -> None:
    command = (*STUMBLE, "mcp", "--", *server(desk))
    with subprocess.Popen(
        command,
        cwd=desk.folder,
        env=desk.env(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as tee:
        assert tee.stdin
        assert tee.stderr
        path = Path(tee.stderr.readline().decode().split()[-1])
        tee.send_signal(signal.SIGKILL)
        tee.wait()
        until = time.monotonic() + 60
        while (tape := read_tape(path)).ending is None and time.monotonic() < until:
            time.sleep(0.02)
    assert tape.ending
    assert (tape.ending.ended, tape.ending.detail) == ("harness", "the tee was killed")


@pytest.mark.timeout(2 * LIMIT)
def test_claude_code_calls_its_stdio_server_through_the_tee_unknowingly(desk: Desk) -> None:
    config = desk.folder / "home" / ".claude.json"
    script = Script("mcp__small__echo", {"text": "value 4711"})
    env = {"IS_SANDBOX": "1", "ANTHROPIC_API_KEY": "k"}
    env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    desk.env()
    program, *args = server(desk)
    settings = {"small": {"type": "stdio", "command": program, "args": args}}
    config.write_text(json.dumps({"mcpServers": settings}))
    agent = (str(npm_agent("claude-code")), "-p", "do it", "--dangerously-skip-permissions")
    with serving(script) as url:
        env["ANTHROPIC_BASE_URL"] = url
        said = desk.run(*STUMBLE, "record", "-o", "a.tape", "--", *agent, env=env)
        injection = ("--fault", "hang:progress=true,cap_ms=1200")
        injected = desk.run(*STUMBLE, "record", "-o", "b.tape", *injection, "--", *agent, env=env)
    assert said[0] == 0, said
    assert "faulted mcp__small__echo at mcp with hang" in injected[2]
    assert progress(read_tape(desk.folder / "b.tape")) == [0, 1]
    assert json.loads(config.read_text())["mcpServers"] == settings
    assert called(desk) == ("mcp", "id", "value 4711")
    meta = json.loads(call_of(desk))["params"]["_meta"]
    assert meta["claudecode/toolUseId"] == CALL_ID

    (desk.folder / "server.py").unlink()
    code, out, err = desk.run(*STUMBLE, "replay", "a.tape", env=env)
    assert (code, out.strip()) == (0, "done"), err


@pytest.mark.thorough
@pytest.mark.timeout(2 * LIMIT)
def test_codex_calls_its_stdio_server_through_the_tee_unknowingly(desk: Desk) -> None:
    script = Script("echo", {"text": "value 4711"}, namespace="mcp__small")
    home = desk.folder / "codex"
    home.mkdir()
    desk.env()
    program, *args = server(desk)
    with serving(script) as url:
        text = (
            f"openai_base_url = {json.dumps(url + '/v1')}\n"
            f"[mcp_servers.small]\ncommand = {json.dumps(program)}\nargs = {json.dumps(args)}\n"
            # Codex takes a turn without a server that is slow to start, unless it is required.
            "required = true\nstartup_timeout_sec = 60\n"
        )
        (home / "config.toml").write_text(text)
        options = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        agent = (str(npm_agent("codex")), "exec", *options, "-m", "gpt-4o", "do it")
        env = {"CODEX_HOME": str(home), "CODEX_API_KEY": "x"}
        said = desk.run(*STUMBLE, "record", "-o", "a.tape", "--", *agent, env=env)
    assert said[0] == 0, said
    assert "mcp__small" in json.dumps(script.asked[0]), said
    assert (home / "config.toml").read_text() == text
    place, join, result = called(desk)
    assert (place, join) == ("mcp", "id")
    assert result.endswith("value 4711")


def progress(tape: Tape) -> list[int]:
    """How far a server said it was, in a call that the model was told timed out."""
    (use,) = derive_tape_steps(tape).tool_uses
    assert (use.result, use.is_error) == ("MCP error -32001: Request timed out", True)
    (start,) = [x.response for x in tape.exchanges if x.request.method == "START" and x.response]
    return [json.loads(chunk.data)["params"]["progress"] for chunk in start.chunks]


def called(desk: Desk) -> tuple[str, str, str]:
    """Place, join and result of the one tool call that was recorded."""
    query = "select place, \"join\", result from tool_calls where result like '%4711%'"
    code, out, err = desk.run(*STUMBLE, "sql", "--json", query)
    assert code == 0, err
    (row,) = json.loads(out)
    return row["place"], row["join"], row["result"]


def call_of(desk: Desk) -> bytes:
    """The one message that calls a tool."""
    tape = read_tape(desk.folder / "a.tape")
    (body,) = [x.request.body for x in tape.exchanges if b"tools/call" in x.request.body]
    return body
