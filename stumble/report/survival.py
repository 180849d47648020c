"""Section on survival over n steps: observed, modelled and naive."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stumble.report.model import (
    ReportChart,
    ReportFigure,
    ReportSection,
    ReportTable,
    TableCell,
    make_figure,
    read_row_count,
    read_row_number,
)
from stumble.store.filter import ReportRow, fetch_view_rows, make_measure_namer

if TYPE_CHECKING:
    import duckdb

LAST_DRAWN_STEP = 200
"""Last step of drawn curves."""
FEWEST_DRAWN_STEPS = 20

ENDS_RIGHT_CURVE = "ends_right"
SURVIVAL_CAPTIONS = {
    ENDS_RIGHT_CURVE: "The chance to end right after n steps",
    "not_silently_wrong": "The chance to end right, or to say so if not, after n steps",
}
"""Table caption of each curve."""
FAILURE_MANNER = {"loud": "loudly", "quiet": "without a sign", "other": "otherwise"}
"""How tools fail, by error class."""

NOT_REACHED = "not seen: no run was that long"

SURVIVAL_LEGEND = (
    (
        "observed",
        "observed (Kaplan-Meier, with its 95 % band; no line: when runs failed is unknown)",
    ),
    ("constant", "p^n: the same hazard at each step, a model, with its 95 % band"),
    ("naive", "naive: (1 - errors/steps)^n, each error fatal"),
)


def build_survival_section(
    connection: "duckdb.DuckDBPyConnection", name: Callable[[ReportRow], str]
) -> ReportSection:
    """Build the section: curves per agent, and implied survival at 10, 20 and 50 steps."""
    curves = [
        row
        for row in fetch_view_rows(connection, "kaplan_meier")
        if row["curve"] == ENDS_RIGHT_CURVE
    ]
    implied = fetch_view_rows(connection, "survival")
    models = [row for row in implied if row["basis"] == "model"]
    if not curves and not models:
        return ReportSection(
            name="survival",
            title="Survival over steps",
            nothing="There are no clean runs from their first step, and no faults: nothing to "
            "tell a survival from.",
        )
    groups: dict[tuple[object, object], list[ReportRow]] = {}
    for row in sorted(curves, key=lambda row: (str(row["model"]), read_row_count(row, "step"))):
        groups.setdefault((row["agent"], row["model"]), []).append(row)
    return ReportSection(
        name="survival",
        title="Survival over steps",
        lead=(
            "The share of runs without a forced fault that have not failed yet after so many "
            "steps. Observed is what happened, and ends with the longest run; the curves beyond "
            "it are models. If nobody knows at which step runs failed, the share lies between two "
            "bounds. Tasks are pooled, and weak ones fail first, so that a curve that flattens "
            "does not show an agent that warms up.",
        ),
        charts=tuple(
            _make_survival_chart(name(rows[0]), rows, _find_hazard(models, key))
            for key, rows in groups.items()
        ),
        legend=SURVIVAL_LEGEND if groups else (),
        tables=_make_survival_tables(implied, make_measure_namer(implied, name)),
        notes=_list_survival_notes(groups, models, name),
    )


def _find_hazard(models: Sequence[ReportRow], key: tuple[object, object]) -> ReportRow:
    """Return the row with the hazard per step `u` and the error rate `e` of an agent, or {}."""
    agent_rows = [row for row in models if (row["agent"], row["model"]) == key]
    return next(
        (
            row
            for row in agent_rows
            if row["e_from"] == "store" and row["curve"] == ENDS_RIGHT_CURVE
        ),
        {},
    )


def _make_survival_chart(who: str, found: Sequence[ReportRow], hazard: ReportRow) -> ReportChart:
    last = read_row_count(found[-1], "step")
    end = min(max(last, FEWEST_DRAWN_STEPS), LAST_DRAWN_STEP)
    chart_rows: list[ReportRow] = [
        {"kind": "observed", "step": 0, "survival": 1.0, "lo": None, "hi": None}
    ]
    chart_rows += [
        {
            "kind": "observed",
            "step": read_row_count(row, "step"),
            "survival": read_row_number(row, "survival"),
            "lo": read_row_number(row, "at_least" if row["lo"] is None else "lo"),
            "hi": read_row_number(row, "at_most" if row["hi"] is None else "hi"),
        }
        for row in found
        if read_row_count(row, "step") <= LAST_DRAWN_STEP
    ]
    for kind, column in (("constant", "u"), ("naive", "e")):
        rate = read_row_number(hazard, column)
        if rate is not None:
            lo, hi = (
                read_row_number(hazard, f"{column}_hi"),
                read_row_number(hazard, f"{column}_lo"),
            )
            chart_rows += [
                {
                    "kind": kind,
                    "step": n,
                    "survival": (1 - rate) ** n,
                    "lo": None if lo is None else (1 - lo) ** n,
                    "hi": None if hi is None else (1 - hi) ** n,
                }
                for n in sorted({round(end * i / 40) for i in range(41)})
            ]
    deaths, runs = (
        sum(read_row_count(row, "deaths") for row in found),
        read_row_count(found[0], "at_risk"),
    )
    share = _make_survival_cell(found[-1])
    survivors = share.text if isinstance(share, ReportFigure) else share
    says = f"{who}: {deaths} of {runs} runs failed; after {last} steps {survivors} had not failed."
    return ReportChart(
        drawing="survival", of=f"{who}, {runs} runs", says=says, rows=tuple(chart_rows)
    )


def _list_survival_notes(
    groups: dict[tuple[object, object], list[ReportRow]],
    models: Sequence[ReportRow],
    name: Callable[[ReportRow], str],
) -> tuple[str, ...]:
    notes = []
    for key, rows in groups.items():
        hazard = _find_hazard(models, key)
        if read_row_number(hazard, "e") is None:
            notes.append(f"{name(rows[0])}: no naive curve, since tool calls did not all say "
                         "whether they failed.")  # fmt: skip
        if hazard.get("ungraded"):
            notes.append(
                f"{name(rows[0])}: {hazard['ungraded']} runs that nobody graded are left out."
            )
        if hazard.get("by_budget"):
            notes.append(
                f"{name(rows[0])}: {hazard['by_budget']} runs that their budget ended have failed."
            )
    return tuple(notes)


def _make_survival_tables(
    implied: Sequence[ReportRow], name: Callable[[ReportRow], str]
) -> tuple[ReportTable, ...]:
    listed = [row for row in implied if row["class"] in (None, "loud") or row["h"] is not None]
    return tuple(
        _make_survival_table(
            SURVIVAL_CAPTIONS[curve], [row for row in listed if row["curve"] == curve], name
        )
        for curve in SURVIVAL_CAPTIONS
        if any(row["curve"] == curve for row in listed)
    )


def _make_survival_table(
    caption: str, implied: Sequence[ReportRow], name: Callable[[ReportRow], str]
) -> ReportTable:
    lines: dict[tuple[str, str], dict[int, TableCell]] = {}
    naive: dict[tuple[str, str], str] = {}
    for row in sorted(implied, key=_make_survival_sort_key):
        line = name(row), _describe_basis(row)
        lines.setdefault(line, {})[read_row_count(row, "n")] = _make_survival_cell(row)
        rate = ReportFigure(value=read_row_number(row, "naive"), reason="no_error_rate")
        naive[line] = f"{rate.point} at {row['n']} steps" if rate.value is not None else rate.point
    horizons = sorted({n for figures in lines.values() for n in figures})
    rows: list[tuple[TableCell, ...]] = [
        (*line, *(figures.get(n, NOT_REACHED) for n in horizons), naive[line])
        for line, figures in lines.items()
    ]
    return ReportTable(
        caption=f"{caption}: implied by errors of one kind and the clean hazard, or observed",
        columns=("agent", "tools fail in", *(f"{n} steps" for n in horizons), "naive"),
        rows=tuple(rows),
    )


def _make_survival_cell(row: ReportRow) -> TableCell:
    """Return the figure with its interval, or the two bounds of an unknown value."""
    figure = make_figure(row, "survival", lo="lo", hi="hi", reason="few_traces")
    low, high = read_row_number(row, "at_least"), read_row_number(row, "at_most")
    if figure.value is not None or low is None or high is None:
        return figure
    bounds = f"between {ReportFigure(value=low).point} and {ReportFigure(value=high).point}"
    lowest, highest = read_row_number(row, "lo"), read_row_number(row, "hi")
    if lowest is None or highest is None:
        return bounds
    return f"{bounds} ({ReportFigure(value=low, lo=lowest, hi=highest).interval})"


def _make_survival_sort_key(row: ReportRow) -> tuple[str, str, str, str, str, float, int]:
    basis = "0" if row["basis"] == "kaplan_meier" else str(row["e_from"] == "assumed")
    errors = str(row["class"] or "")
    return (
        str(row["model"]),
        str(row["world"]),
        str(row["measured_by"]),
        errors,
        basis,
        read_row_number(row, "e") or 0,
        read_row_count(row, "n"),
    )


def _describe_basis(row: ReportRow) -> str:
    if row["basis"] == "kaplan_meier":
        return "observed runs"
    e, how = read_row_number(row, "e"), FAILURE_MANNER[str(row["class"])]
    if row["e_from"] == "store":
        return "as seen here" if e is None else f"as seen here: {e:.1%}, {how}"
    return "" if e is None else f"{e:.0%} of steps, {how}, assumed"
