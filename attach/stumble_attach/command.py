"""The `stumble` command as a subprocess, since its environment is not the user's."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND_MISSING = (
    "the stumble command is not on PATH: `uv tool install stumble` or `pipx install stumble`, "
    "or set STUMBLE_COMMAND to it"
)


def find_stumble_command() -> list[str]:
    """Return the words of the command: those of STUMBLE_COMMAND, or `stumble` on PATH.

    Raises FileNotFoundError if there is none.
    """
    words = shlex.split(os.environ.get("STUMBLE_COMMAND", "")) or ["stumble"]
    program = shutil.which(words[0])
    if program is None:
        raise FileNotFoundError(COMMAND_MISSING)
    return [program, *words[1:]]


def make_stumble_environment() -> dict[str, str]:
    """Return the environment for `stumble`, whose modules are not those of this program."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@dataclass(frozen=True)
class StumbleResult:
    """Output and exit code of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON: its last line if that is an object, otherwise all of it."""
        last = self.out.rstrip().rpartition("\n")[2]
        return json.loads(last if last.startswith("{") and last.endswith("}") else self.out)


@dataclass(frozen=True)
class StumbleCommand:
    """Runs `stumble` in a folder, on a store; each command may take `seconds`."""

    store: Path
    folder: Path
    seconds: float = 600

    def __call__(self, *arguments: str, ok: Sequence[int] = (0,)) -> StumbleResult:
        """Run a command; AssertionError with its output if its exit code is not in `ok`."""
        proc = subprocess.run(
            [*find_stumble_command(), *arguments],
            cwd=self.folder,
            env=make_stumble_environment() | {"STUMBLE_STORE": str(self.store)},
            capture_output=True,
            text=True,
            timeout=self.seconds,
        )
        if proc.returncode not in ok:
            raise AssertionError(
                f"stumble {' '.join(arguments)}: exit {proc.returncode}\n{proc.stdout}{proc.stderr}"
            )
        return StumbleResult(proc.returncode, proc.stdout, proc.stderr)

    def replay(self, tape: str | Path, *command: str, ok: Sequence[int] = (0,)) -> StumbleResult:
        """Replay a recording offline, with the command given or the recorded one.

        AssertionError with the first difference if the agent left the recording (exit code 3).
        """
        return self("replay", str(tape), *_after_dashes(command), ok=ok)

    def fork(
        self,
        tape: str | Path,
        *command: str,
        fault: str,
        where: Mapping[str, str] | None = None,
        ok: Sequence[int] = (0, 5),
        **options: object,
    ) -> StumbleResult:
        """Inject a fault and judge it: `fork(tape, fault="digit", where={"tool": "get_order"})`.

        Other options of `stumble fork` are named as there: reset, verify, times, at, model...; a
        list repeats its option, True is one without a value.
        `.json["outcome"]` is recovered, masked, silent_wrong...; None if it is unknown, of which
        `.json["excluded"]` has the reason (exit code 5).
        """
        selected = [f"{key}={value}" for key, value in (where or {}).items()]
        words = _to_options({"fault": fault, "where": selected, **options, "json": True})
        return self("fork", str(tape), *words, *_after_dashes(command), ok=ok)

    def gate(self, **limits: object) -> StumbleResult:
        """Check the store: min_recovery, min_handled, max_silent, confidence, by, op, model...

        Exit code 0 if every limit is met, 1 if one is violated, 5 for too little evidence.
        """
        return self("gate", *_to_options(limits), ok=(0, 1, 5))


def _after_dashes(command: Sequence[str]) -> list[str]:
    return ["--", *command] if command else []


def _to_options(named: Mapping[str, object]) -> list[str]:
    words = list[str]()
    for name, value in named.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        else:
            values = value if isinstance(value, (list, tuple)) else (value,)
            words += [f"{option}={each}" for each in values]
    return words
