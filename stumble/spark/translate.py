"""DuckDB's SQL of the store in Spark's dialect, by sqlglot.

The files of macros, views and questions are read as they are. Macros are expanded, clauses and
functions that Spark lacks are rewritten, and sqlglot writes the rest in Spark's dialect.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import duckdb
from msgspec import Struct
from sqlglot import exp

from stumble.spark.duckdb_macros import IndexedFromOne, MacroExpander, parse_query, read_macros
from stumble.spark.functions import translate_node
from stumble.spark.query_shapes import bind_parameters, reshape_query
from traces.store.definitions_file import load_definitions
from traces.store.sql import SqlValue


class SparkQuery(Struct, frozen=True):
    """A query in Spark's dialect, and what it reads by name, definitions of its own included."""

    text: str
    tables: frozenset[str]


class SparkTranslator:
    """Translates queries over the relations and views of a store."""

    def __init__(self) -> None:
        self._duckdb = duckdb.connect()
        load_definitions(self._duckdb)
        self._expander = MacroExpander(read_macros(), translate_node)

    def translate(self, text: str, values: Mapping[str, SqlValue] | None = None) -> SparkQuery:
        """Return a query in Spark's dialect. Raises ValueError for what has no translation."""
        tree = parse_query(text)
        bind_parameters(tree, values or {})
        self._expander.inline_tables(tree)
        # The root may be replaced as well.
        holder = exp.Paren(this=reshape_query(tree, self._list_columns))
        made = self._expander.expand(holder.this, {})
        tables = frozenset(table.name for table in made.find_all(exp.Table))
        return SparkQuery(made.sql(dialect="spark", identify=True), tables)

    def list_columns(self, text: str, values: Mapping[str, SqlValue] | None = None) -> list[str]:
        """Return the columns of a query, in DuckDB's order."""
        described = self._duckdb.execute(f"DESCRIBE {text}", values or None).fetchall()
        return [str(row[0]) for row in described]

    def _list_columns(self, query: exp.Expr) -> Sequence[str]:
        return self.list_columns(query.sql(dialect=IndexedFromOne))


@cache
def open_translator() -> SparkTranslator:
    """Return the translator of this process."""
    return SparkTranslator()
