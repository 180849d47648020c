"""A world: what tools act on, so that it can be set back before a run and judged after it."""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

LIMIT = 60.0
"""Seconds that a reset or a verifier may take."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier said of the final state; `passed` None where it could not say."""

    passed: bool | None
    detail: str = ""


class World(Protocol):
    """What a fork needs of a world."""

    async def reset(self) -> None:
        """Bring it into the start state; ChildProcessError where that fails."""
        ...

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        """What the final state says, and what the agent's models said; never raises for a wrong
        state."""
        ...


@dataclass(frozen=True, slots=True)
class CommandWorld:
    """A world behind two commands: one sets it back, one exits 0 where the end state is right."""

    reset_command: Sequence[str]
    verify_command: Sequence[str] = ()
    prefix: Sequence[str] = ()
    """What to put before an absolute program, so that it runs where the agent does."""
    cwd: Path | None = None
    answer: str = ""
    """A regular expression that the last words of the agent must hold, where no command judges."""

    async def reset(self) -> None:
        """Set the world back; ChildProcessError with its last words where the command fails."""
        code, output = await self._run(self.reset_command)
        if code != 0:
            words = output.strip().splitlines() or ["it said nothing"]
            raise ChildProcessError(f"the reset command exited {code}: {words[-1]}")

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        """Exit 0 is a pass, 1 a fail, anything else (a crash, a hang) is unknown.

        Without a command it is the answer that counts, and without either nothing is known.
        """
        if not self.verify_command and self.answer:
            return answered(self.answer, said)
        if not self.verify_command:
            return Verdict(None, "no verifier")
        code, output = await self._run(self.verify_command)
        said = output.strip().splitlines()[-1] if output.strip() else f"exit {code}"
        return Verdict({0: True, 1: False}.get(code), said)

    async def _run(self, command: Sequence[str]) -> tuple[int, str]:
        if self.prefix:
            command = (*self.prefix, shutil.which(command[0]) or command[0], *command)
        return await run(command, self.cwd)


def answered(pattern: str, said: Sequence[str]) -> Verdict:
    """Whether the last of what was said holds a pattern; unknown where nothing was said."""
    if not said:
        return Verdict(None, "nothing was said")
    found = re.search(pattern, said[-1]) is not None
    return Verdict(found, "" if found else f"the answer holds no {pattern}")


async def run(
    command: Sequence[str],
    cwd: Path | None = None,
    *,
    env: Mapping[str, str] | None = None,
    limit: float = LIMIT,
) -> tuple[int, str]:
    """Exit code and output of a command: 127 where there is none, 124 where its time was up."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        return 127, f"{command[0]}: {error.strerror}"
    try:
        output, _ = await asyncio.wait_for(process.communicate(), limit)
    except TimeoutError:
        return 124, f"no end after {limit:g} s"
    finally:
        if process.returncode is None:  # out of time, or we are to end
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode or 0, output.decode("utf-8", "replace")
