"""Relations filled by hand, as tables in memory, with every macro and view over them."""

from collections.abc import Iterable, Mapping

import duckdb
import pytest

from traces.relations import SCHEMAS, row, table
from traces.sql import definitions

type Sql = duckdb.DuckDBPyConnection
"""Named lazily: hypothesis keeps what a test's arguments are, and DuckDB calls that a leak."""


def empty() -> Sql:
    """A connection on which every relation exists and has no row."""
    connection = duckdb.connect()
    for name in SCHEMAS:
        fill(connection, name, ())
    connection.execute(definitions())
    return connection


def fill(connection: Sql, name: str, known: Iterable[Mapping[str, object]]) -> None:
    """Replace all rows of a relation."""
    rows = table(name, (row(name, each) for each in known))
    connection.register("arriving", rows)
    connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM arriving')
    connection.unregister("arriving")


def answers(connection: Sql, sql: str) -> list[dict[str, object]]:
    """All rows of an answer, by column name."""
    answer = connection.execute(sql)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, values, strict=True)) for values in answer.fetchall()]


def one(connection: Sql, sql: str) -> dict[str, object]:
    """The only row of an answer."""
    [only] = answers(connection, sql)
    return only


def near(value: object) -> object:
    """Equal to nine digits."""
    return pytest.approx(value, rel=1e-9, abs=1e-12)
