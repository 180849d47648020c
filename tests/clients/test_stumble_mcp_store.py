"""`stumble mcp-store` with Claude Code, which asks why a run was judged as it was."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents import npm_agent
from tests.support.agents.mcp_tee_client import ROOT
from tests.support.servers.scripted_model import Script, serving
from tests.support.stores.judged_fork import make_judged_fork
from traces.conversation.derived_steps import derive_tape_steps
from traces.tape.reader import read_tape

pytestmark = pytest.mark.thorough

LIMIT = 300.0
STUMBLE = (sys.executable, "-m", "stumble")


@pytest.mark.timeout(LIMIT)
def test_claude_code_reads_the_evidence_of_a_verdict(tmp_path: Path) -> None:
    store = make_judged_fork(tmp_path / "store")
    home, desk = tmp_path / "home", tmp_path / "desk"
    home.mkdir()
    desk.mkdir()
    injection, *_ = find_silent_wrong(store.root)
    command, *args = (*STUMBLE, "mcp-store", "--store", str(store.root))
    servers = {"stumble": {"type": "stdio", "command": command, "args": args}}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": servers}))
    agent = (str(npm_agent("claude-code")), "-p", "why?", "--dangerously-skip-permissions")
    script = Script("mcp__stumble__explain_verdict", {"injection": injection})
    with serving(script) as url:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "IS_SANDBOX": "1",
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "MCP_CONNECTION_NONBLOCKING": "0",  # a scripted model does not wait for servers
            "MCP_TIMEOUT": "120000",  # milliseconds
            "MCP_CONNECT_TIMEOUT_MS": "120000",  # 5 s are few on a busy machine
        }
        result = subprocess.run(
            (*STUMBLE, "record", "-o", "a.tape", "--times", "1", "--", *agent),
            cwd=desk, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=LIMIT,
        )  # fmt: skip
    assert result.returncode == 0, result.stderr
    uses = derive_tape_steps(read_tape(desk / "a.tape")).tool_uses
    [use] = [use for use in uses if use.tool == "mcp__stumble__explain_verdict"]
    assert use.result is not None
    shown = run_why(store.root, injection)
    assert "silent" in shown
    assert use.result.strip() == shown.strip()


def find_silent_wrong(store: Path) -> list[str]:
    """Return the injections that were judged silently wrong."""
    query = "select injection_id from judged_injections where class = 'silent_wrong' order by 1"
    out = subprocess.run(
        (*STUMBLE, "sql", query, "--json"),
        env=os.environ | {"STUMBLE_STORE": str(store)},
        check=True, capture_output=True, text=True, timeout=100,
    ).stdout  # fmt: skip
    return [row["injection_id"] for row in json.loads(out)]


def run_why(store: Path, injection: str) -> str:
    """Return what the command of the tool prints in a terminal."""
    return subprocess.run(
        (*STUMBLE, "why", "--", injection),
        env=os.environ | {"STUMBLE_STORE": str(store)},
        check=True, capture_output=True, text=True, timeout=100,
    ).stdout  # fmt: skip
