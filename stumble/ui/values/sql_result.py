"""The SQL page: questions with their parameters, and a result as a table or a chart."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from stumble.ui.values.formats import UNKNOWN
from traces.store.sql import SqlQuestion

type Cell = str | int | float | bool | None

LABEL_COLUMNS = ("agent", "model", "scenario", "task", "op", "family", "part", "measure", "tool")
MOST_BARS = 60
CHART_WIDTH = 100.0


class QuestionField(Struct, frozen=True, kw_only=True):
    """A parameter of a named question."""

    name: str
    value: str
    default: str
    limits: str


class ChartBar(Struct, frozen=True, kw_only=True):
    """One bar in percent of the width; with an interval if the row has one."""

    label: str
    value: str
    width: float
    interval: tuple[float, float] | None


class SqlResult(Struct, frozen=True, kw_only=True):
    """The rows of a statement, or why there are none."""

    names: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    more: bool = False
    error: str | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> "SqlResult":
        """Read what the worker printed."""
        if "error" in data:
            return cls(error=str(data["error"]))
        names, rows = data["names"], data["rows"]
        assert isinstance(names, list)
        assert isinstance(rows, list)
        return cls(
            names=tuple(map(str, names)),
            rows=tuple(tuple(row) for row in rows),
            more=bool(data["more"]),
        )

    def is_numeric(self, column: int) -> bool:
        """Whether a column holds numbers."""
        return any(_is_number(row[column]) for row in self.rows)


def list_fields(question: SqlQuestion, given: Mapping[str, str]) -> Iterator[QuestionField]:
    """Yield the parameters of a question with their given values."""
    for name, default in question.defaults.items():
        low, high = question.ranges.get(name, (None, None))
        bounds = [f"{edge:g}" if isinstance(edge, float) and abs(edge) < 1e15 else ""
                  for edge in (low, high)]  # fmt: skip
        yield QuestionField(
            name=name,
            value=given.get(name, ""),
            default="any" if default is None else str(default),
            limits=f"{bounds[0]} to {bounds[1] or 'any'}" if bounds[0] else "",
        )


def list_bars(result: SqlResult, column: str = "") -> tuple[str, tuple[ChartBar, ...]]:
    """Return a numeric column and its bars; none if no column is numeric.

    Columns `NAME_lo` and `NAME_hi`, or `lo` and `hi`, give the interval.
    """
    numeric = [name for at, name in enumerate(result.names) if result.is_numeric(at)]
    shown = column if column in numeric else _choose_column(numeric)
    if shown is None:
        return "", ()
    at = {name: index for index, name in enumerate(result.names)}
    pair = next((p for p in ((f"{shown}_lo", f"{shown}_hi"), ("lo", "hi"))
                 if p[0] in at and p[1] in at), None)  # fmt: skip
    rows = [row for row in result.rows if _is_number(row[at[shown]])][:MOST_BARS]
    edges = [abs(_number(row[at[name]])) for row in rows for name in (shown, *(pair or ()))]
    most = max(edges, default=0.0) or 1.0
    return shown, tuple(
        ChartBar(
            label=_make_label(result.names, row),
            value=format_cell(row[at[shown]]),
            width=CHART_WIDTH * abs(_number(row[at[shown]])) / most,
            interval=_read_interval(row, at, pair, most),
        )
        for row in rows
    )


def _choose_column(numeric: Sequence[str]) -> str | None:
    """Prefer a rate to a count."""
    return next((name for name in numeric if "rate" in name), next(iter(numeric), None))


def _read_interval(
    row: Sequence[Cell], at: Mapping[str, int], pair: tuple[str, str] | None, most: float
) -> tuple[float, float] | None:
    if pair is None:
        return None
    low, high = row[at[pair[0]]], row[at[pair[1]]]
    if not (_is_number(low) and _is_number(high)):
        return None
    return CHART_WIDTH * _number(low) / most, CHART_WIDTH * _number(high) / most


def _make_label(names: Sequence[str], row: Sequence[Cell]) -> str:
    parts = [str(value) for name, value in zip(names, row, strict=True)
             if name in LABEL_COLUMNS and value is not None]  # fmt: skip
    texts = [str(value) for value in row if isinstance(value, str)]
    return " \u00b7 ".join(parts or texts[:2]) or UNKNOWN


def format_cell(value: Cell) -> str:
    """Format a value as `stumble sql` prints it."""
    if value is None:
        return UNKNOWN
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_number(value: Cell) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Cell) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
