"""Forks a process per run of tests from one that has the installed modules loaded."""

import contextlib
import gc
import importlib
import io
import json
import os
import signal
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory

import pytest

from tests.mutation.mutant import Mutant
from tests.mutation.pytest_run import run_pytest
from tests.mutation.supervised import PAST_LIMIT, fork_supervised
from tests.mutation.tree import plant, restore

POLL = 0.5
"""Seconds after which a pending signal is noticed."""
ASKS_THE_NETWORK = "litellm"
"""A module that does so while it is imported, and goes on in a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestJob:
    """Tests to run, the mutant to plant first, if any, and a limit in seconds."""

    tests: tuple[str, ...]
    options: tuple[str, ...] = ()
    limit: float
    mutant: Mutant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """How a job ended: pytest's exit code, None past the limit; seconds on clock and processors.

    `outcomes` are by pytest's node id, and empty if pytest did not end. `modules` are the installed
    ones that were imported, in that order, if the job collects only.
    """

    job: PytestJob
    code: int | None
    output: str
    seconds: float
    cpu_seconds: float
    outcomes: dict[str, str]
    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _RunningJob:
    job: PytestJob
    pid: int
    tree: Path
    scratch: TemporaryDirectory[str]
    began: float


def run_jobs(jobs: Iterable[PytestJob], base: Path, workers: int) -> Iterator[JobResult]:
    """Run as many jobs at a time as there are workers, and yield each result as it comes.

    A job without a mutant runs in `base`, which keeps what it compiles; each worker has a linked
    tree for mutants, one after another. Raises KeyboardInterrupt, with no job left, once a signal
    is pending that this process blocks.
    """
    gc.freeze()  # or collections in a child would copy the pages of all that is preloaded
    waiting = iter(jobs)
    trees = [base.parent / f"tree-{number}" for number in range(workers)]
    running: dict[int, _RunningJob] = {}
    try:
        while True:
            while trees and (job := next(waiting, None)):
                started = _start(job, base, trees.pop())
                running[os.pidfd_open(started.pid)] = started
            if not running:
                return
            for ended in select(list(running), [], [], POLL)[0]:
                result, tree = _finish(running[ended], base), running.pop(ended).tree
                os.close(ended)
                trees.append(tree)
                yield result
            if signal.sigpending():
                raise KeyboardInterrupt
    finally:
        for each in running.values():
            os.kill(each.pid, signal.SIGTERM)
        for each in running.values():
            os.waitpid(each.pid, 0)


def preload(modules: Iterable[str]) -> None:
    """Import installed modules, so that what is forked later has them."""
    with TemporaryDirectory() as empty, contextlib.chdir(empty):
        options = ["-q", "-p", "no:cacheprovider", "--collect-only", f"--rootdir={empty}", empty]
        with contextlib.redirect_stdout(io.StringIO()):
            pytest.main(options, plugins=[_Importer(modules)])


class _Importer:
    """A plugin that imports while pytest's import hook is there.

    pytest warns of modules of its plugins that were imported without it.
    """

    def __init__(self, modules: Iterable[str]) -> None:
        self._modules = modules

    def pytest_configure(self) -> None:
        wanted = [name for name in self._modules if name.partition(".")[0] != ASKS_THE_NETWORK]
        with warnings.catch_warnings(action="ignore"):
            for name in wanted:
                with contextlib.suppress(ImportError):  # the tests that need it import it
                    importlib.import_module(name)


def _start(job: PytestJob, base: Path, tree: Path) -> _RunningJob:
    scratch = TemporaryDirectory(prefix="m-", dir=base.parent)
    work = partial(_work, job, base, tree, Path(scratch.name))
    pid = fork_supervised(work, Path(scratch.name, "output"), job.limit)
    return _RunningJob(job, pid, tree, scratch, time.monotonic())


def _work(job: PytestJob, base: Path, tree: Path, scratch: Path) -> int:
    if job.mutant:
        plant(base, tree, job.mutant)
    return run_pytest(tree if job.mutant else base, scratch, (*job.options, *job.tests))


def _finish(ended: _RunningJob, base: Path) -> JobResult:
    _, status, used = os.wait4(ended.pid, 0)
    seconds = time.monotonic() - ended.began
    code = os.waitstatus_to_exitcode(status)
    if ended.job.mutant:
        restore(base, ended.tree, ended.job.mutant)
    with ended.scratch as scratch:
        output, result = Path(scratch, "output"), Path(scratch, "result.json")
        table = json.loads(result.read_text()) if result.exists() else {}
        return JobResult(
            job=ended.job,
            code=None if code == PAST_LIMIT else code,
            output=output.read_text(errors="replace") if output.exists() else "",
            seconds=seconds,
            cpu_seconds=used.ru_utime + used.ru_stime,
            outcomes=table.get("outcomes", {}),
            modules=tuple(table.get("modules", ())),
        )
