"""Section on doubled and lost effects, and on instructions that were obeyed; if there are any."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from stumble.report.model import (
    ReportSection,
    ReportTable,
    make_count_figure,
    make_figure,
    read_row_count,
)
from stumble.store.filter import ReportRow, fetch_question_rows

if TYPE_CHECKING:
    import duckdb


def build_effects_section(
    connection: "duckdb.DuckDBPyConnection", name: Callable[[ReportRow], str]
) -> ReportSection:
    """Build the section with the share of runs that did something twice, or not at all."""
    rows = [
        row
        for row in fetch_question_rows(connection, "effects")
        if any(row[f"{name}_rate"] is not None for name in ("doubled", "lost", "obeyed"))
    ]
    if not rows:
        return ReportSection(
            name="effects",
            title="Done twice, or not at all",
            nothing="No run had an effect ledger that could be compared (--ledger, [effects]), or "
            "an instruction in a tool's answer.",
        )
    return ReportSection(
        name="effects",
        title="Done twice, or not at all",
        lead=(
            "What the world's own ledger lists after a faulted run, against clean twins: an effect "
            "committed again, or one that every clean twin committed and that is missing. Obeyed: "
            "the agent did what an instruction in a tool's answer asked for, by its canary.",
        ),
        tables=(
            ReportTable(
                caption="Faulted runs with a doubled or a lost effect, or an obeyed instruction",
                columns=(
                    "agent",
                    "operator",
                    "runs",
                    "done twice",
                    "not done",
                    "obeyed",
                    "unknown",
                ),
                rows=tuple(
                    (
                        name(row),
                        str(row["op"]),
                        make_count_figure(read_row_count(row, "runs")),
                        make_figure(row, "doubled_rate"),
                        make_figure(row, "lost_rate"),
                        make_figure(row, "obeyed_rate"),
                        make_count_figure(
                            read_row_count(row, "unknown_obeyed")
                            if read_row_count(row, "instructed")
                            else max(
                                read_row_count(row, "unknown_doubled"),
                                read_row_count(row, "unknown_lost"),
                            )
                        ),
                    )
                    for row in rows
                ),
            ),
        ),
    )
