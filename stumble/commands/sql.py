"""`stumble sql`: ask the store."""

import csv
import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from stumble.exits import Wrong

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

FORMATS = ("table", "json", "csv", "parquet")


@click.command(
    short_help="Ask everything that was recorded.",
    epilog="Any DuckDB client can open .stumble/store.duckdb, read-only, as well.",
)
@click.argument("query", required=False)
@click.argument("parameters", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--list", "listing", is_flag=True, help="List named questions, views and relations.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("--rebuild", is_flag=True, help="Make the whole index anew from the tapes first.")
@click.option(
    "--memory", type=click.FloatRange(min=0.1), default=2.0, show_default=True, metavar="GB",
    help="Memory that the query may use.",
)  # fmt: skip
@click.option(
    "--timeout", type=click.FloatRange(min=0), default=300.0, show_default=True, metavar="SECONDS",
    help="Time that the query may take; 0 for no limit.",
)  # fmt: skip
def sql(
    query: str | None,
    parameters: tuple[str, ...],
    listing: bool,
    form: str,
    as_json: bool,
    rebuild: bool,
    memory: float,
    timeout: float,
) -> None:
    """Run SQL, or a named question, over everything that was recorded.

    \b
    stumble sql --list
    stumble sql "select op, consumed, recovery_rate, lo, hi from recovery"
    stumble sql survival_table e=0.02
    stumble sql recovery --format parquet > recovery.parquet

    It reads, and only the index: no statement writes a file or a table, and no other file is
    read. For more, open .stumble/store.duckdb with a DuckDB client of your own.
    """
    query = query.strip() if query else None
    if not listing and not query and not rebuild:
        raise Wrong("what to ask? Give SQL or a name; stumble sql --list shows the names")

    from stumble import indexing
    from stumble.home import store_root
    from stumble.options import pairs
    from stumble.queries import QueryLimits, restrict_process, run_query
    from traces.nearest import nearest
    from traces.sql import questions, statement, views
    from traces.store import Store

    if listing:
        _list(
            [(q.name, _with_defaults(q.help, q.defaults)) for q in questions()],
            list(views().items()),
            indexing.relations(),
        )
        return
    store = Store(store_root())
    if rebuild:
        for segment in store.segments():
            store.drop(segment)
    for refused in indexing.refresh(store):
        click.echo(f"warning: not indexed: {refused}", err=True)
    if not query:
        return
    given = pairs(parameters)
    named = {question.name for question in questions()}
    known = (*named, *views(), *indexing.relations())
    if " " not in query and query not in known:
        raise Wrong(f"nothing is called {query!r}{nearest(query, known)}; or give SQL")
    form = "json" if as_json else form
    if form == "parquet" and sys.stdout.isatty():
        raise Wrong("Parquet is not for a terminal; send it to a file: ... > answer.parquet")
    limits = QueryLimits(memory=memory, seconds=timeout)
    try:
        if query in named:
            text, values = statement(query, **given)
        else:
            text = query if " " in query else f'from "{query}"'
            values = {**given} or None
        restrict_process(limits)
        if form == "parquet":
            _parquet(run_query(store, text, values, limits, _arrow_table))
        else:
            names, rows = run_query(store, text, values, limits, _names_and_rows)
            _print(names, rows, form)
    except MemoryError:
        raise Wrong("the answer does not fit into memory; narrow it, or give --memory") from None
    except ValueError as error:
        raise Wrong(str(error)) from None


def _names_and_rows(
    answer: "duckdb.DuckDBPyConnection",
) -> tuple[list[str], list[tuple[object, ...]]]:
    return [column[0] for column in answer.description or ()], answer.fetchall()


def _arrow_table(answer: "duckdb.DuckDBPyConnection") -> "pa.Table":
    return answer.to_arrow_table()


def _parquet(table: "pa.Table") -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, sys.stdout.buffer, compression="zstd")


def _with_defaults(help: str, defaults: object) -> str:
    assert isinstance(defaults, dict)
    said = ", ".join(f"{key}={json.dumps(value)}" for key, value in defaults.items())
    return f"{help} [{said}]" if said else help


def _list(
    named: Sequence[tuple[str, str]], seen: Sequence[tuple[str, str]], relations: Iterable[str]
) -> None:
    width = max(len(name) for name, _ in (*named, *seen)) + 2
    for title, rows in (("questions (stumble sql NAME key=value)", named), ("views", seen)):
        click.echo(title)
        for name, help in rows:
            click.echo(f"  {name:{width}}{help}")
    click.echo("relations")
    click.echo(f"  {', '.join(relations)}")


def _print(names: Sequence[str], rows: Sequence[tuple[object, ...]], form: str) -> None:
    if form == "json":
        keys = [name if name not in names[:at] else f"{name}_{at}" for at, name in enumerate(names)]
        records = [dict(zip(keys, map(_plain, row), strict=True)) for row in rows]
        click.echo(json.dumps(records, default=str, ensure_ascii=False, indent=2))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    else:
        _table(names, rows)


def _plain(value: object) -> object:
    """The value as JSON can say it: no NaN, no bytes."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.hex() if isinstance(value, bytes) else value


def _table(names: Sequence[str], rows: Sequence[tuple[object, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(names):
        numeric = any(isinstance(row[index], int | float) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
