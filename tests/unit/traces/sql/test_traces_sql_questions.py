"""Named questions: each has help, runs on an empty store, and takes what it declares."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import traces.store.sql
from tests.support.stores.in_memory_relations import (
    Sql,
    answers,
    empty,
    fill,
    near,
)
from traces.store.schema import SCHEMAS
from traces.store.sql import (
    VIEWS,
    SqlQuestion,
    SqlValue,
    describe_views,
    list_questions,
    run_question,
)

CALCULATORS = ("power", "sample_size")
"""These need no store."""
FILES = sorted(Path(traces.store.sql.__file__).parent.glob("*/*.sql"))


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def names(question: SqlQuestion) -> str:
    return question.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_begins_with_its_help(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert re.fullmatch(r"-- .{20,}[.?]", first)


@pytest.mark.gate
@pytest.mark.parametrize("question", list_questions(), ids=names)
def test_a_question_has_an_answer_without_parameters(sql: Sql, question: SqlQuestion) -> None:
    answer = run_question(sql, question.name)
    assert [column[0] for column in answer.description or ()]
    assert len(answer.fetchall()) == (question.name in CALCULATORS)


@pytest.mark.parametrize("question", list_questions(), ids=names)
def test_a_question_declares_what_it_uses(question: SqlQuestion) -> None:
    assert set(re.findall(r"\$(\w+)", question.sql)) == set(question.defaults)
    assert set(question.ranges) <= set(question.defaults)


def test_there_is_a_view_for_every_name_and_none_besides(sql: Sql) -> None:
    rows = sql.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    assert {name for (name,) in rows} == set(VIEWS) == set(describe_views())
    assert not set(VIEWS) & set(SCHEMAS)


def test_text_is_read_as_what_the_default_is(sql: Sql) -> None:
    calls = [{"trajectory_id": "r", "tool": tool, "is_error": False} for tool in "aab"]
    fill(sql, "tool_calls", calls)
    assert len(run_question(sql, "tool_errors", n="1").fetchall()) == 1
    assert len(run_question(sql, "tool_errors", n=5).fetchall()) == 2
    fill(sql, "tool_calls", ())


@pytest.mark.parametrize(
    ("name", "params", "reason"),
    [
        ("nothing", {}, "no question nothing; there are .*recovery_by_op"),
        ("runs", {"m": 1}, "runs takes n, not m"),
        ("cost_by_model", {"n": 1}, "cost_by_model takes no parameters, not n"),
        ("survival_table", {"e": 2}, "survival_table: e is 0 to 1, not 2"),
        ("survival_table", {"e": "much"}, "survival_table: e is 0 to 1, not much"),
        ("survival_table", {"e": "nan"}, "survival_table: e is 0 to 1, not nan"),
        ("runs", {"n": -1}, "runs: n is 0 or more, not -1"),
        ("runs", {"n": "many"}, "runs: n is a whole number, not 'many'"),
        ("pass_hat_k", {"k": 0}, "pass_hat_k: k is 1 to 1000, not 0"),
    ],
)
def test_a_wrong_question_is_told_what_there_is(
    sql: Sql, name: str, params: dict[str, SqlValue], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        run_question(sql, name, **params)


def test_pass_hat_k_is_a_mean_over_tasks_that_have_enough_trials(sql: Sql) -> None:
    passes = {"a": (True, True, False), "b": (True,), "c": (False, False, True)}
    rows = [
        {"trajectory_id": f"{task}{k}", "task": task, "condition": "clean", "passed": passed}
        for task, trials in passes.items()
        for k, passed in enumerate(trials)
    ]
    fill(sql, "trajectories", rows)
    run_question(sql, "pass_hat_k", k=2)
    found = {each[5]: each[6:] for each in sql.fetchall()}
    assert found[1] == (3, near((2 / 3 + 1 + 1 / 3) / 3), near((2 / 3 + 1 + 1 / 3) / 3))
    assert found[2] == (2, near((1 / 3 + 0) / 2), near((1 + 2 / 3) / 2))
    fill(sql, "trajectories", ())


def test_a_conversation_is_what_one_lane_said_so_far(sql: Sql) -> None:
    exchanges = [{"trajectory_id": "r", "seq": seq, "lane": seq % 2} for seq in range(6)]
    said = [
        (0, 0, 4, "be brief"),
        (0, 1, 2, "hello"),
        (2, 1, 4, "hello (cleared)"),
        (4, 2, 4, "go"),
    ]
    other = [(1, 0, 5, "another lane")]
    columns = ("first_seq", "position", "last_seq", "content")
    fill(sql, "exchanges", exchanges)
    fill(
        sql,
        "messages",
        [
            {"trajectory_id": "r", "lane": lane} | dict(zip(columns, each, strict=True))
            for lane, rows in enumerate((said, other))
            for each in rows
        ],
    )

    def heard(seq: int) -> list[object]:
        rows = answers(sql, f"SELECT content FROM conversation('r', {seq})")
        return [each["content"] for each in rows]

    assert heard(0) == ["be brief", "hello"]
    assert heard(4) == ["be brief", "hello (cleared)", "go"]
    assert heard(5) == ["another lane"]
