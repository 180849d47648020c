"""Who loops until the budget is up has failed, or is left out if asked: both figures are shown."""

from collections.abc import Iterator

import pytest

from tests.support.stores.faulted_runs import (
    store,
    strike,
)
from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
    near,
    one,
)
from traces.store.sql import run_question


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    """Five recordings, at each a fault that is recovered from and one that is looped on."""
    with empty() as connection:
        looped = {"class": "crashed", "noticed": True, "ended": "budget"}
        store(
            connection,
            [strike(trace=f"r{n}") | more for n in range(5) for more in ({}, looped)],
        )
        yield connection


def asked(sql: Sql, **given: str) -> dict[str, dict[str, object]]:
    answer = run_question(sql, "gate", **given)
    names = [column[0] for column in answer.description or ()]
    rows = [dict(zip(names, values, strict=True)) for values in answer.fetchall()]
    return {str(row["measure"]): row for row in rows}


@pytest.mark.parametrize("measure", ["recovery", "handled"])
def test_the_truth_of_half_is_told_as_half(sql: Sql, measure: str) -> None:
    found = asked(sql)[measure]
    assert (found["rate"], found["cases"], found["by_budget"]) == (near(0.5), 10, 5)
    assert found["other_rate"] == near(1.0)


@pytest.mark.gate
@pytest.mark.parametrize("measure", ["recovery", "handled"])
def test_censored_runs_are_left_out_and_the_other_rate_stands_beside(
    sql: Sql, measure: str
) -> None:
    found = asked(sql, budget="censored")[measure]
    assert (found["rate"], found["cases"], found["by_budget"]) == (near(1.0), 5, 5)
    assert found["other_rate"] == near(0.5)


def test_recovery_counts_them_as_crashed(sql: Sql) -> None:
    names = "fired, judged, crashed, by_budget, excluded, recovery_rate, handled_rate"
    assert one(sql, f"SELECT {names} FROM recovery") == {
        "fired": 10, "judged": 10, "crashed": 5, "by_budget": 5, "excluded": 0,
        "recovery_rate": near(0.5), "handled_rate": near(0.5),
    }  # fmt: skip
