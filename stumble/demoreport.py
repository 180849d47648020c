"""What the demo prints: rates with their intervals, what they imply, and where skills part."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traces.sql import ask

if TYPE_CHECKING:
    import duckdb
    from rich.console import Console
    from rich.table import Table

type Row = dict[str, object]

ERROR_RATES = (0.01, 0.02, 0.05)
STEPS = (10, 20, 50)


def report(connection: "duckdb.DuckDBPyConnection", console: "Console") -> None:
    """Print two tables and a sentence."""
    rates = _rows(ask(connection, "recovery_by_model"))
    console.print(_rates(connection, rates))
    console.print(_survival(connection, rates))
    console.print(_sentence(connection, rates))


def _table(title: str, columns: Sequence[str]) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _rates(connection: "duckdb.DuckDBPyConnection", rates: Sequence[Row]) -> "Table":
    shams = {row["model"]: row for row in _rows(connection.execute("select * from sham"))}
    table = _table(
        "what each skill did with a broken tool call (95 % intervals)",
        ("skill", "fired", "handled", "recovered", "silently wrong", "false notice"),
    )
    for row in rates:
        sham = shams.get(row["model"], {})
        table.add_row(
            _skill(row),
            str(row["fired"]),
            _interval(row, "handled_rate"),
            _interval(row, "recovery_rate"),
            _interval(row, "silent_rate"),
            f"{sham.get('noticed', 0)} of {sham.get('judged', 0)} shams",
        )
    return table


def _survival(connection: "duckdb.DuckDBPyConnection", rates: Sequence[Row]) -> "Table":
    steps = (f"{n} steps" for n in STEPS)
    table = _table(
        "what that implies: the chance to get through n steps (95 % intervals)",
        ("skill", "tools fail in", *steps, "naive, 50 steps"),
    )
    found = _rows(connection.execute("select * from survival where e_from = 'assumed'"))
    for rate in rates:
        for e in ERROR_RATES:
            cells = {
                row["n"]: row for row in found if row["model"] == rate["model"] and row["e"] == e
            }
            table.add_row(
                _skill(rate) if e == ERROR_RATES[0] else "",
                f"{e:.0%} of steps",
                *(_interval(cells[n], "survival", "lo", "hi") for n in STEPS),
                _percent(cells[STEPS[-1]]["naive"]),
            )
    return table


def _sentence(connection: "duckdb.DuckDBPyConnection", rates: Sequence[Row]) -> str:
    """Where the two best skills part, and on what they do not."""
    found = _rows(connection.execute("select * from recovery"))
    silent = {(row["model"], row["op"]): _number(row, "silent_rate") for row in found}
    second, best = sorted(rates, key=lambda row: _number(row, "handled_rate"))[-2:]
    gaps = sorted(
        (silent[second["model"], op] - silent[best["model"], op], str(op))
        for model, op in silent
        if model == best["model"]
    )
    gap, apart = gaps[-1]
    if gap <= 0:
        return "No skill delivers wrong results less often than another here."
    alike = ", ".join(op for difference, op in gaps if difference == 0)
    one, two = _skill(second), _skill(best)
    return (
        f"{one} and {two} part on {apart}: {one} delivers "
        f"{silent[second['model'], apart]:.0%} of it wrong without a word, {two} "
        f"{silent[best['model'], apart]:.0%}"
        + (f"; on {alike} they are alike. " if alike else ". ")
        + "Asking again when a tool complains is not enough where it lies; reading twice is, "
        "unless the lie is told twice."
    )


def _rows(answer: "duckdb.DuckDBPyConnection") -> list[Row]:
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def _skill(row: Row) -> str:
    return str(row["model"]).removeprefix("practice/")


def _number(row: Row, name: str) -> float:
    value = row[name]
    return value if isinstance(value, float) else 0.0


def _percent(value: object) -> str:
    return f"{value:.0%}" if isinstance(value, float) else "unknown"


def _interval(row: Row, name: str, lo: str | None = None, hi: str | None = None) -> str:
    low, high = row[lo or f"{name}_lo"], row[hi or f"{name}_hi"]
    if not isinstance(low, float) or not isinstance(high, float):
        return _percent(row[name])
    return f"{_percent(row[name])} ({low:.0%}-{high:.0%})"
