"""Child processes of the server: each in a group of its own, all ended with the server."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

STOP_SECONDS = 10.0
"""Seconds that a child gets to end after SIGTERM: a run closes its tape and its agent."""
LINE_BYTES = 1 << 20


def stumble_command(*arguments: str) -> tuple[str, ...]:
    """Return the command line that runs this version of stumble."""
    return (sys.executable, "-m", "stumble", *arguments)


def store_environment(root: Path) -> dict[str, str]:
    """Return the environment of a child that works on this store."""
    return {**os.environ, "STUMBLE_STORE": str(root)}


class ChildProcesses:
    """The running children. `close` ends them; none can be started after it."""

    def __init__(self) -> None:
        self._running = set[Process]()
        self._closed = False

    async def start(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        has_input: bool = False,
    ) -> Process:
        """Start a child with pipes for its output, in a new process group."""
        if self._closed:
            raise ConnectionAbortedError("the server stops")
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=PIPE if has_input else DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
            limit=LINE_BYTES,
        )
        self._running.add(process)
        return process

    async def run(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        data: bytes | None = None,
        seconds: float | None = None,
    ) -> tuple[int, bytes, bytes]:
        """Run a child to its end; return exit code, output and errors. Raises TimeoutError."""
        process = await self.start(command, env=env, has_input=data is not None)
        try:
            async with asyncio.timeout(seconds):
                output, errors = await process.communicate(data)
        finally:
            await self.stop(process)
        assert process.returncode is not None
        return process.returncode, output, errors

    async def stop(self, process: Process) -> None:
        """End a child and its group: SIGTERM, and SIGKILL after STOP_SECONDS."""
        try:
            if process.returncode is None:
                _signal_group(process.pid, signal.SIGTERM)
                try:
                    async with asyncio.timeout(STOP_SECONDS):
                        await process.wait()
                except TimeoutError:
                    _signal_group(process.pid, signal.SIGKILL)
                    await process.wait()
        finally:
            self._running.discard(process)

    async def close(self) -> None:
        """End all children."""
        self._closed = True
        await asyncio.gather(*(self.stop(process) for process in tuple(self._running)))


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, number)
