"""A world: what tools act on, so that it can be set back before a run and judged after it."""

import asyncio
import os
import re
import shlex
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from traces.canonical import canonical

LIMIT = 60.0
"""Seconds that a reset or a verifier may take."""


@dataclass(frozen=True, slots=True)
class State:
    """An end state as a command tells it: two are the same where their digests are."""

    digest: str
    text: str
    of: str
    """A digest of the command."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier said of the final state; `passed` None where it could not say."""

    passed: bool | None
    detail: str = ""
    state: State | None = None
    """What a judge may compare with clean twins, where that was asked for and could be had."""


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
    state_command: Sequence[str] = ()
    """Prints the end state, without what varies; equal JSON is equal however it is written."""
    template: "CommandWorld | None" = None
    """The same before anything was filled in; None if nothing was."""

    def filled(self, values: Mapping[str, str]) -> "CommandWorld":
        """The same with `{name}` in its commands replaced; what it is compared by stays."""

        def fill(command: Sequence[str]) -> tuple[str, ...]:
            return tuple(_fill(word, values) for word in command)

        return replace(
            self,
            reset_command=fill(self.reset_command),
            verify_command=fill(self.verify_command),
            state_command=fill(self.state_command),
            template=self.template or self,
        )

    @property
    def digest(self) -> str:
        """A name for all that judges an end: runs that differ in it are not to be compared."""
        own = self.template or self
        judging = [*map(shlex.join, (own.verify_command, own.state_command)), own.answer]
        return _digest("\n".join(judging).encode("utf-8", "surrogateescape"))

    async def reset(self) -> None:
        """Set the world back; ChildProcessError with its last words where the command fails."""
        code, output = await self._run(self.reset_command)
        if code != 0:
            words = output.strip().splitlines() or ["it said nothing"]
            raise ChildProcessError(f"the reset command exited {code}: {words[-1]}")

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        """Exit 0 is a pass, 1 a fail, anything else (a crash, a hang) is unknown.

        Without a command it is the end state that is left to a judge, else the answer that
        counts, and without any of them nothing is known. Of what a verifier could not say no
        state is kept, so that nothing else says it.
        """
        if not self.verify_command and not self.state_command and self.answer:
            return answered(self.answer, said)
        if not self.verify_command:
            return await self._state() if self.state_command else Verdict(None, "no verifier")
        code, output = await self._run(self.verify_command)
        words = output.strip().splitlines()[-1] if output.strip() else f"exit {code}"
        verdict = Verdict({0: True, 1: False}.get(code), words)
        if verdict.passed is None or not self.state_command:
            return verdict
        return replace(verdict, state=(await self._state()).state)

    async def _state(self) -> Verdict:
        code, output, errors = await spoken(self._placed(self.state_command), self.cwd)
        if code != 0:
            last = (errors.strip() or output.strip()).decode("utf-8", "replace").splitlines()
            return Verdict(None, f"the state command exited {code}: {(last or ['no word'])[-1]}")
        if not output.strip():
            return Verdict(None, "the state command printed nothing")
        with suppress(ValueError, RecursionError):  # what is no JSON is compared as it is
            output = canonical(output)
        command = (self.template or self).state_command
        of = _digest(shlex.join(command).encode("utf-8", "surrogateescape"))
        return Verdict(None, "", State(_digest(output), output.decode("utf-8", "replace"), of))

    async def _run(self, command: Sequence[str]) -> tuple[int, str]:
        return await run(self._placed(command), self.cwd)

    def _placed(self, command: Sequence[str]) -> Sequence[str]:
        if not self.prefix:
            return command
        return (*self.prefix, shutil.which(command[0]) or command[0], *command)


def _fill(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


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
    code, output, _ = await spoken(command, cwd, env=env, limit=limit, apart=False)
    return code, output.decode("utf-8", "replace")


async def spoken(
    command: Sequence[str],
    cwd: Path | None = None,
    *,
    env: Mapping[str, str] | None = None,
    limit: float = LIMIT,
    apart: bool = True,
) -> tuple[int, bytes, bytes]:
    """Exit code, output and errors of a command; the errors are in the output if not `apart`."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if apart else asyncio.subprocess.STDOUT,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        return 127, f"{command[0]}: {error.strerror}".encode("utf-8", "replace"), b""
    try:
        output, errors = await asyncio.wait_for(process.communicate(), limit)
    except TimeoutError:
        return 124, f"no end after {limit:g} s".encode(), b""
    finally:
        if process.returncode is None:  # out of time, or we are to end
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode or 0, output, errors or b""
