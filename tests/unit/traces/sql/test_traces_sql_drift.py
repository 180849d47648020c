"""`drift`: a change between two windows is named if it is significant after adjustment."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
import scipy

from stumble.report.window_changes import find_changes, format_changes, is_comparable
from stumble.store.filter import fetch_named_rows
from tests.support.stores.in_memory_relations import Sql, answers, empty, fill, near
from traces.store.sql import bind_question

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
type Row = dict[str, object]


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def store(sql: Sql, *windows: tuple[float, int, float, float], seed: int = 1) -> None:
    """Fill a store: per window its age in days, number of runs, error rate and mean cost."""
    random, runs, calls = Random(seed), list[Row](), list[Row]()
    for age, count, errors, cost in windows:
        for n in range(count):
            id = f"{age}-{n}"
            at = (NOW - timedelta(days=age)).timestamp()
            runs.append(
                {
                    "trajectory_id": id, "condition": "clean", "agent": "a", "model": "m",
                    "ended": "final", "passed": True, "n_steps": 10, "recorded_at": at,
                    "cost_usd": random.gauss(cost, 0.1), "tokens": 5, "seconds": 1.0,
                }
            )  # fmt: skip
            calls += [
                {
                    "trajectory_id": id, "step": step, "tool": tool, "arguments": "{}",
                    "is_error": tool == "pay" and random.random() < errors, "call_id": str(step),
                }
                for step, tool in enumerate(["pay", "read"] * 5)
            ]  # fmt: skip
    fill(sql, "trajectories", runs)
    fill(sql, "tool_calls", calls)


def drift(sql: Sql, **params: float | str) -> dict[tuple[object, object], dict[str, Any]]:
    found = fetch_named_rows(sql.execute(*bind_question("drift", **params)))
    return {(row["measure"], row["part"]): dict(row) for row in found}


def test_a_tool_that_fails_more_often_is_named_and_nothing_else(sql: Sql) -> None:
    store(sql, (1, 60, 0.4, 1.0), (14, 60, 0.05, 1.0))
    found = drift(sql)
    pay = found["tool_errors", "pay"]
    assert (pay["recent_cases"], pay["earlier_cases"], pay["reason"]) == (300, 300, None)
    assert pay["p_adjusted"] < 0.001
    assert pay["change"] == near(pay["recent"] - pay["earlier"])
    others = [row["p_adjusted"] for key, row in found.items() if key != ("tool_errors", "pay")]
    assert all(p is None or p > 0.05 for p in others)


def test_means_are_compared_by_welch(sql: Sql) -> None:
    store(sql, (1, 20, 0.0, 1.5), (14, 30, 0.0, 1.0))
    cost = drift(sql)["cost", None]
    amounts = [
        [
            float(str(row["cost_usd"]))
            for row in answers(sql, f"from trajectories where trajectory_id like '{age}-%'")
        ]
        for age in (1, 14)
    ]
    assert cost["p"] == near(scipy.stats.ttest_ind(*amounts, equal_var=False).pvalue)
    assert cost["earlier"] == near(sum(amounts[1]) / 30)


@pytest.mark.gate
def test_windows_are_those_that_were_asked_for(sql: Sql) -> None:
    store(sql, (1, 6, 0.0, 1.0), (9, 7, 0.0, 1.0), (34, 8, 0.0, 1.0), (40, 9, 0.0, 1.0))
    steps = drift(sql)["steps", None]
    assert (steps["recent_traces"], steps["earlier_traces"]) == (6, 15)
    steps = drift(sql, since=10, against=100)["steps", None]
    assert (steps["recent_traces"], steps["earlier_traces"]) == (13, 17)
    steps = drift(sql, since=3, against=100, at="2026-11-16 12:00:00")["steps", None]
    assert (steps["recent_traces"], steps["earlier_traces"]) == (7, 17)


def test_too_little_is_unknown_and_says_why(sql: Sql) -> None:
    store(sql, (1, 4, 1.0, 9.0), (14, 60, 0.0, 1.0))
    for row in drift(sql).values():
        assert row["p"] is None
        assert row["reason"] == "few_traces"
    fill(sql, "trajectories", [])
    fill(sql, "tool_calls", [])
    assert drift(sql) == {}


@pytest.mark.gate
def test_equal_rates_are_rarely_called_different(sql: Sql) -> None:
    random, cells = Random(3), list[tuple[int, int, float, float]]()
    for group in range(200):
        for span, clusters in enumerate((8, 20)):
            for _ in range(clusters):
                rate = random.betavariate(1, 4)  # clusters are alike in themselves
                hits = sum(random.random() < rate for _ in range(6))
                cells.append((group, span, float(hits), 6.0))
    sql.execute("create or replace temp table cells (g int, span int, hits double, n double)")
    sql.executemany("insert into cells values (?, ?, ?, ?)", cells)
    window = "clustered(list(hits) filter (span = {0}), list(n) filter (span = {0}))"
    found = answers(
        sql,
        f"select rate_change_p(a, b) as p from (select g, {window.format(0)} as a, "
        f"{window.format(1)} as b from cells group by g)",
    )
    share = sum(row["p"] < 0.05 for row in found if isinstance(row["p"], float)) / len(found)
    assert share <= 0.08


def test_changes_are_told_with_both_intervals_and_a_direction(sql: Sql) -> None:
    store(sql, (1, 60, 0.4, 1.0), (14, 60, 0.05, 1.5))
    found = list(drift(sql).values())
    changes = find_changes(found, 0.05)
    assert [(each["measure"], each["worse"]) for each in changes] == [
        ("cost", False), ("tool_errors", True),
    ]  # fmt: skip
    head, *lines = format_changes(found, changes, "7d", "28d")
    assert head.startswith("the last 7d against the 28d before: 2 significant of ")
    assert re.match(r"  worse    tool calls that fail of pay, a m: 4\d\.\d% \[", lines[1])
    assert is_comparable(found)
    few = find_changes([row | {"p": None, "p_adjusted": None} for row in found], 0.05)
    assert few == []
