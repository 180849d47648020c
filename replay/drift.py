"""How a service's answer of today differs from the one on the tape: status, schema, values.

A schema is what an answer's JSON looks like without its values: `items[].id: integer`. The items
of a list share one path, so a longer list is no other schema; what stands in a list that is
empty on one side cannot be compared and is left out. A body that is no JSON has no schema, and
its bytes are its one value.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from replay.difference import changes, fields
from traces.encoding import plain
from traces.model import Response

type Schema = Mapping[str, frozenset[str]]
"""Path to the JSON types seen there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What changed between two answers to the same request."""

    status: tuple[int, int] | None = None
    """(recorded, now); None where it is the same."""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()
    """`path: recorded types -> types now`."""
    values: tuple[tuple[str, str, str], ...] = ()
    """(path, recorded, now) where both have the path and its types."""

    @property
    def breaking(self) -> bool:
        """True where a client that worked with the recorded answer may not work with this one."""
        return bool(self.status or self.added or self.removed or self.retyped)


def compare(recorded: Response, now: Response) -> Drift:
    """The drift between two answers."""
    status = None if recorded.status == now.status else (recorded.status, now.status)
    was, new = schema(recorded), schema(now)
    if was is None or new is None:
        other = () if (was is None) == (new is None) else (f"body: {_form(was)} -> {_form(new)}",)
        return Drift(status=status, retyped=other, values=() if other else _values(recorded, now))
    empty = tuple(f"{path}[]" for path in was.keys() & new.keys() if _hollow(path, was, new))
    retyped = (
        f"{path}: {_types(was[path])} -> {_types(new[path])}"
        for path in was.keys() & new.keys()
        if was[path] != new[path]
    )
    return Drift(
        status=status,
        added=_only(new, was, empty),
        removed=_only(was, new, empty),
        retyped=tuple(sorted(retyped)),
        values=_values(recorded, now),
    )


def schema(answer: Response) -> Schema | None:
    """The schema of a JSON answer; None for any other."""
    found: dict[str, set[str]] = {}
    try:
        value = json.loads(plain(answer.headers, answer.body) or b"")
    except ValueError:
        return None
    for path, kind in _walk("", value):
        found.setdefault(path, set()).add(kind)
    return {path: frozenset(kinds) for path, kinds in found.items()}


def _walk(path: str, value: object) -> Iterator[tuple[str, str]]:
    yield path, _kind(value)
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(f"{path}.{key}" if path else key, item)
    if isinstance(value, list):
        for item in value:
            yield from _walk(f"{path}[]", item)


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _hollow(path: str, was: Schema, new: Schema) -> bool:
    """True for a list that has items on one side only."""
    return (f"{path}[]" in was) != (f"{path}[]" in new) and "array" in was[path] & new[path]


def _only(one: Schema, other: Schema, empty: tuple[str, ...]) -> tuple[str, ...]:
    """The topmost paths that one has and the other lacks."""
    found = sorted(
        path for path in one.keys() - other.keys() if not (empty and path.startswith(empty))
    )
    tops: list[str] = []
    for path in found:
        if not (tops and path.startswith((f"{tops[-1]}.", f"{tops[-1]}["))):
            tops.append(path)
    return tuple(tops)


def _types(kinds: frozenset[str]) -> str:
    return " | ".join(sorted(kinds))


def _form(found: Schema | None) -> str:
    return "no JSON" if found is None else "JSON"


def _values(recorded: Response, now: Response) -> tuple[tuple[str, str, str], ...]:
    was, new = fields(recorded.headers, recorded.body), fields(now.headers, now.body)
    both = was.keys() & new.keys()
    return tuple(
        changes(
            {path: text for path, text in was.items() if path in both},
            {path: text for path, text in new.items() if path in both},
        )
    )
