"""Syntax of faults, on the command line and in files: the same words, the same errors.

A fault, and its persistence, is `NAME:KEY=VALUE,...`. The repeated option `--where KEY=VALUE` of
the command line is a table `where = { KEY = VALUE }` in a file; all other text is the same.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from traces.did_you_mean import suggest_nearest_name
from traces.model import Fault, Place, Scalar

PLACES: tuple[Place, ...] = ("http", "mcp", "model-boundary", "model")
KEYS = ("fault", "params", "where", "when", "nth", "persist", "at", "max_injections")

_QUOTED = re.compile(r'[^,="]*=\s*"(?:[^"\\]|\\.)*"(?=\s*(?:,|\Z))', re.DOTALL)
"""A key with a JSON string."""


def split_spec_text(text: str) -> tuple[str, dict[str, str]]:
    """Split `name:key=value,key=value` into name and strings; raises ValueError if malformed.

    A value in double quotes is a JSON string, so that it may hold commas, quotes and lines.
    """
    name, _, rest = text.partition(":")
    params: dict[str, str] = {}
    for part in filter(None, _split_at_commas(rest)):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{text!r}: {part!r} is not key=value")
        if key.strip() in params:
            raise ValueError(f"{text!r} says {key.strip()!r} twice")
        params[key.strip()] = _unquote(value.strip())
    return name.strip(), params


def write_spec_text(name: str, params: Mapping[str, str]) -> str:
    """Write what `split_spec_text` reads; a value that has to be quoted becomes a JSON string."""
    text = ",".join(f"{key}={_quote(value)}" for key, value in params.items())
    return f"{name}:{text}" if text else name


def _quote(value: str) -> str:
    plain = value == value.strip() and value[:1] != '"' and not re.search(r"[,\n\r\[\]]", value)
    return value if plain else json.dumps(value, ensure_ascii=False)


def _split_at_commas(rest: str) -> Iterator[str]:
    """Split at the commas outside of quotes and of the brackets of a JSONPath."""
    start = 0
    while start <= len(rest):
        quoted = _QUOTED.match(rest, start)
        end = _find_comma(rest, quoted.end() if quoted else start)
        yield rest[start:end]
        start = end + 1


def _find_comma(text: str, start: int) -> int:
    """Return the place of the next comma outside of brackets, else the end."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] == "," and not depth:
            return at
        depth = max(0, depth + {"[": 1, "]": -1}.get(text[at], 0))
    return len(text)


def _unquote(value: str) -> str:
    if value[:1] != '"':
        return value
    try:
        text = json.loads(value)
    except ValueError:
        return value
    assert isinstance(text, str)
    return text


def parse_spec_text(text: str) -> tuple[str, dict[str, Scalar]]:
    """Do the same, with numbers and booleans parsed."""
    name, params = split_spec_text(text)
    return name, {key: parse_scalar(value) for key, value in params.items()}


def parse_scalar(text: str) -> Scalar:
    """Return a number or boolean if the text is one, else the text."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


def parse_key_value(text: str) -> tuple[str, Scalar]:
    """Parse `KEY=VALUE`, or a bare `KEY` as true; raises ValueError if it is malformed."""
    key, equals, value = text.partition("=")
    if not key.strip():
        raise ValueError(f"{text!r} is not KEY=VALUE")
    return key.strip(), parse_scalar(value.strip()) if equals else True


def parse_key_values(texts: Iterable[str]) -> dict[str, Scalar]:
    """Parse several of them; raises ValueError if a key occurs twice."""
    values: dict[str, Scalar] = {}
    for text in texts:
        key, value = parse_key_value(text)
        if key in values:
            raise ValueError(f"{key!r} is said twice")
        values[key] = value
    return values


def parse_fault_table(table: Mapping[str, object]) -> Fault:
    """Parse a table with `KEYS` into a fault, which `bind_operator` has still to check.

    Raises ValueError, which begins with the key, for an unknown key or a value of the wrong type.
    """
    for key in table:
        if key not in KEYS:
            raise ValueError(f"{key}: no such key{suggest_nearest_name(key, KEYS)}")
    text = table.get("fault")
    if not isinstance(text, str):
        raise ValueError(f"fault: {text!r} is not NAME:KEY=VALUE,...")
    name, params = parse_spec_text(text)
    more = _check_scalar_table("params", table.get("params", {}))
    if duplicates := params.keys() & more.keys():
        raise ValueError(f"params: {min(duplicates)!r} is in fault too")
    return Fault(
        name=name,
        params=params | more,
        where={k: str(v) for k, v in _check_scalar_table("where", table.get("where", {})).items()},
        at=_parse_fault_place(table.get("at")),
        nth=_check_whole_number("nth", table.get("nth")),
        when=_check_scalar_table("when", table.get("when", {})),
        persist=_check_text_value("persist", table.get("persist", "once")),
        max_injections=_check_whole_number("max_injections", table.get("max_injections")),
    )


def _check_scalar_table(key: str, value: object) -> dict[str, Scalar]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{key}: {value!r} is not a table of KEY = VALUE")
    for name, each in value.items():
        if not isinstance(each, str | int | float | bool):
            raise ValueError(f"{key}.{name}: {each!r} is not a number, a text, true or false")
    return dict(value)


def _check_text_value(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key}: {value!r} is not a text")
    return value


def _check_whole_number(key: str, value: object) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ValueError(f"{key}: {value!r} is not a whole number")
    return value


def _parse_fault_place(value: object) -> Place | None:
    for place in PLACES:
        if value == place:
            return place
    if value is None:
        return None
    raise ValueError(f"at: no place is called {value!r}{suggest_nearest_name(str(value), PLACES)}")
