"""A folder in which tests run campaigns as a user does."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.practice_shop import Said
from tests.support.warm_stumble import run_stumble
from traces.model import Trajectory
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape

FAULTS = """
[[faults]]
fault = "http_status:code=503"
[[faults]]
fault = "digit"
"""


@dataclass(frozen=True, slots=True)
class Bench:
    """The folder, with its store."""

    folder: Path

    def write(self, name: str, text: str) -> str:
        """Write a campaign file; return its name."""
        (self.folder / name).write_text(text)
        return name

    def stumble(
        self, *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 240
    ) -> Said:
        given = self.environment() | dict(env or {})
        return run_stumble(arguments, cwd=self.folder, env=given, timeout=timeout)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command in the background, as the leader of a process group."""
        return subprocess.Popen(
            [sys.executable, "-m", "stumble", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment(),
            start_new_session=True,
        )

    def environment(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI", "STUMBLE"))}
        return kept | {"HOME": str(home), "STUMBLE_STORE": str(self.folder / ".stumble")}

    @property
    def store(self) -> TraceStore:
        return TraceStore(self.folder / ".stumble")

    def runs(self) -> tuple[Trajectory, ...]:
        """The runs on all tapes of the store."""
        paths = sorted((self.folder / ".stumble" / "tapes").glob("*.tape"))
        return tuple(read_tape(path).trajectory for path in paths)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with self.store.connect() as connection:
            return connection.execute(sql).fetchall()


def practising(tasks: tuple[str, ...], models: tuple[str, ...], more: str = "") -> str:
    """A campaign in the practice world."""
    said = f"tasks = {json.dumps(tasks)}\nmodels = {json.dumps(models)}\n"
    return f"{more}\n[practice]\n{said}{FAULTS}"
