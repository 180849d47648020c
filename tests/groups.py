"""Runs every group of checks, those of a tier, or those named, and says how long each took.

    python tests/groups.py quick       what `make test` runs: Python alone is needed
    python tests/groups.py             everything, as `make test-all` runs it
    python tests/groups.py types e2e   these groups

Lanes of one stage run side by side, and all stages run even if a group fails, so that one run
shows all there is to mend. The last line is a count over all groups of tests.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 4000
"""Seconds after which a group is ended."""
LAST_WORDS = 60
"""Seconds that it then has to say what has failed so far."""
SLOWEST = 20
COUNT = re.compile(r"(\d+) (passed|failed|error|skipped)")

PYTHON = (sys.executable, "-m")


@dataclass(frozen=True, slots=True)
class Group:
    """A command; `workers` makes it one of pytest, run in so many processes (0: in one)."""

    command: tuple[str, ...]
    _: KW_ONLY
    workers: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    quiet: bool = False
    """Whether its output is shown only if it fails."""
    yields: bool = False
    """Whether it leaves the processors to the groups beside it, as it only computes."""


THOROUGH = {"STUMBLE_TESTS": "thorough"}


def pytest(
    *words: str, workers: int, environment: dict[str, str] = THOROUGH, yields: bool = False
) -> Group:
    """A group of tests, which try all their examples."""
    command = (*PYTHON, "pytest", "-q", *words)
    return Group(command, workers=workers, environment=environment, yields=yields)


FAST = ("tests/unit", "tests/integration")
THOROUGHLY = "hypothesis or many or programs"
"""Tests that have more examples in `make test-all`, or need more than Python."""
SHARES = (
    (
        "tests/e2e/pipeline/test_pipeline_newcomer.py",
        "tests/e2e/pipeline/test_scenarios_compiler_starter.py",
        "tests/e2e/pipeline/test_stumble_pipeline_failures.py",
        "tests/e2e/record/test_installed_program.py",
    ),
    (
        "tests/docker/test_stumble_pipeline_docker.py",
        "tests/e2e/pipeline/test_scenarios_compiler_golden.py",
        "tests/e2e/pipeline/test_scenarios_yatcc.py",
        "tests/e2e/pipeline/test_stumble_pipeline_models.py",
    ),
    (
        "tests/e2e/mutation/test_mutation_runner.py",
        "tests/e2e/pipeline/test_scenarios_compiler_grading.py",
        "tests/e2e/pipeline/test_scenarios_compiler_solutions.py",
        "tests/e2e/pipeline/test_stumble_pipeline.py",
        "tests/e2e/pipeline/test_stumble_pipeline_yatcc.py",
    ),
)
"""Files of which two processors run a share each day (UTC), or all would take over 90 minutes."""
ROTATES = (os.cpu_count() or 1) < 4 and os.environ.get("STUMBLE_TESTS") != "all"


def ignore_shares(today: int) -> list[str]:
    """Options of pytest that leave out the files that are due on other days."""
    due = SHARES[today % len(SHARES)]
    return [f"--ignore={file}" for share in SHARES if share != due for file in share]


RESTING = ignore_shares(datetime.now(UTC).toordinal()) if ROTATES else []
MUTANTS = ("tests/mutation/run.py", "--every", str(len(SHARES)) if ROTATES else "1")
GROUPS: dict[str, Group] = {
    "lint": Group((*PYTHON, "ruff", "check")),
    "format": Group((*PYTHON, "ruff", "format", "--check")),
    "types": Group((*PYTHON, "mypy")),
    # Compiles all modules once, else each worker in a fresh clone does.
    "collect": Group((*PYTHON, "pytest", "--collect-only", "-qq", *FAST), quiet=True),
    "fast": pytest(*FAST, "-m", "not alone and not programs", workers=3, environment={}),
    "once": pytest(*FAST, "-m", f"not alone and not ({THOROUGHLY})", workers=3, environment={}),
    "install": Group((*PYTHON, "tests.agents")),
    "docs": Group(("make", "--no-print-directory", "docs")),
    "thorough": pytest(*FAST, "-m", f"({THOROUGHLY}) and not alone", workers=2),
    "statistical": pytest("tests/statistical", "--timeout", "1200", workers=2, yields=True),
    "e2e": pytest("tests/e2e", "tests/hostile", "tests/browser", *RESTING, workers=4),
    "docker": pytest("tests/docker", *RESTING, workers=0),
    "clients": pytest("tests/clients", workers=3),
    "mutation": Group((sys.executable, *MUTANTS), environment=THOROUGH),
    "selftest": Group((*PYTHON, "stumble", "selftest")),
    "alone": pytest(*FAST, "-m", "alone", workers=0),
    "spark": pytest("tests/spark", workers=0),
    "real": pytest("tests/real", workers=0),
}
STAGES: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("lint", "format"), ("collect",)),
    # mypy uses one processor, and installations wait for the network: the tests use the rest.
    (("types", "docs"), ("install",), ("fast",), ("once",)),
    # Runs of agents often wait; the statistical tests compute in what they leave.
    (("statistical",), ("e2e", "clients", "selftest")),
    (("docker",), ("thorough",), ("mutation",)),
    (("alone",), ("spark",), ("real",)),
)
"""Stages follow one another. The lanes of a stage run side by side, the groups of a lane do not."""
QUICK = ("lint", "format", "collect", "types", "fast")
# `once` and `thorough` together are the tests of `fast`, each one run with all its examples.
# pyspark is 430 MB to fetch, and Spark needs Java: `make test-spark`.
# A fresh environment with a real model runs the demo twice; Phoenix is 620 MB: `make test-real`.
EVERYTHING = tuple(name for name in GROUPS if name not in ("fast", "spark", "real"))


RUNNING: set[int] = set()
"""Process groups of the commands that run now."""
INTERRUPTED: list[int] = []
"""Signals that asked for the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a group ended; `last` is the last line it printed, `cases` its tests with seconds."""

    name: str
    seconds: float
    passed: bool
    last: str
    cases: tuple[tuple[float, str], ...] = ()


def main(names: list[str]) -> int:
    """Run the groups of these names, or all; 0 if each of them passed."""
    wanted = QUICK if names == ["quick"] else tuple(names) or EVERYTHING
    if unknown := [name for name in wanted if name not in GROUPS]:
        print(f"no group {unknown[0]}; there are quick, {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    forward_signals()
    began = time.monotonic()
    finished: list[Finished] = []
    for stage in STAGES:
        lanes = [lane for names in stage if (lane := [name for name in names if name in wanted])]
        if lanes:
            with ThreadPoolExecutor(len(lanes)) as pool:
                # One lane is shown as it goes on, so that a long stage is not silent.
                last = [lane is lanes[-1] for lane in lanes]
                finished += chain.from_iterable(pool.map(run_lane, lanes, last))
    report(finished, time.monotonic() - began)
    if INTERRUPTED:
        return 128 + INTERRUPTED[0]
    return 0 if all(each.passed for each in finished) else 1


def report(finished: Sequence[Finished], seconds: float) -> None:
    """Print seconds of each group, the slowest tests, and a count of all."""
    print()
    slowest = sorted((case for each in finished for case in each.cases), reverse=True)
    for took, case in slowest[:SLOWEST]:
        print(f"{took:7.1f} s  {case}")
    print()
    for file, took in sum_files(slowest)[:SLOWEST]:
        print(f"{took:7.1f} s  {file}")
    print()
    for each in finished:
        verdict = "ok" if each.passed else "FAILED"
        print(f"{each.name:11} {each.seconds:7.1f} s  {verdict:6}  {each.last.strip('= ')}")
    print(f"{'total':11} {seconds:7.1f} s")
    if ROTATES and any(each.name in ("e2e", "docker", "mutation") for each in finished):
        print(f"left to other days: {len(RESTING)} files, and two thirds of the mutants")
    print(", ".join(f"{n} {what}" for what, n in counted(finished).items()), flush=True)


def sum_files(cases: Iterable[tuple[float, str]]) -> list[tuple[str, float]]:
    """Seconds of each file of tests, the most first."""
    total: dict[str, float] = defaultdict(float)
    for took, case in cases:
        total[case.partition("::")[0]] += took
    return sorted(total.items(), key=lambda item: -item[1])


def counted(finished: Iterable[Finished]) -> dict[str, int]:
    """Tests that passed, failed (errors too) and were skipped, over all groups."""
    total = {"passed": 0, "failed": 0, "skipped": 0}
    for each in finished:
        if GROUPS[each.name].workers is None:
            continue
        for n, what in COUNT.findall(each.last):
            total["failed" if what == "error" else what] += int(n)
    return total


def run_lane(names: Iterable[str], live: bool) -> list[Finished]:
    """Run groups one after another, until all is interrupted."""
    return [run(name, live) for name in names if not INTERRUPTED]


def run(name: str, live: bool) -> Finished:
    """Run one group; prints lines as they come if `live`, else all of them when it has ended."""
    group = GROUPS[name]
    live = live and not group.quiet
    with tempfile.TemporaryDirectory(prefix="tests-") as folder:
        junit = Path(folder, "junit.xml")
        command = list(group.command)
        if group.workers is not None:
            command += ["--junit-xml", str(junit)]
        if group.workers:
            # Tests that share what was made once for them mostly stay in one process.
            command += ["-n", str(group.workers), "--dist", "worksteal"]
        began = time.monotonic()
        lines: list[str] = []
        if live:
            print(f"\n--- {name}", flush=True)
        with started(command, group.environment) as process:
            assert process.stdout
            if group.yields:
                lower_priority(process.pid)
            for line in process.stdout:
                lines.append(line)
                if live:
                    print(line, end="", flush=True)
        if not live and not (group.quiet and process.returncode == 0):
            print(f"\n--- {name}\n{''.join(lines)}", end="", flush=True)
        return Finished(
            name=name,
            seconds=time.monotonic() - began,
            passed=process.returncode == 0,
            last=next((line.rstrip() for line in reversed(lines) if line.strip()), ""),
            cases=tuple(read_cases(junit)) if junit.exists() else (),
        )


def read_cases(junit: Path) -> Iterator[tuple[float, str]]:
    """Seconds and name of each test in a report of pytest."""
    for case in ET.parse(junit).iter("testcase"):
        yield float(case.get("time", "0")), f"{case.get('classname')}::{case.get('name')}"


@contextlib.contextmanager
def started(command: Sequence[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A command that is interrupted past LIMIT, and leaves no process behind."""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        RUNNING.add(process.pid)
        bells = (
            threading.Timer(LIMIT, send, (process.pid, signal.SIGINT)),
            threading.Timer(LIMIT + LAST_WORDS, send, (process.pid, signal.SIGKILL)),
        )
        for bell in bells:
            bell.start()
        try:
            yield process
            process.wait()
        finally:
            for bell in bells:
                bell.cancel()
            RUNNING.discard(process.pid)
            send(process.pid, signal.SIGKILL)


def lower_priority(pid: int) -> None:
    """Give a session of processes what the others leave; Linux ranks sessions, not processes."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PGRP, pid, 19)
        Path(f"/proc/{pid}/autogroup").write_text("19")


def send(group: int, number: int) -> None:
    """Signal a process group, which may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def forward_signals() -> None:
    """Hand Ctrl-C, SIGTERM and SIGHUP on to all groups, the second time as SIGKILL.

    A signal that a shell or nohup has us ignore stays ignored here, but not in the tests: a
    handler, unlike being ignored, is not inherited by the programs that are started.
    """

    def forward(number: int, _: object) -> None:
        for group in tuple(RUNNING):
            send(group, signal.SIGKILL if INTERRUPTED else number)
        INTERRUPTED.append(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        ignored = signal.getsignal(number) is signal.SIG_IGN
        signal.signal(number, (lambda *_: None) if ignored else forward)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
