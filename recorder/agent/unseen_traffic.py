"""Watches the processes of a run that is not isolated, for what goes past the recorder.

TCP connections that do not lead to the proxy, while no model traffic has come; and children that
look like MCP servers over stdio without a tee.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

from recorder.agent.blocked_connections import BlockedConnection
from recorder.agent.process_table import list_descendants, list_open_files, read_command
from recorder.agent.tcp_table import ESTABLISHED, LISTENING, read_tcp_table
from recorder.mcp import tee

_FIRST_SECONDS, _MAX_SECONDS, _GROWTH = 0.15, 1.0, 1.2
_HEAD_BYTES = 1 << 16
_PIPES = ("pipe:", "socket:")


class UnseenTrafficWatch:
    """Looks at the run's processes now and then, at first often."""

    def __init__(self, has_model_traffic: Callable[[], bool], ports: Collection[int] = ()) -> None:
        """`ports` are the recorder's, which `look_around` may name later."""
        self._has_model_traffic, self._ports = has_model_traffic, frozenset(ports)
        self._known_sockets = set[str]()
        self._known_processes = set[tuple[int, tuple[str, ...]]]()
        self.connections: dict[BlockedConnection, int] = {}
        """Connections past the recorder, and how many; of runs without model traffic."""
        self.servers: dict[tuple[str, ...], int] = {}
        """Commands of servers without a tee, and how often each was started."""

    @asynccontextmanager
    async def look_around(self, ports: Collection[int]) -> AsyncIterator[None]:
        """Look while the block runs; connections to these ports of the recorder are seen."""
        self._ports = frozenset(ports)
        looking = asyncio.create_task(self._look_on())
        try:
            yield
        finally:
            looking.cancel()

    async def _look_on(self) -> None:
        pause = _FIRST_SECONDS
        while True:
            await asyncio.sleep(pause)
            self.look()
            pause = min(pause * _GROWTH, _MAX_SECONDS)

    def look(self) -> None:
        """Look once: takes some milliseconds."""
        processes = list_descendants(os.getpid())
        if not self._has_model_traffic():
            self._add_connections(processes)
        self._add_servers(processes)

    def _add_connections(self, processes: list[int]) -> None:
        """Add the connections to servers that are neither ours nor the run's."""
        table = {f"socket:[{each.inode}]": each for each in read_tcp_table()}
        if table.keys() <= self._known_sockets:
            return
        owned = {name for pid in processes for name in list_open_files(pid).values()}
        served = self._ports | {
            each.port for name, each in table.items() if each.state == LISTENING and name in owned
        }
        for name in table.keys() & owned - self._known_sockets:
            found = table[name]
            if found.state == ESTABLISHED and not served & {found.port, found.peer_port}:
                target = BlockedConnection(str(found.peer), found.peer_port, "tcp")
                self.connections[target] = self.connections.get(target, 0) + 1
        self._known_sockets |= table.keys()

    def _add_servers(self, processes: list[int]) -> None:
        behind = set[int]()
        for pid in processes:
            command = read_command(pid)  # which changes when it executes another program
            if (pid, command) in self._known_processes:
                continue
            self._known_processes.add((pid, command))
            if str(Path(tee.__file__).absolute()) in command:
                behind.update(list_descendants(pid), [pid])
            if pid not in behind and _is_server(pid, command):
                self.servers[command] = self.servers.get(command, 0) + 1


def _is_server(pid: int, command: tuple[str, ...]) -> bool:
    """Whether a process has pipes as input and output and its command, or its script, names MCP."""
    files = list_open_files(pid)
    piped = all(files.get(number, "").startswith(_PIPES) for number in (0, 1))
    return piped and files.get(0) != files.get(1) and any(_names_mcp(pid, w) for w in command)


def _names_mcp(pid: int, word: str) -> bool:
    if "mcp" in word.lower():
        return True
    path = Path(f"/proc/{pid}/cwd") / word
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except (OSError, ValueError):
        return False
    return head[:4] != b"\x7fELF" and b"mcp" in head.lower()
