"""Isolation: the namespaces in which an agent runs, and the connections it attempted from inside.

There are two independent kinds. A network namespace contains only loopback, with sockets that this
process serves, at the ports that the agent's variables name. A mount namespace shows a copy of one
of the agent's folders at the same path. `enter_namespaces.py` sets them up in the agent's own
process before it executes the agent, so they end with it. An agent with a network namespace also
gets PID and user namespaces (`pid_namespace.py`); otherwise it could escape through other
processes.
"""

import asyncio
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

from recorder.agent.blocked_connections import BlockedConnection, BlockedConnectionMonitor
from recorder.agent.outside_files import OutsideFiles, list_layer_folders
from recorder.agent.run_limits import RunLimits
from recorder.agent.scratch_paths import find_named_paths, list_scratch_folders, select_outer_paths
from traces.reachable_paths import is_reachable, is_reachable_file, is_reachable_folder

ENTER_NAMESPACES = (
    sys.executable,
    "-I",
    "-S",
    str(Path(__file__).with_name("enter_namespaces.py")),
)
MAX_DESCRIPTORS = 64
"""Maximum number of file descriptors received: one per port, and three."""
BUILD_TIMEOUT = 30.0
"""Seconds that setting up the namespaces may take."""


class MountedCopy(Struct, frozen=True, kw_only=True):
    """A folder over which a copy of it is mounted."""

    path: Path
    copy: Path
    through: tuple[tuple[str, Path | None], ...] = ()
    """Entries that the copy lacks and still shows, relative to both: a folder with its layer for
    writes, a file with None. Without a usable layer the entry is read-only.
    """
    outside: OutsideFiles | None = None
    """The files elsewhere that are protected; None leaves all as they are."""

    @property
    def start_folder(self) -> Path:
        """The folder to start processes in: they change to `path`, which may not exist outside."""
        return self.path if is_reachable_folder(self.path) else self.copy

    def locate_program(self, name: str) -> Path:
        """Return where a program with a path is outside of the namespace."""
        path = self.path / name
        if path.is_relative_to(self.path) and not is_reachable(path):
            return self.copy / path.relative_to(self.path)
        return path

    def to_namespace_order(self) -> dict[str, object]:
        """Return the ORDER for `enter_namespaces.py`."""
        through = [(name, str(layer) if layer else None) for name, layer in self.through]
        cover = [str(self.copy), str(self.path)]
        outside = self.outside.to_namespace_order() if self.outside else {}
        return {"cover": cover, "through": through, "cwd": str(self.path)} | outside

    def build_command_prefix(self) -> tuple[str, ...]:
        """Return the words that, put before an absolute program, run it in here."""
        return (*ENTER_NAMESPACES, json.dumps(self.to_namespace_order()))


def build_root_mount_prefix(shown: Mapping[str, Path], cwd: str) -> tuple[str, ...]:
    """Return the words that, put before an absolute program, mount `shown` directly under /.

    `shown` maps a path inside to a folder; the path need not exist outside. The rest is unchanged.
    """
    folders = [(str(folder), path) for path, folder in shown.items()]
    return (*ENTER_NAMESPACES, json.dumps({"shown": folders, "cwd": cwd}))


