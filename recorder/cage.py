"""A cage: in which namespaces the agent runs, and what it tried to reach from in there.

Two walls, each of its own. Alone: a network namespace in which nothing is but loopback, and on
it, at the ports that the agent's variables name, sockets that we serve. Room: a mount
namespace in which a folder of the agent's shows a copy, at the same path. `walls.py` builds
them, in the agent's own process before it becomes the agent; so nothing of them outlives it.
"""

import asyncio
import functools
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from recorder.attempts import Attempt, Attempts

WALLS = (sys.executable, "-I", "-S", str(Path(__file__).with_name("walls.py")))
FDS = 64
"""File descriptors that are taken at most: one per port, and three."""
PATIENCE = 30.0
"""Seconds that the walls may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A folder that shows a copy of itself."""

    path: Path
    copy: Path
    through: tuple[tuple[str, Path | None], ...] = ()
    """What the copy lacks and still shows, relative to both: a folder with the place for what is
    written to it, a file with None; where no place serves, it cannot be written to."""

    def order(self) -> dict[str, object]:
        """What `walls.py` is told."""
        through = [(name, str(layer) if layer else None) for name, layer in self.through]
        cover = [str(self.copy), str(self.path)]
        return {"cover": cover, "through": through, "cwd": str(self.path)}

    def prefix(self) -> tuple[str, ...]:
        """What to put before an absolute program and its arguments, so that it runs in here."""
        return (*WALLS, json.dumps(self.order()))


def facade(shown: Mapping[str, Path], cwd: str) -> tuple[str, ...]:
    """What to put before an absolute program, so that it sees these folders just under /.

    They need not be there outside. All else is as it is outside.
    """
    folders = [(str(folder), path) for path, folder in shown.items()]
    return (*WALLS, json.dumps({"shown": folders, "cwd": cwd}))


class Cage:
    """Where one agent is run: enter it, `wrap` the command, start it, `admit` it, leave."""

    def __init__(
        self,
        *,
        room: Room | None = None,
        ports: tuple[int, ...] = (),
        serve: Callable[[socket.socket], Awaitable[None]] | None = None,
    ) -> None:
        self._room, self._ports, self._serve = room, ports, serve
        self._ours: socket.socket | None = None
        self._theirs: socket.socket | None = None
        self._watch: Attempts | None = None
        self.attempts: Mapping[Attempt, int] = {}
        """How often the agent tried to reach what, past the proxy; known when it has ended."""

    async def __aenter__(self) -> Self:
        self._ours, self._theirs = socket.socketpair()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._watch is not None:
            self._watch.close()
            self.attempts = self._watch.counts
        for each in (self._ours, self._theirs):
            if each is not None:
                each.close()

    @property
    def passes(self) -> tuple[int, ...]:
        """The file descriptors that the command needs."""
        return (self._theirs.fileno(),) if self._theirs else ()

    def wrap(self, program: str, command: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """What to execute, and with which arguments, so that `program` runs in the cage."""
        order = self._room.order() if self._room else {}
        order |= {"channel": self.passes[0]}
        if self._ports:
            order |= {"ports": self._ports}
        return WALLS[0], (*WALLS, json.dumps(order), program, *command)

    async def admit(self) -> None:
        """Wait for the walls of a command that was started, and serve and watch in there.

        ChildProcessError where they could not be built; the agent was not started then.
        """
        assert self._ours is not None
        assert self._theirs is not None
        self._theirs.close()
        self._ours.settimeout(PATIENCE)
        why, held = await asyncio.to_thread(_told, self._ours)
        if why is not None:
            raise ChildProcessError(f"the agent could not be shut in: {why}")
        if held:
            count = len(self._ports)
            listening, (seen, *refusing) = held[:count], held[count:]
            self._watch = Attempts(seen, tuple(refusing))
            self._watch.open()
            for each in listening:
                if self._serve is None:
                    each.close()
                else:
                    await self._serve(each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacks:
    """Why a wall cannot be built here; None where it can."""

    alone: str | None
    room: str | None


@functools.cache
def lacks() -> Lacks:
    """What the system does not let us build, found out by building it."""
    if sys.platform != "linux":
        return Lacks(alone=(why := "only Linux has namespaces"), room=why)
    with tempfile.TemporaryDirectory(prefix="stumble-") as name:
        folders = [Path(name) / each for each in ("path", "copy")]
        for folder in folders:
            folder.mkdir()
        path, copy = folders
        alone: dict[str, object] = {"ports": [1024]}
        room: dict[str, object] = {"cover": [str(copy), str(path)]}
        if _tried(alone | room) is None:  # as mostly, and in half of the time
            return Lacks(alone=None, room=None)
        return Lacks(alone=_tried(alone), room=_tried(room))


@functools.cache
def lacks_facade() -> str | None:
    """Why folders cannot be shown just under /; None where they can."""
    if sys.platform != "linux":
        return "only Linux has namespaces"
    with tempfile.TemporaryDirectory(prefix="stumble-") as name:
        return _tried({"shown": [(name, "/app")], "cwd": "/app"})


def _tried(order: dict[str, object]) -> str | None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        order = order | {"channel": theirs.fileno()}
        command = [*WALLS, json.dumps(order)]
        with subprocess.Popen(command, pass_fds=(theirs.fileno(),)) as building:
            theirs.close()
            ours.settimeout(PATIENCE)
            try:
                # Heard first: waiting with a bound looks only every few milliseconds.
                why, held = _told(ours)
                for each in held:
                    each.close()
                building.wait(timeout=PATIENCE)
            finally:
                building.kill()
    return why


def _told(channel: socket.socket) -> tuple[str | None, tuple[socket.socket, ...]]:
    """Why the walls could not be built, or None and the sockets that are in there."""
    try:
        said, numbers, _, _ = socket.recv_fds(channel, 4096, FDS)
    except TimeoutError:
        return f"nothing was heard for {PATIENCE:g} s", ()
    lacks: str | None = json.loads(said).get("lacks") if said else "it ended before that"
    return lacks, tuple(socket.socket(fileno=number) for number in numbers)
