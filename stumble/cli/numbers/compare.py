"""`stumble compare`: compare two campaigns, models or agents on the same traces, faults, seeds."""

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from stumble.errors import ExitCode, UsageError

if TYPE_CHECKING:
    import duckdb

type ComparisonRow = Mapping[str, object]

COMPARED_KINDS = ("campaign", "model", "agent")


@click.command(
    epilog="Exit codes: 0 compared, 5 too few pairs for an interval.",
)
@click.argument("a", required=False)
@click.argument("b", required=False)
@click.option(
    "--by",
    type=click.Choice(COMPARED_KINDS),
    help="Kind of thing that A and B name; default: looked up in the store.",
)
@click.option(
    "--models",
    is_flag=True,
    help="Compare models: A and B, or without them every pair of models of the campaign.",
)
@click.option(
    "--campaign", help="Only pairs within this campaign, if A and B are models or agents."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(
    a: str | None, b: str | None, by: str | None, models: bool, campaign: str | None, as_json: bool
) -> None:
    """Pair each injection of A with that of B at the same call of the same trace, with the same
    fault and seed; print the mean difference with its interval, and the injections whose outcome
    changed.

    Two campaigns of the same plan compare two versions of a prompt or an agent; two models
    compare within one campaign. With --models alone, p-values are adjusted within a pair of
    models, not over the pairs.

    \b
    stumble compare before after
    stumble compare practice/naive practice/verifies --campaign nightly
    stumble compare --models --campaign nightly
    """
    from stumble.store.open_store import open_indexed_store

    if models and by not in (None, "model"):
        raise UsageError(f"--models and --by {by} exclude each other")
    if (a is None) != (b is None) or (a is None and not models):
        raise UsageError("give two names, A and B, or --models for all models of a campaign")
    store = open_indexed_store()
    with store.open_locked() as connection:
        if a is None or b is None:
            kind, pairs = "model", _list_model_pairs(connection, campaign)
        else:
            asked = "model" if models else by
            kind = _find_shared_kind(connection, a, b, (asked,) if asked else COMPARED_KINDS)
            pairs = [(a, b)]
        found = [_query_comparison(connection, pair, kind, campaign) for pair in pairs]
    if as_json:
        data = [each.to_dict() for each in found]
        click.echo(json.dumps(data[0] if a is not None else data, default=str))
    else:
        for each in found:
            each.print()
    enough = all(each.is_enough for each in found)
    raise SystemExit(ExitCode.OK if enough else ExitCode.NOT_ENOUGH)


class NamedComparison(Struct, frozen=True):
    """Two names of one kind, with the rows of their comparison."""

    a: str
    b: str
    kind: str
    rates: list[ComparisonRow]
    flips: list[ComparisonRow]

    @property
    def is_enough(self) -> bool:
        """Whether there are pairs, and each measure with pairs has an interval."""
        paired = [row for row in self.rates if row["part"] == "all" and row["pairs"]]
        return bool(paired) and all(row["lo"] is not None for row in paired)

    def to_dict(self) -> dict[str, object]:
        """Return the comparison as plain data."""
        return {
            "a": self.a,
            "b": self.b,
            "by": self.kind,
            "rates": self.rates,
            "flips": self.flips,
        }

    def print(self) -> None:
        """Print its tables, or that nothing is paired."""
        if any(row["part"] == "all" for row in self.rates):
            _print_comparison_tables(self.a, self.b, self.rates, self.flips)
        else:
            click.echo(
                f"{self.a} and {self.b} have no pair in common: run the same campaign file for both"
            )


def _query_comparison(
    connection: "duckdb.DuckDBPyConnection", names: tuple[str, str], kind: str, campaign: str | None
) -> NamedComparison:
    a, b = names
    parameters = {"a": a, "b": b, "by": kind, "campaign": campaign}
    rates, flips = (
        _query_comparison_rows(connection, question, parameters)
        for question in ("compare", "flips")
    )
    return NamedComparison(a, b, kind, rates, flips)


def _list_model_pairs(
    connection: "duckdb.DuckDBPyConnection", campaign: str | None
) -> list[tuple[str, str]]:
    """Return every pair of models with injections. Raises UsageError for fewer than two models."""
    rows = connection.execute(
        "SELECT DISTINCT model FROM campaign_injections "
        "WHERE model IS NOT NULL AND ($1 IS NULL OR campaign = $1) ORDER BY model",
        [campaign],
    ).fetchall()
    models = [str(model) for (model,) in rows]
    if len(models) < 2:
        where = "this store" if campaign is None else f"campaign {campaign!r}"
        raise UsageError(
            f"{where} has injections with {' and '.join(models) or 'no model'}: nothing to compare;"
            " run a campaign with --model A,B"
        )
    return list(combinations(models, 2))


def _find_shared_kind(
    connection: "duckdb.DuckDBPyConnection", a: str, b: str, kinds: Sequence[str]
) -> str:
    """Return the one of these kinds that both names are of. Raises UsageError if none is."""
    from traces.did_you_mean import suggest_nearest_name

    known: set[str] = set()
    for kind in kinds:
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
    raise UsageError(f"no {' or '.join(kinds)} {unknown!r}{why}")


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
