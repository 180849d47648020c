"""The practice agent, warm, at one of its kinds of tools: each cell of the matrix is one fork."""

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

from faults.armed import live as armed
from scenarios.practice import KEY, as_mcp, server, world
from scenarios.practice.provider import Provider
from scenarios.practice.serving import listening
from scenarios.practice.tasks import EVERY
from stumble import indexing
from stumble.demo import PracticeWorld
from stumble.forks import branch, plan
from stumble.home import new_id
from stumble.launch import Cold, Warm, WarmRun, warm
from stumble.playing import play
from stumble.recording import record
from stumble.runs import Hosts, Played
from stumble.theatre import Theatre, theatre
from tests.overhear import Overheard, Overhearing
from traces.dialects import openai_chat
from traces.model import Condition, Fault, Injection
from traces.store import Store
from traces.story import Story, tell
from traces.tape import Tape, read

type Tools = Literal["http", "mcp", "stdio", "local"]
type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MODEL = "practice/retries"
_CHANGING = re.compile(r"(?<=127\.0\.0\.1:)\d+|(?<=/stumble-)\w+|^tests/.*\(call\)$")
"""The last of them is what pytest says of the test that runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run: what we say of it, what the agent's socket saw, and what the model was sent."""

    played: Played
    tape: Tape
    connections: tuple[Overheard, ...]
    environment: Mapping[str, str]
    heard: tuple[bytes, ...]
    """Bodies of live model requests, as the model server read them."""
    printed: bytes

    @property
    def injection(self) -> Injection:
        """The one that there is."""
        (injection,) = self.tape.injections
        return injection

    @property
    def got(self) -> bytes:
        """All that came to the agent's sockets."""
        return b"\n".join(bytes(each.got) for each in self.connections)

    @property
    def started_with(self) -> dict[str, str]:
        """The agent's environment, without what is another each time: ports and folders."""
        return {key: _CHANGING.sub("", value) for key, value in self.environment.items()}


class Stage:
    """Servers, a warm agent and a theatre; recordings are made once per task."""

    def __init__(
        self, folder: Path, tools: Tools, agent: Warm, hosts: Hosts, heard: list[bytes]
    ) -> None:
        self.folder, self.tools, self.store = folder, tools, Store(folder / "store")
        self._agent, self._hosts, self._heard = agent, hosts, heard
        self._recorded: dict[str, Ran] = {}
        self.house: Theatre | None = None

    @property
    def book(self) -> Path:
        """The order book."""
        return self.folder / "shop.db"

    async def recorded(self, task: str) -> Ran:
        """The clean run of a task, live."""
        if task not in self._recorded:
            self._recorded[task] = await self.live(task)
            assert self._recorded[task].played.exit.code == 0
        return self._recorded[task]

    async def live(self, task: str, *faults: Fault, most: int = 60, seed: int = 0) -> Ran:
        """A live run of at most so many steps, struck where there are faults."""
        id, launch, heard = new_id(), self._launch(task, most), len(self._heard)
        played = await record(
            self.store.tapes / f"{id}.tape",
            launch,
            id=id,
            ca=self.folder / "ca",
            scratch=self.folder,
            hosts=self._hosts,
            world=self._world(task),
            armed=tuple(map(armed, faults)),
            seed=seed,
        )
        return self._ran(played, launch, heard)

    async def told(self, task: str) -> Story:
        """What its recording means."""
        return tell((await self.recorded(task)).tape)

    async def forked(
        self, fault: Fault, task: str, condition: Condition = "fault", *, seed: int = 7
    ) -> Ran:
        """The same, struck by a fault; the clean twins of a fork are struck by a sham."""
        recording = (await self.recorded(task)).tape
        found = branch(recording, fault, seed=seed)
        each = plan(found, condition, world=self._world(task), seed=seed)
        launch, heard = self._launch(task), len(self._heard)
        assert self.house is not None
        played = await play(self.house, recording, self.store.tapes, each, launch)
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
            server = f"{tee} {sys.executable} -m scenarios.practice.as_mcp --db {self.book}"
            argv += ("--mcp-command", server)
        command = (sys.executable, "-m", "scenarios.practice.agent", *argv)
        output = self.folder / "agent.log"
        if self.tools == "stdio":
            # A tee finds its run by the environment with which its agent was started.
            return Overhearing(launch=Cold(command=command, output=output, budget=50))
        held = self._agent
        return Overhearing(
            launch=WarmRun(process=held, command=command, argv=argv, output=output, budget=20)
        )

    def _ran(self, played: Played, launch: Overhearing, heard: int) -> Ran:
        log = self.folder / "agent.log"
        printed = log.read_bytes()
        log.unlink()
        return Ran(
            played=played,
            tape=read(played.path),
            connections=tuple(launch.connections),
            environment=launch.environments[0],
            heard=tuple(self._heard[heard:]),
            printed=printed,
        )

    def row(self, ran: Ran) -> dict[str, object]:
        """What the store holds of the run's one injection."""
        id = ran.tape.trajectory.id
        found = indexing.tables_of([ran.tape], self.store)[id]["injections"]
        rows: list[dict[str, object]] = found.to_pylist()
        (row,) = rows
        return row


def results(body: bytes) -> dict[str, bytes]:
    """What a model request says that each call returned."""
    return {each.call_id: each.text.encode() for each in openai_chat.results(body)}


def _model(heard: list[bytes]) -> web.Application:
    @web.middleware
    async def keep(request: web.Request, handler: Handler) -> web.StreamResponse:
        heard.append(await request.read())
        return await handler(request)

    app = Provider().app()
    app.middlewares.append(keep)
    return app


@asynccontextmanager
async def _staged(folder: Path, tools: Tools) -> AsyncIterator[Stage]:
    heard = list[bytes]()
    world.setup(folder / "shop.db", EVERY["refund-1"])
    async with AsyncExitStack() as stack:
        shop = await stack.enter_async_context(server.serving(folder / "shop.db"))
        model = await stack.enter_async_context(listening(_model(heard)))
        ports = {"shop.practice": shop, "model.practice": model}
        if tools == "mcp":
            served = as_mcp.serving(folder / "shop.db")
            ports["mcp.practice"] = await stack.enter_async_context(served)
        agent = await stack.enter_async_context(warm("scenarios.practice.agent"))
        hosts = {name: ("127.0.0.1", port) for name, port in ports.items()}
        stage = Stage(folder, tools, agent, hosts, heard)
        stage.house = await stack.enter_async_context(
            theatre(ca=folder / "ca", scratch=folder, hosts=hosts, out=True)
        )
        yield stage


class Open:
    """A stage on a loop that is run for one thing after another."""

    def __init__(self, runner: asyncio.Runner, stage: Stage) -> None:
        self.runner, self.stage = runner, stage

    def run[T](self, what: Coroutine[object, object, T]) -> T:
        """What comes of it, within a minute."""
        return self.runner.run(asyncio.wait_for(what, 60))


@contextmanager
def opened(folder: Path, tools: Tools) -> Iterator[Open]:
    """A stage that is set for a module; all of it ends with the block."""
    os.environ["OPENAI_API_KEY"] = KEY
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stack = AsyncExitStack()
        stage = runner.run(stack.enter_async_context(_staged(folder, tools)))
        try:
            yield Open(runner, stage)
        finally:
            runner.run(stack.aclose())
