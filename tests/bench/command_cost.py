"""Processor time and memory of a command and all of its descendants."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.installed import environment

STUMBLE = str(Path(sys.executable).with_name("stumble"))
REAPER = Path(__file__).with_name("command_reaper.py")
LIMIT = 600
"""Seconds after which a command is ended."""


class CommandFailed(RuntimeError):
    """A command ended with an exit code that is not expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCost:
    """What a command took."""

    seconds: float
    """From its start until its last descendant ended."""
    processor: float
    """Processor seconds: its duration on an idle machine, and stable on a busy one."""
    memory: int
    """Peak resident bytes of its largest process."""
    output: str


def measure_command(
    command: Sequence[str],
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    codes: Collection[int] = (0,),
) -> CommandCost:
    """Run a command in `folder`.

    Raises:
        CommandFailed: its exit code is not in `codes`.
    """
    receiving, sending = os.pipe()
    reaper = (sys.executable, "-I", "-S", str(REAPER), str(sending), str(LIMIT))
    with os.fdopen(receiving) as report:
        try:
            process = subprocess.Popen(
                [*reaper, *command],
                cwd=folder,
                env=environment() if env is None else env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=[sending],
            )
        finally:
            os.close(sending)
        with process:
            output, errors = process.communicate()
        if process.returncode:
            raise CommandFailed(f"{REAPER.name}: exit code {process.returncode}\n{errors}")
        used = json.loads(report.read())
    if (code := used.pop("code")) not in codes:
        raise CommandFailed(f"{shlex.join(command)}: exit code {code}\n{output}{errors}")
    return CommandCost(**used, output=output)
