"""A run that tees connect to, and a client that talks through one."""

import asyncio
import itertools
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from recorder.mcp.stdio import McpStdioContext, StdioTimingFn, serve_tees
from traces.taps import TapChain

BOUND = 60.0
ROOT = Path(__file__).resolve().parents[3]
SMALL = (sys.executable, "-I", "-S", str(ROOT / "tests" / "support" / "servers" / "mcp_server.py"))
TEE = (sys.executable, "-I", "-S", str(ROOT / "recorder" / "mcp" / "tee.py"))


@asynccontextmanager
async def tees(
    *taps: object,
    decides: bool = False,
    way_out: bool = True,
    cues: StdioTimingFn = lambda start: (),
) -> AsyncIterator[McpStdioContext]:
    """A run that listens in a temporary folder."""
    with TemporaryDirectory(prefix="stumble-") as name:
        async with (
            asyncio.timeout(BOUND),
            serve_tees(
                TapChain(taps),
                Path(name) / "run",
                began=time.monotonic(),
                seqs=itertools.count(1),
                decides=decides,
                way_out=way_out,
                cues=cues,
            ) as run,
        ):
            yield run


@dataclass(frozen=True, slots=True)
class Client:
    """A client of one server."""

    process: asyncio.subprocess.Process

    async def send(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        await self.process.stdin.drain()

    async def line(self) -> bytes:
        assert self.process.stdout
        return (await self.process.stdout.readline()).rstrip(b"\n")

    async def notify(self, method: str) -> None:
        await self.send(dumped({"jsonrpc": "2.0", "method": method}))

    async def ask(self, id: int | str, method: str, **params: object) -> dict[str, object]:
        """Return the next line, which is the answer unless the server sends something else
        first.
        """
        said = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        await self.send(dumped(said))
        answer: dict[str, object] = json.loads(await self.line())
        return answer

    async def call(self, id: int | str, tool: str, **arguments: object) -> str:
        """Return the text result of a tool."""
        return text(await self.ask(id, "tools/call", name=tool, arguments=arguments))

    async def rest(self) -> tuple[int, bytes, bytes]:
        """Close stdin; return exit code, stdout and stderr."""
        out, errors = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, out, errors


def dumped(message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


def text(answer: object) -> str:
    match answer:
        case {"result": {"content": [{"text": str(said)}]}}:
            return said
    raise ValueError(f"no text in {answer}")


@asynccontextmanager
async def client(*command: str, env: Mapping[str, str] | None = None) -> AsyncIterator[Client]:
    """Yield a client of the server that this command starts; it is killed at the end."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, limit=1 << 24
    )
    try:
        yield Client(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def behind(run: McpStdioContext, *server: str, name: str = "small") -> tuple[str, ...]:
    """Return a server's command behind a tee of this run."""
    return (*TEE, "--name", name, "--run", str(run.path), "--", *server)
