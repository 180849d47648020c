"""Which tests, and how many examples of them, a run takes: that of `make test`, the gate, or all.

`STUMBLE_TESTS` names the tier: `test` if it is not set, `gate`, `all`, or `fuzz` (`make fuzz`).
Nothing is drawn anew but in the last: Hypothesis derives examples from the source of each test.
`STUMBLE_SHARD=K/N` takes the K-th of N parts of the tests, `STUMBLE_ORDER` is `reverse` or the
seed of a random order.
"""

import os
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from zlib import crc32

import pytest

TIER = os.environ.get("STUMBLE_TESTS", "test")
EXHAUSTIVE = TIER in ("all", "fuzz")
"""Whether to try every example and every case."""
KEPT = 25
"""Number of cases that are run of a test marked `many`, if the mark names no other."""
LEFT_OUT = {"test": ("gate", "thorough"), "gate": ("thorough",)}
"""Marks of the tests that a tier leaves to the next."""


def examples(all_examples: int = 100) -> int:
    """Return the number of examples of a property: a sixth but at least five, or all."""
    return all_examples if EXHAUSTIVE else max(5, all_examples // 6)


def load_profile() -> None:
    """Draw the same examples in each run; no deadlines, as machines are busy with other tests."""
    # Late: pytest's plugins would warn of a Hypothesis that the runner of mutants had imported.
    from hypothesis import settings

    repeatable = TIER != "fuzz"
    settings.register_profile(
        "chosen", max_examples=examples(), deadline=None, derandomize=repeatable, database=None
    )
    settings.load_profile("chosen")


def select_tests(items: Iterable[pytest.Item], named: bool) -> list[pytest.Item]:
    """Return the tests of this tier and shard, in the order that is wanted.

    If `named`, somebody gave their node ids, and no case is left out.
    """
    chosen = [item for item in items if is_in_shard(item.nodeid.partition("[")[0])]
    if not (named or EXHAUSTIVE):
        marks = LEFT_OUT[TIER]
        chosen = [item for item in chosen if not any(map(item.get_closest_marker, marks))]
        chosen = _spread_cases(chosen)
    order = os.environ.get("STUMBLE_ORDER", "")
    if order == "reverse":
        chosen.reverse()
    elif order:
        random.Random(order).shuffle(chosen)
    return chosen


def is_in_shard(name: str) -> bool:
    """Return whether a test or mutant of this name belongs to the part that STUMBLE_SHARD names."""
    number, _, count = os.environ.get("STUMBLE_SHARD", "1/1").partition("/")
    return crc32(name.encode()) % int(count) == int(number) - 1


def _spread_cases(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Keep so many cases of each test marked `many` as its mark names, evenly spread."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("many"):
            cases[item.nodeid.partition("[")[0]].append(item)
    left_out = set[pytest.Item]()
    for each in cases.values():
        mark = each[0].get_closest_marker("many")
        kept = mark.args[0] if mark and mark.args else KEPT
        left_out |= set(each) - {each[i * len(each) // kept] for i in range(kept)}
    return [item for item in items if item not in left_out]
