"""A tau2 domain's tools as a world: served over MCP, reset before a run, judged after it.

The domain's code runs in a separate process (`tau2_worker`), so that a hang or crash stays there. A
second worker makes the expected calls on fresh data, and the state they leave is the expected state
of the first.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as wire
from mcp import MCPError
from mcp.server.lowlevel import Server
from msgspec import Struct

from scenarios.world import Verdict

if TYPE_CHECKING:
    from scenarios.benchmarks.tau2 import Tau2Action, Tau2Task

TOOL_SECONDS = 60.0
"""Timeout of a tool call in seconds."""
MAX_ANSWER_CHARS = 64 << 20
"""Longest answer of a worker in characters."""

type WorkerJson = dict[str, Any]


class Tau2Worker:
    """A domain's worker process; requests are serialised."""

    def __init__(self, process: asyncio.subprocess.Process, patience: float) -> None:
        self._process, self._patience, self._turn = process, patience, asyncio.Lock()

    async def ask(self, do: str, **order: object) -> WorkerJson:
        """Return its answer. Raises ChildProcessError if it failed, timed out (it is killed) or
        exited.
        """
        async with self._turn:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            try:
                self._process.stdin.write(json.dumps({"do": do, **order}).encode() + b"\n")
                line = await asyncio.wait_for(self._process.stdout.readline(), self._patience)
            except TimeoutError:
                self.kill()
                raise ChildProcessError(f"no answer within {self._patience:g} s") from None
            except (ValueError, OSError) as error:
                raise ChildProcessError(f"no answer that can be read: {error}") from None
        if not line:
            raise ChildProcessError("the domain's process has ended")
        answer: WorkerJson = json.loads(line)
        if "failed" in answer:
            raise ChildProcessError(answer["failed"])
        return answer

    def kill(self) -> None:
        """Kill its process group."""
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)


@asynccontextmanager
async def open_tau2_worker(
    folder: Path, patience: float = TOOL_SECONDS
) -> AsyncIterator[Tau2Worker]:
    """Start a worker for a domain's folder, killed at the end; its environment holds no API key."""
    env = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "scenarios.benchmarks.tau2_worker", str(folder)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=MAX_ANSWER_CHARS,
        cwd=Path(__file__).parents[2],
        env=env | {"PYTHONDONTWRITEBYTECODE": "1"},
        start_new_session=True,
    )
    worker = Tau2Worker(process, patience)
    try:
        yield worker
    finally:
        worker.kill()
        await process.wait()


class Tau2Tools:
    """The tools of one task, in a worker process that is new for each run, with a log of calls."""

    def __init__(self, task: "Tau2Task") -> None:
        self.task = task
        self.called: list[tuple[str, WorkerJson]] = []
        self._worker: Tau2Worker | None = None
        self._holding = AsyncExitStack()

    async def restart(self) -> None:
        """Kill the worker and start a new one with the start data."""
        await self.close()
        self.called.clear()
        worker = await self._holding.enter_async_context(open_tau2_worker(self.task.folder))
        await self.load_start_data(worker)
        self._worker = worker

    async def close(self) -> None:
        """Kill the worker."""
        self._worker = None
        await self._holding.aclose()

    async def load_start_data(self, worker: Tau2Worker) -> None:
        """Load the task's start data. Raises ChildProcessError if that fails."""
        calls = [(each.name, each.arguments) for each in self.task.initial_actions]
        await worker.ask("reset", data=self.task.data, calls=calls)

    def build_mcp_server(self, offered: Sequence[WorkerJson]) -> Server:
        """Build an MCP server for these tools; those marked READ have `readOnlyHint`."""
        names = {tool["name"] for tool in offered}

        async def tools(_: object, __: object) -> wire.ListToolsResult:
            return wire.ListToolsResult(tools=[_to_tau2_mcp_tool(tool) for tool in offered])

        async def call(_: object, asked: wire.CallToolRequestParams) -> wire.CallToolResult:
            if asked.name not in names:
                raise MCPError(wire.INVALID_PARAMS, f"Unknown tool: {asked.name}")
            arguments = asked.arguments or {}
            self.called.append((asked.name, arguments))
            try:
                answer = await self.ask_worker("call", name=asked.name, arguments=arguments)
            except ChildProcessError as error:
                answer = {"text": f"Error: {error}", "error": True}
            text = wire.TextContent(text=answer["text"])
            return wire.CallToolResult(content=[text], is_error=answer["error"])

        return Server(self.task.domain, version="1", on_list_tools=tools, on_call_tool=call)

    async def ask_worker(self, do: str, **order: object) -> WorkerJson:
        """Return the answer of the worker that serves the agent."""
        if self._worker is None:
            raise ChildProcessError("the tools are not set up")
        return await self._worker.ask(do, **order)