class AgentIsolation:
    """Runs one agent: enter, `wrap_command`, start it, `wait_until_isolated`, leave."""

    def __init__(
        self,
        *,
        room: MountedCopy | None = None,
        ports: tuple[int, ...] = (),
        serve: Callable[[socket.socket], Awaitable[None]] | None = None,
        processes: bool = False,
        shown: tuple[Path, ...] = (),
        limits: RunLimits | None = None,
    ) -> None:
        self.room, self._ports, self._serve = room, ports, serve
        self._limits = limits
        self._shown = shown
        """Folders of ours for the run, among temporary files."""
        self.kept: tuple[Path, ...] | None = None
        """The user's temporary files that a started agent keeps; None if it keeps all."""
        self.processes = processes
        """Whether the agent gets PID and user namespaces, and no capability outside of them."""
        self._ours: socket.socket | None = None
        self._theirs: socket.socket | None = None
        self._watch: BlockedConnectionMonitor | None = None
        self.attempts: Mapping[BlockedConnection, int] = {}
        """Attempts per address outside the proxy; set when the agent has ended."""

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
    def passed_fds(self) -> tuple[int, ...]:
        """The file descriptors that the command inherits."""
        return (self._theirs.fileno(),) if self._theirs else ()

    def wrap_command(
        self, program: str, command: Sequence[str], env: Mapping[str, str], grace: float = 0.0
    ) -> tuple[str, tuple[str, ...]]:
        """Return the program and arguments that run `program` in the namespaces.

        With `processes`, processes it leaves running have `grace` seconds to end; with a copy too,
        temporary files are the run's own, but for those that the command or `env` names.
        """
        order = self.room.to_namespace_order() if self.room else {}
        order |= {"channel": self.passed_fds[0]}
        if self.processes:
            order |= {"processes": True, "grace": grace}
            if self.room is not None and self.room.outside is not None:
                if self._limits is not None:
                    written = (self.room.copy.parent, self.room.outside.layers)
                    folders = list(map(str, dict.fromkeys(written)))
                    order |= {"limits": {"limits": self._limits, "folders": folders}}
                order |= {"scratch": self._order_scratch(self.room, (program, *command), env)}
        if self._ports:
            order |= {"ports": self._ports}
        return ENTER_NAMESPACES[0], (*ENTER_NAMESPACES, json.dumps(order), program, *command)

    def _order_scratch(
        self, room: MountedCopy, words: tuple[str, ...], env: Mapping[str, str]
    ) -> dict[str, object]:
        assert room.outside is not None
        writable, layers = room.outside.writable, room.outside.layers
        folders = tuple(path for path in list_scratch_folders() if path not in writable)
        named = find_named_paths(words, os.environ, folders)
        users = (path for path in named if not path.is_relative_to(room.path))
        self.kept = tuple(dict.fromkeys((*writable, *users)))
        ours = (*self._shown, *find_named_paths(words, env, folders))
        kept = select_outer_paths((room.path, *self.kept, *ours), folders)
        covers = [(str(path), f"{layers}/scratch-{n}") for n, path in enumerate(folders)]
        return {"folders": covers, "kept": list(map(str, kept))}

    async def wait_until_isolated(self) -> None:
        """Wait until a started command has its namespaces, then serve and monitor inside.

        Raises ChildProcessError if they could not be set up; the agent is not started then.
        """
        assert self._ours is not None
        assert self._theirs is not None
        self._theirs.close()
        self._ours.settimeout(BUILD_TIMEOUT)
        reason, sockets = await asyncio.to_thread(_receive_isolation_reply, self._ours)
        if reason is not None:
            raise ChildProcessError(f"the agent could not be shut in: {reason}")
        if sockets:
            count = len(self._ports)
            listening, (packets, *refusing) = sockets[:count], sockets[count:]
            self._watch = BlockedConnectionMonitor(packets, tuple(refusing))
            self._watch.open()
            for each in listening:
                if self._serve is None:
                    each.close()
                else:
                    await self._serve(each)


class MissingCapabilities(Struct, frozen=True, kw_only=True):
    """Why each kind of isolation is unavailable here; None if it is available."""

    alone: str | None
    room: str | None
    processes: str | None = None
    """With a network namespace: why the agent cannot have its own PIDs, users and capabilities."""
    outside: str | None = None
    """With a mounted copy: why files outside of it cannot be protected."""
    layers: Path | None = None
    """Where the layers of such a protection are made; None if there is none."""


