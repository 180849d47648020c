"""JSONPath queries (RFC 9535) on JSON text and values.

A query that begins with `$` asks whether such a value exists: `$.lines[?@.sku == 'x1']`. Any other
text is a condition on the outermost value, in filter syntax: `@.amount > 100 && @.side == 'b'`. RFC
9535 cannot filter the outermost value, so the condition is run on a list with that value in it.
"""

import json
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsonpath_rfc9535 import JSONPathQuery

type JsonLocation = tuple[str | int, ...]
"""The keys and indices that lead to a value."""


def check_jsonpath(text: str) -> None:
    """Raise ValueError, with the position, if this is not a valid query."""
    _compile_json_query(text)


def has_query_match(text: str, data: str) -> bool:
    """Return whether the JSON in `data` matches the query; False if `data` is not JSON."""
    value = _load_json_or_nothing(data)
    if value is _NOTHING:
        return False
    return bool(_run_json_query(text, value if text.lstrip().startswith("$") else [value]))


def find_json_paths(text: str, data: str) -> tuple[JsonLocation, ...]:
    """Return the locations that a path matches, in document order; empty if `data` is not JSON."""
    value = _load_json_or_nothing(data)
    if value is _NOTHING:
        return ()
    return tuple(dict.fromkeys(_run_json_query(text, value)))


def _run_json_query(text: str, value: object) -> tuple[JsonLocation, ...]:
    """Return the matching locations; empty if the value is nested too deeply."""
    from jsonpath_rfc9535 import JSONPathError

    try:
        return tuple(node.location for node in _compile_json_query(text).find(value))
    except (JSONPathError, RecursionError):
        return ()


def find_value_locations(text: str, value: object) -> frozenset[JsonLocation]:
    """Return the locations that a path matches in a parsed value."""
    return frozenset(_run_json_query(text, value))


_NOTHING = object()


def _load_json_or_nothing(data: str) -> object:
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return _NOTHING
    return value


@lru_cache(64)
def _compile_json_query(text: str) -> "JSONPathQuery":
    # The import takes 0.1 s, and most runs do not need it.
    from jsonpath_rfc9535 import JSONPathError, compile

    query = text.strip()
    expression = query if query.startswith("$") else f"$[?{query}]"
    try:
        return compile(expression)
    except JSONPathError as error:
        raise ValueError(
            f"{text!r} is no JSONPath ({error.args[0]}); as in $.orders[0].total or @.amount > 100"
        ) from None
