"""The `stumble` command, run as a process of its own: its environment is not the user's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MISSING = (
    "the stumble command is not on PATH: `uv tool install stumble` or `pipx install stumble`, "
    "or set STUMBLE to it"
)


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its standard output as JSON: the last line that begins an object, or all of it."""
        last = self.out.rstrip().rpartition("\n")[2]
        return json.loads(last if last.startswith("{") and last.endswith("}") else self.out)


@dataclass(frozen=True)
class Stumble:
    """Runs `stumble` in a folder, on a store; `seconds` bounds each command."""

    store: Path
    folder: Path
    seconds: float = 600

    def __call__(self, *arguments: str, ok: Sequence[int] = (0,)) -> Answer:
        """Run a command; AssertionError with what it said where its exit code is not in `ok`."""
        program = os.environ.get("STUMBLE") or shutil.which("stumble")
        if program is None:
            raise FileNotFoundError(MISSING)
        environment = {**os.environ, "STUMBLE_STORE": str(self.store)}
        environment.pop("PYTHONPATH", None)
        ran = subprocess.run(
            [program, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=self.seconds,
        )
        if ran.returncode not in ok:
            raise AssertionError(
                f"stumble {' '.join(arguments)}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}"
            )
        return Answer(ran.returncode, ran.stdout, ran.stderr)

    def gate(self, **limits: object) -> Answer:
        """Judge the store: min_recovery, min_handled, max_silent, confidence, by, op, model...

        Exit code 0 where every limit is kept, 1 where one is broken, 5 where evidence is short.
        """
        given = [f"--{name.replace('_', '-')}={value}" for name, value in limits.items()]
        return self("gate", *given, ok=(0, 1, 5))
