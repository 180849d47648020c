"""Would any test notice? Each `mutants/*.toml` plants one mistake in a copy of the tree.

    file = "faults/timing.py"            the file to spoil
    was = "ms / 1000"                    a text that it holds exactly once
    becomes = "ms"                       what stands there instead
    tests = ["test_faults_timing.py::test_a_delay_is_in_milliseconds"]
    why = "what a user would suffer"

A test's file is named without its folder, or by as much of the folder as makes it the only one
under `tests/`, so that test files can be moved.

A mutant is noticed when one of its tests fails, or does not end in time, at the first or the second
try. It is killed if that test, or that case of its parameters, passes in an unspoilt copy, in which
all that have failed run at the end; copies have no ../shared beside them.

All tests run in processes forked from this one, which has the installed modules loaded that they
import, and nothing of ours: that comes from the copy. It stands first in PYTHONPATH too, before
the checkout that is installed in the environment; so a mutant's tests may start processes, but
not with an environment that drops PYTHONPATH.
"""

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.mutation.fork_server import JobResult, PytestJob, preload, run_jobs
from tests.mutation.mutant import Mutant, read_mutants
from tests.mutation.selection import select_for_gate
from tests.mutation.supervised import ENDING_SIGNALS
from tests.mutation.tree import copy_tree
from tests.mutation.unspoilt import UnspoiltRun, collect, run_unspoilt
from tests.runner.green_commit import list_changed_files
from tests.support.tiers import TIER, is_in_shard

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python tests/mutation/run.py"
BEGAN = time.monotonic()
LIMIT = 300
"""Seconds that the tests of a mutant may take."""
LAST_LINES = 60
"""Lines of pytest's output that an error shows."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant mistakes and see which ones tests notice.")
    parser.add_argument("names", nargs="*", help="mutants to run, all if none is named")
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="list the N slowest")
    options = parser.parse_args()
    # Noticed between jobs: a handler that raises may do so where Python drops the exception.
    noticed = [each for each in ENDING_SIGNALS if signal.getsignal(each) != signal.SIG_IGN]
    signal.pthread_sigmask(signal.SIG_BLOCK, noticed)
    try:
        mutants = select_mutants(read_mutants(options.root, options.names), bool(options.names))
    except ValueError as error:
        print("".join(f"ERROR     {line}\n" for line in str(error).splitlines()), end="")
        return 1
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        base = Path(scratch).resolve() / "base"
        copy_tree(options.root, base)
        try:
            return run_mutants(mutants, base, options.workers, options.slowest)
        except KeyboardInterrupt:
            print(f"interrupted {_used()}")
            return 130


def select_mutants(mutants: tuple[Mutant, ...], named: bool) -> tuple[Mutant, ...]:
    """Return those of the tier and shard that the environment names, or all if they were named."""
    if named:
        return mutants
    if TIER == "gate":
        selection = select_for_gate(mutants, list_changed_files())
        if selection.left_out:
            print(f"left to `make mutants`: {selection.left_out} of changed files")
        return selection.mutants
    return tuple(each for each in mutants if is_in_shard(each.name))


def run_mutants(mutants: tuple[Mutant, ...], base: Path, workers: int, slowest: int) -> int:
    preload(collect([test for mutant in mutants for test in mutant.tests], base))
    print(f"collected {_used()}", flush=True)
    results, noticed, again = [], [], list[PytestJob]()
    for result in run_jobs(map(plan_job, mutants), base, workers):
        results.append(result)
        if result.code == 0:
            again.append(result.job)
        elif report_result(result):
            noticed.append(result)
    # A test with random examples or a race may miss a mutant: it gets a second try, alone.
    noticed += [result for result in run_jobs(again, base, 1) if report_result(result)]
    failed = tuple(dict.fromkeys(test for result in noticed for test in find_failed(result)))
    unspoilt = run_unspoilt(failed, base, workers)
    for test in unspoilt.only_alone:
        print(f"unspoilt  {test} passes by itself, and not after other tests")
    killed = [result for result in noticed if not report_problems(result, unspoilt)]
    for result in sorted(results, key=lambda each: each.cpu_seconds, reverse=True)[:slowest]:
        name = _mutant(result).name
        print(f"CPU {result.cpu_seconds:5.1f} s  {name}: {' '.join(result.job.tests)}")
    print(f"unspoilt  {len(failed)} tests {_used()}")
    print(f"mutants killed {len(killed)}/{len(mutants)} {_used()}")
    return 0 if len(killed) == len(mutants) else 1


def plan_job(mutant: Mutant) -> PytestJob:
    return PytestJob(tests=mutant.tests, options=("-x",), limit=LIMIT, mutant=mutant)


def find_failed(result: JobResult) -> tuple[str, ...]:
    """The tests that noticed: those that failed, or all that did not end in time."""
    failed = tuple(test for test, ending in result.outcomes.items() if ending == "failed")
    return failed or result.job.tests


def report_problems(result: JobResult, unspoilt: UnspoiltRun) -> bool:
    """Whether a test that noticed proves nothing; prints why."""
    failed = find_failed(result)
    problems = [unspoilt.problems[test] for test in failed if test in unspoilt.problems]
    for problem in problems:
        _report_error(_mutant(result), f"in an unspoilt copy {problem.summary}", problem.output)
    return bool(problems)


def report_result(result: JobResult) -> bool:
    """Whether a test noticed; prints it, and how to look into it if none did."""
    mutant = _mutant(result)
    used = f"({result.seconds:.1f} s, CPU {result.cpu_seconds:.1f} s)"
    match result.code:
        case 1:
            print(f"noticed   {mutant.name} {used}", flush=True)
        case None:
            print(f"noticed   {mutant.name} (did not end in {result.job.limit:.0f} s)", flush=True)
        case 0:
            endings = " ".join(sorted(set(result.outcomes.values())))
            print(f"SURVIVED  {mutant.name} {used}: {mutant.why}")
            _print_details(mutant, f"{endings}: {' '.join(mutant.tests)}")
        case _:
            _report_error(mutant, f"its tests did not run (exit {result.code})", result.output)
    return result.code in (1, None)


def _mutant(result: JobResult) -> Mutant:
    assert result.job.mutant
    return result.job.mutant


def _report_error(mutant: Mutant, problem: str, output: str) -> None:
    print(f"ERROR     {mutant.name}: {problem}")
    _print_details(mutant, *output.splitlines()[-LAST_LINES:])


def _print_details(mutant: Mutant, *lines: str) -> None:
    again = f"run it alone: {COMMAND} {mutant.name}"
    print("".join(f"          {line}\n" for line in (*lines, again)), end="", flush=True)


def _used() -> str:
    """The time of this process and of all that has ended of what it started."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processors = sum(each.ru_utime + each.ru_stime for each in spent)
    return f"({time.monotonic() - BEGAN:.0f} s, CPU {processors:.0f} s)"


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # duckdb would print a page about what it has not freed
