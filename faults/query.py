"""Questions to JSON, in JSONPath (RFC 9535).

A question that begins with `$` asks whether there is such a value: `$.lines[?@.sku == 'x1']`. Any
other is a condition on the whole, in the words of a filter: `@.amount > 100 && @.side == 'b'`. RFC
9535 has no way to say the second of the outermost value itself, so it is asked of a list with that
value in it.
"""

import json
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsonpath_rfc9535 import JSONPathQuery

type Path = tuple[str | int, ...]
"""Where a value is: the keys and positions that lead to it."""


def check(text: str) -> None:
    """ValueError, which says where, if this is no question."""
    _compiled(text)


def holds(text: str, data: str) -> bool:
    """Whether the JSON in `data` answers the question with yes; what is no JSON does not."""
    value = _json(data)
    if value is _NOTHING:
        return False
    return bool(_found(text, value if text.lstrip().startswith("$") else [value]))


def paths(text: str, data: str) -> tuple[Path, ...]:
    """Where the values are that a path names, in the order of the text; none in what is no JSON."""
    value = _json(data)
    if value is _NOTHING:
        return ()
    return tuple(dict.fromkeys(_found(text, value)))


def _found(text: str, value: object) -> tuple[Path, ...]:
    """Nothing where the value is nested too deep to be looked through."""
    from jsonpath_rfc9535 import JSONPathError

    try:
        return tuple(node.location for node in _compiled(text).find(value))
    except (JSONPathError, RecursionError):
        return ()


def locations(text: str, value: object) -> frozenset[Path]:
    """Where the values are that a path names, in a value that was parsed already."""
    return frozenset(_found(text, value))


_NOTHING = object()


def _json(data: str) -> object:
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return _NOTHING
    return value


@lru_cache(64)
def _compiled(text: str) -> "JSONPathQuery":
    # Loading it takes 0.1 s, which most runs need not wait for.
    from jsonpath_rfc9535 import JSONPathError, compile

    query = text.strip()
    ask = query if query.startswith("$") else f"$[?{query}]"
    try:
        return compile(ask)
    except JSONPathError as error:
        raise ValueError(
            f"{text!r} is no JSONPath ({error.args[0]}); as in $.orders[0].total or @.amount > 100"
        ) from None
