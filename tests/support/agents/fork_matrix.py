"""The warm practice agent with each kind of tools: each cell of the matrix is one fork."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import uvloop
from aiohttp import web

from faults.targeting.bound_fault import bind_without_recording as armed
from scenarios.practice import PRACTICE_KEY, mcp_server, tool_server, world
from scenarios.practice.http_listen import listen_on_loopback
from scenarios.practice.model_server import ModelServer
from scenarios.practice.tasks.registry import ALL_TASKS
from scenarios.practice.world import PracticeWorld
from stumble.runs.fork import find_fork_point, plan_fork_run
from stumble.runs.launcher import ColdLauncher, WarmAgentProcess, WarmLauncher, start_warm_agent
from stumble.runs.record import record_run
from stumble.runs.replay import run_replay
from stumble.runs.session import ReplaySession, open_replay_session
from stumble.runs.types import Hosts, RecordPlan, RunResult
from stumble.store.judged_rows import build_tables_by_run
from stumble.user_data.paths import new_trajectory_id
from tests.support.request_readings import read_tool_results
from tests.support.servers.byte_relay import (
    Overheard,
    Overhearing,
)
from traces.conversation.derived_steps import DerivedSteps, derive_tape_steps
from traces.dialects import openai_chat
from traces.model import Condition, Fault, Injection
from traces.store.trace_store import TraceStore
from traces.tape.reader import Tape, read_tape

type Tools = Literal["http", "mcp", "stdio", "local"]
type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MODEL = "practice/retries"
_CHANGING = re.compile(r"(?<=127\.0\.0\.1:)\d+|(?<=/stumble-)\w+|^tests/.*\(call\)$")
"""The last of them is set by pytest for the current test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run: its evidence, the bytes on the agent's socket, and the requests to the model."""

    played: RunResult
    tape: Tape
    connections: tuple[Overheard, ...]
    environment: Mapping[str, str]
    heard: tuple[bytes, ...]
    """Bodies of live model requests, as the model server read them."""
    printed: bytes

    @property
    def injection(self) -> Injection:
        """The only injection."""
        (injection,) = self.tape.injections
        return injection

    @property
    def got(self) -> bytes:
        """All bytes that the agent's sockets received."""
        return b"\n".join(bytes(each.got) for each in self.connections)

    @property
    def started_with(self) -> dict[str, str]:
        """The agent's environment, without values that differ per run: ports and folders."""
        return {key: _CHANGING.sub("", value) for key, value in self.environment.items()}


