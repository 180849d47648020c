"""Questions about imported runs: durations, costs, models on the same tasks, retries and loops."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from traces.exporters.duckdb_file import write_database
from traces.store.schema import SCHEMAS, make_relation_row, make_relation_table
from traces.store.sql import build_sql_definitions, describe_views, run_question

type Rows = list[dict[str, Any]]


def make_store(**relations: Rows) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name in SCHEMAS:
        rows = [make_relation_row(name, each) for each in relations.get(name, [])]
        connection.register(f"{name}_rows", make_relation_table(name, rows))
        connection.execute(f"CREATE TABLE {name} AS FROM {name}_rows")
    connection.execute(build_sql_definitions())
    return connection


def ask(connection: duckdb.DuckDBPyConnection, question: str, **params: Any) -> Rows:
    found = run_question(connection, question, **params)
    names = [each[0] for each in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def make_run(id: str, model: str, task: str, passed: bool | None, **more: Any) -> dict[str, Any]:
    return {"trajectory_id": id, "agent": "a", "model": model, "scenario": "s", "task": task,
            "condition": "clean", "n_steps": 3, "passed": passed, "ended": "final",
            "fidelity": "messages", **more}  # fmt: skip


def make_calls(run: str, *calls: tuple[str, str, bool | None]) -> Rows:
    return [
        {"trajectory_id": run, "step": step, "position": 1, "call_id": f"c{step}", "tool": tool,
         "arguments": arguments, "is_error": failed, "result": "no" if failed else "yes",
         "faulted": False, "duration": float(step)}
        for step, (tool, arguments, failed) in enumerate(calls, 1)
    ]  # fmt: skip


def test_latency_has_percentiles_and_what_stalled() -> None:
    calls = make_calls("r", *[("f", "{}", False)] * 9, ("g", "{}", False))
    calls[-1]["duration"] = None
    found = ask(make_store(tool_calls=calls), "latency", stall=8)
    assert [(x["name"], x["known"], x["unknown"], x["p50"], x["longest"], x["stalled"])
            for x in found] == [("f", 9, 0, 5.0, 9.0, 2), ("g", 0, 1, None, None, 0)]  # fmt: skip


def test_cost_per_solved_counts_all_attempts_and_what_it_left_out() -> None:
    runs = [make_run(f"r{n}", "m", str(n), n % 2 == 0, cost_usd=1.0 + n, tokens=100,
                     cost_source="list_price") for n in range(6)]  # fmt: skip
    runs += [make_run("r9", "m", "9", True), make_run("r8", "other", "1", True)]
    first, other = ask(make_store(trajectories=runs), "cost_per_solved")
    assert (first["costed"], first["left_out"], first["listed"], first["solved"]) == (6, 1, 6, 3)
    assert first["cost_per_solved"] == pytest.approx(21 / 3)
    assert first["tokens_per_solved"] == pytest.approx(600 / 3)
    assert 0 <= first["cost_per_solved_lo"] < 7 < first["cost_per_solved_hi"]
    names = ("cost_per_solved", "cost_per_solved_lo", "cost_per_solved_reason")
    assert [other[name] for name in names] == [None, None, "no_costs"]


def test_models_are_compared_on_the_tasks_that_both_tried() -> None:
    runs = [make_run(f"a{n}", "a", str(n), n < 5) for n in range(6)]
    runs += [make_run(f"b{n}", "b", str(n), n < 3) for n in range(6)]
    runs += [make_run(f"easy{n}", "b", f"easy{n}", True) for n in range(60)]
    [found] = ask(make_store(trajectories=runs), "models_adjusted")
    assert (found["tasks"], found["model_a"], found["model_b"]) == (6, "a", "b")
    assert found["difference"] == pytest.approx(2 / 6)
    assert found["difference_lo"] < 2 / 6 < found["difference_hi"]
    assert found["plain_b"] > found["plain_a"], "as it tried easier ones"
    [few] = ask(make_store(trajectories=[*runs[:3], *runs[6:9]]), "models_adjusted")
    assert (few["difference_lo"], few["difference_reason"]) == (None, "few_tasks")


def test_retries_are_counted_until_a_call_works() -> None:
    calls = make_calls(
        "r", ("f", "1", True), ("g", "0", False), ("f", "1", True), ("f", "2", False),
        ("f", "3", True), ("f", "3", None),
    )  # fmt: skip
    [found] = ask(make_store(tool_calls=calls), "retries")
    assert found == {"tool": "f", "episodes": 2, "retried": 1, "worked": 1, "given_up": 1,
                     "calls_to_success": 2.0, "longest": 2, "unchanged": 1}  # fmt: skip


def test_loops_are_equal_calls_of_one_run() -> None:
    again = ("f", "1", True)
    calls = [*make_calls("r", again, again, ("g", "0", False), again, ("f", "2", False)),
             *make_calls("s", again)]  # fmt: skip
    [found] = ask(make_store(tool_calls=calls), "loops")
    assert found == {"trajectory_id": "r", "tool": "f", "calls": 3, "in_a_row": 2, "errors": 3,
                     "same_result": True, "first_step": 1, "last_step": 4,
                     "arguments": "1"}  # fmt: skip
    assert ask(make_store(tool_calls=calls), "loops", least=4) == []


def test_the_half_life_is_a_view_with_a_row_for_each_way_to_count_budgets() -> None:
    runs = [make_run(f"r{n}", "m", str(n), n > 0) for n in range(6)]
    runs.append(make_run("out", "m", "out", False, ended="budget"))
    connection = make_store(trajectories=runs)
    rows = connection.execute("select budget, deaths from half_life order by 1").fetchall()
    assert rows == [("censored", 1), ("failed", 2)]
    assert [x["deaths"] for x in ask(connection, "half_life")] == [2]
    assert [x["deaths"] for x in ask(connection, "half_life", budget="censored")] == [1]
    assert ask(connection, "half_life", model="none") == []


def test_each_column_of_an_exported_database_has_a_comment(tmp_path: Path) -> None:
    target = tmp_path / "runs.duckdb"
    write_database(make_store(), target)
    with duckdb.connect(target, read_only=True) as connection:
        columns = connection.execute(
            "select table_name, column_name, comment from duckdb_columns() where not internal"
            " and table_name in (select table_name from duckdb_tables())"
        ).fetchall()
        tables = connection.execute("select table_name, comment from duckdb_tables()").fetchall()
        views = dict(
            connection.execute(
                "select view_name, comment from duckdb_views() where not internal"
            ).fetchall()
        )
    assert len(columns) == sum(len(schema) for schema in SCHEMAS.values())
    assert [each for each in (*columns, *tables) if not each[-1]] == []
    assert views == describe_views()
