"""`stumble sql`: query the store."""

import csv
import json
import math
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import click

from stumble.control_characters import escape_controls, open_data_output
from stumble.errors import UsageError
from stumble.notices import print_warning

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from traces.store.trace_store import TraceStore

SQL_FORMATS = ("table", "json", "csv", "markdown", "parquet")


@click.command(
    epilog="Any DuckDB client can open .stumble/store.duckdb read-only; new recordings are in it "
    "after the next stumble sql.",
)
@click.argument("query", required=False)
@click.argument("parameters", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--list", "listing", is_flag=True, help="List named questions, views and relations.")
@click.option(
    "--format",
    "form",
    type=click.Choice(SQL_FORMATS),
    default="table",
    show_default=True,
    help="Output format.",
)
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("--rebuild", is_flag=True, help="Rebuild the index from all tapes first.")
@click.option(
    "--store",
    "address",
    metavar="s3://BUCKET/PREFIX",
    help="Ask the tables that `stumble export --to parquet` has written to a bucket (extra s3); "
    "with --on also to a folder.",
)
@click.option(
    "--on",
    "cluster",
    metavar="spark://HOST:PORT",
    help="Run the query on Apache Spark (extra spark); `spark` starts one on this machine.",
)
@click.option(
    "--memory", type=click.FloatRange(min=0.1), default=2.0, show_default=True, metavar="GB",
    help="Memory limit of the query in GB.",
)  # fmt: skip
@click.option(
    "--timeout", type=click.FloatRange(min=0), default=300.0, show_default=True, metavar="SECONDS",
    help="Time limit of the query in seconds; 0 for no limit.",
)  # fmt: skip
@click.option(
    "--with",
    "own_tables",
    multiple=True,
    metavar="NAME=FILE",
    help="Read this file (csv, tsv, parquet, json, jsonl) as table NAME, to join it.",
)
def sql(
    query: str | None,
    parameters: tuple[str, ...],
    listing: bool,
    form: str,
    as_json: bool,
    rebuild: bool,
    address: str | None,
    cluster: str | None,
    memory: float,
    timeout: float,
    own_tables: tuple[str, ...],
) -> None:
    """Run SQL, or a named question, on all recorded data.

    \b
    stumble sql --list
    stumble sql "select op, consumed, recovery_rate, lo, hi from recovery"
    stumble sql survival_table e=0.02
    stumble sql survival_table e=atlas:tau-airline
    stumble sql survival_weighted weights=atlas:tau-airline
    stumble sql recovery --format parquet > recovery.parquet
    stumble sql "select * from trajectories join team using (agent)" --with team=team.csv
    stumble sql recovery --store s3://our-bucket/tables
    stumble sql recovery --on spark://head.example:7077 --store /shared/tables

    A rate may be one that was measured: `atlas:SOURCE` is the share of steps with a failed tool
    call in that source of `stumble atlas`, and `weights=atlas:SOURCE` its errors by class too.

    Queries are read-only and see the index alone: no statement can write a file or a table, or
    read another file than those of --with. For more, open .stumble/store.duckdb with a DuckDB
    client, or write a file for one with `stumble export --to duckdb`.
    """
    query = query.strip() if query else None
    if not listing and not query and not rebuild:
        raise UsageError("no query: give SQL or a name; stumble sql --list lists the names")
    if rebuild and address:
        raise UsageError("--rebuild is for a store with tapes; a bucket has only tables")

    from stumble.cli.options import parse_option_pairs, usage_errors
    from stumble.store import index
    from stumble.store.open_store import open_indexed_store
    from stumble.store.query import QueryLimits, parse_own_table, restrict_process, run_query
    from traces.did_you_mean import suggest_nearest_name
    from traces.store.sql import bind_question, describe_views, list_questions

    if listing:
        _print_sql_names(
            [(q.name, _append_query_defaults(q.help, q.defaults)) for q in list_questions()],
            list(describe_views().items()),
            index.list_relations(),
        )
        return
    is_exported = cluster is not None and address is not None
    if address and not is_exported:
        store = _open_shared_tables(address)
    elif not is_exported:
        store = open_indexed_store(rebuild=rebuild)
    if not query:
        return
    given = parse_option_pairs(parameters)
    named = {question.name: question for question in list_questions()}
    known = (*named, *describe_views(), *index.list_relations())
    if " " not in query and query not in known:
        raise UsageError(
            f"no question, view or relation {query!r}{suggest_nearest_name(query, known)}; or "
            "give SQL"
        )
    with usage_errors():
        own = dict(parse_own_table(text, known) for text in own_tables)
    if own and cluster is not None:
        raise UsageError("--with is for DuckDB: omit --on")
    form = "json" if as_json else form
    if form == "parquet" and sys.stdout.isatty():
        raise UsageError("Parquet output needs a file: ... > answer.parquet")
    limits = QueryLimits(memory=memory, seconds=timeout)
    try:
        if query in named:
            given = _resolve_rates(given, named[query].defaults)
            text, values = bind_question(query, **given)
        else:
            # Of the views two stores with equal rows print equal lines; relations may be long.
            order = " order by all" if cluster is None and query in describe_views() else ""
            text = query if " " in query else f'from "{query}"{order}'
            values = {**given} or None
        if cluster is not None:
            from stumble.extensions import load_extension

            if form == "parquet":
                raise UsageError("--format parquet is for DuckDB; with --on give csv or json")
            ask = load_extension("stumble.engines", re.split(r"\W", cluster, maxsplit=1)[0])
            names, rows = ask(cluster, address or store, text, values, limits)
            print_sql_rows(names, rows, form)
            return
        restrict_process(limits)
        if form == "parquet":
            _write_parquet(run_query(store, text, values, limits, _fetch_result_arrow, own))
        else:
            names, rows = run_query(store, text, values, limits, _fetch_names_and_rows, own)
            print_sql_rows(names, rows, form)
    except MemoryError:
        raise UsageError(
            "the result exceeds the memory limit; narrow the query, or raise --memory"
        ) from None
    except ValueError as error:
        raise UsageError(str(error)) from None


def _resolve_rates(given: dict[str, str], defaults: Mapping[str, object]) -> dict[str, str]:
    """Replace rates `NAME:SOURCE` by what the extension NAME measured, if one is installed."""
    names = {name for name, colon, _ in (v.partition(":") for v in given.values()) if colon}
    if not (names := {name for name in names if name.isidentifier()}):
        return given
    from stumble.extensions import RateSource, find_extension
    from stumble.user_data.paths import store_root

    for name in sorted(names):
        rates: RateSource | None = find_extension("stumble.rates", name)
        if rates is not None:
            given = rates.resolve_rates(given, store_root(), defaults)
    return given


def _open_shared_tables(address: str) -> "TraceStore":
    from stumble.team.object_store import ObjectStore
    from stumble.team.shared_tables import open_shared_store

    return open_shared_store(ObjectStore(address), print_warning)


def _fetch_names_and_rows(
    answer: "duckdb.DuckDBPyConnection",
) -> tuple[list[str], list[tuple[object, ...]]]:
    return [column[0] for column in answer.description or ()], answer.fetchall()


def _fetch_result_arrow(answer: "duckdb.DuckDBPyConnection") -> "pa.Table":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a copy of the rows
        return answer.to_arrow_table()


def _write_parquet(table: "pa.Table") -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, sys.stdout.buffer, compression="zstd")


