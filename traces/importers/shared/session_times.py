"""Times of sessions that coding agents keep on disk."""

from collections.abc import Iterable
from datetime import datetime


def parse_session_time(text: object) -> float | None:
    """Return seconds since the epoch of an ISO date with a zone; None for anything else."""
    try:
        time = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return None if time is None or time.tzinfo is None else time.timestamp()


def measure_session(texts: Iterable[object]) -> dict[str, object]:
    """Return `recorded_at` and `seconds` of a session with lines of these times."""
    times = [time for text in texts if (time := parse_session_time(text)) is not None]
    if not times:
        return {}
    return {"recorded_at": min(times), "seconds": max(times) - min(times)}


def subtract_times(end: float | None, start: float | None) -> float | None:
    """Return the seconds between two times; None if one is unknown, or they are in no order."""
    return end - start if end is not None and start is not None and end >= start else None
