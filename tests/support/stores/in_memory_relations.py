"""Relations with given rows, as in-memory tables, with every macro and view over them."""

from collections.abc import Iterable, Mapping

import duckdb
import pytest

from traces.store.definitions_file import load_definitions
from traces.store.schema import SCHEMAS, make_relation_row, make_relation_table

type Sql = duckdb.DuckDBPyConnection
"""A lazy alias: hypothesis keeps the types of a test's arguments, which DuckDB reports as a
leak.
"""


def empty() -> Sql:
    """Return a connection on which every relation exists and is empty."""
    connection = duckdb.connect()
    load_definitions(connection)
    for name in SCHEMAS:
        connection.execute(f'DROP VIEW "{name}"')
        fill(connection, name, ())
    return connection


def fill(connection: Sql, name: str, known: Iterable[Mapping[str, object]]) -> None:
    """Replace all rows of a relation."""
    rows = make_relation_table(name, (make_relation_row(name, each) for each in known))
    connection.register("arriving", rows)
    connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM arriving')
    connection.unregister("arriving")


def answers(connection: Sql, sql: str) -> list[dict[str, object]]:
    """Return all rows of a query, by column name."""
    answer = connection.execute(sql)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, values, strict=True)) for values in answer.fetchall()]


def one(connection: Sql, sql: str) -> dict[str, object]:
    """Return the only row of a query."""
    [only] = answers(connection, sql)
    return only


def near(value: object) -> object:
    """Compare equal to nine digits."""
    return pytest.approx(value, rel=1e-9, abs=1e-12)
