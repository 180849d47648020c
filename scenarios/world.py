"""Worlds: the state that tools act on, reset before a run and verified after it."""

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import replace
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from scenarios.effect_ledger import EffectLedger, EffectReading
from scenarios.world_command import capture_world_command, run_world_command
from traces.bodies.canonical_json import canonicalize_json


class EndState(Struct, frozen=True):
    """The end state that a command printed; two are equal if their digests are equal."""

    digest: str
    text: str
    of: str
    """Digest of the command."""


class Verdict(Struct, frozen=True):
    """A verifier's verdict on the end state; `passed` is None if it is unknown."""

    passed: bool | None
    detail: str = ""
    state: EndState | None = None
    """The end state to compare with clean twins, if requested and available."""


class World(Protocol):
    """The operations that a fork needs of a world."""

    async def reset(self) -> None:
        """Restore the start state. Raises ChildProcessError if that fails."""
        ...

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        """Judge the end state and the models' answers `said`. A wrong state is a verdict, no
        exception.
        """
        ...


class CommandWorld(Struct, frozen=True):
    """A world behind two commands: one resets it, one exits 0 if the end state is right."""

    reset_command: Sequence[str]
    verify_command: Sequence[str] = ()
    prefix: Sequence[str] = ()
    """Words to put before an absolute program path, so that it runs where the agent does."""
    cwd: Path | None = None
    answer: str = ""
    """A regular expression to find in the agent's last answer, used if no command judges."""
    state_command: Sequence[str] = ()
    """Prints the end state without varying values; JSON is compared regardless of its
    formatting.
    """
    ledger: EffectLedger | None = None
    """Lists the committed effects; facts beside the verdict, so it is no part of the digest."""
    template: "CommandWorld | None" = None
    """The world before placeholders were filled in; None if none were."""

    def with_values(self, values: Mapping[str, str]) -> "CommandWorld":
        """Return a copy with `{name}` replaced in its commands; the digest stays that of the
        template.
        """

        def fill(command: Sequence[str]) -> tuple[str, ...]:
            return tuple(_fill_placeholders(word, values) for word in command)

        return replace(
            self,
            reset_command=fill(self.reset_command),
            verify_command=fill(self.verify_command),
            state_command=fill(self.state_command),
            ledger=self.ledger.with_source(fill(self.ledger.source)) if self.ledger else None,
            template=self.template or self,
        )

    def list_options(self) -> dict[str, str]:
        """Return the options of a command line that give its commands, by name."""
        commands = {"verify": self.verify_command, "state": self.state_command}
        if tuple(self.reset_command) != ("true",):
            commands = {"reset": self.reset_command, **commands}
        return {name: shlex.join(command) for name, command in commands.items() if command}

    @property
    def digest(self) -> str:
        """Digest of everything that judges an end state; runs that differ in it are not
        comparable.
        """
        unfilled = self.template or self
        judging = [
            *map(shlex.join, (unfilled.verify_command, unfilled.state_command)),
            unfilled.answer,
        ]
        return _hash_world_data("\n".join(judging).encode("utf-8", "surrogateescape"))

    async def reset(self) -> None:
        """Run the reset command. Raises ChildProcessError with its last line if it fails."""
        code, output = await self._run_command(self.reset_command)
        if code != 0:
            lines = output.strip().splitlines() or ["it said nothing"]
            raise ChildProcessError(f"the reset command exited {code}: {lines[-1]}")

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        """Run the verify command: exit 0 is a pass, 1 a fail, anything else (a crash, a hang)
        unknown.

        Without a verify command the end state is returned for the judge to compare, or else the
        last answer is matched; with neither the verdict is unknown. If the verifier's verdict is
        unknown no end state is returned, so that nothing else decides it.
        """
        if not self.verify_command and not self.state_command and self.answer:
            return judge_final_answer(self.answer, said)
        if not self.verify_command:
            return (
                await self._read_end_state() if self.state_command else Verdict(None, "no verifier")
            )
        code, output, errors = await capture_world_command(
            self._with_prefix(self.verify_command), self.cwd
        )
        if code not in (0, 1):
            return Verdict(None, describe_verifier_failure(code, errors or output))
        detail = _find_last_line(output) or _find_last_line(errors) or f"exit {code}"
        verdict = Verdict(code == 0, detail)
        if not self.state_command:
            return verdict
        return replace(verdict, state=(await self._read_end_state()).state)

    async def read_effects(self) -> EffectReading | None:
        """Return the committed effects; None without a ledger."""
        return await self.ledger.read(self._with_prefix, self.cwd) if self.ledger else None

    async def _read_end_state(self) -> Verdict:
        code, output, errors = await capture_world_command(
            self._with_prefix(self.state_command), self.cwd
        )
        if code != 0:
            lines = (errors.strip() or output.strip()).decode("utf-8", "replace").splitlines()
            return Verdict(None, f"the state command exited {code}: {(lines or ['no word'])[-1]}")
        if not output.strip():
            return Verdict(None, "the state command printed nothing")
        with suppress(ValueError, RecursionError):  # not JSON: compared byte for byte
            output = canonicalize_json(output)
        command = (self.template or self).state_command
        command_digest = _hash_world_data(shlex.join(command).encode("utf-8", "surrogateescape"))
        return Verdict(
            None,
            "",
            EndState(_hash_world_data(output), output.decode("utf-8", "replace"), command_digest),
        )

    async def _run_command(self, command: Sequence[str]) -> tuple[int, str]:
        return await run_world_command(self._with_prefix(command), self.cwd)

    def _with_prefix(self, command: Sequence[str]) -> Sequence[str]:
        if not self.prefix:
            return command
        return (*self.prefix, shutil.which(command[0]) or command[0], *command)


def describe_verifier_failure(code: int, errors: bytes) -> str:
    """Describe an exit status that is neither 0 (right) nor 1 (wrong), negative for a signal."""
    ended = f"signal {-code}" if code < 0 else f"exit {code}"
    last = _find_last_line(errors)
    return f"{VERIFIER_FAILED}: {ended}" + (f", {last}" if last else "")


def _find_last_line(output: bytes) -> str:
    lines = output[-_LAST_BYTES:].decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_LINE_LENGTH] if lines else ""


def _fill_placeholders(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


VERIFIER_FAILED = "the verifier failed"
"""Begins the detail of a verdict that the verifier did not give."""
_LAST_BYTES, _LINE_LENGTH = 4096, 200


def _hash_world_data(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def judge_final_answer(pattern: str, said: Sequence[str]) -> Verdict:
    """Match the last text of `said` against a pattern; the verdict is unknown if there is none."""
    if not said:
        return Verdict(None, "nothing was said")
    matched = re.search(pattern, said[-1]) is not None
    return Verdict(matched, "" if matched else f"the answer holds no {pattern}")