def _append_query_defaults(help: str, defaults: object) -> str:
    assert isinstance(defaults, dict)
    text = ", ".join(f"{key}={json.dumps(value)}" for key, value in defaults.items())
    return f"{help} [{text}]" if text else help


def _print_sql_names(
    named: Sequence[tuple[str, str]], seen: Sequence[tuple[str, str]], relations: Iterable[str]
) -> None:
    width = max(len(name) for name, _ in (*named, *seen)) + 2
    for title, rows in (("questions (stumble sql NAME key=value)", named), ("views", seen)):
        click.echo(title)
        for name, help in rows:
            click.echo(f"  {name:{width}}{help}")
    click.echo("relations")
    click.echo(f"  {', '.join(relations)}")


def print_sql_rows(names: Sequence[str], rows: Sequence[tuple[object, ...]], form: str) -> None:
    """Print rows as a table, JSON, CSV or Markdown."""
    if form == "json":
        keys = [name if name not in names[:at] else f"{name}_{at}" for at, name in enumerate(names)]
        records = [dict(zip(keys, map(_to_json_value, row), strict=True)) for row in rows]
        click.echo(json.dumps(records, default=str, ensure_ascii=False, indent=2))
    elif form == "csv":
        output = open_data_output()
        writer = csv.writer(output, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
        output.flush()
    elif form == "markdown":
        click.echo("\n".join(_format_markdown_lines(names, rows)))
    elif sys.stdout.isatty():
        _print_sql_table(names, rows)
    else:
        click.echo("\n".join(_format_sql_lines(names, rows)))


def _format_markdown_lines(
    names: Sequence[str], rows: Sequence[tuple[object, ...]]
) -> Iterator[str]:
    """Yield a table of GitHub's Markdown; no cell can end its row or become markup."""
    yield f"| {' | '.join(names)} |"
    yield f"|{' --- |' * len(names)}"
    for row in rows:
        cells = (escape_markdown(escape_controls(_format_sql_cell(value))) for value in row)
        yield f"| {' | '.join(cells)} |"


def escape_markdown(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return re.sub(r"[\\`*_{}\[\]<>|#~@!&-]", lambda match: f"\\{match[0]}", text)


def _to_json_value(value: object) -> object:
    """Return a JSON-compatible value: non-finite floats become None, bytes hexadecimal."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.hex() if isinstance(value, bytes) else value


def _print_sql_table(names: Sequence[str], rows: Sequence[tuple[object, ...]]) -> None:
    """Print a table that is folded into the width of the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(names):
        justify: Literal["left", "right"] = "right" if _is_numeric(rows, index) else "left"
        table.add_column(name, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_format_sql_cell(value)) for value in row))
    Console().print(table)


def _format_sql_lines(names: Sequence[str], rows: Sequence[tuple[object, ...]]) -> Iterator[str]:
    """Yield a line for the names and for each row, in columns, however wide."""
    from rich.cells import cell_len

    columns = list[list[str]]()
    for index, name in enumerate(names):
        cells = [name, *(escape_controls(_format_sql_cell(row[index])) for row in rows)]
        width = max(map(cell_len, cells))
        gaps = [" " * (width - cell_len(cell)) for cell in cells]
        right = _is_numeric(rows, index)
        columns.append(
            [gap + cell if right else cell + gap for cell, gap in zip(cells, gaps, strict=True)]
        )
    for line in zip(*columns, strict=True):
        yield "  ".join(line).rstrip()


def _is_numeric(rows: Sequence[tuple[object, ...]], index: int) -> bool:
    return any(isinstance(row[index], int | float) for row in rows)


def _format_sql_cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
