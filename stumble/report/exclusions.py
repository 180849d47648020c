"""Section on counted and excluded faults."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stumble.report.model import ReportSection, ReportTable, make_count_figure, read_row_count
from stumble.store.filter import ReportRow, fetch_question_rows

if TYPE_CHECKING:
    import duckdb

FATE_LABELS = {
    "judged": "judged: reached the agent, clean twins pass, the class is known",
    "absorbed": "absorbed: a retry of the client hid it (handled, not judged)",
    "ended_before": "the run was over before the agent could see it",
    "undecided": "whether it reached the agent could not be decided",
    "no_site": "no_site: nothing to change there",
    "not_fired": "not_fired: no call came that it was aimed at",
    "cut_off": "the run was cut off by the harness or by the end of the recording",
    "several_faults": "several faults in one run: the outcome belongs to all together",
    "baseline_failed": "the clean twins fail without it",
    "few_twins": "fewer than 3 clean twins",
    "baseline_unknown": "nobody knows whether the clean twins end right",
    "no_verdict": "no verdict: what decides it is not known",
}


def build_exclusions_section(
    connection: "duckdb.DuckDBPyConnection", name: Callable[[ReportRow], str]
) -> ReportSection:
    """Build the section with every planned fault once, under its fate."""
    rows = fetch_question_rows(connection, "exclusions")
    if not rows:
        return ReportSection(
            name="exclusions",
            title="Counted and excluded",
            nothing="No faults were planned, so none were excluded.",
        )
    by_agent: dict[str, list[ReportRow]] = {}
    for row in rows:
        by_agent.setdefault(name(row), []).append(row)
    judged, planned = (
        _sum_fate(rows, "judged"),
        sum(read_row_count(row, "faults") for row in rows),
    )
    return ReportSection(
        name="exclusions",
        title="Counted and excluded",
        lead=(
            f"Of {planned:,} planned faults {judged:,} were judged. Each fault stands once, under "
            "the first reason that fits; what is excluded is in no rate, neither as a pass nor "
            "as a failure.",
        ),
        tables=(
            ReportTable(
                caption="Planned faults, by what became of their verdict",
                columns=("counted as", *by_agent, "operators"),
                rows=tuple(
                    (
                        words,
                        *(make_count_figure(_sum_fate(some, ending)) for some in by_agent.values()),
                        ", ".join(sorted({str(r["op"]) for r in rows if r["fate"] == ending})),
                    )
                    for ending, words in _label_fates(rows).items()
                ),
            ),
        ),
    )


def _label_fates(found: Sequence[ReportRow]) -> dict[str, str]:
    """Return the labels of the fates that occur, known ones first."""
    occurring = [str(row["fate"]) for row in found]
    return {ending: words for ending, words in FATE_LABELS.items() if ending in occurring} | {
        ending: ending for ending in occurring if ending not in FATE_LABELS
    }


def _sum_fate(found: Sequence[ReportRow], ending: str) -> int:
    return sum(read_row_count(row, "faults") for row in found if row["fate"] == ending)
