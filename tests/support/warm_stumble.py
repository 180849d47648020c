"""`stumble` without its start: a fork of a process in which its modules are loaded already.

Loading takes two seconds of processor time, most commands need a few hundredths. A child of the
server is the whole command line in a process of its own: with the folder, the environment, the
words and the streams it is given, default signal handlers and the exit status of a program. What
a test has to know of the start itself (signals, terminals, pipes) it asks a cold process.
"""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

LOADED = (
    "stumble.cli",
    "stumble.commands.fork",
    "stumble.commands.record",
    "stumble.commands.replay",
    "stumble.commands.sql",
    "stumble.recording",
    "rich.table",
    "pandas",  # duckdb and pyarrow look for it and load it where the tests' environment has it
)

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(list(LOADED))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a command ended, negative for the signal that ended it, and all it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run_stumble(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float
) -> CommandResult:
    """`stumble ARGUMENTS` with no input; subprocess.TimeoutExpired past `timeout` seconds."""
    with TemporaryDirectory(prefix="warm-") as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = SERVER.Process(
            target=_main, args=(tuple(arguments), str(cwd), dict(env), str(out), str(err))
        )
        process.start()
        _wait(process, arguments, timeout)
        assert process.exitcode is not None
        return CommandResult(code=process.exitcode, out=_text(out), err=_text(err))


def _text(path: Path) -> str:
    return path.read_text().replace("\r\n", "\n") if path.exists() else ""


def _wait(process: BaseProcess, arguments: Sequence[str], timeout: float) -> None:
    process.join(timeout)
    if process.exitcode is None:
        process.kill()
        process.join(10)
        raise subprocess.TimeoutExpired(["stumble", *arguments], timeout)


def _main(arguments: tuple[str, ...], cwd: str, env: dict[str, str], out: str, err: str) -> None:
    """Become `stumble` in this process, whose exit status is that of the command."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, path in ((1, out), (2, err)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = ["stumble", *arguments]

    from stumble.__main__ import main

    main()
