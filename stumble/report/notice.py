"""Notice as signal detection: hits on faults against false alarms on shams."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stumble.report.model import (
    ReportChart,
    ReportFigure,
    ReportSection,
    ReportTable,
    make_figure,
    read_row_number,
)
from stumble.report.outcomes import NOT_RATED
from stumble.store.filter import ReportRow, fetch_question_rows, make_measure_namer

if TYPE_CHECKING:
    import duckdb

ALL_FAULTS = "all faults"


def build_notice_section(
    connection: "duckdb.DuckDBPyConnection", name: Callable[[ReportRow], str]
) -> ReportSection:
    """Build the section on notice rates of faults and shams, and their difference."""
    rows, title = fetch_question_rows(connection, "signal_detection"), "Noticed, or alarmed"
    if not rows:
        return ReportSection(
            name="notice",
            title=title,
            nothing="No fault reached an agent and could be judged, so there is nothing to notice.",
        )
    name = make_measure_namer(rows, name)
    groups: dict[str, list[ReportRow]] = {}
    for row in rows:
        groups.setdefault(name(row), []).append(row)
    return ReportSection(
        name="notice",
        title=title,
        lead=(
            "An agent that sees faults everywhere notices all of them. So each point sets the "
            "share of faults that were noticed against the share of shams, which change nothing, "
            "that were \u201cnoticed\u201d all the same. Far above the diagonal is good; on it "
            "notice means nothing. The cross is the 95 % interval of both.",
        ),
        charts=tuple(
            chart for who, group in groups.items() if (chart := _make_notice_chart(who, group))
        ),
        tables=(_make_notice_table(rows, name),),
        notes=tuple(
            f"{who}: no sham was judged, so that it has no point: how much of its notice is false "
            "is not known."
            for who, group in groups.items()
            if read_row_number(group[0], "false_alarm") is None
        ),
    )


def _label_notice_group(row: ReportRow) -> str:
    return ALL_FAULTS if row["detect"] is None else str(row["detect"] or NOT_RATED)


def _make_hit_figure(row: ReportRow) -> ReportFigure:
    return make_figure(row, "hit", n="faults", reason="few_traces")


def _make_alarm_figure(row: ReportRow) -> ReportFigure:
    return make_figure(row, "false_alarm", n="shams", reason="few_traces", unknown="no_shams")


def _make_notice_chart(who: str, some: Sequence[ReportRow]) -> ReportChart | None:
    pooled = next((row for row in some if row["detect"] is None), None)
    if pooled is None or read_row_number(pooled, "false_alarm") is None:
        return None
    chart_rows: list[ReportRow] = [
        {
            "hit": read_row_number(row, "hit"),
            "hit_lo": read_row_number(row, "hit_lo"),
            "hit_hi": read_row_number(row, "hit_hi"),
            "alarm": read_row_number(row, "false_alarm"),
            "alarm_lo": read_row_number(row, "false_alarm_lo"),
            "alarm_hi": read_row_number(row, "false_alarm_hi"),
            "label": ", ".join(
                _label_notice_group(each)
                for each in some
                if each is not pooled and _is_same_point(each, row)
            ),
            "main": row is pooled,
        }
        for at, row in enumerate(some)
        if row is pooled
        or not any(_is_same_point(row, each) for each in some[:at] if each is not pooled)
    ]
    says = (
        f"{who}: noticed {_make_hit_figure(pooled).text} of "
        f"faults and {_make_alarm_figure(pooled).text} of shams."
    )
    return ReportChart(drawing="notice", of=who, says=says, rows=tuple(chart_rows))


def _is_same_point(one: ReportRow, two: ReportRow) -> bool:
    """Whether two points coincide, so that one label names both."""
    return all(one[column] == two[column] for column in ("hit", "false_alarm"))


def _make_notice_table(found: Sequence[ReportRow], name: Callable[[ReportRow], str]) -> ReportTable:
    return ReportTable(
        caption="Notice of faults, by detectability, and of shams",
        columns=("agent", "faults", "noticed", "false alarms on shams", "difference", "d\u2032"),
        rows=tuple(
            (
                name(row),
                _label_notice_group(row),
                _make_hit_figure(row),
                _make_alarm_figure(row),
                make_figure(row, "youden", unknown="no_shams"),
                _format_d_prime(row),
            )
            for row in found
        ),
    )


def _format_d_prime(row: ReportRow) -> str:
    value = read_row_number(row, "d_prime")
    if value is not None:
        return f"{value:.2f}"
    alarm = read_row_number(row, "false_alarm")
    return "not known (no shams)" if alarm is None else "not known (a rate of 0 or 1)"
