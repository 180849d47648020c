"""What a report is made of, whatever it is shown on: figures, tables, charts, sections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

type Row = Mapping[str, object]
type Unit = Literal["share", "count", "steps", "tokens", "seconds", "usd", "points"]

REASONS: Mapping[str, str] = {
    "few_traces": "fewer than 5 traces",
    "all_alike": "all traces alike",
    "nothing_fired": "nothing struck",
    "nothing_consumed": "nothing reached the agent",
    "nothing_judged": "no verdict could be given",
    "nothing_noticed": "nothing was noticed",
    "no_faults": "no faults were injected",
    "no_clean_runs": "no clean runs with a verdict",
    "no_error_rate": "whether tool calls failed was not said",
    "not_recorded": "it was not recorded",
    "all_traces_agree": "all traces alike",
    "a_rate_of_0_or_1": "a rate of 0 or 1",
    "no_shams": "no sham was judged",
    "no_price": "no price is known for the model",
    "operators_pooled": "operators are tested one by one",
    "one_outcome": "nothing or everything failed so far",
    "one_run": "one run",
    "no_pipeline": "ran no pipeline",
    "no_cohort": "no cohort",
    "not_struck": "not struck",
    "several_worlds": "struck in several worlds",
    "no_baseline": "no untouched run",
    "not_known": "not known",
    "no_cases": "no such runs",
}
"""Why a figure or its interval is missing, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number with its 95 % interval and what it was counted on; `value` None is unknown."""

    value: float | None
    unit: Unit = "share"
    lo: float | None = None
    hi: float | None = None
    n: int | None = None
    reason: str | None = None
    """Why the value, or else its interval, is not known."""
    bare: bool = False
    """Whether it has no interval of its own, as the part of a difference that has one."""
    terse: bool = False
    """Whether nothing but the reason is said where it is not known, as in a large table."""

    @property
    def point(self) -> str:
        """`40 %`, or `not known (nothing reached the agent)`."""
        if self.value is None and self.terse:
            return REASONS.get(self.reason, self.reason) if self.reason else "not known"
        if self.value is None:
            return f"not known{self.why}"
        return _written(self.value, self.unit)

    @property
    def interval(self) -> str:
        """`27-54 %`, or why there is none; empty for what is a plain count."""
        if self.value is None or self.bare or self.unit == "count":
            return ""
        if self.lo is None or self.hi is None:
            return f"no interval{self.why}"
        low, high = _written(self.lo, self.unit), _written(self.hi, self.unit)
        between = " to " if self.lo < 0 else "\u2013"
        return f"{low.removesuffix(_suffix(self.unit))}{between}{high}"

    @property
    def counted(self) -> str:
        """`n = 60`; empty where nothing was counted."""
        return "" if self.n is None else f"n = {self.n:,}"

    @property
    def why(self) -> str:
        """The reason in brackets, with a space before it; empty where none is known."""
        return f" ({REASONS.get(self.reason, self.reason)})" if self.reason else ""

    @property
    def text(self) -> str:
        """All of it in a line: `40 % (27-54 %), n = 60`."""
        interval = self.interval
        if self.lo is not None:
            interval = f"({interval})"
        parts = [f"{self.point} {interval}".strip(), self.counted]
        return ", ".join(part for part in parts if part)

    @property
    def short(self) -> str:
        """The same where there is little room: `40 % (27-54 %) of 60`, and no reasons."""
        if self.value is None:
            return self.point if self.terse else "not known"
        if self.unit == "count":
            return self.point
        between = f" ({self.interval})" if self.lo is not None else ", no interval"
        between = "" if self.bare or (self.terse and self.lo is None) else between
        return self.point + between + ("" if self.n is None else f" of {self.n:,}")

    def plain(self) -> object:
        """The same for JSON; a count is a number."""
        if self.unit == "count":
            return self.value
        return {
            "value": self.value,
            "lo": self.lo,
            "hi": self.hi,
            "n": self.n,
            "unit": self.unit,
            "reason": self.reason,
        }


def _suffix(unit: Unit) -> str:
    return {"share": " %", "seconds": " s"}.get(unit, "")


def _written(value: float, unit: Unit) -> str:
    if unit == "share":
        percent = 100 * value
        digits = 1 if 0 < abs(percent) < 1 or 99 < abs(percent) < 100 else 0
        return f"{percent:.{digits}f} %".replace("-", "\u2212")
    if unit == "points":
        return f"{value:.1f}"
    if unit == "usd":
        return f"${value:,.4f}" if value < 1 else f"${value:,.2f}"
    digits = 0 if unit in ("count", "tokens") or float(value).is_integer() else 2
    said = f"{value:,.{digits}f}{_suffix(unit)}"
    return said.replace("-", "\u2212") if float(f"{value:.2f}") else said.replace("-", "")


type Cell = str | Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under columns; the first column says what each row is about."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: bool = True
    """Whether a page folds it up where it has many rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The rows that one picture is drawn from; `drawing` names the way it is drawn."""

    drawing: str
    of: str
    says: str
    """The picture in words, for those who do not see it."""
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the report; `nothing` says why it is empty where it is."""

    name: str
    title: str
    lead: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    legend: tuple[tuple[str, str], ...] = ()
    """What the colours mean: (name of the ink, words)."""
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    nothing: str | None = None


def number(row: Row, name: str) -> float | None:
    """A column as a number; None where it is NULL or no number."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def whole(row: Row, name: str) -> int:
    """A column that counts; 0 where there is no such count."""
    value = row.get(name)
    return value if isinstance(value, int) else 0


def figure(
    row: Row,
    name: str,
    *,
    lo: str | None = None,
    hi: str | None = None,
    n: str | None = None,
    unit: Unit = "share",
    reason: str | None = None,
    unknown: str | None = None,
) -> Figure:
    """A figure from the columns `name`, `name_lo` and `name_hi` of a row.

    Its column `reason` says why something is missing, else `reason` here does; where `unknown`
    is given that is why there is no value.
    """
    low, high = number(row, lo or f"{name}_lo"), number(row, hi or f"{name}_hi")
    value, why = number(row, name), row.get("reason")
    missing = value is None or low is None or high is None
    said = (why if isinstance(why, str) else None) or reason
    said = unknown if unknown and value is None else said
    return Figure(
        value=value,
        unit=unit,
        lo=low,
        hi=high,
        n=whole(row, n) if n else None,
        reason=said if missing else None,
    )


def count(value: int) -> Figure:
    """A plain count."""
    return Figure(value=value, unit="count")


def total(rows: Sequence[Row], name: str) -> int:
    """The sum of a counting column."""
    return sum(whole(row, name) for row in rows)
