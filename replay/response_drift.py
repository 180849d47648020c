"""Compare a service's current answer with the one on the tape: status, schema, values.

A schema is the structure of an answer's JSON without its values: `items[].id: integer`. The items
of a list share one path, so a longer list has the same schema; items of a list that is empty on one
side cannot be compared and are omitted. A body that is not JSON has no schema, and its bytes are
its only value.
"""

import json
from collections.abc import Iterator, Mapping

from msgspec import Struct

from replay.matching.diff import find_changed_fields, flatten_body
from traces.bodies.content_encoding import decode_content
from traces.model import Response

type ResponseSchema = Mapping[str, frozenset[str]]
"""Path to the JSON types seen there."""


class ResponseDrift(Struct, frozen=True, kw_only=True):
    """Differences between two answers to the same request."""

    status: tuple[int, int] | None = None
    """(recorded, now); None if equal."""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()
    """`path: recorded types -> types now`."""
    values: tuple[tuple[str, str, str], ...] = ()
    """(path, recorded, now) if both have the path, with the same types."""

    @property
    def is_breaking(self) -> bool:
        """Whether a client that worked with the recorded answer may fail with this one."""
        return bool(self.status or self.added or self.removed or self.retyped)


def compare_responses(recorded: Response, now: Response) -> ResponseDrift:
    """Return the drift between two answers."""
    status = None if recorded.status == now.status else (recorded.status, now.status)
    old_schema, new_schema = infer_response_schema(recorded), infer_response_schema(now)
    if old_schema is None or new_schema is None:
        form_change = (
            ()
            if (old_schema is None) == (new_schema is None)
            else (f"body: {_name_body_form(old_schema)} -> {_name_body_form(new_schema)}",)
        )
        return ResponseDrift(
            status=status,
            retyped=form_change,
            values=() if form_change else _find_changed_values(recorded, now),
        )
    one_sided = tuple(
        f"{path}[]"
        for path in old_schema.keys() & new_schema.keys()
        if _is_empty_on_one_side(path, old_schema, new_schema)
    )
    retyped = (
        f"{path}: {_join_type_names(old_schema[path])} -> {_join_type_names(new_schema[path])}"
        for path in old_schema.keys() & new_schema.keys()
        if old_schema[path] != new_schema[path]
    )
    return ResponseDrift(
        status=status,
        added=_find_missing_paths(new_schema, old_schema, one_sided),
        removed=_find_missing_paths(old_schema, new_schema, one_sided),
        retyped=tuple(sorted(retyped)),
        values=_find_changed_values(recorded, now),
    )


def infer_response_schema(answer: Response) -> ResponseSchema | None:
    """Infer the schema of a JSON answer; None for any other answer."""
    types: dict[str, set[str]] = {}
    try:
        value = json.loads(decode_content(answer.headers, answer.body) or b"")
    except ValueError:
        return None
    for path, kind in _walk_json_types("", value):
        types.setdefault(path, set()).add(kind)
    return {path: frozenset(kinds) for path, kinds in types.items()}


def _walk_json_types(path: str, value: object) -> Iterator[tuple[str, str]]:
    yield path, _name_json_type(value)
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _walk_json_types(f"{path}.{key}" if path else key, item)
    if isinstance(value, list):
        for item in value:
            yield from _walk_json_types(f"{path}[]", item)


def _name_json_type(value: object) -> str:
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


def _is_empty_on_one_side(path: str, was: ResponseSchema, new: ResponseSchema) -> bool:
    """Return whether a list has items on one side only."""
    return (f"{path}[]" in was) != (f"{path}[]" in new) and "array" in was[path] & new[path]


def _find_missing_paths(
    one: ResponseSchema, other: ResponseSchema, empty: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the topmost paths that `one` has and `other` lacks."""
    paths = sorted(
        path for path in one.keys() - other.keys() if not (empty and path.startswith(empty))
    )
    tops: list[str] = []
    for path in paths:
        if not (tops and path.startswith((f"{tops[-1]}.", f"{tops[-1]}["))):
            tops.append(path)
    return tuple(tops)


def _join_type_names(kinds: frozenset[str]) -> str:
    return " | ".join(sorted(kinds))


def _name_body_form(found: ResponseSchema | None) -> str:
    return "no JSON" if found is None else "JSON"


def _find_changed_values(recorded: Response, now: Response) -> tuple[tuple[str, str, str], ...]:
    old, new_fields = (
        flatten_body(recorded.headers, recorded.body),
        flatten_body(now.headers, now.body),
    )
    both = old.keys() & new_fields.keys()
    return tuple(
        find_changed_fields(
            {path: text for path, text in old.items() if path in both},
            {path: text for path, text in new_fields.items() if path in both},
        )
    )
