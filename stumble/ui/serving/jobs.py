"""Runs that pages started: their child process, its lines, and what came of it."""

import asyncio
import json
import shlex
from asyncio.subprocess import Process
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from stumble.ui.serving.children import ChildProcesses, store_environment, stumble_command

type JobState = Literal["running", "ended", "stopped"]

MOST_LINES = 400
MOST_RUNNING = 4


class Job(Struct, kw_only=True):
    """One child: its command, its last lines, its end."""

    number: int
    arguments: tuple[str, ...]
    back: str
    """The address of the form that started it."""
    process: Process
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    state: JobState = "running"
    code: int | None = None
    runs: tuple[str, ...] = ()
    """The faulted runs, once it has ended."""

    @property
    def command(self) -> str:
        """The command as a user types it."""
        return shlex.join(("stumble", *self.arguments))


class JobList:
    """The jobs of this server, in the order of their start."""

    def __init__(
        self, children: ChildProcesses, store: Path, announce: Callable[[], object]
    ) -> None:
        self._children = children
        self._store = store
        self._announce = announce
        self._tasks = set[asyncio.Task[None]]()
        self.jobs: list[Job] = []

    async def start(self, arguments: Sequence[str], back: str) -> Job:
        """Start `stumble ARGUMENTS`. Raises ValueError if too many run."""
        if sum(job.state == "running" for job in self.jobs) >= MOST_RUNNING:
            raise ValueError(f"{MOST_RUNNING} runs are under way; wait for one, or stop it")
        process = await self._children.start(
            stumble_command(*arguments), env=store_environment(self._store)
        )
        job = Job(number=len(self.jobs) + 1, arguments=tuple(arguments), back=back, process=process)
        self.jobs.append(job)
        task = asyncio.create_task(self._follow(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    def find(self, number: int) -> Job | None:
        """Return the job with this number."""
        return next((job for job in self.jobs if job.number == number), None)

    async def stop(self, job: Job) -> None:
        """End the child, which closes its tapes first."""
        if job.state == "running":
            job.state = "stopped"
            await self._children.stop(job.process)
            self._announce()

    async def _follow(self, job: Job) -> None:
        output = bytearray()

        async def read_output(stream: asyncio.StreamReader) -> None:
            while data := await stream.read(1 << 16):
                output.extend(data)

        async def read_lines(stream: asyncio.StreamReader) -> None:
            async for line in stream:
                job.lines.append(line.decode("utf-8", "replace").rstrip("\n"))
                self._announce()

        assert job.process.stdout is not None
        assert job.process.stderr is not None
        try:
            await asyncio.gather(read_output(job.process.stdout), read_lines(job.process.stderr))
            job.code = await job.process.wait()
        finally:
            await self._children.stop(job.process)
        job.state = "ended" if job.state == "running" else job.state
        job.runs = _read_faulted_runs(bytes(output))
        self._announce()


def _read_faulted_runs(output: bytes) -> tuple[str, ...]:
    """Return the ids of the faulted runs of the JSON that `stumble fork --json` prints."""
    try:
        report = json.loads(output)
    except ValueError:
        return ()
    faulted = report.get("faulted", ()) if isinstance(report, dict) else ()
    return tuple(str(each["run"]) for each in faulted if isinstance(each, dict) and "run" in each)
