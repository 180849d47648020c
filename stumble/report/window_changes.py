"""Significant changes between two windows of a store, and their text."""

from collections.abc import Iterator, Mapping, Sequence

type DriftRow = Mapping[str, object]

WORSE_IF_HIGHER = frozenset(
    (
        "tool_errors",
        "failed",
        "unfinished",
        "hazard",
        "silent",
        "cost",
        "tokens",
        "seconds",
        "steps",
    )
)
WORSE_IF_LOWER = frozenset(("recovery",))
"""A measure of neither, as a tool's share of the calls, is no better or worse."""
MEASURE_WORDS = {
    "tool_errors": "tool calls that fail",
    "tool_share": "share of the calls",
    "failed": "runs that fail",
    "unfinished": "runs without a final answer",
    "hazard": "chance to fail in a step",
    "recovery": "recovery from faults",
    "silent": "silent failures after faults",
    "cost": "dollars a run",
    "tokens": "tokens a run",
    "seconds": "seconds a run",
    "steps": "steps a run",
}
_SHARES = frozenset(
    ("tool_errors", "tool_share", "failed", "unfinished", "hazard", "recovery", "silent")
)


def find_changes(rows: Sequence[DriftRow], alpha: float) -> list[dict[str, object]]:
    """Return the rows that changed significantly, most certain first, with `worse` (or None)."""
    found = [
        dict(row) | {"worse": _is_worse(row)}
        for row in rows
        if (p := _read_number(row, "p_adjusted")) is not None and p < alpha
    ]
    return sorted(found, key=lambda row: _read_number(row, "p_adjusted") or 0.0)


def is_comparable(rows: Sequence[DriftRow]) -> bool:
    """Return whether anything could be tested."""
    return any(row["p"] is not None for row in rows)


def _is_worse(row: DriftRow) -> bool | None:
    change = _read_number(row, "change")
    if change is None or row["measure"] not in WORSE_IF_HIGHER | WORSE_IF_LOWER:
        return None
    return (change > 0) == (row["measure"] in WORSE_IF_HIGHER)


def format_changes(
    rows: Sequence[DriftRow], changes: Sequence[DriftRow], since: str, against: str
) -> Iterator[str]:
    """Yield the significant changes as lines, then what was tested without one, and what could
    not be tested."""
    tested = sum(row["p"] is not None for row in rows)
    if not tested:
        yield (
            f"not enough runs: five tasks (or runs) are needed in the last {since}, and in the "
            f"{against} before"
        )
        return
    yield (
        f"the last {since} against the {against} before: {len(changes)} significant of "
        f"{tested} that were tested"
    )
    for row in changes:
        word = {True: "worse", False: "better", None: "changed"}[_is_worse(row)]
        p = _read_number(row, "p_adjusted") or 0.0
        sides = f"{format_side(row, 'recent')}, before {format_side(row, 'earlier')}"
        yield (
            f"  {word:8} {describe_measure(row)}: {sides} (p = {p:.2g}){_describe_half_life(row)}"
        )
    untested: dict[str, int] = {}
    for row in rows:
        if row["p"] is None:
            reason = str(row["reason"] or "constant")
            untested[reason] = untested.get(reason, 0) + 1
    for reason, count in sorted(untested.items()):
        yield f"  not tested: {count}, {reason}"


def describe_measure(row: DriftRow) -> str:
    """Name a measure with its tool, agent and model."""
    who = " ".join(str(row[key]) for key in ("agent", "model") if row[key])
    part = f" of {row['part']}" if row.get("part") else ""
    return f"{MEASURE_WORDS.get(str(row['measure']), row['measure'])}{part}, {who or 'all agents'}"


def format_side(row: DriftRow, side: str) -> str:
    """Format a number of one window with its interval, or without."""
    share = row["measure"] in _SHARES
    lo, hi = (_read_number(row, f"{side}_{end}") for end in ("lo", "hi"))
    text = _format_number(_read_number(row, side), share=share)
    if lo is None or hi is None:
        return text
    return f"{text} [{_format_number(lo, share=share)}, {_format_number(hi, share=share)}]"


def format_weeks(rows: Sequence[DriftRow]) -> Iterator[str]:
    """Yield the weeks, one line each, below their measure."""
    measure = None
    for row in rows:
        if (title := describe_measure(row)) != measure:
            measure = title
            yield f"{title}:"
        counted = f"({row['cases']} in {row['traces']})"
        yield f"  week of {row['week']}  {format_side(row, 'amount')}  {counted}"


def _describe_half_life(row: DriftRow) -> str:
    lives = [_read_number(row, f"{side}_half_life") for side in ("recent", "earlier")]
    if None in lives:
        return ""
    return f"; half-life {lives[0]:.0f} steps, before {lives[1]:.0f}"


def _format_number(value: float | None, *, share: bool) -> str:
    if value is None:
        return "unknown"
    return f"{value:.1%}" if share else f"{value:.4g}"


def _read_number(row: DriftRow, key: str) -> float | None:
    value = row.get(key)
    return float(value) if isinstance(value, int | float) else None
