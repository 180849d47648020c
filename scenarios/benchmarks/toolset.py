"""A tau2 domain's tools as a world: served over MCP, set back before a run, judged after it.

The domain's own code runs in a process of its own (`worker`), which a hang or a crash of it cannot
leave; a second one, on fresh data, makes the calls that were expected, and what they leave behind
is what the first one should hold.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as wire
from mcp import MCPError
from mcp.server.lowlevel import Server

from scenarios.world import Verdict

if TYPE_CHECKING:
    from scenarios.benchmarks.tau import Action, TauTask

PATIENCE = 60.0
"""Seconds that a tool may take."""
LONGEST = 64 << 20
"""Characters of one answer of a worker."""

type Said = dict[str, Any]


class Worker:
    """A domain in a process of its own; `ask` it one thing after the other."""

    def __init__(self, process: asyncio.subprocess.Process, patience: float) -> None:
        self._process, self._patience, self._turn = process, patience, asyncio.Lock()

    async def ask(self, do: str, **order: object) -> Said:
        """Its answer; ChildProcessError where it failed, hangs (it is ended then) or is gone."""
        async with self._turn:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            try:
                self._process.stdin.write(json.dumps({"do": do, **order}).encode() + b"\n")
                line = await asyncio.wait_for(self._process.stdout.readline(), self._patience)
            except TimeoutError:
                self.end()
                raise ChildProcessError(f"no answer within {self._patience:g} s") from None
            except (ValueError, OSError) as error:
                raise ChildProcessError(f"no answer that can be read: {error}") from None
        if not line:
            raise ChildProcessError("the domain's process has ended")
        said: Said = json.loads(line)
        if "failed" in said:
            raise ChildProcessError(said["failed"])
        return said

    def end(self) -> None:
        """End it and all that it started."""
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)


@asynccontextmanager
async def working(folder: Path, patience: float = PATIENCE) -> AsyncIterator[Worker]:
    """A worker for a domain's folder, ended with the block; its environment holds no key."""
    env = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "scenarios.benchmarks.worker", str(folder)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=LONGEST,
        cwd=Path(__file__).parents[2],
        env=env | {"PYTHONDONTWRITEBYTECODE": "1"},
        start_new_session=True,
    )
    worker = Worker(process, patience)
    try:
        yield worker
    finally:
        worker.end()
        await process.wait()


class Toolset:
    """The tools of one task, in a process that is new for each run, and what was called there."""

    def __init__(self, task: "TauTask") -> None:
        self.task = task
        self.called: list[tuple[str, Said]] = []
        self._worker: Worker | None = None
        self._holding = AsyncExitStack()

    async def renew(self) -> None:
        """End the process, and begin a new one with the data as at the start."""
        await self.close()
        self.called.clear()
        worker = await self._holding.enter_async_context(working(self.task.folder))
        await self.begin(worker)
        self._worker = worker

    async def close(self) -> None:
        """End the process."""
        self._worker = None
        await self._holding.aclose()

    async def begin(self, worker: Worker) -> None:
        """Data as the task wants it at its start; ChildProcessError where that fails."""
        calls = [(each.name, each.arguments) for each in self.task.before]
        await worker.ask("reset", data=self.task.data, calls=calls)

    def server(self, offered: Sequence[Said]) -> Server:
        """These tools over MCP: what is marked READ has `readOnlyHint`."""
        names = {tool["name"] for tool in offered}

        async def tools(_: object, __: object) -> wire.ListToolsResult:
            return wire.ListToolsResult(tools=[_offer(tool) for tool in offered])

        async def call(_: object, asked: wire.CallToolRequestParams) -> wire.CallToolResult:
            if asked.name not in names:
                raise MCPError(wire.INVALID_PARAMS, f"Unknown tool: {asked.name}")
            given = asked.arguments or {}
            self.called.append((asked.name, given))
            try:
                said = await self.asked("call", name=asked.name, arguments=given)
            except ChildProcessError as error:
                said = {"text": f"Error: {error}", "error": True}
            text = wire.TextContent(text=said["text"])
            return wire.CallToolResult(content=[text], is_error=said["error"])

        return Server(self.task.domain, version="1", on_list_tools=tools, on_call_tool=call)

    async def asked(self, do: str, **order: object) -> Said:
        """What the worker that serves the agent answers."""
        if self._worker is None:
            raise ChildProcessError("the tools are not set up")
        return await self._worker.ask(do, **order)


