"""A fault in one part of a result: the part that a path names is bent as if it were all of it.

No other byte is touched. A text is shown to the operator without its quotes and put back with
them; any other value is shown as it is written.
"""

import json
from collections.abc import Callable
from random import Random

from faults.body import NoSite, text, with_text
from faults.query import Path, paths
from traces import spans
from traces.model import Exchange


def within(
    path: str, exchange: Exchange, rng: Random, bend: Callable[[Exchange], Exchange]
) -> Exchange:
    """The exchange with one of the values at `path` bent; NoSite where there is none."""
    whole = text(exchange)
    places = paths(path, whole)
    if not places:
        raise NoSite(f"the result has nothing at {path}")
    data = whole.encode()
    start, stop = span(data, rng.choice(places))
    value = data[start:stop].decode()
    quoted = value.startswith('"')
    bent = text(bend(with_text(exchange, json.loads(value) if quoted else value)))
    said = (json.dumps(bent, ensure_ascii=False) if quoted else bent).encode()
    return with_text(exchange, (data[:start] + said + data[stop:]).decode())


def span(data: bytes, place: Path) -> tuple[int, int]:
    """Where the value at a place of valid JSON stands, as byte offsets."""
    start = spans.root(data)
    stop = spans.end(data, start)
    for step in place:
        if isinstance(step, int):
            start, stop = list(spans.items(data, start))[step]
        else:
            start, stop = _member(data, start, step)
    return start, stop


def _member(data: bytes, start: int, name: str) -> tuple[int, int]:
    """Of equal keys the last counts, as for whoever parses it."""
    members = spans.members(data, start).items()
    return max(at for key, at in members if json.loads(b'"' + key + b'"') == name)
