"""Whether the tests of mutants pass while nothing is spoilt: only then does a failure count."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tests.mutation.fork_server import JobResult, PytestJob, run_jobs
from tests.mutation.pytest_run import COLLECT_ONLY

LIMIT = 1800
"""Seconds that one process may take for its share of all tests."""
ALONE_LIMIT = 240
"""Seconds that one test may take that runs by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoProof:
    """Why a test proves nothing, and what pytest printed of it."""

    summary: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnspoiltRun:
    """Why a test proves nothing, by test; `only_alone` are those that failed beside others."""

    problems: dict[str, NoProof]
    only_alone: tuple[str, ...]


def run_unspoilt(tests: Sequence[str], base: Path, workers: int) -> UnspoiltRun:
    """Run each test once; those that do not pass once more, by themselves, as mutants run them."""
    shared = list(run_jobs(_shared_jobs(tests, workers), base, workers))
    suspects = [test for result in shared for test in _find_problems(result)]
    alone_jobs = [PytestJob(tests=(test,), limit=ALONE_LIMIT) for test in suspects]
    alone = list(run_jobs(alone_jobs, base, workers))
    problems = {test: found for each in alone for test, found in _find_problems(each).items()}
    only_alone = tuple(test for test in suspects if test not in problems)
    return UnspoiltRun(problems=problems, only_alone=only_alone)


def collect(tests: Sequence[str], base: Path) -> tuple[str, ...]:
    """The installed modules that the files of tests import; compiles what is imported in `base`.

    One process does so for all, since two would import most modules twice.
    """
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    jobs = _shared_jobs(files, 1, COLLECT_ONLY)
    return tuple(name for result in run_jobs(jobs, base, 1) for name in result.modules)


def _shared_jobs(tests: Iterable[str], workers: int, *options: str) -> list[PytestJob]:
    """One job per worker; the tests of a file stay together, so that it is imported once."""
    files: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        files[test.partition("::")[0]].append(test)
    grouped = list(files.values())
    shares = (tuple(chain.from_iterable(grouped[first::workers])) for first in range(workers))
    options = (*options, "--continue-on-collection-errors")
    return [PytestJob(tests=share, options=options, limit=LIMIT) for share in shares if share]


def _find_problems(result: JobResult) -> dict[str, NoProof]:
    return {
        test: NoProof(summary=f"{test} {ending}", output=result.output)
        for test in result.job.tests
        if (ending := _ending(test, result)) != "passed"
    }


def _ending(test: str, result: JobResult) -> str:
    """How a test ended that may stand for several: a file, a class, all cases of parameters."""
    if result.code is None:
        return f"does not end in {result.job.limit:.0f} s"
    endings = {result.outcomes[node] for node in _nodes(test, result)} or {"does not run"}
    return " ".join(sorted(endings - {"passed"})) or "passed"


def _nodes(test: str, result: JobResult) -> list[str]:
    return [
        node
        for node in result.outcomes
        if node == test or node.startswith((f"{test}[", f"{test}::"))
    ]
