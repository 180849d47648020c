"""A test that failed is tried once more, alone, in a fresh process: passed then, it is unsteady.

An unsteady test is named in the closing lines and does not refuse the run, but more than LIMIT of
them do. What stands for a promise gets no second try: there a failure is one, however seldom.
"""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.runner.groups import PYTHON
from tests.runner.processes import INTERRUPTED, start_command

LIMIT = 3
"""Unsteady tests of a run that is green nevertheless."""
NO_SECOND_TRY = (
    "tests/hostile/",
    "tests/integration/replay/",
    "tests/unit/faults/judging/",
    "tests/unit/replay/",
    "tests/unit/traces/redaction/",
)
"""Tests of attacks, matching, judging and redaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsteadyTest:
    """A test that failed and then passed; the load is that of the machine when its group ended."""

    test: str
    seed: str
    time: str
    load: float


def find_unsteady(failed: list[str], environment: Mapping[str, str]) -> list[UnsteadyTest]:
    """Try each failed test once more; return those that passed.

    Nothing is tried if one of them has no node id (its worker died) or allows no second try, or if
    there are more than LIMIT: the run is refused anyway.
    """
    if len(failed) > LIMIT or not all(map(allows_second_try, failed)):
        return []
    load, now = os.getloadavg()[0], time.strftime("%Y-%m-%dT%H:%M:%S")
    seed = environment.get("PYTHONHASHSEED", "")
    return [
        UnsteadyTest(test=node, seed=seed, time=now, load=round(load, 1))
        for node in failed
        if _passes(node, environment)
    ]


def allows_second_try(node: str) -> bool:
    """Return whether a failure of this test may be one of chance."""
    return bool(node) and not node.startswith(NO_SECOND_TRY)


def keep_record(unsteady: list[UnsteadyTest]) -> None:
    """Append a line of JSON for each to the file that STUMBLE_UNSTEADY names, if it is set."""
    if path := os.environ.get("STUMBLE_UNSTEADY"):
        with Path(path).open("a") as file:
            file.writelines(f"{json.dumps(asdict(each))}\n" for each in unsteady)


def _passes(node: str, environment: Mapping[str, str]) -> bool:
    if INTERRUPTED:
        return False
    print(f"\n--- once more, alone: {node}", flush=True)
    with start_command((*PYTHON, "pytest", "-q", node), environment) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
    return process.returncode == 0
