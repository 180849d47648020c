"""Number of examples per property test: few in the quick tier, all in `make test-all`."""

import os
from collections.abc import Sequence

import pytest
from hypothesis import settings

THOROUGH = os.environ.get("STUMBLE_TESTS") == "thorough"
"""Whether to try every example."""

KEPT = 25
"""Number of cases that the quick tier runs of a test marked `many`."""


def examples(thorough: int = 100) -> int:
    """Return the number of examples of a property: in the quick tier a sixth, but at least five."""
    return thorough if THOROUGH else max(5, thorough // 6)


def load_profile() -> None:
    """Disable deadlines of properties: machines are slow, and busy with other tests."""
    settings.register_profile("chosen", max_examples=examples(), deadline=None)
    settings.load_profile("chosen")


def keep_some(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the items to run and to skip: of each test marked `many`, KEPT cases, evenly
    spread.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("many"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = {
        item
        for each in cases.values()
        for item in set(each) - {each[i * len(each) // KEPT] for i in range(KEPT)}
    }
    return [x for x in items if x not in left_out], [x for x in items if x in left_out]
