"""How a person writes a fault, on a command line and in a file: the same words, the same errors.

A fault, and how it persists, is `NAME:KEY=VALUE,...`. What is a repeated option `--where KEY=VALUE`
on the command line is a table `where = { KEY = VALUE }` in a file; all else is the same text.
"""

import re
from collections.abc import Iterable, Mapping

from traces.model import Fault, Place, Scalar
from traces.nearest import nearest

PLACES: tuple[Place, ...] = ("http", "mcp", "model-boundary", "model")
KEYS = ("fault", "params", "where", "when", "nth", "persist", "at", "max_injections")

_COMMA = re.compile(r",(?![^\[]*\])")
"""Not one within the brackets of a JSONPath."""


def split(text: str) -> tuple[str, dict[str, str]]:
    """`name:key=value,key=value` as a name and texts; ValueError where it is neither."""
    name, _, rest = text.partition(":")
    params: dict[str, str] = {}
    for part in filter(None, _COMMA.split(rest)):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{text!r}: {part!r} is not key=value")
        if key.strip() in params:
            raise ValueError(f"{text!r} says {key.strip()!r} twice")
        params[key.strip()] = value.strip()
    return name.strip(), params


def parse(text: str) -> tuple[str, dict[str, Scalar]]:
    """The same with numbers and booleans for texts that are some."""
    name, params = split(text)
    return name, {key: scalar(value) for key, value in params.items()}


def scalar(text: str) -> Scalar:
    """A number or boolean where the text is one, else the text."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


def pair(text: str) -> tuple[str, Scalar]:
    """`KEY=VALUE`, or a bare `KEY`, which is true; ValueError where it is neither."""
    key, equals, value = text.partition("=")
    if not key.strip():
        raise ValueError(f"{text!r} is not KEY=VALUE")
    return key.strip(), scalar(value.strip()) if equals else True


def pairs(texts: Iterable[str]) -> dict[str, Scalar]:
    """Several of them; ValueError where a key comes twice."""
    found: dict[str, Scalar] = {}
    for text in texts:
        key, value = pair(text)
        if key in found:
            raise ValueError(f"{key!r} is said twice")
        found[key] = value
    return found


def read(table: Mapping[str, object]) -> Fault:
    """The fault that a table of `KEYS` says, which `bind` has still to check.

    ValueError, that begins with the key, for an unknown key or a value of the wrong type.
    """
    for key in table:
        if key not in KEYS:
            raise ValueError(f"{key}: no such key{nearest(key, KEYS)}")
    text = table.get("fault")
    if not isinstance(text, str):
        raise ValueError(f"fault: {text!r} is not NAME:KEY=VALUE,...")
    name, params = parse(text)
    more = _scalars("params", table.get("params", {}))
    if twice := params.keys() & more.keys():
        raise ValueError(f"params: {min(twice)!r} is in fault too")
    return Fault(
        name=name,
        params=params | more,
        where={k: str(v) for k, v in _scalars("where", table.get("where", {})).items()},
        at=_place(table.get("at")),
        nth=_whole("nth", table.get("nth")),
        when=_scalars("when", table.get("when", {})),
        persist=_text("persist", table.get("persist", "once")),
        max_injections=_whole("max_injections", table.get("max_injections")),
    )


def _scalars(key: str, value: object) -> dict[str, Scalar]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{key}: {value!r} is not a table of KEY = VALUE")
    for name, each in value.items():
        if not isinstance(each, str | int | float | bool):
            raise ValueError(f"{key}.{name}: {each!r} is not a number, a text, true or false")
    return dict(value)


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key}: {value!r} is not a text")
    return value


def _whole(key: str, value: object) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ValueError(f"{key}: {value!r} is not a whole number")
    return value


def _place(value: object) -> Place | None:
    for place in PLACES:
        if value == place:
            return place
    if value is None:
        return None
    raise ValueError(f"at: no place is called {value!r}{nearest(str(value), PLACES)}")
