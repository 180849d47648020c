"""`telemetry`: the popular figures, as they are usually defined."""

from collections.abc import Iterator

import pytest

from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
    fill,
    near,
    one,
)

type Known = dict[str, object]


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def told(sql: Sql, marks: str, run: Known | None = None, calls: Known | None = None) -> Known:
    """The figures of one run whose calls went as marked: . ok, x error, ? does not say."""
    errors = {".": False, "x": True, "?": None}
    known: Known = {"trajectory_id": "r", "tool": "t", "arguments": "{}"} | (calls or {})
    steps = [known | {"step": k, "is_error": errors[mark]} for k, mark in enumerate(marks)]
    fill(sql, "tool_calls", steps)
    fill(sql, "trajectories", [{"trajectory_id": "r", "condition": "clean"} | (run or {})])
    return one(sql, "FROM telemetry")


def test_two_errors_in_eight_calls(sql: Sql) -> None:
    found = told(sql, "..x..x..", {"passed": True, "ended": "final"})
    assert (found["trajectory_length"], found["errors"]) == (8, 2)
    assert found["tool_error_rate"] == 0.25
    assert found["implied_step_success_rate"] == 0.75
    assert (found["recovery_rate"], found["task_passed"], found["hard_failure"]) == (1, True, False)


@pytest.mark.parametrize(
    ("marks", "rate"),
    [("xx.", 0.5), (".x", 0), ("x.x", 0.5), ("xxx", 0), ("...", None), ("", None), ("x?.", 1)],
)
def test_recovery_is_a_sane_next_step(sql: Sql, marks: str, rate: float | None) -> None:
    assert told(sql, marks)["recovery_rate"] == rate


def test_a_run_without_calls_has_no_rates(sql: Sql) -> None:
    found = told(sql, "")
    assert (found["tool_error_rate"], found["implied_step_success_rate"]) == (None, None)


def test_a_call_that_does_not_say_is_no_input(sql: Sql) -> None:
    assert told(sql, "x??.?.")["tool_error_rate"] == near(1 / 3)


def test_the_same_write_again_is_an_unsafe_retry_and_not_sane(sql: Sql) -> None:
    found = told(sql, "x.", calls={"read_only": False})
    assert (found["unsafe_retries"], found["recovery_rate"]) == (1, 0)


@pytest.mark.parametrize("read_only", [True, None])
def test_the_same_reading_again_is_sane(sql: Sql, read_only: bool | None) -> None:
    found = told(sql, "x.", calls={"read_only": read_only})
    assert (found["unsafe_retries"], found["recovery_rate"]) == (0, 1)


@pytest.mark.parametrize(
    ("ended", "hard"),
    [("final", False), ("abstain", True), ("crash", True), ("budget", True), ("harness", None)],
)
def test_hard_failure_is_any_other_end_than_a_final_one(
    sql: Sql, ended: str, hard: bool | None
) -> None:
    assert told(sql, ".", {"ended": ended})["hard_failure"] is hard
    assert told(sql, ".")["hard_failure"] is None
