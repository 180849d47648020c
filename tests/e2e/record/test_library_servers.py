"""Stdio MCP servers that a library starts are recorded, and replayed without them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from traces.tape.reader import read_tape

SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("prices")

@server.tool()
def price(article: str) -> str:
    return f"{article} is 4217"

server.run("stdio")
"""
AGENT = """
import asyncio, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(command=sys.executable, args=["server.py"])
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        for article in ("tea", "milk"):
            result = await session.call_tool("price", {"article": article})
            print(result.content[0].text)

asyncio.run(main())
"""
NODE_AGENT = """
import { spawn } from 'node:child_process'

class StdioClientTransport {  // of the SDK, which a bundler may have put into the program
  start(command, args) {
    return new Promise((resolve) => {
      this.process = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
      this.process.on('spawn', resolve)
    })
  }
}

const transport = new StdioClientTransport()
await transport.start(process.argv[2], ['server.py'])
const { stdin, stdout } = transport.process
const ask = (id, method, params) =>
  new Promise((resolve) => {
    stdout.once('data', (data) => resolve(JSON.parse(data)))
    stdin.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\\n')
  })
const clientInfo = { name: 'n', version: '1' }
await ask(0, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo })
stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\\n')
const answer = await ask(1, 'tools/call', { name: 'price', arguments: { article: 'tea' } })
console.log(answer.result.content[0].text)
stdin.end()
"""
OWN_SITE = "import sys; sys.stumbled_over = 'own'"


def stumble(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    own = {"HOME": str(folder), "STUMBLE_STORE": str(folder / ".stumble"), **more}
    env = {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")} | own
    command = [sys.executable, "-m", "stumble", *words]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=env, timeout=120, check=False
    )


@pytest.mark.gate
def test_a_server_started_by_the_sdk_is_recorded_and_replayed_without_it(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "agent.py").write_text(AGENT)
    command = (sys.executable, "agent.py")
    recorded = stumble(tmp_path, "record", "-o", "a.tape", "--times", "1", "--", *command)
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout == "tea is 4217\nmilk is 4217\n"
    exchanges = read_tape(tmp_path / "a.tape").exchanges
    assert {x.request.url for x in exchanges} == {"stdio://server/"}
    (tmp_path / "server.py").unlink()
    replayed = stumble(tmp_path, "replay", "--in-place", "a.tape")
    assert replayed.returncode == 0, replayed.stderr
    assert recorded.stdout in replayed.stdout


@pytest.mark.gate
def test_a_server_started_by_a_node_program_is_recorded_and_replayed(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "agent.mjs").write_text(NODE_AGENT)
    command = ("node", "agent.mjs", sys.executable)
    recorded = stumble(tmp_path, "record", "-o", "a.tape", "--times", "1", "--", *command)
    assert recorded.stdout == "tea is 4217\n", recorded.stderr
    assert {x.request.url for x in read_tape(tmp_path / "a.tape").exchanges} == {"stdio://server/"}
    (tmp_path / "server.py").unlink()
    replayed = stumble(tmp_path, "replay", "--in-place", "a.tape")
    assert replayed.returncode == 0, replayed.stderr
    assert recorded.stdout in replayed.stdout


@pytest.mark.gate
def test_the_users_own_sitecustomize_is_loaded_too(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(OWN_SITE)
    script = "import sys; print(sys.stumbled_over, [p for p in sys.path if 'python_hook' in p])"
    command = ("record", "-o", "a.tape", "--times", "1", "--", sys.executable, "-c", script)
    recorded = stumble(tmp_path, *command, PYTHONPATH=str(tmp_path / "own"))
    assert recorded.stdout == "own []\n", recorded.stderr


@pytest.mark.gate
def test_a_server_that_no_hook_reaches_is_named_with_what_mends_it(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    isolated = AGENT.replace("import asyncio, os, sys", "import asyncio, os, sys, time").replace(
        "await session.initialize()", "await session.initialize(); await asyncio.sleep(1.5)"
    )
    (tmp_path / "agent.py").write_text(isolated)
    command = (sys.executable, "-I", "agent.py")
    recorded = stumble(tmp_path, "record", "-o", "a.tape", "--times", "1", "--", *command)
    assert recorded.returncode == 0, recorded.stderr
    line = f"`stumble mcp -- {sys.executable} server.py`"
    assert line in recorded.stderr
    examined = stumble(tmp_path, "doctor", "--", *command)
    assert line in examined.stdout
    assert examined.returncode == 1
