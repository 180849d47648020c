"""The chance to get through n steps: observed, modelled, and the naive figure beside them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stumble.report.values import Cell, Chart, Figure, Row, Section, Table, figure, number, whole
from stumble.selection import view

if TYPE_CHECKING:
    import duckdb

FARTHEST = 200
"""Steps up to which curves are drawn at most."""
LEAST = 20

UNSEEN = "not seen: no run was that long"

LEGEND = (
    ("observed", "observed (Kaplan-Meier, with its 95 % band)"),
    ("constant", "p^n: the same hazard at each step, a model, with its 95 % band"),
    ("naive", "naive: (1 - errors/steps)^n, each error fatal"),
)


def survival(connection: "duckdb.DuckDBPyConnection", name: Callable[[Row], str]) -> Section:
    """Curves per agent, and a table of the implied survival at 10, 20 and 50 steps."""
    curves, implied = view(connection, "km"), view(connection, "survival")
    models = [row for row in implied if row["basis"] == "model"]
    if not curves and not models:
        return Section(
            name="survival",
            title="Survival over steps",
            nothing="There are no clean runs from their first step, and no faults: nothing to "
            "tell a survival from.",
        )
    groups: dict[tuple[object, object], list[Row]] = {}
    for row in sorted(curves, key=lambda row: (str(row["model"]), whole(row, "step"))):
        groups.setdefault((row["agent"], row["model"]), []).append(row)
    return Section(
        name="survival",
        title="Survival over steps",
        lead=(
            "The share of runs without a forced fault that have not failed yet after so many "
            "steps. Observed is what happened, and ends with the longest run; the curves beyond "
            "it are models. Tasks are pooled, and weak ones fail first, so that a curve that "
            "flattens does not show an agent that warms up.",
        ),
        charts=tuple(
            _chart(name(rows[0]), rows, _hazard(models, key)) for key, rows in groups.items()
        ),
        legend=LEGEND if groups else (),
        tables=_tables(implied, name),
        notes=_notes(groups, models, name),
    )


def _hazard(models: Sequence[Row], key: tuple[object, object]) -> Row:
    """What is known of the steps of an agent: u, the hazard, and e, the share with an error."""
    mine = [row for row in models if (row["agent"], row["model"]) == key]
    return next((row for row in mine if row["e_from"] == "store"), {})


def _chart(who: str, found: Sequence[Row], hazard: Row) -> Chart:
    last = whole(found[-1], "step")
    end = min(max(last, LEAST), FARTHEST)
    drawn: list[Row] = [{"kind": "observed", "step": 0, "survival": 1.0, "lo": None, "hi": None}]
    drawn += [
        {
            "kind": "observed",
            "step": whole(row, "step"),
            "survival": number(row, "survival"),
            "lo": number(row, "lo"),
            "hi": number(row, "hi"),
        }
        for row in found
        if whole(row, "step") <= FARTHEST
    ]
    for kind, column in (("constant", "u"), ("naive", "e")):
        rate = number(hazard, column)
        if rate is not None:
            lo, hi = number(hazard, f"{column}_hi"), number(hazard, f"{column}_lo")
            drawn += [
                {
                    "kind": kind,
                    "step": n,
                    "survival": (1 - rate) ** n,
                    "lo": None if lo is None else (1 - lo) ** n,
                    "hi": None if hi is None else (1 - hi) ** n,
                }
                for n in sorted({round(end * i / 40) for i in range(41)})
            ]
    deaths, runs = sum(whole(row, "deaths") for row in found), whole(found[0], "at_risk")
    at_end = figure(found[-1], "survival", lo="lo", hi="hi", reason="one_outcome")
    says = (
        f"{who}: {deaths} of {runs} runs failed; after {last} steps {at_end.text} had not failed."
    )
    return Chart(drawing="survival", of=f"{who}, {runs} runs", says=says, rows=tuple(drawn))


def _notes(
    groups: dict[tuple[object, object], list[Row]],
    models: Sequence[Row],
    name: Callable[[Row], str],
) -> tuple[str, ...]:
    notes = []
    for key, found in groups.items():
        hazard = _hazard(models, key)
        if number(hazard, "e") is None:
            notes.append(f"{name(found[0])}: no naive curve, since tool calls did not all say "
                         "whether they failed.")  # fmt: skip
        if all(number(row, "survival") == 1 for row in found):
            notes.append(
                f"{name(found[0])}: no run failed, so that the observed curve has no band."
            )
    return tuple(notes)


def _tables(implied: Sequence[Row], name: Callable[[Row], str]) -> tuple[Table, ...]:
    lines: dict[tuple[str, str], dict[int, Figure]] = {}
    naive: dict[tuple[str, str], str] = {}
    for row in sorted(implied, key=_order):
        line = name(row), _basis(row)
        lines.setdefault(line, {})[whole(row, "n")] = figure(
            row, "survival", lo="lo", hi="hi", reason="one_outcome"
        )
        rate = Figure(value=number(row, "naive"), reason="no_error_rate")
        naive[line] = f"{rate.point} at {row['n']} steps" if rate.value is not None else rate.point
    horizons = sorted({n for figures in lines.values() for n in figures})
    if not lines:
        return ()
    rows: list[tuple[Cell, ...]] = [
        (*line, *(figures.get(n, UNSEEN) for n in horizons), naive[line])
        for line, figures in lines.items()
    ]
    return (
        Table(
            caption="The chance to get through n steps: implied by handled rate, clean hazard and "
            "error rate, or observed",
            columns=(
                "agent",
                "tools fail in",
                *(f"{n} steps" for n in horizons),
                "naive",
            ),
            rows=tuple(rows),
        ),
    )


def _order(row: Row) -> tuple[str, str, str, float, int]:
    basis = "0" if row["basis"] == "km" else str(row["e_from"] == "assumed")
    return str(row["model"]), str(row["world"]), basis, number(row, "e") or 0, whole(row, "n")


def _basis(row: Row) -> str:
    if row["basis"] == "km":
        return "observed runs"
    e = number(row, "e")
    if row["e_from"] == "store":
        return "as seen here" if e is None else f"as seen here: {e:.1%}"
    return "" if e is None else f"{e:.0%} of steps, assumed"
