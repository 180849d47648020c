"""Tasks that suites number alike are several; errors are known as soon as one is."""

from collections.abc import Iterator

import pytest

from tests.support.stores.in_memory_relations import Sql, empty, fill
from traces.store.sql import run_question

type Known = dict[str, object]


@pytest.fixture
def sql() -> Iterator[Sql]:
    with empty() as connection:
        for relation in ("injections", "outcomes", "stages"):
            fill(connection, relation, ())
        yield connection


def ask(sql: Sql, question: str) -> list[dict[str, object]]:
    answer = run_question(sql, question)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, values, strict=True)) for values in answer.fetchall()]


def make_run(number: int, **more: object) -> Known:
    usual: Known = {"trajectory_id": f"r{number}", "agent": "a", "model": "m", "task": "1"}
    usual |= {"condition": "clean", "ended": "final", "passed": number % 3 > 0, "n_steps": 4}
    return usual | {"fidelity": "messages", "scenario": f"suite-{number % 8}"} | more


def test_tasks_of_two_suites_are_two_clusters(sql: Sql) -> None:
    fill(sql, "trajectories", [make_run(number) for number in range(40)])
    fill(sql, "tool_calls", ())
    for question in ("half_life", "error_effect"):
        [row] = ask(sql, question)
        assert row["tasks"] == 8, question


def test_a_task_recorded_here_is_one_in_all_scenarios(sql: Sql) -> None:
    fill(sql, "trajectories", [make_run(number, fidelity="bytes") for number in range(40)])
    fill(sql, "tool_calls", ())
    [row] = ask(sql, "half_life")
    assert row["tasks"] == 1


def make_call(run: int, step: int, is_error: bool | None) -> Known:
    call: Known = {"trajectory_id": f"r{run}", "step": step, "call_id": f"c{step}", "tool": "t"}
    return call | {"is_error": is_error, "position": 1}


def test_one_error_is_known_whatever_the_other_calls_are(sql: Sql) -> None:
    fill(sql, "trajectories", [make_run(number, task=f"{number}") for number in range(30)])
    calls = [make_call(number, 1, number % 3 == 0) for number in range(30)]
    fill(sql, "tool_calls", [*calls, *(make_call(number, 2, None) for number in range(20))])
    runs = {row["with_error"]: row["runs"] for row in ask(sql, "error_effect")}
    assert runs == {True: 10, False: 7, None: 13}


@pytest.mark.parametrize(("unknown", "rate"), [(0, 0.5), (9, 0.5), (10, None), (90, None)])
def test_a_rate_of_mostly_unknown_calls_is_none(sql: Sql, unknown: int, rate: float | None) -> None:
    fill(sql, "trajectories", [make_run(1)])
    known = [make_call(1, step, step % 2 == 0) for step in range(10)]
    fill(sql, "tool_calls", [*known, *(make_call(1, 10 + step, None) for step in range(unknown))])
    [row] = ask(sql, "tool_errors")
    assert row["error_rate"] == rate
    assert row["at_least"] == 5 / (10 + unknown)
    assert row["at_most"] == (5 + unknown) / (10 + unknown)
