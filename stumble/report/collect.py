"""Collection of all sections of a report from a store."""

from collections.abc import Callable, Mapping
from datetime import datetime
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING

from stumble.report.cost_and_time import build_cost_section, build_recovery_time_section
from stumble.report.effects import build_effects_section
from stumble.report.exclusions import build_exclusions_section
from stumble.report.headline import build_headline_section
from stumble.report.judge_error import build_judge_error_section
from stumble.report.model import AgentKey, ReportSection
from stumble.report.notice import build_notice_section
from stumble.report.outcomes import build_outcomes_section
from stumble.report.paired_effect import build_paired_section
from stumble.report.survival import build_survival_section
from stumble.store.filter import (
    ReportRow,
    StoreFilter,
    fetch_question_rows,
    fetch_view_rows,
    make_agent_namer,
)

if TYPE_CHECKING:
    import duckdb

type SectionBuilder = Callable[
    ["duckdb.DuckDBPyConnection", Callable[[ReportRow], str]], ReportSection
]

SECTION_BUILDERS: tuple[SectionBuilder, ...] = (
    build_outcomes_section,
    build_survival_section,
    build_paired_section,
    build_effects_section,
    build_notice_section,
    build_recovery_time_section,
    build_cost_section,
    build_exclusions_section,
)
"""The sections in their order, after the headline."""


def make_agent_naming(connection: "duckdb.DuckDBPyConnection") -> Callable[[ReportRow], str]:
    """Return the function that names agents, the same in every section."""
    return make_agent_namer(
        (
            *fetch_question_rows(connection, "recovery_by_model"),
            *fetch_view_rows(connection, "kaplan_meier"),
        )
    )


def collect_sections(
    connection: "duckdb.DuckDBPyConnection",
    name: Callable[[ReportRow], str],
    unfinished: Mapping[AgentKey, str] = MappingProxyType({}),
    labels: str | None = None,
) -> tuple[ReportSection, ...]:
    """Collect all sections; `name` is the naming of agents, and `unfinished` has the agents
    without rates until their plan ends. With `labels`, as the question `gate` takes them, a section
    has the rates behind the judge's error.
    """
    first = [build_headline_section(connection, name, unfinished)]
    if labels is not None:
        first.append(build_judge_error_section(connection, name, labels, unfinished))
    return (*first, *(section(connection, name) for section in SECTION_BUILDERS))


def describe_report_scope(
    connection: "duckdb.DuckDBPyConnection", selection: StoreFilter
) -> tuple[str, ...]:
    """Describe the selected part of the store, its dates, and the version of stumble."""
    contents = fetch_question_rows(connection, "contents")
    days = sorted(
        when.date().isoformat()
        for row in contents
        for when in (row["first_at"], row["last_at"])
        if isinstance(when, datetime)
    )
    when = "no runs" if not days else f"runs of {' to '.join(dict.fromkeys((days[0], days[-1])))}"
    part = f"Only {selection.description}. " if selection.description else ""
    return (f"{part}By stumble {version('stumble')} from {when}.",)


def count_report_injections(connection: "duckdb.DuckDBPyConnection") -> int:
    """Count the injections that the report can show."""
    query = "SELECT count(*) FROM judged_injections WHERE NOT sham AND state != 'unfired'"
    [(count,)] = connection.execute(query).fetchall()
    return int(count)
