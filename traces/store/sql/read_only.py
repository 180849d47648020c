"""Read-only check of SQL statements, on DuckDB's own parse tree, before anything runs."""

import json
import re
from collections.abc import Iterator

import duckdb

READING_NODES = frozenset(
    {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE", "BOUND_SUBQUERY_NODE"}
)
"""Parse tree nodes that read. A CTE may contain others, such as COPY_QUERY_NODE."""
_EXPLAIN = re.compile(
    r"(?:\s+|--[^\n]*\n|/\*.*?\*/)*explain\b(?:\s*analyze\b|\s*\(\s*analyze\s*\))?",
    re.IGNORECASE | re.DOTALL,
)
_WRITING = re.compile(r"\b(copy|insert|update|delete|merge)\b", re.IGNORECASE)


def check_reads_only(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Raise ValueError for a statement that does not only read; duckdb.Error for invalid SQL."""
    for statement in connection.extract_statements(text):
        if not _is_reading_statement(connection, statement.type.name, statement.query):
            raise ValueError(
                f"stumble sql only reads, and this is "
                f"{_name_statement_kind(statement.type.name)}; give SELECT, "
                "PIVOT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN of one. To write, redirect the "
                "output (--format csv, json, parquet), or open .stumble/store.duckdb with a "
                "DuckDB client of your own"
            )


def _is_reading_statement(connection: duckdb.DuckDBPyConnection, kind: str, text: str) -> bool:
    if kind == "SELECT":
        return all(
            node in READING_NODES for node in _find_query_nodes(_parse_sql_tree(connection, text))
        )
    if kind == "EXPLAIN":
        inner = _EXPLAIN.sub("", text, count=1)
        return inner != text and _is_reading_query(connection, inner)
    # DuckDB splits a PIVOT into several statements without a parse tree.
    return kind == "MULTI" and not _WRITING.search(text)


def _is_reading_query(connection: duckdb.DuckDBPyConnection, text: str) -> bool:
    try:
        inner = connection.extract_statements(text)
    except duckdb.Error:
        return False
    return all(
        s.type.name == "SELECT" and _is_reading_statement(connection, "SELECT", s.query)
        for s in inner
    )


def _parse_sql_tree(connection: duckdb.DuckDBPyConnection, text: str) -> object:
    row = connection.execute("select json_serialize_sql(?)", [text]).fetchone()
    assert row is not None
    parsed = json.loads(row[0])
    if parsed["error"]:
        raise ValueError(f"this cannot be read as SQL: {parsed['error_message']}")
    return parsed


def _find_query_nodes(parsed: object) -> Iterator[str]:
    """Yield the types of all query nodes of a parse tree."""
    if isinstance(parsed, dict):
        kind = parsed.get("type")
        if isinstance(kind, str) and kind.endswith("_NODE"):
            yield kind
        for each in parsed.values():
            yield from _find_query_nodes(each)
    elif isinstance(parsed, list):
        for each in parsed:
            yield from _find_query_nodes(each)


def _name_statement_kind(kind: str) -> str:
    return "a SELECT that writes" if kind == "SELECT" else kind
