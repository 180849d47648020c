"""`stumble compare`: compare two campaigns, models or agents on the same traces, faults, seeds."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from stumble.cli.exit_codes import ExitCode, UsageError

if TYPE_CHECKING:
    import duckdb

type ComparisonRow = Mapping[str, object]

COMPARED_KINDS = ("campaign", "model", "agent")


@click.command(
    epilog="Exit codes: 0 compared, 5 too few pairs for an interval.",
)
@click.argument("a")
@click.argument("b")
@click.option(
    "--by",
    type=click.Choice(COMPARED_KINDS),
    help="Kind of thing that A and B name; default: looked up in the store.",
)
@click.option(
    "--campaign", help="Only pairs within this campaign, if A and B are models or agents."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(a: str, b: str, by: str | None, campaign: str | None, as_json: bool) -> None:
    """Pair each injection of A with that of B at the same call of the same trace, with the same
    fault and seed; print the mean difference with its interval, and the injections whose outcome
    changed.

    Two campaigns of the same plan compare two versions of a prompt or an agent; two models
    compare within one campaign.

    \b
    stumble compare before after
    stumble compare practice/naive practice/verifies --campaign nightly
    """
    from stumble.store.open_store import open_indexed_store

    store = open_indexed_store()
    with store.open_locked() as connection:
        kind = by or _find_shared_kind(connection, a, b)
        parameters = {"a": a, "b": b, "by": kind, "campaign": campaign}
        rates, flips = (
            _query_comparison_rows(connection, "compare", parameters),
            _query_comparison_rows(connection, "flips", parameters),
        )
    pooled = [row for row in rates if row["part"] == "all"]
    if as_json:
        data = {"a": a, "b": b, "by": kind, "rates": rates, "flips": flips}
        click.echo(json.dumps(data, default=str))
    elif pooled:
        _print_comparison_tables(a, b, rates, flips)
    else:
        click.echo(f"{a} and {b} have no pair in common: run the same campaign file for both")
    raise SystemExit(ExitCode.OK if _is_enough(pooled) else ExitCode.NOT_ENOUGH)


def _is_enough(pooled: list[ComparisonRow]) -> bool:
    """Return True if there are pairs, and each measure with pairs has an interval."""
    paired = [row for row in pooled if row["pairs"]]
    return bool(paired) and all(row["lo"] is not None for row in paired)


def _find_shared_kind(connection: "duckdb.DuckDBPyConnection", a: str, b: str) -> str:
    """Return the kind (campaign, model or agent) of both names. Raises UsageError if none fits."""
    from traces.did_you_mean import suggest_nearest_name

    known: set[str] = set()
    for kind in COMPARED_KINDS:
        rows = connection.execute(f"SELECT DISTINCT {kind} FROM campaign_injections").fetchall()
        names = {name for (name,) in rows if name is not None}
        if {a, b} <= names:
            return kind
        known |= names
    unknown = next((name for name in (a, b) if name not in known), None)
    if unknown is None:
        raise UsageError(f"{a} and {b} are names of different kinds; give --by")
    why = (
        suggest_nearest_name(unknown, sorted(known))
        if known
        else "; no campaign was run in this store yet"
    )
    raise UsageError(f"no campaign, model or agent {unknown!r}{why}")


def _query_comparison_rows(
    connection: "duckdb.DuckDBPyConnection", question: str, asked: Mapping[str, str | None]
) -> list[ComparisonRow]:
    from traces.store.sql import run_question

    answer = run_question(connection, question, **asked)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def _print_comparison_tables(
    a: str, b: str, rates: list[ComparisonRow], flips: list[ComparisonRow]
) -> None:
    from rich.console import Console
    from rich.table import Table

    from stumble.store.filter import make_measure_namer

    name_measure = make_measure_namer(rates, lambda row: str(row["measure"]))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in (
        "measure",
        "family",
        "pairs",
        "traces",
        a,
        b,
        "B - A",
        "95 % interval",
        "p (Holm)",
    ):
        table.add_column(name, justify="left" if name in ("measure", "family") else "right")
    for row in rates:
        p = row["p"] if row["part"] == "all" else row["p_holm"]
        between = (
            f"[{_format_comparison_number(row['lo'])}, {_format_comparison_number(row['hi'])}]"
        )
        table.add_row(
            name_measure(row),
            str(row["part"]),
            str(row["pairs"]),
            str(row["traces"]),
            _format_comparison_number(row["rate_a"]),
            _format_comparison_number(row["rate_b"]),
            _format_comparison_number(row["delta"], "+"),
            between if row["lo"] is not None else str(row["reason"]),
            _format_comparison_number(p),
            style="bold" if row["part"] == "all" else None,
        )
    Console(width=None if Console().is_terminal else 120).print(table)
    for flip in flips[:20]:
        change = f"{flip['class_a'] or 'unknown'} -> {flip['class_b'] or 'unknown'}"
        click.echo(f"  {flip['trace']} {flip['cell']}: {change}  ({flip['injection_b']})")
    if len(flips) > 20:
        click.echo(f"  and {len(flips) - 20} more: stumble sql flips a={a} b={b}")


def _format_comparison_number(value: object, sign: str = "") -> str:
    return format(value, f"{sign}.3f") if isinstance(value, int | float) else "-"
