"""The weaker sandbox, of plain processes: what it lacks is found out, and said of each result.

A `warden` holds each command. Where the kernel gives it a network of its own the relay listens in
there, as in a container; else on this machine's loopback, and nothing keeps a command to it.
"""

import asyncio
import marshal
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from scenarios.sandbox import limited
from scenarios.sandbox.allow import Allow
from scenarios.sandbox.holder import PORT
from scenarios.sandbox.lending import taken_back
from scenarios.sandbox.passing import led, proxy
from scenarios.sandbox.relay import Relay
from scenarios.sandbox.values import Ended, Isolation, Order, Ran

ALWAYS = (
    "it sees the files of this machine, but those that are hidden from it",
    "it is not kept to a share of the processors",
    "what it prints is not bounded",
)
WITHOUT = {
    "network": "it may reach all that this machine reaches, past the relay",
    "folders": "it may write wherever its user may, and nothing is hidden from it",
    "processes": "what it uses is not added up over its processes",
    "count": "how many processes it may start is not bounded",
}
"""What does not hold where one of `limited.WALLS` does not stand."""
LONG = 1 << 31
"""Seconds, or files, that are no limit."""


@asynccontextmanager
async def confined(order: Order) -> AsyncIterator["Confined"]:
    """A sandbox of processes; ChildProcessError where not even that is to be had."""
    walls = await asyncio.to_thread(_walls)
    relay = Relay(Allow(order.allow), proxy(order.env))
    port = PORT
    if "network" not in walls:
        listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        port = listening.getsockname()[1]
        await relay.serve(listening)
    try:
        yield Confined(
            order=order,
            relay=relay,
            weaker=_lacking(walls),
            _alone="network" in walls,
            _port=port,
        )
    finally:
        await relay.close()


async def lacking() -> tuple[str, ...]:
    """What does not hold in such a sandbox here."""
    return _lacking(await asyncio.to_thread(_walls))


def _lacking(walls: tuple[str, ...]) -> tuple[str, ...]:
    return (*ALWAYS, *(why for wall, why in WITHOUT.items() if wall not in walls))


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """An open sandbox of processes."""

    order: Order
    relay: Relay
    weaker: tuple[str, ...]
    isolation: Isolation = "process"
    _alone: bool
    _port: int

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
        with tempfile.TemporaryDirectory(prefix="stumble-") as scratch:
            order, inside = self._told(command, cwd, scratch), self._env(env or {}, scratch)
            try:
                with _held(order, inside, (stdin, stdout, stderr)) as held:
                    return await self._ended(held, budget)
            finally:
                await asyncio.shield(asyncio.to_thread(taken_back, self.order))

    async def _ended(self, held: "_Held", budget: float | None) -> Ran:
        if self._alone:
            await self.relay.serve(await asyncio.to_thread(held.listening))
        reporting = asyncio.create_task(asyncio.to_thread(held.said))
        try:
            await asyncio.wait((reporting,), timeout=budget)
            late = not reporting.done()
        finally:
            held.hold.close()
        return _ran(await reporting, late=late)

    def _env(self, env: Mapping[str, str], scratch: str) -> dict[str, str]:
        home = str(self.order.home or scratch)
        kept = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, "TMPDIR": scratch}
        relay = f"http://127.0.0.1:{self._port}"
        return {**kept, **led(self.order.env, relay, self.order.allow), **env}

    def _told(self, command: Sequence[str], cwd: Path | None, scratch: str) -> dict[str, object]:
        bounds = self.order.bounds
        return {
            "command": list(command),
            "cwd": str(cwd or self.order.workspace),
            "scratch": scratch,
            "env": None,
            "left": None,
            "writes": [str(path) for path in self.order.changed],
            "hidden": list(self.order.hidden),
            "limits": {
                "cpu": LONG,
                "memory": bounds.memory,
                "addresses": -1,  # runtimes of JavaScript and Go take many that they never use
                "file": 2 * bounds.disk,  # so that it is the folder that is seen to be too large
                "disk": bounds.disk,
                "processes": bounds.processes,
                "files": 4096,
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A warden that runs, and our ends of what it is held and tells by."""

    hold: IO[bytes]
    report: IO[bytes]
    door: socket.socket

    def listening(self) -> socket.socket:
        """The socket that listens in the network of the command."""
        self.door.settimeout(limited.PATIENCE)
        _, numbers, _, _ = socket.recv_fds(self.door, 1, 1)
        if not numbers:
            raise ChildProcessError("the warden failed before it had a network")
        return socket.socket(fileno=numbers[0])

    def said(self) -> dict[str, Any]:
        """Its report, once there is one; ChildProcessError where it ended without."""
        try:
            told: dict[str, Any] = marshal.load(self.report)
        except EOFError:
            why = "the warden failed; what it said is in the output"
            raise ChildProcessError(why) from None
        return told


@contextmanager
def _held(
    order: Mapping[str, object], env: Mapping[str, str], streams: tuple[int | None, int, int]
) -> Iterator[_Held]:
    """A warden with these standard streams; it ends with all it started when this does."""
    stdin, stdout, stderr = streams
    with ExitStack() as stack:
        hold, holding = os.pipe()
        report, reporting = os.pipe()
        ours, theirs = socket.socketpair()
        held = _Held(
            hold=stack.enter_context(os.fdopen(holding, "wb", 0)),
            report=stack.enter_context(os.fdopen(report, "rb")),
            door=stack.enter_context(ours),
        )
        given = (hold, reporting, theirs.fileno())
        numbers = {"hold": hold, "report": reporting, "door": theirs.fileno(), "port": PORT}
        told = marshal.dumps({**order, **numbers}).hex()
        try:
            warden = subprocess.Popen(
                [sys.executable, "-I", "-S", str(limited.WARDEN), told],
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=given,
                env=env,
                start_new_session=True,
            )
        finally:
            os.close(hold)
            os.close(reporting)
            theirs.close()
        try:
            yield held
        finally:
            held.hold.close()
            limited.end(warden)


def _ran(said: Mapping[str, Any], *, late: bool) -> Ran:
    if said["unstarted"]:
        return Ran(exit=127 if "No such file" in said["unstarted"] else 126, ended="exit")
    code, over = said["code"], said["over"]
    ended: Ended = "exit"
    if late:
        ended = "time"
    elif over in ("memory", "disk"):
        ended = over
    return Ran(exit=137 if code is None else code if code >= 0 else 128 - code, ended=ended)


def _walls() -> tuple[str, ...]:
    """Which walls can be built here, found out by building them."""
    with tempfile.TemporaryDirectory(prefix="stumble-") as name:
        folders = [Path(name) / each for each in ("work", "scratch")]
        for folder in folders:
            folder.mkdir()
        return limited.run(["true"], cwd=folders[0], scratch=folders[1], env=dict(os.environ)).walls
