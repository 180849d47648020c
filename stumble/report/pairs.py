"""Clean runs against faulted ones of the same trace: what a fault costs in runs that pass."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from stumble.report.values import (
    Chart,
    Figure,
    Row,
    Section,
    Table,
    count,
    figure,
    number,
    whole,
)
from stumble.selection import rows

if TYPE_CHECKING:
    import duckdb

ALL = "all operators"


def pairs(connection: "duckdb.DuckDBPyConnection", name: Callable[[Row], str]) -> Section:
    """Pass rates with and without the fault, per operator, and their difference."""
    found, title = rows(connection, "paired"), "Clean against faulted"
    left = tuple(_left_out(connection))
    if not found:
        return Section(
            name="pairs",
            title=title,
            nothing=" ".join(
                ("There is no trace with both a clean and a faulted run whose end is known.", *left)
            ),
        )
    groups: dict[str, list[Row]] = {}
    for row in found:
        groups.setdefault(name(row), []).append(row)
    return Section(
        name="pairs",
        title=title,
        lead=(
            "The share of runs that ended right, clean and with the fault, over the same traces; "
            "what lies between them is what the fault costs. The difference is a mean over traces "
            "with its 95 % interval. That some ended right only with the fault shows how much "
            "runs differ anyway.",
        ),
        charts=tuple(_chart(who, some) for who, some in groups.items()),
        legend=(("clean", "clean runs"), ("faulted", "faulted runs")),
        tables=(_table(found, name),),
        notes=(
            "p is McNemar's mid-p, one pair per trace, adjusted after Holm over the operators of "
            "an agent.",
            *left,
        ),
    )


_UNGRADED = """
    SELECT campaign, passed_reason, count(*) AS runs
    FROM trajectories
    WHERE
        source = 'fork' AND passed IS NULL AND ended IN ('final', 'crash')
        AND condition != 'shrink'
    GROUP BY campaign, passed_reason
    ORDER BY runs DESC, campaign, passed_reason
"""
LISTED = 5


def _left_out(connection: "duckdb.DuckDBPyConnection") -> Iterator[str]:
    """Runs that are in no pair since nobody knows how they ended, by campaign, with the reason."""
    groups = connection.execute(_UNGRADED).fetchall()
    for campaign, reason, runs in groups[:LISTED]:
        whose = f" of the campaign {campaign}" if campaign else ""
        yield f"{runs} runs{whose} are left out, their end is not known: {reason or 'no verifier'}."
    if len(groups) > LISTED:
        yield f"So are {sum(runs for *_, runs in groups[LISTED:])} more."


def _of(row: Row) -> str:
    return ALL if row["op"] is None else str(row["op"])


def _delta(row: Row) -> Figure:
    return figure(row, "delta", lo="lo", hi="hi", n="traces")


def _points(row: Row) -> str:
    """`-25 points`: how much lower the faulted pass rate is."""
    delta = number(row, "delta")
    if delta is None:
        return "not known"
    points = f"{-100 * delta:+.0f} points".replace("-", "\u2212")
    return points if delta else "0 points"


def _chart(who: str, some: Sequence[Row]) -> Chart:
    drawn: list[Row] = [
        {
            "fault": _of(row),
            "clean": number(row, "clean_rate"),
            "faulted": number(row, "faulted_rate"),
            "text": f"{_points(row)}, n = {whole(row, 'traces')}",
        }
        for row in some
    ]
    said = "; ".join(
        f"{row['fault']}: {Figure(value=number(row, 'clean')).point} of clean runs ended right, "
        f"{Figure(value=number(row, 'faulted')).point} of faulted ones"
        for row in drawn
    )
    return Chart(drawing="pairs", of=who, says=f"{who}. {said}.", rows=tuple(drawn))


def _table(found: Sequence[Row], name: Callable[[Row], str]) -> Table:
    return Table(
        caption="Runs that ended right, clean and with a fault, over the same traces",
        columns=(
            "operator",
            "agent",
            "clean",
            "faulted",
            "difference",
            "only clean",
            "only faulted",
            "p",
        ),
        rows=tuple(
            (
                _of(row),
                name(row),
                Figure(value=number(row, "clean_rate"), n=whole(row, "traces"), bare=True),
                Figure(value=number(row, "faulted_rate"), n=whole(row, "traces"), bare=True),
                _delta(row),
                count(whole(row, "b")),
                count(whole(row, "c")),
                _p(row),
            )
            for row in found
        ),
    )


def _p(row: Row) -> str:
    value = number(row, "p_holm" if row["op"] is not None else "p_mid")
    if value is None:
        return "not known"
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"