class Stage:
    """Servers, a warm agent and a theatre; recordings are made once per task."""

    def __init__(
        self, folder: Path, tools: Tools, agent: WarmAgentProcess, hosts: Hosts, heard: list[bytes]
    ) -> None:
        self.folder, self.tools, self.store = folder, tools, TraceStore(folder / "store")
        self._agent, self._hosts, self._heard = agent, hosts, heard
        self._recorded: dict[str, Ran] = {}
        self.house: ReplaySession | None = None

    @property
    def book(self) -> Path:
        """The order book."""
        return self.folder / "shop.db"

    async def recorded(self, task: str) -> Ran:
        """Return the clean live run of a task."""
        if task not in self._recorded:
            self._recorded[task] = await self.live(task)
            assert self._recorded[task].played.exit.code == 0
        return self._recorded[task]

    async def live(self, task: str, *faults: Fault, most: int = 60, seed: int = 0) -> Ran:
        """Run live for at most `most` steps, with these faults."""
        id, launch, heard = new_trajectory_id(), self._launch(task, most), len(self._heard)
        played = await record_run(
            self.store.tapes / f"{id}.tape",
            launch,
            RecordPlan(
                hosts=self._hosts,
                world=self._world(task),
                armed=tuple(map(armed, faults)),
                seed=seed,
            ),
            id=id,
            ca=self.folder / "ca",
            scratch=self.folder,
        )
        return self._ran(played, launch, heard)

    async def told(self, task: str) -> DerivedSteps:
        """Return the derived steps of its recording."""
        return derive_tape_steps((await self.recorded(task)).tape)

    async def forked(
        self, fault: Fault, task: str, condition: Condition = "fault", *, seed: int = 7
    ) -> Ran:
        """Fork the recording with a fault; in a fork's clean twins the fault is a sham."""
        recording = (await self.recorded(task)).tape
        found = find_fork_point(recording, fault, seed=seed)
        each = plan_fork_run(found, condition, world=self._world(task), seed=seed)
        launch, heard = self._launch(task), len(self._heard)
        assert self.house is not None
        played = await run_replay(self.house, recording, self.store.tapes, each, launch)
        return self._ran(played, launch, heard)

    def _world(self, task: str) -> PracticeWorld:
        return PracticeWorld(self.book, task, self._hosts)

    def _launch(self, task: str, most: int = 60) -> Overhearing:
        kind = "mcp" if self.tools == "stdio" else self.tools
        argv: tuple[str, ...] = (task, "--model", MODEL, "--tools", kind)
        argv += ("--max-steps", str(most))
        if self.tools == "local":
            argv += ("--db", str(self.book))
        if self.tools == "stdio":
            tee = f"{sys.executable} -m stumble mcp --name shop --"
            server = f"{tee} {sys.executable} -m scenarios.practice.mcp_server --db {self.book}"
            argv += ("--mcp-command", server)
        command = (sys.executable, "-m", "scenarios.practice.agents.openai_agent", *argv)
        output = self.folder / "agent.log"
        if self.tools == "stdio":
            # A tee finds its run by the environment with which its agent was started.
            return Overhearing(launch=ColdLauncher(command=command, output=output, budget=50))
        held = self._agent
        return Overhearing(
            launch=WarmLauncher(process=held, command=command, argv=argv, output=output, budget=20)
        )

    def _ran(self, played: RunResult, launch: Overhearing, heard: int) -> Ran:
        log = self.folder / "agent.log"
        printed = log.read_bytes()
        log.unlink()
        return Ran(
            played=played,
            tape=read_tape(played.path),
            connections=tuple(launch.connections),
            environment=launch.environments[0],
            heard=tuple(self._heard[heard:]),
            printed=printed,
        )

    def row(self, ran: Ran) -> dict[str, object]:
        """Return the store's row of the run's one injection."""
        id = ran.tape.trajectory.id
        found = build_tables_by_run([ran.tape], self.store)[id]["injections"]
        rows: list[dict[str, object]] = found.to_pylist()
        (row,) = rows
        return row


def results(body: bytes) -> dict[str, bytes]:
    """Return the result of each call in a model request."""
    return {each.call_id: each.text.encode() for each in read_tool_results(openai_chat, body)}


def _model(heard: list[bytes]) -> web.Application:
    @web.middleware
    async def keep(request: web.Request, handler: Handler) -> web.StreamResponse:
        heard.append(await request.read())
        return await handler(request)

    app = ModelServer().build_app()
    app.middlewares.append(keep)
    return app


@asynccontextmanager
async def _staged(folder: Path, tools: Tools) -> AsyncIterator[Stage]:
    heard = list[bytes]()
    world.set_up_order_book(folder / "shop.db", ALL_TASKS["refund-1"])
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(tool_server.serve_tools(folder / "shop.db"))
        model = await stack.enter_async_context(listen_on_loopback(_model(heard)))
        ports = {"shop.practice": shop, "model.practice": model}
        if tools == "mcp":
            served = mcp_server.serve_mcp_order_book(folder / "shop.db")
            ports["mcp.practice"] = await stack.enter_async_context(served)
        agent = await stack.enter_async_context(
            start_warm_agent("scenarios.practice.agents.openai_agent")
        )
        hosts = {name: ("127.0.0.1", port) for name, port in ports.items()}
        stage = Stage(folder, tools, agent, hosts, heard)
        stage.house = await stack.enter_async_context(
            open_replay_session(ca=folder / "ca", scratch=folder, hosts=hosts, out=True)
        )
        yield stage


class Open:
    """A stage on an event loop that runs one coroutine after another."""

    def __init__(self, runner: asyncio.Runner, stage: Stage) -> None:
        self.runner, self.stage = runner, stage

    def run[T](self, what: Coroutine[object, object, T]) -> T:
        """Return the result of a coroutine, within a minute."""
        return self.runner.run(asyncio.wait_for(what, 60))


@contextmanager
def opened(folder: Path, tools: Tools) -> Iterator[Open]:
    """Open a stage for a module; everything ends with the block."""
    os.environ["OPENAI_API_KEY"] = PRACTICE_KEY
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stack = AsyncExitStack()
        stage = runner.run(stack.enter_async_context(_staged(folder, tools)))
        try:
            yield Open(runner, stage)
        finally:
            runner.run(stack.aclose())
