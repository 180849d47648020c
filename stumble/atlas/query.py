"""SQL over an atlas: its two relations, and the views and questions of a store over the same runs.

The relations `trajectories` and `tool_calls` of a store are filled from `run` and `call`, so that
`half_life`, `hazard`, `error_episodes` and the others give the same numbers here as for recordings.
An agent is named with its suite, since the same agent in two benchmarks is two populations.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from stumble.atlas.build import RELATIONS, list_built
from traces.store.definitions_file import load_definitions
from traces.store.schema import SCHEMAS
from traces.store.sql import SqlQuestion, bind_question_values, list_questions, read_question
from traces.store.sql.read_only import check_reads_only

_SQL = Path(__file__).parent / "sql"

_TRAJECTORIES: Mapping[str, str] = {
    "trajectory_id": "run_id",
    "agent": "agent || ' on ' || suite",
    "model": "model",
    "scenario": "suite",
    "task": "suite || '/' || task",
    "trial": "trial",
    # Runs that were chosen because they failed are no sample of an agent's runs.
    "condition": "CASE WHEN mistake_step IS NULL THEN 'clean' END",
    "world": "'fresh'",
    "source": "source",
    "n_steps": "steps",
    "passed": "passed",
    "reward": "reward",
    "ended": "ended",
    "cost_usd": "cost_usd",
    "seconds": "seconds",
    "tokens": "tokens",
}
_TOOL_CALLS: Mapping[str, str] = {
    "trajectory_id": "run_id",
    "step": "step",
    "call_id": "lpad(call::VARCHAR, 8, '0')",  # the order of calls in a step
    "tool": "tool",
    "is_error": "is_error",
}


def connect_atlas(atlas: Path) -> duckdb.DuckDBPyConnection:
    """Open an atlas in memory. Raises ValueError if nothing was built."""
    if not list_built(atlas):
        raise ValueError(f"no atlas in {atlas}; build one: stumble atlas build --from FOLDER")
    connection = duckdb.connect()
    load_definitions(connection)
    for relation in RELATIONS:
        files = str(atlas / relation / "*.parquet").replace("'", "''")
        connection.execute(f"CREATE TABLE \"{relation}\" AS FROM read_parquet('{files}')")
    _replace_relation(connection, "trajectories", "run", _TRAJECTORIES)
    _replace_relation(connection, "tool_calls", "call", _TOOL_CALLS)
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def list_atlas_questions() -> Mapping[str, SqlQuestion]:
    """Return the questions of the atlas and those of a store, by name."""
    store = {question.name: question for question in list_questions()}
    return {**store, **_list_own_questions()}


@functools.cache
def _list_own_questions() -> Mapping[str, SqlQuestion]:
    return {path.stem: read_question(path) for path in sorted(_SQL.glob("*.sql"))}


def own_question_names() -> Sequence[str]:
    """Return the names of the questions that only an atlas has."""
    return tuple(_list_own_questions())


def run_atlas_sql(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, str]
) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return column names and rows of a question, a relation or a statement that only reads.

    Raises ValueError for a wrong parameter and for SQL that fails or writes.
    """
    question = list_atlas_questions().get(query)
    values: Mapping[str, object] | None = parameters or None
    text = query if " " in query else f'FROM "{query}"'
    if question is not None:
        text, values = question.sql, bind_question_values(question, **parameters) or None
    try:
        check_reads_only(connection, text)
        answer = connection.execute(text, values)
        return [column[0] for column in answer.description or ()], answer.fetchall()
    except duckdb.Error as error:
        raise ValueError(str(error)) from None


def run_atlas_question(
    connection: duckdb.DuckDBPyConnection, name: str, **parameters: str | float | None
) -> list[dict[str, object]]:
    """Return the rows of a question. Raises KeyError or ValueError for a wrong name or value."""
    question = list_atlas_questions()[name]
    values = bind_question_values(question, **parameters) or None
    answer = connection.execute(question.sql, values)
    columns = [column[0] for column in answer.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in answer.fetchall()]


def _replace_relation(
    connection: duckdb.DuckDBPyConnection, name: str, source: str, columns: Mapping[str, str]
) -> None:
    """Make a relation of a store a view of `source`; columns that it cannot fill are NULL."""
    [(kinds,)] = connection.execute(
        f'SELECT map_from_entries(list((column_name, data_type))) FROM (DESCRIBE "{name}") '
        "AS d(column_name, data_type, a, b, c, e)"
    ).fetchall()
    selected = ", ".join(
        f'({columns.get(column, "NULL")})::{kinds[column]} AS "{column}"'
        for column in SCHEMAS[name].names
    )
    connection.execute(f'CREATE OR REPLACE VIEW "{name}" AS SELECT {selected} FROM "{source}"')
