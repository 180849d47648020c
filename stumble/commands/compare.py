"""`stumble compare`: two agents, models or versions on the same traces, faults and seeds."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from stumble.exits import Exits, Wrong

if TYPE_CHECKING:
    import duckdb

type Row = Mapping[str, object]

KINDS = ("campaign", "model", "agent")


@click.command(
    short_help="What changed from one campaign, model or agent to another.",
    epilog="Exit codes: 0 compared, 5 too few pairs for an interval.",
)
@click.argument("a")
@click.argument("b")
@click.option("--by", type=click.Choice(KINDS), help="What A and B name; by default what they are.")
@click.option("--campaign", help="Only pairs within this campaign, where A and B are no campaigns.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(a: str, b: str, by: str | None, campaign: str | None, as_json: bool) -> None:
    """Pair each injection of A with that of B at the same call of the same trace, with the same
    fault and seed, and say what B does differently: the mean difference with its interval, and
    which injections came out otherwise.

    Two campaigns of the same plan compare two versions of a prompt or an agent; two models
    compare within one campaign.

    \b
    stumble compare before after
    stumble compare practice/naive practice/verifies --campaign nightly
    """
    from stumble import indexing
    from stumble.home import store_root
    from traces.store import Store

    store = Store(store_root())
    for refused in indexing.refresh(store):
        click.echo(f"warning: not indexed: {refused}", err=True)
    with store.reading() as connection:
        kind = by or _kind(connection, a, b)
        asked = {"a": a, "b": b, "by": kind, "campaign": campaign}
        rates, flips = _rows(connection, "compare", asked), _rows(connection, "flips", asked)
    pooled = [row for row in rates if row["part"] == "all"]
    if as_json:
        said = {"a": a, "b": b, "by": kind, "rates": rates, "flips": flips}
        click.echo(json.dumps(said, default=str))
    elif pooled:
        _print(a, b, rates, flips)
    else:
        click.echo(f"{a} and {b} share no cell: run the same campaign file for both")
    enough = pooled and all(row["reason"] in (None, "no_variance") for row in pooled)
    raise SystemExit(Exits.OK if enough else Exits.NOT_ENOUGH)


def _kind(connection: "duckdb.DuckDBPyConnection", a: str, b: str) -> str:
    """What both are names of."""
    from traces.nearest import nearest

    known: set[str] = set()
    for kind in KINDS:
        found = connection.execute(f"SELECT DISTINCT {kind} FROM cells").fetchall()
        names = {name for (name,) in found if name is not None}
        if {a, b} <= names:
            return kind
        known |= names
    strange = next((name for name in (a, b) if name not in known), None)
    if strange is None:
        raise Wrong(f"{a} and {b} are names of different things; say --by")
    why = nearest(strange, sorted(known)) if known else "; no campaign was run in this store yet"
    raise Wrong(f"no campaign, model or agent is called {strange!r}{why}")


def _rows(
    connection: "duckdb.DuckDBPyConnection", question: str, asked: Mapping[str, str | None]
) -> list[Row]:
    from traces.sql import ask

    answer = ask(connection, question, **asked)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def _print(a: str, b: str, rates: list[Row], flips: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

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
        between = f"[{_number(row['lo'])}, {_number(row['hi'])}]"
        table.add_row(
            str(row["measure"]), str(row["part"]), str(row["pairs"]), str(row["traces"]),
            _number(row["rate_a"]), _number(row["rate_b"]), _number(row["delta"], "+"),
            between if row["lo"] is not None else str(row["reason"]), _number(p),
            style="bold" if row["part"] == "all" else None,
        )  # fmt: skip
    Console(width=None if Console().is_terminal else 120).print(table)
    for flip in flips[:20]:
        change = f"{flip['class_a'] or 'unknown'} -> {flip['class_b'] or 'unknown'}"
        click.echo(f"  {flip['trace']} {flip['cell']}: {change}  ({flip['injection_b']})")
    if len(flips) > 20:
        click.echo(f"  and {len(flips) - 20} more: stumble sql flips a={a} b={b}")


def _number(value: object, sign: str = "") -> str:
    return format(value, f"{sign}.3f") if isinstance(value, int | float) else "-"
