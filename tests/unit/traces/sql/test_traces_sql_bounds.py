"""Stores at their limits: every question and view answers, and makes up no number.

Nothing at all, one trace, faults that nobody saw, nothing known, every run cut off.
"""

import math
from collections.abc import Iterable, Iterator

import pytest

from tests.support.stores.faulted_runs import (
    Strike,
    absorbed,
    store,
    strike,
)
from tests.support.stores.in_memory_relations import (
    Sql,
    answers,
    empty,
)
from traces.store.sql import VIEWS, list_questions, run_question

pytestmark = pytest.mark.many

TRACES = "abcdef"
UNKNOWN: Strike = {
    "consumed": None,
    "class": None,
    "noticed": None,
    "baseline_valid": None,
    "ended": None,
    "model": None,
    "world": None,
}
STORES: dict[str, list[Strike]] = {
    "empty": [],
    "one trace": [strike()],
    "nothing consumed": [absorbed(trace=trace) for trace in TRACES],
    "all unknown": [strike(trace=trace) | UNKNOWN for trace in TRACES],
    "wholly censored": [strike(trace=trace, ended="harness") for trace in TRACES],
}
NO_RATE = ("nothing consumed", "all unknown", "wholly censored")
OF_JUDGED = ("recovery_rate", "silent_rate", "recovery_given_notice", "lo", "hi")


@pytest.fixture(scope="module", params=STORES, ids=lambda name: name.replace(" ", "_"))
def told(request: pytest.FixtureRequest) -> Iterator[tuple[str, Sql]]:
    name: str = request.param
    with empty() as sql:
        store(sql, STORES[name])
        yield name, sql


@pytest.mark.gate
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_makes_up_no_number(told: tuple[str, Sql], view: str) -> None:
    name, sql = told
    found = answers(sql, f'FROM "{view}"')
    assert not [each for row in found for each in numbers(row.values()) if not math.isfinite(each)]
    if view in ("recovery", "recovery_by_site") and name in NO_RATE:
        assert found
        assert [row[rate] for row in found for rate in OF_JUDGED] == [None] * 5 * len(found)
        assert all(row["reason"] for row in found)


@pytest.mark.gate
@pytest.mark.parametrize("question", [each.name for each in list_questions()])
def test_a_question_makes_up_no_number(told: tuple[str, Sql], question: str) -> None:
    _, sql = told
    rows = run_question(sql, question).fetchall()
    assert not [each for row in rows for each in numbers(row) if not math.isfinite(each)]


def numbers(values: Iterable[object]) -> Iterator[float]:
    """All floats, also those in lists and structs."""
    for each in values:
        if isinstance(each, float):
            yield each
        elif isinstance(each, dict):
            yield from numbers(each.values())
        elif isinstance(each, list):
            yield from numbers(each)
