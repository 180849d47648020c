"""Sections on time to recovery, in steps and seconds, and on the cost of runs."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stumble.report.model import (
    FigureUnit,
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

CONDITION_LABELS = {
    "record": "recorded",
    "clean": "clean twins",
    "sham": "with a sham",
    "fault": "with a fault",
    "replay": "replayed",
}


def build_recovery_time_section(
    connection: "duckdb.DuckDBPyConnection", name: Callable[[ReportRow], str]
) -> ReportSection:
    """Build the section on steps to notice of recovered injections, and extra time over twins."""
    rows, title = fetch_question_rows(connection, "time_to_recovery"), "Time to recovery"
    if not rows:
        return ReportSection(
            name="recovery_time",
            title=title,
            nothing="Nothing was recovered from, so there is no time that it took.",
        )
    groups: dict[str, list[ReportRow]] = {}
    for row in rows:
        groups.setdefault(name(row), []).append(row)
    return ReportSection(
        name="recovery_time",
        title=title,
        lead=(
            "Of recovered injections: how many steps of the agent it took from the faulted result "
            "to the first hard sign that it noticed, and how much longer the whole run was than "
            "its clean twins. Means are over traces.",
        ),
        charts=tuple(
            chart for who, group in groups.items() if (chart := _make_steps_chart(who, group))
        ),
        tables=(
            ReportTable(
                caption="Time to recovery, by agent and operator",
                columns=(
                    "operator",
                    "agent",
                    "recovered",
                    "steps to notice",
                    "most steps to notice",
                    "steps more",
                    "seconds more",
                ),
                rows=tuple(
                    (
                        str(row["op"]),
                        name(row),
                        make_count_figure(read_row_count(row, "recovered")),
                        _make_mean_figure(row, "steps_to_notice", "steps"),
                        _make_longest_figure(row),
                        _make_mean_figure(row, "extra_steps", "steps"),
                        _make_mean_figure(row, "extra_seconds", "seconds"),
                    )
                    for row in rows
                ),
            ),
        ),
    )


def _make_mean_figure(row: ReportRow, column: str, unit: FigureUnit) -> ReportFigure:
    return make_figure(row, column, unit=unit, reason="all_alike", unknown="not_recorded")


def _make_longest_figure(row: ReportRow) -> ReportFigure:
    return make_figure(row, "steps_to_notice_max", unit="count", unknown="not_recorded")


def _make_steps_chart(who: str, some: Sequence[ReportRow]) -> ReportChart | None:
    steps = Counter[int]()
    for row in some:
        notices = row["notices"]
        steps.update(notices if isinstance(notices, list) else ())
    if not steps:
        return None
    chart_rows = [{"steps": n, "recovered": steps[n]} for n in sorted(steps)]
    summary = ", ".join(f"{steps[n]} after {n} step{'' if n == 1 else 's'}" for n in sorted(steps))
    return ReportChart(
        drawing="recovery_time",
        of=f"{who}, {steps.total()} recovered",
        says=f"{who}: noticed {summary}.",
        rows=tuple(chart_rows),
    )


def build_cost_section(
    connection: "duckdb.DuckDBPyConnection", name: Callable[[ReportRow], str]
) -> ReportSection:
    """Build the section on steps, tokens, seconds and dollars of a run, by condition."""
    rows = fetch_question_rows(connection, "cost_by_condition")
    if not rows:
        return ReportSection(
            name="cost", title="Cost", nothing="There are no runs to tell a cost of."
        )
    order = list(CONDITION_LABELS)
    rows = tuple(
        sorted(
            rows,
            key=lambda row: (
                str(row["model"]),
                order.index(str(row["kind"])) if row["kind"] in order else len(order),
            ),
        )
    )
    unpriced = sum(read_row_count(row, "unpriced") for row in rows)
    return ReportSection(
        name="cost",
        title="Cost",
        lead=(
            "What a run took, as a mean over traces with its 95 % interval. Tokens and dollars "
            "count model calls that a tape answered as well, which nobody had to pay for again.",
        ),
        tables=(
            ReportTable(
                caption="Cost of a run, by agent and condition",
                columns=(
                    "agent",
                    "runs",
                    "how many",
                    "steps",
                    "tokens",
                    "seconds",
                    "dollars",
                    "dollars in all",
                ),
                rows=tuple(
                    (
                        name(row),
                        CONDITION_LABELS.get(str(row["kind"]), str(row["kind"])),
                        make_count_figure(read_row_count(row, "runs")),
                        make_figure(row, "steps", unit="steps", reason="all_alike"),
                        make_figure(
                            row, "tokens", unit="tokens", reason="all_alike", unknown="not_recorded"
                        ),
                        make_figure(
                            row,
                            "seconds",
                            unit="seconds",
                            reason="all_alike",
                            unknown="not_recorded",
                        ),
                        make_figure(
                            row, "cost_usd", unit="usd", reason="all_alike", unknown="no_price"
                        ),
                        _format_total_cost(row),
                    )
                    for row in rows
                ),
            ),
        ),
        notes=(f"{unpriced:,} runs have no known price; dollars leave them out.",)
        if unpriced
        else (),
    )


def _format_total_cost(row: ReportRow) -> str:
    total = read_row_number(row, "cost_total")
    text = ReportFigure(value=total, unit="usd", reason="no_price").point
    unpriced = read_row_count(row, "unpriced")
    return f"at least {text}" if total is not None and unpriced else text
