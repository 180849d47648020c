"""Selection of a part of a store, and access to rows by column name."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from traces.store.definitions_file import load_definitions
from traces.store.schema import SCHEMAS
from traces.store.sql import SqlValue, run_question
from traces.store.trace_store import TraceStore

if TYPE_CHECKING:
    import duckdb

type ReportRow = Mapping[str, object]
"""Values of a row by column."""


class StoreFilter(Struct, frozen=True, kw_only=True):
    """A selection of campaign, model and operator; None selects all."""

    campaign: str | None = None
    model: str | None = None
    op: str | None = None

    @property
    def description(self) -> str:
        """`model practice/naive, operator digit`; empty if all is selected."""
        named = (("campaign", self.campaign), ("model", self.model), ("operator", self.op))
        return ", ".join(f"{name} {value}" for name, value in named if value is not None)


@contextmanager
def open_filtered_store(
    store: TraceStore, selection: StoreFilter
) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open a connection with all relations and views restricted to the selection.

    A campaign or model selects runs; an operator selects injections and omits runs with only other
    operators. Shams, clean twins and recordings are kept as controls.
    """
    with store.connect() as connection:
        if selection.description:
            _create_filtered_views(connection, selection)
        yield connection


_CHOSEN_RUNS_SQL = """
CREATE TABLE part.chosen_runs AS
SELECT trajectory_id
FROM trajectories
WHERE
    ($model IS NULL OR model = $model)
    AND ($campaign IS NULL OR campaign = $campaign)
    AND (
        $op IS NULL
        OR trajectory_id IN (SELECT trajectory_id FROM injections WHERE op = $op OR sham)
        OR trajectory_id NOT IN (SELECT trajectory_id FROM injections)
    )
"""

_CHOSEN_INJECTIONS_SQL = """
CREATE TABLE part.chosen_injections AS
SELECT injection_id
FROM injections
WHERE
    trajectory_id IN (SELECT trajectory_id FROM part.chosen_runs)
    AND ($op IS NULL OR op = $op OR sham)
"""


def _create_filtered_views(connection: "duckdb.DuckDBPyConnection", selection: StoreFilter) -> None:
    """Create the same views over the selected rows, in an in-memory database."""
    [(database,)] = connection.execute("SELECT current_database()").fetchall()
    params = {"model": selection.model, "campaign": selection.campaign, "op": selection.op}
    connection.execute("ATTACH ':memory:' AS part (READ_WRITE)")
    connection.execute(_CHOSEN_RUNS_SQL, params)
    connection.execute(_CHOSEN_INJECTIONS_SQL, {"op": selection.op})
    connection.execute("USE part")
    load_definitions(connection)
    for name in SCHEMAS:
        by_injection = name in ("injections", "outcomes")
        key, chosen = (
            ("injection_id", "chosen_injections")
            if by_injection
            else ("trajectory_id", "chosen_runs")
        )
        connection.execute(
            f'CREATE OR REPLACE VIEW "{name}" AS FROM "{database}"."{name}"'
            f" WHERE {key} IN (SELECT {key} FROM part.{chosen})"
        )


def list_column_values(connection: "duckdb.DuckDBPyConnection", column: str) -> tuple[str, ...]:
    """Return the distinct values of a column in the complete store, whatever is selected."""
    relation = "injections" if column == "op" else "trajectories"
    [(database,)] = connection.execute(
        "SELECT database_name FROM duckdb_databases() WHERE path LIKE '%views-%'"
    ).fetchall()
    query = f'SELECT DISTINCT {column} FROM "{database}"."{relation}" WHERE {column} IS NOT NULL'
    return tuple(sorted(name for (name,) in connection.execute(query).fetchall()))


def fetch_question_rows(
    connection: "duckdb.DuckDBPyConnection", name: str, **params: SqlValue
) -> tuple[ReportRow, ...]:
    """Return the rows of a named question."""
    return fetch_named_rows(run_question(connection, name, **params))


def fetch_view_rows(connection: "duckdb.DuckDBPyConnection", name: str) -> tuple[ReportRow, ...]:
    """Return all rows of a view."""
    return fetch_named_rows(connection.execute(f'FROM "{name}"'))


def fetch_named_rows(answer: "duckdb.DuckDBPyConnection") -> tuple[ReportRow, ...]:
    """Return the rows of a result, each as a dict by column name."""
    names = [column[0] for column in answer.description or ()]
    return tuple(dict(zip(names, row, strict=True)) for row in answer.fetchall())


def make_agent_namer(found: Iterable[ReportRow]) -> Callable[[ReportRow], str]:
    """Return a function that names the agent of a row: its model, and agent or world if varying."""
    found = tuple(found)
    varying = [
        key
        for key in ("agent", "world")
        if len({row[key] for row in found if row.get(key) is not None}) > 1
    ]

    def name(row: ReportRow) -> str:
        details = [str(row[key]) for key in varying if row.get(key) is not None]
        model = row.get("model")
        model_name = str(model) if model is not None else "model not named"
        return f"{model_name} ({', '.join(details)})" if details else model_name

    return name


def make_measure_namer(
    found: Iterable[ReportRow], name: Callable[[ReportRow], str]
) -> Callable[[ReportRow], str]:
    """Return a namer of the same agents, with what measured a row if `measured_by` varies."""
    measures = [row["measured_by"] for row in found]
    known = [each for each in measures if isinstance(each, Mapping)]
    varying = [key for key in ("judge", "verifier") if len({each[key] for each in known}) > 1]

    def name_with_measure(row: ReportRow) -> str:
        measure = row.get("measured_by")
        if not isinstance(measure, Mapping) or not varying:
            return name(row)
        return ", ".join([name(row), *(f"{key} {measure[key]}" for key in varying)])

    return name_with_measure
