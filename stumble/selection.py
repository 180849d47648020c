"""A part of a store, and its rows: what a report or a campaign is about."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stumble.report.values import Row
from traces.relations import SCHEMAS
from traces.sql import Value, ask, definitions
from traces.store import Store

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Runs of one campaign or model, faults of one operator; None is all of them."""

    campaign: str | None = None
    model: str | None = None
    op: str | None = None

    @property
    def words(self) -> str:
        """`model practice/naive, operator digit`; empty where all is selected."""
        named = (("campaign", self.campaign), ("model", self.model), ("operator", self.op))
        return ", ".join(f"{name} {value}" for name, value in named if value is not None)


@contextmanager
def selected(store: Store, selection: Selection) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A connection whose relations hold the selection only, with every view over them.

    A campaign or model selects runs; an operator selects injections and leaves out the runs in
    which only others struck. Shams, clean twins and recordings stay: they are the controls.
    """
    with store.connect() as connection:
        if selection.words:
            _narrow(connection, selection)
        yield connection


_RUNS = """
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

_INJECTIONS = """
CREATE TABLE part.chosen_injections AS
SELECT injection_id
FROM injections
WHERE
    trajectory_id IN (SELECT trajectory_id FROM part.chosen_runs)
    AND ($op IS NULL OR op = $op OR sham)
"""


def _narrow(connection: "duckdb.DuckDBPyConnection", selection: Selection) -> None:
    """Put the same views over a part of the relations, in a database in memory."""
    [(whole,)] = connection.execute("SELECT current_database()").fetchall()
    given = {"model": selection.model, "campaign": selection.campaign, "op": selection.op}
    connection.execute("ATTACH ':memory:' AS part (READ_WRITE)")
    connection.execute(_RUNS, given)
    connection.execute(_INJECTIONS, {"op": selection.op})
    connection.execute("USE part")
    for name in SCHEMAS:
        by_injection = name in ("injections", "outcomes")
        key, among = (
            ("injection_id", "chosen_injections")
            if by_injection
            else ("trajectory_id", "chosen_runs")
        )
        connection.execute(
            f'CREATE VIEW "{name}" AS FROM "{whole}"."{name}"'
            f" WHERE {key} IN (SELECT {key} FROM part.{among})"
        )
    connection.execute(definitions())


def known(connection: "duckdb.DuckDBPyConnection", column: str) -> tuple[str, ...]:
    """The names in a column of the whole store, also where only a part is selected."""
    relation = "injections" if column == "op" else "trajectories"
    [(whole,)] = connection.execute(
        "SELECT database_name FROM duckdb_databases() WHERE path LIKE '%views-%'"
    ).fetchall()
    asked = f'SELECT DISTINCT {column} FROM "{whole}"."{relation}" WHERE {column} IS NOT NULL'
    return tuple(sorted(name for (name,) in connection.execute(asked).fetchall()))


def rows(connection: "duckdb.DuckDBPyConnection", name: str, **params: Value) -> tuple[Row, ...]:
    """The answer to a named question."""
    return named(ask(connection, name, **params))


def view(connection: "duckdb.DuckDBPyConnection", name: str) -> tuple[Row, ...]:
    """All rows of a view."""
    return named(connection.execute(f'FROM "{name}"'))


def named(answer: "duckdb.DuckDBPyConnection") -> tuple[Row, ...]:
    """The rows of an answer, each by its columns' names."""
    names = [column[0] for column in answer.description or ()]
    return tuple(dict(zip(names, row, strict=True)) for row in answer.fetchall())


def naming(found: Iterable[Row]) -> Callable[[Row], str]:
    """What to call the agent of a row: its model, and what else tells these rows apart."""
    found = tuple(found)
    varying = [
        key
        for key in ("agent", "world")
        if len({row[key] for row in found if row.get(key) is not None}) > 1
    ]

    def name(row: Row) -> str:
        more = [str(row[key]) for key in varying if row.get(key) is not None]
        model = row.get("model")
        said = str(model) if model is not None else "model not named"
        return f"{said} ({', '.join(more)})" if more else said

    return name
