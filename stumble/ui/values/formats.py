"""Numbers and times as the pages write them; an unknown value is a dash."""

from datetime import UTC, datetime

UNKNOWN = "\u2013"


def format_seconds(seconds: float | None) -> str:
    """Format a duration as `240 ms`, `3.2 s` or `4:05 min`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.3g} s"
    return f"{seconds // 60:.0f}:{seconds % 60:02.0f} min"


def format_dollars(dollars: float | None) -> str:
    """Format an amount of US dollars; small ones with four digits."""
    if dollars is None:
        return UNKNOWN
    return f"${dollars:,.2f}" if dollars >= 10 else f"${dollars:.4f}"


def format_bytes(size: int | None) -> str:
    """Format a size as `812 B`, `4.1 kB` or `2.3 MB`."""
    if size is None:
        return UNKNOWN
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:,.1f} MB"


def format_count(count: int | None) -> str:
    """Format a number with thousands separators."""
    return UNKNOWN if count is None else f"{count:,}"


def format_when(when: datetime | None) -> str:
    """Format a UTC time of the store as `2026-11-24 05:49`, in UTC."""
    return UNKNOWN if when is None else when.replace(tzinfo=UTC).strftime("%Y-%m-%d %H:%M")
