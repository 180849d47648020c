"""Parts of a report, independent of its output: figures, tables, charts, sections."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from stumble.store.filter import ReportRow

type AgentKey = tuple[str | None, str | None, str | None]
"""Agent, model and world of a row."""
type FigureUnit = Literal["share", "count", "steps", "tokens", "seconds", "usd", "points"]

REASONS: Mapping[str, str] = {
    "few_traces": "fewer than 5 traces",
    "few_labels": "no labelled run of that kind, or a judge no better than chance",
    "few_effective_traces": "one trace has most of the cases",
    "conservative": "wider than it may need to be: few traces or few events",
    "nothing_noticeable": "no fault that fired could be noticed",
    "all_runs_agree": "all runs ended alike",
    "not_a_number": "not a number",
    "all_alike": "all traces alike",
    "nothing_fired": "no fault fired",
    "nothing_consumed": "nothing reached the agent",
    "nothing_judged": "no verdict could be given",
    "nothing_noticed": "nothing was noticed",
    "no_faults": "no fault of this class has a known end",
    "no_clean_runs": "no clean runs with a verdict",
    "no_error_rate": "whether tool calls failed was not said",
    "not_recorded": "it was not recorded",
    "all_traces_agree": "all traces alike",
    "a_rate_of_0_or_1": "a rate of 0 or 1",
    "no_shams": "no sham was judged",
    "no_price": "no price is known for the model",
    "operators_pooled": "operators are tested one by one",
    "interval_censored": "nobody knows at which step runs failed",
    "extrapolated": "longer than any run here",
    "ungraded": "no clean run was graded",
    "one_run": "one run",
    "no_pipeline": "ran no pipeline",
    "no_cohort": "no cohort",
    "some_stages": "not all stages were run",
    "not_faulted": "no faults",
    "several_worlds": "faults in several worlds",
    "several_judges": "several versions of the judge, or several verifiers",
    "no_baseline": "no untouched run",
    "not_known": "not known",
    "no_cases": "no such runs",
    "mixed_judges": "several versions of the judge",
    "mixed_verifiers": "several verifiers of the same recordings",
    "unfinished_plan": "the sealed plan is not finished",
}
"""Texts of the reasons for a missing figure or interval."""


class ReportFigure(Struct, frozen=True, kw_only=True):
    """A number with its 95 % interval and its number of cases; `value` None is unknown."""

    value: float | None
    unit: FigureUnit = "share"
    lo: float | None = None
    hi: float | None = None
    n: int | None = None
    unknown: int = 0
    """Number of further cases whose value is not known."""
    least: float | None = None
    """The value with all unknown cases counted against."""
    most: float | None = None
    """The value with all unknown cases counted for."""
    reason: str | None = None
    """Why the value, or its interval, is unknown."""
    bare: bool = False
    """Whether it never has an interval, such as a part of a difference with one."""
    terse: bool = False
    """Whether an unknown value is shown as its reason alone, as in a large table."""

    @property
    def point(self) -> str:
        """`40 %`, or `not known (nothing reached the agent)`."""
        if self.value is None and self.terse:
            return REASONS.get(self.reason, self.reason) if self.reason else "not known"
        if self.value is None:
            return f"not known{self.reason_suffix}"
        return _format_unit_value(self.value, self.unit)

    @property
    def interval(self) -> str:
        """`27-54 %`, or the reason for no interval; empty for a plain count."""
        if self.value is None or self.bare or self.unit == "count":
            return ""
        if self.lo is None or self.hi is None:
            return f"no interval{self.reason_suffix}"
        low, high = _format_unit_value(self.lo, self.unit), _format_unit_value(self.hi, self.unit)
        between = " to " if self.lo < 0 else "\u2013"
        return f"{low.removesuffix(_find_unit_suffix(self.unit))}{between}{high}"

    @property
    def counted(self) -> str:
        """`n = 60`; empty without a number of cases."""
        return "" if self.n is None else f"n = {self.n:,}"

    @property
    def reason_suffix(self) -> str:
        """The reason in brackets, with a space before it; empty without a reason."""
        return f" ({REASONS.get(self.reason, self.reason)})" if self.reason else ""

    @property
    def bounds(self) -> str:
        """`30–55 % by 12 unknown`: the value if none or all of these count; empty without any."""
        if not self.unknown or self.least is None or self.most is None:
            return ""
        low, high = (_format_unit_value(each, self.unit) for each in (self.least, self.most))
        low = low.removesuffix(_find_unit_suffix(self.unit))
        return f"{low}\u2013{high} by {self.unknown:,} unknown"

    @property
    def is_open(self) -> bool:
        """Whether the bounds are wider than the interval, so that they are what is known."""
        if not self.bounds or self.least is None or self.most is None:
            return False
        if self.lo is None or self.hi is None:
            return True
        return self.most - self.least > self.hi - self.lo

    @property
    def text(self) -> str:
        """The complete figure in a line: `40 % (27-54 %), n = 60`, with its bounds."""
        interval = self.interval
        if self.lo is not None:
            interval = f"({interval})"
        parts = [f"{self.point} {interval}".strip(), self.counted]
        return self._add_bounds(", ".join(part for part in parts if part))

    def _add_bounds(self, known: str) -> str:
        """Add the bounds: before a value that they leave open, after any other."""
        if self.is_open:
            return f"{self.bounds}; of the known {known}"
        return f"{known}; {self.bounds}" if self.bounds else known

    @property
    def short(self) -> str:
        """A shorter text: `40 % (27-54 %) of 60`, without reasons."""
        if self.value is None:
            return self.point if self.terse else "not known"
        if self.unit == "count":
            return self.point
        between = f" ({self.interval})" if self.lo is not None else ", no interval"
        between = "" if self.bare or (self.terse and self.lo is None) else between
        return self._add_bounds(
            self.point + between + ("" if self.n is None else f" of {self.n:,}")
        )

    def to_json_value(self) -> object:
        """Return the figure for JSON; a count is a number."""
        if self.unit == "count":
            return self.value
        return {
            "value": self.value,
            "lo": self.lo,
            "hi": self.hi,
            "n": self.n,
            "unknown": self.unknown,
            "least": self.least,
            "most": self.most,
            "unit": self.unit,
            "reason": self.reason,
        }


def _find_unit_suffix(unit: FigureUnit) -> str:
    return {"share": " %", "seconds": " s"}.get(unit, "")


def _format_unit_value(value: float, unit: FigureUnit) -> str:
    if unit == "share":
        percent = 100 * value
        digits = 1 if 0 < abs(percent) < 1 or 99 < abs(percent) < 100 else 0
        return f"{percent:.{digits}f} %".replace("-", "\u2212")
    if unit == "points":
        return f"{value:.1f}"
    if unit == "usd":
        return f"${value:,.4f}" if value < 1 else f"${value:,.2f}"
    digits = 0 if unit in ("count", "tokens") or float(value).is_integer() else 2
    text = f"{value:,.{digits}f}{_find_unit_suffix(unit)}"
    return text.replace("-", "\u2212") if float(f"{value:.2f}") else text.replace("-", "")


type TableCell = str | ReportFigure | None


class ReportTable(Struct, frozen=True, kw_only=True):
    """Rows under columns; the first column labels the row."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    folded: bool = True
    """Whether a page collapses it if it has many rows."""