class Tau2World(Struct, frozen=True, kw_only=True):
    """The data of a tau2 task, judged by its evaluation criteria."""

    tools: Tau2Tools

    async def reset(self) -> None:
        """Start a new worker with the start data. Raises ChildProcessError if that fails."""
        await self.tools.restart()

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        """Judge every reward basis of the task; a basis that cannot be judged is unknown, not a
        fail.
        """
        parts = [await self._judge_basis(each, said) for each in self.tools.task.basis]
        for passed in (False, None):
            if decisive := [part for part in parts if part.passed is passed]:
                return Verdict(passed, "; ".join(part.detail for part in decisive))
        return Verdict(True, ", ".join(self.tools.task.basis))

    async def _judge_basis(self, basis: str, said: Sequence[str]) -> Verdict:
        try:
            match basis:
                case "DB":
                    return await self._judge_data()
                case "ENV_ASSERTION":
                    return await self._judge_assertions()
                case "COMMUNICATE":
                    return _judge_communication(self.tools.task.communicate, said)
                case "ACTION":
                    return self._judge_actions()
        except ChildProcessError as error:
            return Verdict(None, f"{basis}: {error}")
        return Verdict(None, f"{basis} is judged by a model, which is not done here")

    async def _judge_data(self) -> Verdict:
        actual = (await self.tools.ask_worker("state"))["state"]
        expected = await compute_expected_state(self.tools)
        parts = sorted(key for key in actual | expected if actual.get(key) != expected.get(key))
        return Verdict(not parts, f"the data differ in {', '.join(parts)}" if parts else "")

    async def _judge_assertions(self) -> Verdict:
        failures = []
        for each in self.tools.task.assertions:
            answer = await self.tools.ask_worker("ask", name=each.name, arguments=each.arguments)
            if not isinstance(answer["value"], bool):
                return Verdict(None, f"{each.name} says {answer['value']!r}, not true or false")
            if answer["value"] is not each.wanted:
                failures.append(f"{each.name} is {answer['value']}")
        return Verdict(not failures, ", ".join(failures))

    def _judge_actions(self) -> Verdict:
        missing = [each for each in self.tools.task.actions if not self._was_called(each)]
        names = ", ".join(each.name for each in missing)
        return Verdict(not missing, f"not called as expected: {names}" if missing else "")

    def _was_called(self, action: "Tau2Action") -> bool:
        return any(
            name == action.name
            and all(
                arguments.get(key) == action.arguments.get(key)
                for key in (arguments if action.compared is None else action.compared)
            )
            for name, arguments in self.tools.called
        )


async def compute_expected_state(tools: Tau2Tools) -> Mapping[str, str]:
    """Return the data's hashes after the expected calls.

    Raises ChildProcessError if a call that writes fails.
    """
    async with open_tau2_worker(tools.task.folder) as worker:
        await tools.load_start_data(worker)
        writes = {tool["name"] for tool in (await worker.ask("tools"))["tools"] if tool["writes"]}
        for each in tools.task.actions:
            answer = await worker.ask("call", name=each.name, arguments=each.arguments)
            if answer["error"] and each.name in writes:
                raise ChildProcessError(f"the expected call of {each.name} fails: {answer['text']}")
        state: Mapping[str, str] = (await worker.ask("state"))["state"]
    return state


def _judge_communication(wanted: Sequence[str], said: Sequence[str]) -> Verdict:
    """Judge whether the agent said each text, ignoring case and commas."""
    texts = [text.lower().replace(",", "") for text in said]
    missing = [each for each in wanted if not any(each.lower() in text for text in texts)]
    return Verdict(not missing, f"never said: {', '.join(missing)}" if missing else "")


def _to_tau2_mcp_tool(tool: WorkerJson) -> wire.Tool:
    return wire.Tool(
        name=tool["name"],
        description=tool["description"],
        input_schema=tool["parameters"],
        annotations=wire.ToolAnnotations(read_only_hint=not tool["writes"]),
    )
