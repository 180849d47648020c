"""How an agent is started: cold, as its own command, or warm, forked from a loaded process."""

import asyncio
import itertools
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from recorder.cage import Cage
from recorder.process import Ended as Exit
from recorder.process import run

END = 10.0
"""Seconds a warm process gets to end after its input was closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cold:
    """The agent's own command, started anew each time."""

    command: tuple[str, ...]
    cwd: Path | None = None
    budget: float | None = None
    output: Path | None = None
    """A file for what it prints; None passes it through."""
    patience: float | None = None
    """Seconds that it may go on once we are told to end; None is as many as it likes."""
    prefix: tuple[str, ...] = ()
    """What stands before its absolute program, so that it sees what a task shows it."""
    env: Mapping[str, str] = field(default_factory=dict)
    """What it has in its environment besides what the run gives it."""
    warm: bool = False

    async def __call__(
        self,
        env: Mapping[str, str],
        *,
        command: tuple[str, ...] | None = None,
        cage: Cage | None = None,
        cwd: Path | None = None,
    ) -> Exit:
        with ExitStack() as files:
            out = files.enter_context(self.output.open("ab")) if self.output else None
            env = {**env, **self.env}
            return await run(
                self._behind(command or self.command, env),
                env=env,
                cwd=cwd or self.cwd,
                budget=self.budget,
                patience=self.patience,
                stdout=out,
                stderr=out,
                cage=cage,
            )

    def _behind(self, command: tuple[str, ...], env: Mapping[str, str]) -> tuple[str, ...]:
        """The command behind the prefix; as it is where there is none, or no such program."""
        program = shutil.which(command[0], path=env.get("PATH", os.defpath))
        if not self.prefix or program is None:
            return command
        return (*self.prefix, str(Path(program).absolute()), *command)


class Warm:
    """A process that has loaded an agent and forks a child per run, by JSON lines on its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            said = json.loads(line)
            self._waiting.pop(said["id"]).set_result(said["exit"])
        for waiting in self._waiting.values():
            waiting.set_exception(RuntimeError("the warm agent process ended"))

    async def start(
        self, argv: tuple[str, ...], env: Mapping[str, str], output: Path, budget: float | None
    ) -> Exit:
        """One run; its output goes to a file."""
        assert self._process.stdin is not None
        id = next(self._ids)
        self._waiting[id] = asyncio.get_running_loop().create_future()
        ended = self._waiting[id]
        order = {
            "id": id,
            "argv": list(argv),
            "env": dict(env),
            "cwd": str(Path.cwd()),
            "stdout": str(output),
            "stderr": str(output),
        }
        self._write(order)
        try:
            return Exit(code=await asyncio.wait_for(asyncio.shield(ended), budget))
        except TimeoutError:
            self._write({"kill": id})
            return Exit(code=await ended, budget=True)

    def _write(self, order: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")

    async def close(self) -> None:
        """End the process and all its children."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), END)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reader


@asynccontextmanager
async def warm(module: str) -> AsyncIterator[Warm]:
    """A warm process of `python -m MODULE --warm`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        "--warm",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us: it ends when its input does
    )
    held = Warm(process)
    try:
        yield held
    finally:
        await held.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmRun:
    """One agent command, run by forking the warm process."""

    process: Warm
    command: tuple[str, ...]
    argv: tuple[str, ...]
    output: Path
    budget: float | None = 60.0
    warm: bool = True
    cwd: Path | None = None

    async def __call__(
        self,
        env: Mapping[str, str],
        *,
        command: tuple[str, ...] | None = None,
        cage: Cage | None = None,
        cwd: Path | None = None,
    ) -> Exit:
        """One run; a fork of a running process can be put in no cage, so ValueError for one."""
        if cage is not None or cwd is not None:
            raise ValueError("a warm agent runs where its process was started")
        return await self.process.start(self.argv, env, self.output, self.budget)
