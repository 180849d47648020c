"""The judge's own error over labelled runs, and the rates behind it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from stumble.report.model import (
    AgentKey,
    ReportFigure,
    ReportSection,
    ReportTable,
    make_figure,
    read_row_count,
    read_row_text,
)
from stumble.store.filter import ReportRow, fetch_question_rows

if TYPE_CHECKING:
    import duckdb

MEASURE_WORDS = {
    "handled": "handled",
    "recovery": "recovered",
    "silent": "silently wrong",
}
"""Measures that a judge reads, as the headline names them."""


def build_judge_error_section(
    connection: "duckdb.DuckDBPyConnection",
    name: Callable[[ReportRow], str],
    labels: str,
    unfinished: Mapping[AgentKey, str],
) -> ReportSection:
    """Build the section on what labels say of the judge; `labels` as the question `gate` takes."""
    rows = [
        row
        for row in fetch_question_rows(connection, "gate", labels=labels)
        if row["judge_error"] is not None and row["rate"] is not None
        if _find_agent_key(row) not in unfinished
    ]
    title = "With the judge's own error"
    if not rows:
        return ReportSection(name="judge_error", title=title, nothing="No rate has a judge.")
    return ReportSection(
        name="judge_error",
        title=title,
        lead=(
            "The judge reads some runs wrongly. Over the labelled runs it has the sensitivity "
            "and specificity below; the last column is the rate behind what it read (Rogan and "
            "Gladen), with an interval that holds both errors (Lang and Reiczigel). It is true "
            "only if the labelled runs were drawn at random.",
        ),
        tables=(
            ReportTable(
                caption="Rates as they were read, and behind the judge's error",
                columns=("agent", "rate", "as read", "sensitivity", "specificity", "behind it"),
                rows=tuple(_make_row(row, name(row)) for row in rows),
            ),
        ),
    )


def _find_agent_key(row: ReportRow) -> AgentKey:
    return (read_row_text(row, "agent"), read_row_text(row, "model"), read_row_text(row, "world"))


def _make_row(row: ReportRow, who: str) -> tuple[str | ReportFigure, ...]:
    judged = cast("ReportRow", row["judge_error"])
    return (
        who,
        MEASURE_WORDS[str(row["measure"])],
        make_figure(row, "rate", lo="known_lo", hi="known_hi", n="cases"),
        _make_share(judged, "sensitivity", "positives"),
        _make_share(judged, "specificity", "negatives"),
        make_figure(judged, "rate", lo="lo", hi="hi", reason="few_labels"),
    )


def _make_share(judged: ReportRow, name: str, of: str) -> ReportFigure:
    return ReportFigure(
        value=cast("float | None", judged[name]),
        n=read_row_count(judged, of),
        bare=True,
        reason="few_labels",
    )
