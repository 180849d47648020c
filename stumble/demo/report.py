"""Output of the demo: rates with intervals, survival, and the largest difference of two skills."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traces.store.sql import run_question

if TYPE_CHECKING:
    import duckdb
    from rich.console import Console
    from rich.table import Table

type Row = dict[str, object]

ASSUMED_ERROR_RATES = (("loud", 0.01), ("loud", 0.05), ("quiet", 0.01))
STEP_COUNTS = (10, 20, 50)
WRONG_VALUE_SUFFIX = ", by a wrong value"


def print_demo_report(connection: "duckdb.DuckDBPyConnection", console: "Console") -> None:
    """Print two tables and a sentence."""
    rates = _fetch_demo_rows(run_question(connection, "recovery_by_model"))
    console.print(_build_rates_table(connection, rates))
    console.print(_build_survival_table(connection, rates))
    console.print(_compare_best_skills(connection, rates))


def _make_demo_table(title: str, columns: Sequence[str]) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _build_rates_table(connection: "duckdb.DuckDBPyConnection", rates: Sequence[Row]) -> "Table":
    shams = {
        row["model"]: row for row in _fetch_demo_rows(connection.execute("select * from sham"))
    }
    table = _make_demo_table(
        "what each skill did with a broken tool call (95 % intervals)",
        ("skill", "fired", "handled", "recovered", "silently wrong", "false notice"),
    )
    for row in rates:
        sham = shams.get(row["model"], {})
        table.add_row(
            _get_skill_name(row),
            str(row["fired"]),
            _format_demo_interval(row, "handled_rate"),
            _format_demo_interval(row, "recovery_rate"),
            _format_demo_interval(row, "silent_rate"),
            f"{sham.get('noticed', 0)} of {sham.get('judged', 0)} shams",
        )
    return table


def _build_survival_table(connection: "duckdb.DuckDBPyConnection", rates: Sequence[Row]) -> "Table":
    steps = (f"{n} steps" for n in STEP_COUNTS)
    table = _make_demo_table(
        "what that implies: the chance to end right after n steps (95 % intervals)",
        ("skill", "tools fail in", *steps, "naive, 50 steps"),
    )
    rows = _fetch_demo_rows(
        connection.execute(
            "select * from survival where e_from = 'assumed' and curve = 'ends_right'"
        )
    )
    for rate in rates:
        for kind, e in ASSUMED_ERROR_RATES:
            cells = {
                row["n"]: row
                for row in rows
                if (row["model"], row["class"], row["e"]) == (rate["model"], kind, e)
            }
            table.add_row(
                _get_skill_name(rate) if (kind, e) == ASSUMED_ERROR_RATES[0] else "",
                f"{e:.0%} of steps{WRONG_VALUE_SUFFIX if kind == 'quiet' else ''}",
                *(_format_demo_interval(cells[n], "survival", "lo", "hi") for n in STEP_COUNTS),
                _format_percent(cells[STEP_COUNTS[-1]]["naive"]),
            )
    return table


def _compare_best_skills(connection: "duckdb.DuckDBPyConnection", rates: Sequence[Row]) -> str:
    """Describe where the two best skills differ most, and where they do not differ."""
    rows = _fetch_demo_rows(connection.execute("select * from recovery"))
    silent = {(row["model"], row["op"]): _get_float_column(row, "silent_rate") for row in rows}
    second, best = sorted(rates, key=lambda row: _get_float_column(row, "handled_rate"))[-2:]
    gaps = sorted(
        (silent[second["model"], op] - silent[best["model"], op], str(op))
        for model, op in silent
        if model == best["model"]
    )
    gap, operator = gaps[-1]
    if gap <= 0:
        return "No skill delivers wrong results less often than another here."
    equal_operators = ", ".join(op for difference, op in gaps if difference == 0)
    second_name, best_name = _get_skill_name(second), _get_skill_name(best)
    return (
        f"{second_name} and {best_name} part on {operator}: {second_name} delivers "
        f"{silent[second['model'], operator]:.0%} of it wrong without a word, {best_name} "
        f"{silent[best['model'], operator]:.0%}"
        + (f"; on {equal_operators} they are alike. " if equal_operators else ". ")
        + "A retry helps if a tool reports an error, not if it returns a wrong value. Reading "
        "twice helps, unless both reads are wrong."
    )


def _fetch_demo_rows(answer: "duckdb.DuckDBPyConnection") -> list[Row]:
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def _get_skill_name(row: Row) -> str:
    return str(row["model"]).removeprefix("practice/")


def _get_float_column(row: Row, name: str) -> float:
    value = row[name]
    return value if isinstance(value, float) else 0.0


def _format_percent(value: object) -> str:
    return f"{value:.0%}" if isinstance(value, float) else "unknown"


def _format_demo_interval(row: Row, name: str, lo: str | None = None, hi: str | None = None) -> str:
    low, high = row[lo or f"{name}_lo"], row[hi or f"{name}_hi"]
    if not isinstance(low, float) or not isinstance(high, float):
        return _format_percent(row[name])
    return f"{_format_percent(row[name])} ({low:.0%}-{high:.0%})"
