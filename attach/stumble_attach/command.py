"""The `stumble` command as a subprocess, since its environment is not the user's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND_MISSING = (
    "the stumble command is not on PATH: `uv tool install stumble` or `pipx install stumble`, "
    "or set STUMBLE to it"
)


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
        program = os.environ.get("STUMBLE") or shutil.which("stumble")
        if program is None:
            raise FileNotFoundError(COMMAND_MISSING)
        environment = {**os.environ, "STUMBLE_STORE": str(self.store)}
        environment.pop("PYTHONPATH", None)
        proc = subprocess.run(
            [program, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=self.seconds,
        )
        if proc.returncode not in ok:
            raise AssertionError(
                f"stumble {' '.join(arguments)}: exit {proc.returncode}\n{proc.stdout}{proc.stderr}"
            )
        return StumbleResult(proc.returncode, proc.stdout, proc.stderr)

    def gate(self, **limits: object) -> StumbleResult:
        """Check the store: min_recovery, min_handled, max_silent, confidence, by, op, model...

        Exit code 0 if every limit is met, 1 if one is violated, 5 for too little evidence.
        """
        options = [f"--{name.replace('_', '-')}={value}" for name, value in limits.items()]
        return self("gate", *options, ok=(0, 1, 5))
