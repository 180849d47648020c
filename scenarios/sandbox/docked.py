"""A sandbox of docker: each command in a container of its own, all in one set of namespaces."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.sandbox import engine, images
from scenarios.sandbox.allow import Allow
from scenarios.sandbox.holder import PORT, held
from scenarios.sandbox.lending import lent, taken_back
from scenarios.sandbox.passing import files, led, proxy
from scenarios.sandbox.places import bind, outside
from scenarios.sandbox.pump import Pump
from scenarios.sandbox.relay import Relay
from scenarios.sandbox.values import HOME, Ended, Isolation, Mount, Order, Ran
from scenarios.sandbox.weight import outgrown

if TYPE_CHECKING:
    from docker import APIClient
    from docker.types import HostConfig
    from docker.types import Mount as Bound

GRACE = 2
"""Seconds between SIGTERM and SIGKILL."""
LOOK = 1.0
"""Seconds between two looks at the workspace."""


@asynccontextmanager
async def docked(
    order: Order, *, image: str = images.IMAGE, bridge: bool = False
) -> AsyncIterator["Docked"]:
    """A sandbox of this image; ChildProcessError, in one line, where it cannot be had."""
    with ExitStack() as stack:
        client = stack.enter_context(engine.engine())
        await asyncio.to_thread(engine.sweep, client)
        shown = images.shown(client, image)
        holding = held(client, image, shown, bridge=bridge)
        holder = await asyncio.to_thread(stack.enter_context, holding)
        relay = Relay(Allow(order.allow), proxy(order.env))
        await relay.serve(holder.listening)
        try:
            yield Docked(
                order=order,
                relay=relay,
                weaker=(*holder.weaker, *_lacks(client)),
                _client=client,
                _image=image,
                _holder=holder.id,
                _mounts=(*shown, *_mounts(order)),
            )
        finally:
            await relay.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Docked:
    """An open sandbox of docker."""

    order: Order
    relay: Relay
    weaker: tuple[str, ...]
    isolation: Isolation = "docker"
    _client: "APIClient"
    _image: str
    _holder: str
    _mounts: tuple["Bound", ...]

    @property
    def refused(self) -> Mapping[str, int]:
        """How often what was not let through, as `host:port: why`."""
        return self.relay.refused

    async def run(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        budget: float | None = None,
        stdin: int | None = None,
        stdout: int = 1,
        stderr: int = 2,
    ) -> Ran:
        """Run a command to its end; see `Sandbox.run`."""
        id = await self._made(command, cwd or self.order.workspace, env or {}, stdin is not None)
        try:
            with engine.attached(self._client, id) as stream:
                if (none := await asyncio.to_thread(self._started, id)) is not None:
                    return Ran(exit=none, ended="exit")
                limit = self.order.bounds.output
                pump = Pump(stream=stream, stdin=stdin, stdout=stdout, stderr=stderr, limit=limit)
                pumping = asyncio.create_task(asyncio.to_thread(pump.run))
                try:
                    ended = await self._ended(id, budget)
                finally:
                    await _always(asyncio.to_thread(self._client.stop, id, timeout=GRACE))
                await pumping
            return await asyncio.to_thread(self._told, id, ended, pump.dropped)
        finally:
            await _always(asyncio.to_thread(engine.remove, self._client, id))
            await _always(asyncio.to_thread(taken_back, self.order))

    async def _ended(self, id: str, budget: float | None) -> Ended:
        """Why the command ended, or has to."""
        over = asyncio.create_task(asyncio.to_thread(self._client.wait, id, timeout=None))
        loop = asyncio.get_running_loop()
        until = None if budget is None else loop.time() + budget
        while not over.done():
            left = LOOK if until is None else min(LOOK, until - loop.time())
            await asyncio.wait((over,), timeout=max(0.0, left))
            if over.done():
                break
            if until is not None and loop.time() >= until:
                return "time"
            if await asyncio.to_thread(outgrown, self.order.changed, self.order.bounds.disk):
                return "disk"
        over.result()
        return "exit"

    def _told(self, id: str, ended: Ended, dropped: int) -> Ran:
        state = self._client.inspect_container(id)["State"]
        code = int(state["ExitCode"])
        if ended == "exit" and code and state["OOMKilled"]:
            ended = "memory"
        return Ran(exit=code, ended=ended, dropped=dropped)

    def _started(self, id: str) -> int | None:
        """Start it; 126 or 127 where the command is no program."""
        from docker.errors import APIError

        try:
            self._client.start(id)
        except APIError as error:
            said = str(error.explanation).lower()
            if "permission denied" in said:
                return 126
            if "not found" in said or "no such file" in said:
                return 127
            raise
        return None

    async def _made(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], reads: bool
    ) -> str:
        relay = f"http://127.0.0.1:{PORT}"
        inside = {"HOME": HOME, **led(self.order.env, relay, self.order.allow), **env}
        user = await asyncio.to_thread(lent, self.order)
        made = await asyncio.to_thread(
            self._client.create_container,
            self._image,
            command=list(command),
            user=f"{user}:{os.getgid() if user == os.getuid() else user}",
            working_dir=str(cwd),
            environment=inside,
            stdin_open=reads,
            host_config=self._config(user),
            labels=engine.owner(),
            use_config_proxy=False,
        )
        return str(made["Id"])

    def _config(self, user: int) -> "HostConfig":
        from docker.types import LogConfig, Ulimit

        bounds, shared = self.order.bounds, f"container:{self._holder}"
        whose = f"uid={user}"
        scratch = f"rw,exec,nosuid,nodev,size={bounds.scratch}"
        home = {} if self.order.home else {HOME: f"{scratch},mode=700,{whose}"}
        hidden = dict.fromkeys(_covered(self.order.hidden, self._mounts), "ro,size=4k")
        return self._client.create_host_config(
            network_mode=shared,
            pid_mode=shared,
            mounts=list(self._mounts),
            tmpfs={"/tmp": f"{scratch},mode=1777", **home, **hidden},  # noqa: S108
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            nano_cpus=int(bounds.cpus * 1e9),
            mem_limit=bounds.memory,
            memswap_limit=bounds.memory,
            pids_limit=bounds.processes,
            ulimits=[Ulimit(name="core", soft=0, hard=0)],
            log_config=LogConfig(type="none"),
        )


def _mounts(order: Order) -> tuple["Bound", ...]:
    """The workspace, what was asked for, and the files that the environment names."""
    asked = {str(order.workspace): bind(order.workspace, str(order.workspace), writable=True)}
    home = (Mount(source=order.home, target=HOME, writable=True),) if order.home else ()
    for each in (*home, *order.mounts, *files(order.env)):
        asked.setdefault(each.target, bind(each.source, each.target, writable=each.writable))
    return tuple(asked.values())


def _covered(hidden: Sequence[str], mounts: Sequence["Bound"]) -> Iterator[str]:
    """Where in the container folders would be seen that are hidden, by whatever name."""
    for folder in (outside(Path(each)) for each in hidden if Path(each).is_dir()):
        for mount in mounts:
            if folder.is_relative_to(mount["Source"]):
                yield str(Path(mount["Target"]) / folder.relative_to(mount["Source"]))


def _lacks(client: "APIClient") -> tuple[str, ...]:
    """The limits that this engine cannot hold."""
    lacking = engine.unlimited(client.info())
    return tuple(f"{what} is not limited by this engine" for what in lacking)


async def _always[T](ending: Awaitable[T]) -> T:
    """See an ending through, also when we are cancelled meanwhile."""
    return await asyncio.shield(ending)
