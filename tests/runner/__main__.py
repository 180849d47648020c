"""Runs the groups of a tier, or those named, and prints how long each took.

    python -m tests.runner test                     what `make test` runs: Python alone is needed
    python -m tests.runner gate                     what `.ci/run` runs
    python -m tests.runner all --shard 2/4          the second of four parts of all tests
    STUMBLE_TESTS=all python -m tests.runner e2e    this group, with all its cases

Lanes of one stage run side by side, and all stages run even if a group fails, so that one run
shows all there is to mend. The last line is a count over all groups of tests.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from tests.runner.green_commit import store_green_commit
from tests.runner.groups import GROUPS, STAGES, TIERS, choose_groups
from tests.runner.processes import INTERRUPTED, forward_signals, lower_priority, start_command
from tests.runner.results import GroupResult, read_cases, sum_files
from tests.runner.second_try import LIMIT, UnsteadyTest, find_unsteady, keep_record

COUNTS = re.compile(r"=* ?\d+ (passed|failed|skipped|errors?)\b.* in [\d.]+ ?s")
"""pytest's last line, as in `1 failed, 8 passed in 2.31s`."""
SLOWEST = 20
"""Tests and files that are listed with their seconds."""
HASH_SEED = "0"
"""The order of sets of strings is one of the things that are the same in each run."""


def main() -> int:
    """Run the groups; 0 if each of them passed, tests that passed at the second try included."""
    parser = argparse.ArgumentParser(prog="python -m tests.runner", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME", help="test, gate, all, or groups")
    parser.add_argument("--shard", default="1/1", metavar="K/N", help="the K-th of N parts")
    options = parser.parse_args()
    try:
        wanted = choose_groups(options.names, options.shard.startswith("1/"))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    tier = (
        options.names[0] if options.names[0] in TIERS else os.environ.get("STUMBLE_TESTS", "gate")
    )
    environment = {
        "STUMBLE_TESTS": tier,
        "STUMBLE_SHARD": options.shard,
        "PYTHONHASHSEED": HASH_SEED,
    }
    forward_signals()
    began = time.monotonic()
    results = run_stages(wanted, environment)
    failed = [case.node for each in results for case in each.cases if case.failed]
    unsteady = find_unsteady(failed, environment)
    keep_record(unsteady)
    green = decide(results, unsteady, len(failed))
    report(results, unsteady, time.monotonic() - began)
    if INTERRUPTED:
        return 128 + INTERRUPTED[0]
    if green and options.names == ["gate"]:
        store_green_commit()
    return 0 if green else 1


def run_stages(wanted: Sequence[str], environment: Mapping[str, str]) -> list[GroupResult]:
    results: list[GroupResult] = []
    for stage in STAGES:
        lanes = [lane for names in stage if (lane := [name for name in names if name in wanted])]
        if lanes:
            with ThreadPoolExecutor(len(lanes)) as pool:
                # One lane is shown as it goes on, so that a long stage is not silent.
                live = [lane is lanes[-1] for lane in lanes]
                run_lane = [
                    pool.submit(run_groups, lane, environment, shown)
                    for lane, shown in zip(lanes, live, strict=True)
                ]
                results += chain.from_iterable(each.result() for each in run_lane)
    return results


def run_groups(
    names: Iterable[str], environment: Mapping[str, str], live: bool
) -> list[GroupResult]:
    """Run groups one after another, until all is interrupted."""
    return [run_group(name, environment, live) for name in names if not INTERRUPTED]


def run_group(name: str, environment: Mapping[str, str], live: bool) -> GroupResult:
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
        with start_command(command, {**environment, **group.environment}) as process:
            assert process.stdout
            if group.yields:
                lower_priority(process.pid)
            for line in process.stdout:
                lines.append(line)
                if live:
                    print(line, end="", flush=True)
        if not live and not (group.quiet and process.returncode == 0):
            print(f"\n--- {name}\n{''.join(lines)}", end="", flush=True)
        return GroupResult(
            name=name,
            seconds=time.monotonic() - began,
            code=process.returncode,
            last=find_last_line(lines),
            cases=tuple(read_cases(junit)) if junit.exists() else (),
        )


def find_last_line(lines: Sequence[str]) -> str:
    """Return pytest's counts, though a library may print after them, or else the last line."""
    printed = [line.rstrip() for line in reversed(lines) if line.strip()]
    return next((line for line in printed if COUNTS.match(line)), next(iter(printed), ""))


def decide(results: Sequence[GroupResult], unsteady: Sequence[UnsteadyTest], failed: int) -> bool:
    """Return whether the run is green: each group passed, or failed by unsteady tests alone."""
    only_unsteady = failed == len(unsteady) <= LIMIT
    return all(each.code == 0 or (only_unsteady and each.has_only_failures()) for each in results)


def report(
    results: Sequence[GroupResult], unsteady: Sequence[UnsteadyTest], seconds: float
) -> None:
    """Print seconds of each group, the slowest tests and files, and a count of all."""
    cases = list(chain.from_iterable(each.cases for each in results))
    print("\nprocessor seconds, seconds on the clock")
    for case in sorted(cases, key=lambda each: -each.cpu_seconds)[:SLOWEST]:
        print(f"{case.cpu_seconds:7.1f} s {case.seconds:7.1f} s  {case.node}")
    print()
    for file, cpu, clock in sum_files(cases)[:SLOWEST]:
        print(f"{cpu:7.1f} s {clock:7.1f} s  {file}")
    print()
    for each in results:
        verdict = "ok" if each.code == 0 else "FAILED"
        cpu = sum(case.cpu_seconds for case in each.cases)
        times = f"{cpu:7.1f} s {each.seconds:7.1f} s"
        print(f"{times}  {each.name:11} {verdict:6}  {each.last.strip('= ')}")
    downloads = sum(each.seconds for each in results if GROUPS[each.name].downloads)
    print(f"{seconds:19.1f} s  total; beside it packages were fetched for {downloads:.1f} s")
    for test in unsteady:
        context = f"{test.time}, load {test.load}, seed {test.seed}"
        print(f"unsteady: {test.test} failed ({context}), and passed alone")
    totals = count_tests(results, len(unsteady))
    print(", ".join(f"{number} {kind}" for kind, number in totals.items()), flush=True)


def count_tests(results: Iterable[GroupResult], unsteady: int) -> dict[str, int]:
    """Tests that passed, failed and were skipped, over all groups; an unsteady one passed."""
    total = {"passed": unsteady, "failed": -unsteady, "skipped": 0}
    for each in results:
        if GROUPS[each.name].workers is not None:
            for kind, number in each.count().items():
                total[kind] += number
    return total


if __name__ == "__main__":
    sys.exit(main())
