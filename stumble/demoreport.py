"""What the demo prints: rates with their intervals, what they imply, and why they differ."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traces.sql import ask

if TYPE_CHECKING:
    import duckdb
    from rich.console import Console

type Row = dict[str, object]

ERROR_RATES = (0.01, 0.02, 0.05)
STEPS = (10, 20, 50)


def report(connection: "duckdb.DuckDBPyConnection", console: "Console") -> None:
    """Print the tables and the sentence."""
    from rich.table import Table

    rates = _rows(ask(connection, "recovery_by_model"))
    shams = {row["model"]: row for row in _rows(connection.execute("select * from sham"))}
    table = Table("skill", "fired", "handled", "recovered", "silently wrong", "false notice",
                  title="what each skill did with a broken tool call (95 % intervals)")  # fmt: skip
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
    console.print(table)
    console.print(_survival(connection, rates))
    console.print(_sentence(connection, rates))


def _survival(connection: "duckdb.DuckDBPyConnection", rates: Sequence[Row]) -> "object":
    from rich.table import Table

    table = Table(
        "skill", "tool errors", *(f"{n} steps" for n in STEPS), "naive, 50 steps",
        title="what that implies for longer runs (handled rate, and the fatal hazard seen)",
    )  # fmt: skip
    found = _rows(connection.execute("select * from survival where e_from = 'assumed'"))
    for rate in rates:
        for e in ERROR_RATES:
            cells = {
                row["n"]: row for row in found if row["model"] == rate["model"] and row["e"] == e
            }
            naive = cells[STEPS[-1]]["naive"]
            table.add_row(
                _skill(rate) if e == ERROR_RATES[0] else "",
                f"{e:.0%} of steps",
                *(_interval(cells[n], "survival", "lo", "hi") for n in STEPS),
                _percent(naive),
            )
    return table


def _sentence(connection: "duckdb.DuckDBPyConnection", rates: Sequence[Row]) -> str:
    """The largest difference between two skills on one fault, and what makes it."""
    by_op = {
        (row["model"], row["op"]): row
        for row in _rows(connection.execute("select * from recovery"))
    }
    ops = sorted({str(op) for _, op in by_op})
    models = [row["model"] for row in rates]
    gaps = [
        (abs(_number(by_op[one, op]) - _number(by_op[two, op])), str(op), one, two)
        for op in ops
        for one in models
        for two in models
        if one != two and _number(by_op[one, op]) < _number(by_op[two, op])
    ]
    if not gaps:
        return "The skills do not differ in how often they recover."
    gap, op, low, high = max(gaps, key=lambda each: (each[0], each[1]))
    silent = by_op[low, op]["silent_rate"]
    return (
        f"The widest gap is {gap:.0%} on {op}: {_name(high)} recovers from "
        f"{_percent(by_op[high, op]['recovery_rate'])} of it and {_name(low)} from "
        f"{_percent(by_op[low, op]['recovery_rate'])}, delivering {_percent(silent)} wrong "
        "without a word. A loud fault is met by asking again; a quiet one only by reading twice."
    )


def _rows(answer: "duckdb.DuckDBPyConnection") -> list[Row]:
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def _name(model: object) -> str:
    return str(model).removeprefix("practice/")


def _skill(row: Row) -> str:
    return _name(row["model"])


def _number(row: Row) -> float:
    value = row["recovery_rate"]
    return value if isinstance(value, float) else 0.0


def _percent(value: object) -> str:
    return f"{value:.0%}" if isinstance(value, float) else "unknown"


def _interval(row: Row, name: str, lo: str | None = None, hi: str | None = None) -> str:
    low, high = row[lo or f"{name}_lo"], row[hi or f"{name}_hi"]
    if not isinstance(low, float) or not isinstance(high, float):
        return _percent(row[name])
    return f"{_percent(row[name])} ({low:.0%} to {high:.0%})"
