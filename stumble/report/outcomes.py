"""Section on outcomes of faults by operator, persistence and detectability."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stumble.report.headline import make_handled_figure, make_recovered_figure, make_silent_figure
from stumble.report.model import (
    ReportChart,
    ReportSection,
    ReportTable,
    make_count_figure,
    read_row_count,
)
from stumble.store.filter import ReportRow, fetch_view_rows

if TYPE_CHECKING:
    import duckdb

OUTCOME_LABELS: tuple[tuple[str, str], ...] = (
    ("absorbed", "absorbed by the client"),
    ("recovered", "recovered"),
    ("masked", "masked"),
    ("honest_fail", "honestly failed"),
    ("noticed_wrong", "noticed, yet wrong"),
    ("silent_wrong", "silently wrong"),
    ("crashed", "crashed"),
    ("unsettled", "no verdict"),
)
"""Each outcome by column name, with its label; handled ones first."""
DETECTABILITY_LABELS = {
    "D0": "D0, an explicit error",
    "D1": "D1, the syntax tells",
    "D2": "D2, it contradicts what is in view",
    "D3": "D3, only asking again tells",
    "D4": "D4, nothing here could tell",
}
NOT_RATED = "not rated"
SHOWN_FAULT_KINDS = 24
"""Most rows of one chart."""


def build_outcomes_section(
    connection: "duckdb.DuckDBPyConnection", name: Callable[[ReportRow], str]
) -> ReportSection:
    """Build the section: bars of outcomes for each agent, and a table of rates with intervals."""
    rows = sorted(fetch_view_rows(connection, "recovery_by_site"), key=_make_outcome_sort_key)
    rows = [row for row in rows if read_row_count(row, "fired")]
    if not rows:
        return ReportSection(
            name="outcomes",
            title="Outcomes by fault",
            nothing="No fault fired, so there are no outcomes.",
        )
    groups: dict[str, list[ReportRow]] = {}
    for row in rows:
        groups.setdefault(name(row), []).append(row)
    occurring = {
        key for row in rows for key, _ in OUTCOME_LABELS if _split_outcome_counts(row).get(key)
    }
    return ReportSection(
        name="outcomes",
        title="Outcomes by fault",
        lead=(
            "Each bar is all injections of one operator at one detectability; its parts are their "
            "outcomes. The first four are handled, the others are not.",
        ),
        charts=tuple(_make_outcomes_chart(who, some) for who, some in groups.items()),
        legend=tuple((key, words) for key, words in OUTCOME_LABELS if key in occurring),
        tables=(_make_outcomes_table(rows, name),),
        notes=tuple(_note_hidden_faults(groups)),
    )


def format_fault_label(row: ReportRow) -> str:
    """Format a fault as `digit, same_args`: operator, and persistence and place unless default."""
    label = str(row["op"])
    if row.get("persist") not in (None, "once"):
        label += f", {row['persist']}"
    return label if row.get("place") in (None, "http") else f"{label}, at {row['place']}"


def _make_outcome_sort_key(row: ReportRow) -> tuple[str, str, str]:
    return str(row["detect"] or "-"), format_fault_label(row), str(row["model"])


def _split_outcome_counts(row: ReportRow) -> dict[str, int]:
    """Return the number of injections per outcome; the sum is all that fired."""
    judged = {key: read_row_count(row, key) for key, _ in OUTCOME_LABELS[1:7]}
    absorbed = min(read_row_count(row, "absorbed"), read_row_count(row, "settled"))
    rest = read_row_count(row, "fired") - absorbed - sum(judged.values())
    return {"absorbed": absorbed, **judged, "unsettled": max(rest, 0)}


def _make_outcomes_chart(who: str, some: Sequence[ReportRow]) -> ReportChart:
    chart_rows: list[ReportRow] = []
    summaries = []
    for row in sorted(some, key=lambda row: -read_row_count(row, "fired"))[:SHOWN_FAULT_KINDS]:
        shares, label = (
            _split_outcome_counts(row),
            f"{format_fault_label(row)} \u00b7 {row['detect'] or NOT_RATED}",
        )
        fired = read_row_count(row, "fired")
        chart_rows += [
            {
                "fault": label,
                "detect": str(row["detect"] or ""),
                "outcome": key,
                "at": at,
                "share": shares[key] / fired,
                "count": shares[key],
                "fired": fired,
            }
            for at, (key, _) in enumerate(OUTCOME_LABELS)
            if shares[key]
        ]
        parts = [f"{shares[key]} {words}" for key, words in OUTCOME_LABELS if shares[key]]
        summaries.append(f"{label}: {', '.join(parts)} of {fired}")
    chart_rows.sort(key=lambda row: (str(row["detect"]), str(row["fault"])))
    return ReportChart(
        drawing="outcomes", of=who, says=f"{who}. {'; '.join(summaries)}.", rows=tuple(chart_rows)
    )


def _note_hidden_faults(groups: dict[str, list[ReportRow]]) -> list[str]:
    return [
        f"{who}: the picture shows the {SHOWN_FAULT_KINDS} "
        f"most frequent of {len(some)} kinds of faults, "
        "the table all."
        for who, some in groups.items()
        if len(some) > SHOWN_FAULT_KINDS
    ]


def _make_outcomes_table(
    found: Sequence[ReportRow], name: Callable[[ReportRow], str]
) -> ReportTable:
    return ReportTable(
        caption="Rates by operator and detectability, with 95 % intervals",
        columns=(
            "fault",
            "agent",
            "detectability",
            "injected",
            "reached",
            "handled",
            "recovered",
            "silently wrong",
        ),
        rows=tuple(
            (
                format_fault_label(row),
                name(row),
                str(row["detect"] or NOT_RATED),
                make_count_figure(read_row_count(row, "fired")),
                make_count_figure(read_row_count(row, "consumed")),
                make_handled_figure(row),
                make_recovered_figure(row),
                make_silent_figure(row),
            )
            for row in found
        ),
    )