class ReportChart(Struct, frozen=True, kw_only=True):
    """The rows of one chart; `drawing` names its draw function."""

    drawing: str
    of: str
    says: str
    """Text alternative of the chart."""
    rows: tuple[ReportRow, ...]


class ReportSection(Struct, frozen=True, kw_only=True):
    """A part of the report; `nothing` is the reason if it is empty."""

    name: str
    title: str
    lead: tuple[str, ...] = ()
    charts: tuple[ReportChart, ...] = ()
    legend: tuple[tuple[str, str], ...] = ()
    """Legend of the colours: (name in the palette, text)."""
    tables: tuple[ReportTable, ...] = ()
    notes: tuple[str, ...] = ()
    nothing: str | None = None


def read_row_number(row: ReportRow, name: str) -> float | None:
    """Return a column as a number; None if it is NULL or no number."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def read_row_text(row: ReportRow, name: str) -> str | None:
    """Return a column as a text; None if it is NULL or no text."""
    value = row.get(name)
    return value if isinstance(value, str) else None


def read_row_count(row: ReportRow, name: str) -> int:
    """Return a column as a count; 0 if it is NULL or no integer."""
    value = row.get(name)
    return value if isinstance(value, int) else 0


def make_figure(
    row: ReportRow,
    name: str,
    *,
    lo: str | None = None,
    hi: str | None = None,
    n: str | None = None,
    unit: FigureUnit = "share",
    reason: str | None = None,
    unknown: str | None = None,
) -> ReportFigure:
    """Make a figure from the columns `name`, `name_lo` and `name_hi` of a row, and its bounds.

    The reason for missing parts is the column `reason`, else the argument `reason`; `unknown`, if
    given, is the reason for a missing value.
    """
    low, high = read_row_number(row, lo or f"{name}_lo"), read_row_number(row, hi or f"{name}_hi")
    value, why = read_row_number(row, name), row.get("reason")
    missing = value is None or low is None or high is None
    missing_reason = (why if isinstance(why, str) else None) or reason
    missing_reason = unknown if unknown and value is None else missing_reason
    return ReportFigure(
        value=value,
        unit=unit,
        lo=low,
        hi=high,
        n=read_row_count(row, n) if n else None,
        unknown=read_row_count(row, f"{name}_unknown"),
        least=read_row_number(row, f"{name}_least"),
        most=read_row_number(row, f"{name}_most"),
        reason=missing_reason if missing else None,
    )


def make_count_figure(value: int) -> ReportFigure:
    """Make a figure of a plain count."""
    return ReportFigure(value=value, unit="count")


def sum_row_counts(rows: Sequence[ReportRow], name: str) -> int:
    """Return the sum of a column of counts."""
    return sum(read_row_count(row, name) for row in rows)