@functools.cache
def find_missing_capabilities() -> MissingCapabilities:
    """Find out which kinds of isolation the system allows, by setting them up."""
    if sys.platform != "linux":
        return MissingCapabilities(
            alone=(reason := "only Linux has namespaces"), room=reason, processes=reason
        )
    with tempfile.TemporaryDirectory(prefix="stumble-") as name:
        folders = [Path(name) / each for each in ("path", "copy")]
        for folder in folders:
            folder.mkdir()
        path, copy = folders
        alone: dict[str, object] = {"ports": [1024]}
        room: dict[str, object] = {"cover": [str(copy), str(path)]}
        own_processes: dict[str, object] = {"processes": True}
        usual = next(iter(list_layer_folders()), None)
        if usual is not None:  # one probe is three times faster than four
            with _order_one_overlay(path, usual) as outside:
                if _try_isolation(alone | room | own_processes | outside) is None:
                    return MissingCapabilities(alone=None, room=None, layers=usual)
        lacks_alone = _try_isolation(alone)
        processes = lacks_alone or _try_isolation(alone | own_processes)
        lacks_room = _try_isolation(room)
        layers = None if lacks_room else _find_layer_folder(room, path)
        return MissingCapabilities(
            alone=lacks_alone,
            room=lacks_room,
            processes=processes,
            outside=lacks_room or (None if layers else "no overlay can be mounted here"),
            layers=layers,
        )


@contextmanager
def _order_one_overlay(path: Path, layers: Path) -> Iterator[dict[str, object]]:
    """Yield an order for an overlay at `path`, with its layer in a folder like those of runs."""
    with tempfile.TemporaryDirectory(prefix="stumble-", dir=layers) as layer:
        folders = [(str(path), f"{layer}/0")]
        outside = {"folders": folders, "kept": [], "required": True}
        yield {"outside": outside, "devices": [layer] if layer.startswith("/dev/") else []}


def _find_layer_folder(room: dict[str, object], path: Path) -> Path | None:
    """Return the first folder in which an overlay of `path` can have its layer."""
    for each in list_layer_folders():
        with _order_one_overlay(path, each) as outside:
            if _try_isolation(room | outside) is None:
                return each
    return None


KERNEL_FOLDERS = ("/proc", "/sys", "/dev")
"""Folders in which nothing can be made, as the kernel fills them."""


def explain_unmountable(path: Path) -> str | None:
    """Return why a copy cannot be shown at a path that does not exist; None if it can."""
    for above in reversed(path.parents):
        if is_reachable_file(above):
            return f"{above} is a file here"
    if is_reachable_file(path) or any(path.is_relative_to(folder) for folder in KERNEL_FOLDERS):
        return "no folder can be shown there"
    return None


@functools.cache
def check_root_mount_prefix() -> str | None:
    """Return why folders cannot be mounted directly under /; None if they can."""
    if sys.platform != "linux":
        return "only Linux has namespaces"
    with tempfile.TemporaryDirectory(prefix="stumble-") as name:
        return _try_isolation({"shown": [(name, "/app")], "cwd": "/app"})


def _try_isolation(order: dict[str, object]) -> str | None:
    parent, child = socket.socketpair()
    with parent, child:
        order = order | {"channel": child.fileno()}
        command = [*ENTER_NAMESPACES, json.dumps(order)]
        with subprocess.Popen(command, pass_fds=(child.fileno(),)) as process:
            child.close()
            parent.settimeout(BUILD_TIMEOUT)
            try:
                # Receive first: a wait with a timeout polls only every few milliseconds.
                reason, sockets = _receive_isolation_reply(parent)
                for each in sockets:
                    each.close()
                process.wait(timeout=BUILD_TIMEOUT)
            finally:
                process.kill()
    return reason


def _receive_isolation_reply(
    channel: socket.socket,
) -> tuple[str | None, tuple[socket.socket, ...]]:
    """Return the reason the namespaces failed, or None and the sockets inside them."""
    try:
        reply, numbers, _, _ = socket.recv_fds(channel, 4096, MAX_DESCRIPTORS)
    except TimeoutError:
        return f"nothing was heard for {BUILD_TIMEOUT:g} s", ()
    reason: str | None = json.loads(reply).get("lacks") if reply else "it ended before that"
    return reason, tuple(socket.socket(fileno=number) for number in numbers)
