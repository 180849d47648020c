"""Section on clean against faulted runs of the same traces: the loss in pass rate."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from stumble.report.model import (
    ReportChart,
    ReportFigure,
    ReportSection,
    ReportTable,
    make_count_figure,
    make_figure,
    read_row_count,
    read_row_number,
)
from stumble.store.filter import ReportRow, fetch_question_rows

if TYPE_CHECKING:
    import duckdb

ALL_OPERATORS = "all operators"


def build_paired_section(
    connection: "duckdb.DuckDBPyConnection", name: Callable[[ReportRow], str]
) -> ReportSection:
    """Build the section on pass rates with and without the fault, per operator."""
    rows, title = fetch_question_rows(connection, "paired"), "Clean against faulted"
    ungraded = tuple(_list_ungraded_runs(connection))
    if not rows:
        return ReportSection(
            name="pairs",
            title=title,
            nothing=" ".join(
                (
                    "There is no trace with both a clean and a faulted run whose end is known.",
                    *ungraded,
                )
            ),
        )
    groups: dict[str, list[ReportRow]] = {}
    for row in rows:
        groups.setdefault(name(row), []).append(row)
    return ReportSection(
        name="pairs",
        title=title,
        lead=(
            "The share of runs that ended right, clean and with the fault, over the same traces; "
            "what lies between them is what the fault costs. The difference is a mean over traces "
            "with its 95 % interval. That some ended right only with the fault shows how much "
            "runs differ anyway.",
        ),
        charts=tuple(_make_paired_chart(who, some) for who, some in groups.items()),
        legend=(("clean", "clean runs"), ("faulted", "faulted runs")),
        tables=(_make_paired_table(rows, name),),
        notes=(
            "p compares clean and faulted runs within each trace (Cochran, Mantel and Haenszel), "
            "adjusted after Holm over the operators of an agent.",
            *ungraded,
        ),
    )


_UNGRADED_RUNS_SQL = """
    SELECT campaign, passed_reason, count(*) AS runs
    FROM trajectories
    WHERE
        source = 'fork' AND passed IS NULL AND ended IN ('final', 'crash')
        AND condition != 'shrink'
    GROUP BY campaign, passed_reason
    ORDER BY runs DESC, campaign, passed_reason
"""
LISTED_GROUPS = 5


def _list_ungraded_runs(connection: "duckdb.DuckDBPyConnection") -> Iterator[str]:
    """Yield lines about runs in no pair as their end is unknown, by campaign and reason."""
    groups = connection.execute(_UNGRADED_RUNS_SQL).fetchall()
    for campaign, reason, runs in groups[:LISTED_GROUPS]:
        whose = f" of the campaign {campaign}" if campaign else ""
        yield f"{runs} runs{whose} are left out, their end is not known: {reason or 'no verifier'}."
    if len(groups) > LISTED_GROUPS:
        yield f"So are {sum(runs for *_, runs in groups[LISTED_GROUPS:])} more."


def _label_paired_operator(row: ReportRow) -> str:
    return ALL_OPERATORS if row["op"] is None else str(row["op"])


def _make_delta_figure(row: ReportRow) -> ReportFigure:
    return make_figure(row, "delta", lo="lo", hi="hi", n="traces")


def _format_points(row: ReportRow) -> str:
    """Format the difference of the faulted pass rate as `-25 points`."""
    delta = read_row_number(row, "delta")
    if delta is None:
        return "not known"
    points = f"{-100 * delta:+.0f} points".replace("-", "\u2212")
    return points if delta else "0 points"


def _make_paired_chart(who: str, some: Sequence[ReportRow]) -> ReportChart:
    chart_rows: list[ReportRow] = [
        {
            "fault": _label_paired_operator(row),
            "clean": read_row_number(row, "clean_rate"),
            "faulted": read_row_number(row, "faulted_rate"),
            "text": f"{_format_points(row)}, n = {read_row_count(row, 'traces')}",
        }
        for row in some
    ]
    summary = "; ".join(
        f"{row['fault']}: {ReportFigure(value=read_row_number(row, 'clean')).point} "
        f"of clean runs ended right, "
        f"{ReportFigure(value=read_row_number(row, 'faulted')).point} of faulted ones"
        for row in chart_rows
    )
    return ReportChart(drawing="pairs", of=who, says=f"{who}. {summary}.", rows=tuple(chart_rows))


def _make_paired_table(found: Sequence[ReportRow], name: Callable[[ReportRow], str]) -> ReportTable:
    return ReportTable(
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
                _label_paired_operator(row),
                name(row),
                ReportFigure(
                    value=read_row_number(row, "clean_rate"),
                    n=read_row_count(row, "traces"),
                    bare=True,
                ),
                ReportFigure(
                    value=read_row_number(row, "faulted_rate"),
                    n=read_row_count(row, "traces"),
                    bare=True,
                ),
                _make_delta_figure(row),
                make_count_figure(read_row_count(row, "b")),
                make_count_figure(read_row_count(row, "c")),
                _format_p_value(row),
            )
            for row in found
        ),
    )


def _format_p_value(row: ReportRow) -> str:
    value = read_row_number(row, "p_holm" if row["op"] is not None else "p")
    if value is None:
        return "not known"
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"
