"""The weaker sandbox, made of plain processes; each result reports the protections it lacks.

A supervisor runs each command, in a file system that is built of the paths that an agent needs
(`visible_paths`). If the kernel provides a private network, the egress proxy listens
in there, as in a container; otherwise on this machine's loopback, and the command can bypass it.
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

from sandbox import limited_process
from sandbox.docker.namespace_container import EGRESS_PORT
from sandbox.egress.allowlist import EgressAllowlist
from sandbox.egress.egress_proxy import EgressProxy
from sandbox.file_ownership import restore_ownership
from sandbox.sandbox_env import find_env_files, find_proxy_address, with_proxy
from sandbox.types import EndReason, SandboxKind, SandboxResult, SandboxSpec
from sandbox.visible_paths import list_agent_paths

ALWAYS_MISSING = (
    "it sees the system's programs and those on PATH",
    "it is not kept to a share of the processors",
    "what it prints is not bounded",
)
MISSING_WITHOUT_WALL = {
    "network": "it may reach all that this machine reaches, past the relay",
    "folders": "it reads and writes whatever its user may",
    "processes": "what it uses is not added up over its processes",
    "count": "how many processes it may start is not bounded",
}
"""The protection that is missing without each of `limited_process.WALLS`."""
NO_LIMIT = 1 << 31
"""Seconds, or files, that mean "unlimited"."""


@asynccontextmanager
async def open_process_sandbox(order: SandboxSpec) -> AsyncIterator["ProcessSandbox"]:
    """Open a sandbox of processes. Raises ChildProcessError if not even that is possible."""
    walls = await asyncio.to_thread(_probe_walls)
    relay = EgressProxy(EgressAllowlist(order.allow), find_proxy_address(order.env))
    port = EGRESS_PORT
    if "network" not in walls:
        listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        port = listening.getsockname()[1]
        await relay.serve(listening)
    try:
        yield ProcessSandbox(
            order=order,
            relay=relay,
            weaker=_describe_missing_protections(walls),
            _alone="network" in walls,
            _port=port,
        )
    finally:
        await relay.close()


async def find_missing_protections() -> tuple[str, ...]:
    """Return the protections that such a sandbox lacks here."""
    return _describe_missing_protections(await asyncio.to_thread(_probe_walls))


def _describe_missing_protections(walls: tuple[str, ...]) -> tuple[str, ...]:
    return (
        *ALWAYS_MISSING,
        *(lack for wall, lack in MISSING_WITHOUT_WALL.items() if wall not in walls),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSandbox:
    """An open sandbox of processes."""

    order: SandboxSpec
    relay: EgressProxy
    weaker: tuple[str, ...]
    isolation: SandboxKind = "process"
    _alone: bool
    _port: int

    @property
    def refused(self) -> Mapping[str, int]:
        """Count of refused connections, by `host:port: reason`."""
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
    ) -> SandboxResult:
        """Run a command to its end; see `Sandbox.run`."""
        with tempfile.TemporaryDirectory(prefix="stumble-") as scratch:
            order, command_env = (
                self._build_order(command, cwd, scratch),
                self._build_env(env or {}, scratch),
            )
            try:
                with _start_supervisor(order, command_env, (stdin, stdout, stderr)) as supervisor:
                    return await self._wait_for_end(supervisor, budget)
            finally:
                await asyncio.shield(asyncio.to_thread(restore_ownership, self.order))

    async def _wait_for_end(self, held: "_SupervisorHandle", budget: float | None) -> SandboxResult:
        if self._alone:
            await self.relay.serve(await asyncio.to_thread(held.receive_listener))
        reporting = asyncio.create_task(asyncio.to_thread(held.read_report))
        # If this is cancelled, the supervisor ends without a report and nobody asks for it.
        reporting.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            await asyncio.wait((reporting,), timeout=budget)
            timed_out = not reporting.done()
        finally:
            held.hold.close()
        return _to_sandbox_result(await reporting, late=timed_out)

    def _build_env(self, env: Mapping[str, str], scratch: str) -> dict[str, str]:
        home = str(self.order.home or scratch)
        base_env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, "TMPDIR": scratch}
        relay = f"http://127.0.0.1:{self._port}"
        return {**base_env, **with_proxy(self.order.env, relay, self.order.allow), **env}

    def _build_order(
        self, command: Sequence[str], cwd: Path | None, scratch: str
    ) -> dict[str, object]:
        bounds, mounts = self.order.bounds, (*self.order.mounts, *find_env_files(self.order.env))
        search_path = self._build_env({}, scratch)["PATH"]
        in_place = [mount.source for mount in mounts if str(mount.source) == mount.target]
        return {
            "command": list(command),
            "cwd": str(cwd or self.order.workspace),
            "scratch": scratch,
            "env": None,
            "left": None,
            "writes": [str(path) for path in self.order.writable_paths],
            "hidden": list(self.order.hidden),
            "root": [str(path) for path in list_agent_paths(command, search_path, in_place)],
            "shown": [
                (str(mount.source), mount.target)
                for mount in mounts
                if str(mount.source) != mount.target
            ],
            "limits": {
                "cpu": NO_LIMIT,
                "memory": bounds.memory,
                "addresses": -1,  # JavaScript and Go runtimes reserve many that they never use
                "file": 2 * bounds.disk,  # larger, so that the folder's limit is reached first
                "disk": bounds.disk,
                "processes": bounds.processes,
                "files": 4096,
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _SupervisorHandle:
    """A running supervisor, and this process's ends of its pipes and socket."""

    hold: IO[bytes]
    report: IO[bytes]
    door: socket.socket

    def receive_listener(self) -> socket.socket:
        """Receive the socket that listens in the command's network."""
        self.door.settimeout(limited_process.STOP_TIMEOUT)
        _, numbers, _, _ = socket.recv_fds(self.door, 1, 1)
        if not numbers:
            raise ChildProcessError("the sandbox supervisor failed before it had a network")
        return socket.socket(fileno=numbers[0])

    def read_report(self) -> dict[str, Any]:
        """Wait for its report. Raises ChildProcessError if it ended without one."""
        try:
            report: dict[str, Any] = marshal.load(self.report)
        except EOFError:
            message = "the sandbox supervisor failed; what it said is in the output"
            raise ChildProcessError(message) from None
        return report


