"""Runs that others recorded: what their files hold comes out by SQL."""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.stores.in_memory_relations import (
    Sql,
    answers,
    near,
    one,
)
from traces.importers import read_run_tables
from traces.importers.run_merge import import_to_store, restore_imports
from traces.pipeline.failure_causes import PASSING_SCORE
from traces.store.schema import SCHEMAS
from traces.store.sql import run_question
from traces.store.trace_store import TraceStore

HELLO = {"role": "user", "content": "hello"}


def call(number: int, tool: str = "get_user") -> dict[str, object]:
    function = {"name": tool, "arguments": "{}"}
    calls = [{"id": f"c{number}", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(number: int, text: str, tool: str = "get_user") -> dict[str, object]:
    return {"role": "tool", "tool_call_id": f"c{number}", "name": tool, "content": text}


def tau(folder: Path, *said: Mapping[str, object], name: str = "gpt-9-retail.json") -> Path:
    run = {"task_id": 3, "reward": 1.0, "info": {}, "traj": [HELLO, *said], "trial": 1}
    path = folder / name
    path.write_text(json.dumps([run]))
    return path


@pytest.fixture
def store(tmp_path: Path) -> TraceStore:
    return TraceStore(tmp_path / ".stumble")


@pytest.fixture(scope="module")
def real(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    """A store of all tau-bench and RAMP files."""
    store = TraceStore(tmp_path_factory.mktemp("real") / ".stumble")
    for path in (*(shared / "tau").iterdir(), *(shared / "ramp").iterdir()):
        import_to_store(store, path)
    with store.connect() as connection:
        yield connection


@pytest.mark.gate
def test_the_published_counts_of_tau_bench_come_out(real: Sql) -> None:
    runs = "SELECT count(*) AS n, avg(passed::INT) AS rate FROM trajectories WHERE source = 'tau'"
    assert one(real, runs) == {"n": 200, "rate": near(0.42)}
    calls = """
        SELECT
            count(*) AS calls,
            count(*) FILTER (is_error) AS errors,
            count(DISTINCT trajectory_id) FILTER (is_error) AS runs
        FROM tool_calls
    """
    assert one(real, calls) == {"calls": 1164, "errors": 73, "runs": 36}
    named = "SELECT DISTINCT model, scenario, world FROM trajectories WHERE source = 'tau'"
    assert list(one(real, named).values()) == ["gpt-4o", "tau-airline", "fresh"]


def test_runs_with_an_error_pass_less_often(real: Sql) -> None:
    found = run_question(real, "error_effect").fetchall()
    assert [each[2:5] for each in found] == [(False, 164, 75), (True, 36, 9)]
    for _, _, _, _, _, _, rate, low, high, reason, limits in found:
        assert limits == "association_only"
        assert low < rate < high
        assert reason in (None, "conservative")


def test_every_step_of_the_agent_is_counted_and_no_other(real: Sql) -> None:
    counts = """
        SELECT t.n_steps, count(*) AS said FROM steps JOIN trajectories AS t USING (trajectory_id)
        WHERE steps.source = 'agent' GROUP BY t.trajectory_id, t.n_steps
    """
    rows = answers(real, counts)
    assert len(rows) == 200
    assert all(each["n_steps"] == each["said"] for each in rows)


def test_a_cost_that_is_a_sum_or_zero_is_unknown(real: Sql) -> None:
    rows = answers(
        real,
        """SELECT model FROM trajectories
        WHERE cohort = 'engineer-500-all' AND cost_usd IS NULL AND passed""",
    )
    assert [each["model"] for each in rows] == ["claude-opus-4-7"]
    sums = (
        "SELECT cost_usd FROM trajectories WHERE cohort = 'engineer-500-all' AND model = 'glm-4.6'"
    )
    assert one(real, sums) == {"cost_usd": None}


def test_a_run_of_tau_bench_in_rows(store: TraceStore, tmp_path: Path) -> None:
    over = {"role": "user", "content": "###STOP###"}
    import_to_store(store, tau(tmp_path, call(1), result(1, "Error: no such user"), over))
    with store.connect() as sql:
        run = one(sql, "FROM trajectories")
        said = [run[name] for name in ("model", "scenario", "task", "trial", "passed", "ended")]
        assert said == ["gpt-9", "tau-retail", "3", 1, True, "final"]
        steps = answers(sql, "SELECT step, source FROM steps ORDER BY step")
        assert [tuple(each.values()) for each in steps] == [(1, "user"), (2, "agent"), (3, "user")]
        tool = one(sql, "SELECT step, tool, is_error, read_only FROM tool_calls")
        assert list(tool.values()) == [2, "get_user", True, True]


@pytest.mark.parametrize(
    ("text", "is_error"),
    [("Error: no", True), ("Errors were found", True), ('{"error": 1}', False), ("", False)],
)
def test_a_call_failed_if_its_result_begins_with_error(
    tmp_path: Path, text: str, is_error: bool
) -> None:
    calls = read_run_tables(tau(tmp_path, call(1), result(1, text)))["tool_calls"]
    assert calls["is_error"].to_pylist() == [is_error]


def test_an_id_used_twice_belongs_to_the_nearer_result(tmp_path: Path) -> None:
    said = (call(1), result(1, "first"), call(1), result(1, "Error: second"), call(1))
    calls = read_run_tables(tau(tmp_path, *said))["tool_calls"]
    assert calls["result"].to_pylist() == ["first", "Error: second", None]
    assert calls["is_error"].to_pylist() == [False, True, None]


def test_a_run_that_nobody_ended_met_its_cap(tmp_path: Path) -> None:
    runs = read_run_tables(tau(tmp_path, call(1), result(1, "ok")))["trajectories"]
    assert runs["ended"].to_pylist() == ["budget"]


def test_importing_twice_stores_once(store: TraceStore, tmp_path: Path) -> None:
    plain = tau(tmp_path, call(1), result(1, "ok"))
    (tmp_path / "elsewhere").mkdir()
    copied = tau(tmp_path / "elsewhere", call(1), result(1, "ok"), name="renamed.json")
    assert [import_to_store(store, path).is_known for path in (plain, plain, copied)] == [
        False,
        True,
        True,
    ]
    assert len(store.segments()) == len(store.imports()) == 1
    with store.connect() as sql:
        assert one(sql, "SELECT count(*) AS n FROM tool_calls") == {"n": 1}


def test_what_was_imported_outlives_the_index(store: TraceStore, tmp_path: Path) -> None:
    path = tau(tmp_path, call(1), result(1, "ok"))
    import_to_store(store, path)
    [segment] = store.segments()
    path.unlink()
    store.drop(segment)
    assert store.segments() == ()
    assert restore_imports(store) == (segment,)
    assert restore_imports(store) == ()
    with store.connect() as sql:
        assert one(sql, "SELECT model FROM trajectories") == {"model": "gpt-9"}


def test_a_file_is_read_by_what_it_holds(tmp_path: Path) -> None:
    plain = tau(tmp_path, call(1), result(1, "ok"))
    packed = tmp_path / "something"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_run_tables(packed)["tool_calls"].equals(read_run_tables(plain)["tool_calls"])


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"task_id": 1, "reward": 0}', "\x1f\x8b", "\x1f\x8b\x08\x00nothing"]
)
def test_a_file_of_no_known_format_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "some.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match="tau-bench runs .*; RAMP score files"):
        read_run_tables(path)


def board(folder: Path, **told: object) -> Path:
    scores = {f"task{k}": 100.0 for k in range(6)}
    path = folder / "cohort.json"
    path.write_text(json.dumps([{"model": "m", "backend": "openhands"} | scores | told]))
    return path


@pytest.mark.parametrize(
    ("told", "passed"),
    [
        ({}, True),
        ({"task4": PASSING_SCORE - 0.1}, False),
        ({"task0": 0}, False),
        ({"task5": None}, None),
    ],
)
def test_a_pipeline_passed_if_every_stage_did(
    tmp_path: Path, told: dict[str, object], passed: bool | None
) -> None:
    tables = read_run_tables(board(tmp_path, **told))
    assert tables["trajectories"]["passed"].to_pylist() == [passed]
    assert tables["stages"].num_rows == (5 if passed is None else 6)


def test_flags_of_resurrection_are_kept_where_a_board_has_them(tmp_path: Path) -> None:
    flags = [False, False, True, True, True, True]
    stages = read_run_tables(board(tmp_path, resurrected=flags))["stages"]
    assert stages["resurrected"].to_pylist() == flags
    assert read_run_tables(board(tmp_path))["stages"]["resurrected"].to_pylist() == [None] * 6


def test_every_table_has_the_columns_of_its_relation(tmp_path: Path) -> None:
    for path in (tau(tmp_path, call(1), result(1, "ok")), board(tmp_path)):
        for name, rows in read_run_tables(path).items():
            assert rows.schema == SCHEMAS[name]