@dataclass(frozen=True, slots=True, kw_only=True)
class TauWorld:
    """The data of a tau2 task, judged as its evaluation criteria say."""

    tools: Toolset

    async def reset(self) -> None:
        """A new process with the data as at the start; ChildProcessError where that fails."""
        await self.tools.renew()

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        """Whether all that counts is as it should be; what nobody can say is unknown, not wrong."""
        parts = [await self._part(each, said) for each in self.tools.task.basis]
        for passed in (False, None):
            if found := [part for part in parts if part.passed is passed]:
                return Verdict(passed, "; ".join(part.detail for part in found))
        return Verdict(True, ", ".join(self.tools.task.basis))

    async def _part(self, basis: str, said: Sequence[str]) -> Verdict:
        try:
            match basis:
                case "DB":
                    return await self._data()
                case "ENV_ASSERTION":
                    return await self._assertions()
                case "COMMUNICATE":
                    return _communicated(self.tools.task.communicate, said)
                case "ACTION":
                    return self._actions()
        except ChildProcessError as error:
            return Verdict(None, f"{basis}: {error}")
        return Verdict(None, f"{basis} is judged by a model, which is not done here")

    async def _data(self) -> Verdict:
        found = (await self.tools.asked("state"))["state"]
        wanted = await expected(self.tools)
        parts = sorted(key for key in found | wanted if found.get(key) != wanted.get(key))
        return Verdict(not parts, f"the data differ in {', '.join(parts)}" if parts else "")

    async def _assertions(self) -> Verdict:
        wrong = []
        for each in self.tools.task.assertions:
            said = await self.tools.asked("ask", name=each.name, arguments=each.arguments)
            if not isinstance(said["value"], bool):
                return Verdict(None, f"{each.name} says {said['value']!r}, not true or false")
            if said["value"] is not each.wanted:
                wrong.append(f"{each.name} is {said['value']}")
        return Verdict(not wrong, ", ".join(wrong))

    def _actions(self) -> Verdict:
        left = [each for each in self.tools.task.actions if not self._was_called(each)]
        names = ", ".join(each.name for each in left)
        return Verdict(not left, f"not called as expected: {names}" if left else "")

    def _was_called(self, action: "Action") -> bool:
        return any(
            name == action.name
            and all(
                given.get(key) == action.arguments.get(key)
                for key in (given if action.compared is None else action.compared)
            )
            for name, given in self.tools.called
        )


async def expected(tools: Toolset) -> Mapping[str, str]:
    """The data after the expected calls; ChildProcessError where one that writes fails."""
    async with working(tools.task.folder) as worker:
        await tools.begin(worker)
        writes = {tool["name"] for tool in (await worker.ask("tools"))["tools"] if tool["writes"]}
        for each in tools.task.actions:
            said = await worker.ask("call", name=each.name, arguments=each.arguments)
            if said["error"] and each.name in writes:
                raise ChildProcessError(f"the expected call of {each.name} fails: {said['text']}")
        found: Mapping[str, str] = (await worker.ask("state"))["state"]
    return found


def _communicated(wanted: Sequence[str], said: Sequence[str]) -> Verdict:
    """Whether each text is in something the agent said, whatever the case, and without commas."""
    heard = [text.lower().replace(",", "") for text in said]
    left = [each for each in wanted if not any(each.lower() in text for text in heard)]
    return Verdict(not left, f"never said: {', '.join(left)}" if left else "")


def _offer(tool: Said) -> wire.Tool:
    return wire.Tool(
        name=tool["name"],
        description=tool["description"],
        input_schema=tool["parameters"],
        annotations=wire.ToolAnnotations(read_only_hint=not tool["writes"]),
    )