@contextmanager
def _start_supervisor(
    order: Mapping[str, object], env: Mapping[str, str], streams: tuple[int | None, int, int]
) -> Iterator[_SupervisorHandle]:
    """Start a supervisor with these streams; it and its processes end with the context."""
    stdin, stdout, stderr = streams
    with ExitStack() as stack:
        hold_reader, hold_writer = os.pipe()
        report, report_writer = os.pipe()
        door, supervisor_door = socket.socketpair()
        handle = _SupervisorHandle(
            hold=stack.enter_context(os.fdopen(hold_writer, "wb", 0)),
            report=stack.enter_context(os.fdopen(report, "rb")),
            door=stack.enter_context(door),
        )
        passed_fds = (hold_reader, report_writer, supervisor_door.fileno())
        numbers = {
            "hold": hold_reader,
            "report": report_writer,
            "door": supervisor_door.fileno(),
            "port": EGRESS_PORT,
        }
        packed_order = marshal.dumps({**order, **numbers}).hex()
        try:
            supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", str(limited_process.SUPERVISOR), packed_order],
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=passed_fds,
                env=env,
                start_new_session=True,
            )
        finally:
            os.close(hold_reader)
            os.close(report_writer)
            supervisor_door.close()
        try:
            yield handle
        finally:
            handle.hold.close()
            limited_process.stop_supervisor(supervisor)


def _to_sandbox_result(table: Mapping[str, Any], *, late: bool) -> SandboxResult:
    if table["unstarted"]:
        return SandboxResult(
            exit=127 if "No such file" in table["unstarted"] else 126, ended="exit"
        )
    code, exceeded = table["code"], table["over"]
    ended: EndReason = "exit"
    if late:
        ended = "time"
    elif exceeded in ("memory", "disk"):
        ended = exceeded
    return SandboxResult(
        exit=137 if code is None else code if code >= 0 else 128 - code, ended=ended
    )


def _probe_walls() -> tuple[str, ...]:
    """Return the protections available here, by running a probe."""
    with tempfile.TemporaryDirectory(prefix="stumble-") as name:
        folders = [Path(name) / each for each in ("work", "scratch")]
        for folder in folders:
            folder.mkdir()
        return limited_process.run_limited(
            ["true"], cwd=folders[0], scratch=folders[1], env=dict(os.environ)
        ).walls
