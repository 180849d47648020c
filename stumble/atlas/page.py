"""The atlas as a page: each table is the answer of one question, which its caption names."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stumble.atlas.conclusions import list_conclusions
from stumble.atlas.published import PUBLISHED, PublishedNumber
from stumble.atlas.query import run_atlas_question
from stumble.atlas.sources import SOURCES
from stumble.report.html import ReportPage
from stumble.report.model import (
    FigureUnit,
    ReportFigure,
    ReportSection,
    ReportTable,
    TableCell,
    make_figure,
    read_row_number,
)
from stumble.store.filter import ReportRow

if TYPE_CHECKING:
    import duckdb

SQL_COMMAND = "stumble atlas sql"


class AtlasColumn(Struct, frozen=True, kw_only=True):
    """A column of a table: a text, or a figure with the interval of the columns `lo` and `hi`."""

    title: str
    name: str
    unit: FigureUnit | None = None  # None: a text
    lo: str | None = None
    hi: str | None = None


class AtlasTable(Struct, frozen=True, kw_only=True):
    """A question whose rows are shown; `keep` chooses rows."""

    question: str
    caption: str
    columns: Sequence[AtlasColumn]
    parameters: Mapping[str, int] = field(default_factory=dict)
    keep: Callable[[ReportRow], bool] = bool


def _text(title: str, name: str) -> AtlasColumn:
    return AtlasColumn(title=title, name=name)


def _figure(
    title: str, name: str, unit: FigureUnit = "share", lo: str | None = None, hi: str | None = None
) -> AtlasColumn:
    return AtlasColumn(title=title, name=name, unit=unit, lo=lo, hi=hi)


def _count(title: str, name: str) -> AtlasColumn:
    return _figure(title, name, "count")


_WHO = (_text("suite", "suite"), _text("agent", "agent"), _text("model", "model"))
_AGENT = (_text("agent", "agent"), _text("model", "model"))

SECTIONS: Sequence[tuple[str, str, tuple[str, ...], Sequence[AtlasTable]]] = (
    (
        "passes",
        "How often agents pass",
        (
            "A run whose tests gave no result is unknown. Leaderboards count it as failed; the "
            "rate beside it leaves it out. Intervals are clustered by task.",
        ),
        (
            AtlasTable(
                question="pass_rates",
                caption="Pass rates",
                columns=(
                    *_WHO,
                    _count("runs", "runs"),
                    _count("unknown", "unknown"),
                    _figure("as published", "published_rate", lo="none", hi="none"),
                    _figure("of known ends", "rate", lo="lo", hi="hi"),
                ),
            ),
            AtlasTable(
                question="pass_power",
                caption="All of k trials of a task pass, in both conventions",
                columns=(
                    *_WHO,
                    _count("k", "k"),
                    _count("tasks", "tasks"),
                    _figure("C(c,k)/C(n,k)", "unbiased", lo="none", hi="none"),
                    _figure("(c/n)^k", "plug_in", lo="none", hi="none"),
                    _figure("tasks that pass and fail", "flaky", lo="none", hi="none"),
                ),
                keep=lambda row: row["k"] in (1, 3, 5),
            ),
        ),
    ),
    (
        "lives",
        "How long runs last",
        (
            "A half-life assumes the same hazard at each step. Runs that fail without a crash did "
            "so at a step that nobody knows, so that the interval of p is wide and the test of a "
            "constant hazard has no p value: its chi-squared shows only when runs ended.",
        ),
        (
            AtlasTable(
                question="half_life",
                caption="Half-life in steps",
                columns=(
                    *_AGENT,
                    _count("runs", "runs"),
                    _count("failed", "deaths"),
                    _figure("passes a step", "p"),
                    _figure("half-life", "half_life", "steps"),
                ),
                keep=lambda row: (read_row_number(row, "runs") or 0) >= 30,
            ),
            AtlasTable(
                question="hazard",
                caption="When runs ended: failures for each step in bins of steps",
                columns=(
                    *_AGENT,
                    _count("from step", "first_step"),
                    _count("steps", "steps"),
                    _count("failed", "deaths"),
                    _figure("failures per step", "hazard", lo="lo", hi="hi"),
                    _figure("chi-squared", "chi2", "points", lo="none", hi="none"),
                ),
                keep=lambda row: str(row["agent"]).startswith(("mini-swe-agent", "tau-bench")),
            ),
            AtlasTable(
                question="time_half_life",
                caption="Half-life in minutes of the agent",
                columns=(
                    *_WHO,
                    _count("runs", "runs"),
                    _count("failed", "deaths"),
                    _figure("minutes", "half_life_minutes", "points", lo="lo", hi="hi"),
                ),
                keep=lambda row: (read_row_number(row, "runs") or 0) >= 100,
            ),
            AtlasTable(
                question="implied_steps",
                caption="What 50 steps would come to, if the hazard were constant, and naively",
                columns=(
                    *_AGENT,
                    _figure("mean steps", "mean_steps", "points", lo="none", hi="none"),
                    _count("longest run", "longest"),
                    _figure("constant hazard", "implied", lo="lo", hi="hi"),
                    _figure("naive", "naive", lo="none", hi="none"),
                ),
                keep=lambda row: (read_row_number(row, "runs") or 0) >= 30,
            ),
        ),
    ),
    (
        "errors",
        "Errors of tools, and what follows",
        (
            "An episode is a series of failed calls. The classes are those faults of stumble "
            "faults that a text can show.",
        ),
        (
            AtlasTable(
                question="error_episodes",
                caption="Episodes of errors: a later call works, and the run passes",
                columns=(
                    *_AGENT,
                    _count("episodes", "episodes"),
                    _figure("a call works", "local_rate", lo="local_lo", hi="local_hi"),
                    _figure("the run passes", "eventual_rate", lo="eventual_lo", hi="eventual_hi"),
                ),
            ),
            AtlasTable(
                question="error_recovery_by_end",
                caption="Episodes in runs that pass and in runs that fail",
                columns=(
                    *_AGENT,
                    _text("passed", "passed"),
                    _count("runs", "runs"),
                    _figure("errors per run", "errors_per_run", "points", lo="none", hi="none"),
                    _figure("a call works", "local_rate", lo="lo", hi="hi"),
                ),
                keep=lambda row: bool(row["episodes"]),
            ),
            AtlasTable(
                question="step_error_rates",
                caption="Steps with a failed call: the e of stumble sql survival_table",
                columns=(
                    _text("source", "source"),
                    _count("steps", "steps"),
                    _count("with an error", "error_steps"),
                    _figure("share", "e", lo="lo", hi="hi"),
                ),
            ),
            AtlasTable(
                question="matched_error_effect",
                caption="Runs with an error less runs without, within the same task",
                columns=(
                    *_WHO,
                    _count("tasks", "tasks"),
                    _count("runs", "runs"),
                    _figure("difference", "difference", lo="none", hi="none"),
                    _figure("p", "p", "steps", lo="none", hi="none"),
                ),
            ),
            AtlasTable(
                question="error_classes",
                caption="Classes of errors by model",
                columns=(
                    *_WHO,
                    _text("class", "error_class"),
                    _count("errors", "errors"),
                    _figure("for 100 steps", "per_100_steps", "points", lo="lo", hi="hi"),
                    _figure("a call works", "local_rate", lo="local_lo", hi="local_hi"),
                ),
            ),
        ),
    ),
    (
        "mistakes",
        "Where failed runs go wrong",
        (
            "People dated the decisive mistake of runs that were chosen because they failed. "
            "Position is the mistake's turn over the number of turns.",
        ),
        (
            AtlasTable(
                question="decisive_mistakes",
                caption="The decisive mistake",
                columns=(
                    _text("suite", "suite"),
                    _count("runs", "runs"),
                    _figure("median step", "median_step", "points", lo="none", hi="none"),
                    _figure("median position", "median_position", lo="none", hi="none"),
                    _figure("in the first third", "first_third", lo="none", hi="none"),
                ),
            ),
        ),
    ),
)


def build_atlas_page(
    connection: "duckdb.DuckDBPyConnection", built: Sequence[str], about: tuple[str, ...] = ()
) -> ReportPage:
    """Build the page of an atlas; `built` are the names of its sources."""
    sections = [_build_section(connection, *section) for section in SECTIONS]
    return ReportPage(
        title="Recovery atlas of published agent runs",
        about=(
            f"{len(built)} sources; each table is the answer of the question in its caption: "
            f"{SQL_COMMAND} QUESTION",
            "Derived rows only: no text of any run is in the atlas",
            *about,
        ),
        sections=(
            _build_conclusion_section(connection),
            _build_published_section(connection, built),
            *sections,
            _build_source_section(connection, built),
        ),
        terms=ATLAS_TERMS,
    )


ATLAS_TERMS = (
    ("known end", "the source says whether the run passed"),
    ("pass^k", "k independent trials of a task all pass; mean over tasks"),
    ("half-life", "the number of steps after which half of the runs have failed"),
    ("hazard", "failures for each step"),
    ("episode", "consecutive tool calls that failed"),
    ("clustered", "runs of one task count as alike as they are"),
)


def _build_section(
    connection: "duckdb.DuckDBPyConnection",
    name: str,
    title: str,
    lead: tuple[str, ...],
    tables: Sequence[AtlasTable],
) -> ReportSection:
    drawn = tuple(_build_table(connection, table) for table in tables)
    return ReportSection(
        name=name, title=title, lead=lead, tables=tuple(each for each in drawn if each.rows)
    )


def _build_table(connection: "duckdb.DuckDBPyConnection", table: AtlasTable) -> ReportTable:
    rows = run_atlas_question(connection, table.question, **table.parameters)
    given = "".join(f" {key}={value}" for key, value in table.parameters.items())
    return ReportTable(
        caption=f"{table.caption} ({SQL_COMMAND} {table.question}{given})",
        columns=tuple(column.title for column in table.columns),
        rows=tuple(
            tuple(_make_cell(row, column) for column in table.columns)
            for row in rows
            if table.keep(row)
        ),
    )


def _make_cell(row: ReportRow, column: AtlasColumn) -> TableCell:
    value = row[column.name]
    if column.unit is None:
        if isinstance(value, bool):
            return "yes" if value else "no"
        return "not known" if value is None else str(value)
    figure = make_figure(row, column.name, lo=column.lo, hi=column.hi, unit=column.unit)
    if column.lo == "none":
        return ReportFigure(value=figure.value, unit=figure.unit, bare=True)
    return figure


def _build_source_section(
    connection: "duckdb.DuckDBPyConnection", built: Sequence[str]
) -> ReportSection:
    recipes = {source.RECIPE.name: source.RECIPE for source in SOURCES}
    rows = {
        str(row["source"]): row
        for row in run_atlas_question(connection, "atlas_sources")
        if row["source"] in built
    }
    return ReportSection(
        name="sources",
        title="Sources",
        lead=("Each source is read at one commit; stumble atlas build refuses another one.",),
        tables=(
            ReportTable(
                caption=f"What was read ({SQL_COMMAND} atlas_sources)",
                columns=("source", "repository, commit", "licence", "runs", "calls", "errors"),
                rows=tuple(
                    (
                        name,
                        f"{recipes[name].repository} @{recipes[name].commit[:8]}",
                        recipes[name].licence or "none stated: derived rows only",
                        *(
                            ReportFigure(value=read_row_number(row, column), unit="count")
                            for column in ("runs", "calls", "errors")
                        ),
                    )
                    for name, row in rows.items()
                ),
            ),
            ReportTable(
                caption="How grades, steps and errors were decided",
                columns=("source", "content", "rule"),
                rows=tuple((n, recipes[n].describes, recipes[n].derived) for n in rows),
            ),
        ),
    )


def _build_conclusion_section(connection: "duckdb.DuckDBPyConnection") -> ReportSection:
    return ReportSection(
        name="conclusions",
        title="What it shows",
        lead=(
            "Each sentence is filled from a row of the question beside it. Runs are associations: "
            "hard tasks have more steps and more errors, and suites differ in all respects.",
        ),
        tables=(
            ReportTable(
                caption="Conclusions",
                columns=("sentence", "question"),
                rows=tuple(list_conclusions(connection)),
                folded=False,
            ),
        ),
    )


def _build_published_section(
    connection: "duckdb.DuckDBPyConnection", built: Sequence[str]
) -> ReportSection:
    rows = [_compare_published(connection, number) for number in PUBLISHED]
    return ReportSection(
        name="published",
        title="Published and recomputed",
        lead=("Published numbers beside what the same runs give here, and why they differ.",),
        tables=(
            ReportTable(
                caption="Published numbers",
                columns=("number", "published", "by", "recomputed", "question", "why they differ"),
                rows=tuple(row for row in rows if row is not None),
                folded=False,
            ),
            ReportTable(
                caption="Totals that a source states; a build whose rows differ is refused",
                columns=("source", "agent", "model", "runs", "passed"),
                rows=tuple(
                    (recipe.name, agent, model, str(total.runs), str(total.passed))
                    for recipe in (source.RECIPE for source in SOURCES)
                    if recipe.name in built
                    for (agent, model), total in recipe.totals.items()
                ),
            ),
        ),
    )


def _compare_published(
    connection: "duckdb.DuckDBPyConnection", number: PublishedNumber
) -> tuple[TableCell, ...] | None:
    """Return the row of a published number; None if its source was not built."""
    value = recompute_number(connection, number)
    if value is None:
        return None
    shown = f"{100 * value:.2f} %".replace(".00 %", ".0 %")
    return number.name, number.published, number.by, shown, number.question, number.why


def recompute_number(
    connection: "duckdb.DuckDBPyConnection", number: PublishedNumber
) -> float | None:
    """Return the value of a published number here; None without the row."""
    rows = run_atlas_question(connection, number.question, **number.parameters)
    found = (row for row in rows if all(row[key] == each for key, each in number.row.items()))
    row = next(found, None)
    return None if row is None else read_row_number(row, number.column)
