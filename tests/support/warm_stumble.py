"""`stumble` without its start-up: a fork of a process in which its modules are already loaded.

Loading takes two seconds of processor time, most commands need a few hundredths. A child of the
server is a complete command line in a separate process: with the given folder, environment,
arguments and streams, default signal handlers and a program's exit status. Tests of the start
itself (signals, terminals, pipes) use a cold process.
"""

import gc
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
    "stumble.cli.app",
    "stumble.cli.inject_judge.fork",
    "stumble.cli.inject_judge.run",
    "stumble.cli.record_replay.record",
    "stumble.cli.record_replay.replay",
    "stumble.cli.numbers.sql",
    "stumble.experiments.plan_completion",
    "stumble.report.collect",
    "stumble.report.terminal",
    "stumble.runs.record",
    "stumble.runs.scenario_runner",
    "stumble.store.open_store",
    "stumble.store.query",
    "recorder.proxy.recording",
    "recorder.proxy.mitm.layers",
    "recorder.proxy.upstream",
    "traces.store.landlock",
    "aiohttp.web",
    "pyarrow.parquet",
    "rich.table",
    "uvloop",
)

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(list(LOADED))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """A command's exit status, negative for a signal, and its output."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run_stumble(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float
) -> CommandResult:
    """Run `stumble ARGUMENTS` without input. Raises subprocess.TimeoutExpired after `timeout`
    seconds.
    """
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
    """Become `stumble` in this process, with the command's exit status."""
    gc.freeze()  # a collection would touch, and so copy, every page of the server
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
