"""Whether a statement only reads: decided on DuckDB's own parse tree, before any of it runs."""

import json
import re
from collections.abc import Iterator

import duckdb

READING_NODES = frozenset(
    {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE", "BOUND_SUBQUERY_NODE"}
)
"""The nodes of a parse tree that read. A CTE may hold others, such as COPY_QUERY_NODE."""
_EXPLAIN = re.compile(
    r"(?:\s+|--[^\n]*\n|/\*.*?\*/)*explain\b(?:\s*analyze\b|\s*\(\s*analyze\s*\))?",
    re.IGNORECASE | re.DOTALL,
)
_WRITING = re.compile(r"\b(copy|insert|update|delete|merge)\b", re.IGNORECASE)


def check_reads_only(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """ValueError for a statement that does anything but read; duckdb.Error for one that is none."""
    for statement in connection.extract_statements(text):
        if not _is_reading(connection, statement.type.name, statement.query):
            raise ValueError(
                f"stumble sql only reads, and this is {_name(statement.type.name)}; give SELECT, "
                "PIVOT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN of one. To write, redirect the "
                "output (--format csv, json, parquet), or open .stumble/store.duckdb with a "
                "DuckDB client of your own"
            )


def _is_reading(connection: duckdb.DuckDBPyConnection, kind: str, text: str) -> bool:
    if kind == "SELECT":
        return all(node in READING_NODES for node in _nodes(_parsed(connection, text)))
    if kind == "EXPLAIN":
        inner = _EXPLAIN.sub("", text, count=1)
        return inner != text and _are_reading(connection, inner)
    # DuckDB makes several statements of a PIVOT, which have no parse tree to look at.
    return kind == "MULTI" and not _WRITING.search(text)


def _are_reading(connection: duckdb.DuckDBPyConnection, text: str) -> bool:
    try:
        inner = connection.extract_statements(text)
    except duckdb.Error:
        return False
    return all(
        s.type.name == "SELECT" and _is_reading(connection, "SELECT", s.query) for s in inner
    )


def _parsed(connection: duckdb.DuckDBPyConnection, text: str) -> object:
    row = connection.execute("select json_serialize_sql(?)", [text]).fetchone()
    assert row is not None
    parsed = json.loads(row[0])
    if parsed["error"]:
        raise ValueError(f"this cannot be read as SQL: {parsed['error_message']}")
    return parsed


def _nodes(parsed: object) -> Iterator[str]:
    """The types of all query nodes of a parse tree."""
    if isinstance(parsed, dict):
        kind = parsed.get("type")
        if isinstance(kind, str) and kind.endswith("_NODE"):
            yield kind
        for each in parsed.values():
            yield from _nodes(each)
    elif isinstance(parsed, list):
        for each in parsed:
            yield from _nodes(each)


def _name(kind: str) -> str:
    return "a SELECT that writes" if kind == "SELECT" else kind
