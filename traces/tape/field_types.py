"""Type checks of decoded values, since a tape is untrusted input."""

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeAliasType, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote, urlsplit

from msgspec import Struct

from traces.model import BodyEdit, TerminalEvent

MAX_NUMBER = 2**53
"""Bound of every number on a tape: exact as a float, and fits a column of the index."""
MAX_DEPTH = 64
"""Maximum nesting of plain data."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
PLAIN_ADDRESS = re.compile(r"[a-z]+://[A-Za-z0-9.-]+(:[1-9]\d{0,3})?/")
"""Matches most URLs, which then need no further check."""
MAX_NAME_LENGTH = 200
"""Maximum characters of a name, since files are named after it."""

type Check = Callable[[Any], bool]


def parse_struct[T: Struct](kind: type[T], value: Mapping[str, Any]) -> T:
    """Build a struct from a map; unknown keys are ignored.

    Raises TypeError if a field is missing or has another type.
    """
    checks = _build_field_checks(kind)
    arguments = {
        key: tuple(item) if isinstance(item, list) else item
        for key, item in value.items()
        if key in checks
    }
    for key, item in arguments.items():
        if not checks[key](item):
            raise TypeError(f"{kind.__name__}.{key} is of another type")
    return kind(**arguments)


def is_count(value: object) -> bool:
    """Whether it is a non-negative integer below 2**53: a seq, a connection or a size."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_NUMBER


def is_number(value: object) -> bool:
    """Whether it is a finite number below 2**53 in magnitude: a time or an amount."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and abs(value) < MAX_NUMBER


def is_path_safe_name(value: object) -> bool:
    """Whether it is a name that is safe in a path and on a command line."""
    return (
        isinstance(value, str)
        and len(value) <= MAX_NAME_LENGTH
        and NAME.fullmatch(value) is not None
    )


def is_parsable_url(value: object) -> bool:
    """Whether it is text that parses as a URL."""
    if not isinstance(value, str):
        return False
    if PLAIN_ADDRESS.match(value):
        return True
    try:
        value.encode()  # no half of a surrogate pair
        return urlsplit(value).port != 0
    except ValueError:
        return False


def to_parsable_url(url: str) -> str:
    """Return the URL if it parses; else with its authority percent-encoded, so that it does."""
    if is_parsable_url(url):
        return url
    scheme, _, rest = url.encode("utf-8", "backslashreplace").decode().partition("://")
    authority, slash, path = rest.partition("/")
    return f"{quote(scheme, safe='+.-')}://{quote(authority, safe='')}{slash}{path}"


def to_json_data(value: object, deep: int = MAX_DEPTH) -> object:
    """Return the value as `is_json_data` takes it: what is not, as text."""
    if is_json_data(value, deep):
        return value
    if deep and isinstance(value, tuple | list):
        return tuple(to_json_data(each, deep - 1) for each in value)
    if deep and isinstance(value, Mapping):
        return {str(key): to_json_data(each, deep - 1) for key, each in value.items()}
    return json.dumps(value, default=str)


def is_text_list(value: object) -> bool:
    """Whether it is a tuple of texts."""
    return isinstance(value, tuple) and all(isinstance(each, str) for each in value)


def is_json_data(value: object, deep: int = MAX_DEPTH) -> bool:
    """Whether it is JSON data, nested at most `deep` levels."""
    if value is None or isinstance(value, bool | str):
        return True
    if isinstance(value, int | float):
        return is_number(value)
    if deep and isinstance(value, tuple | list):
        return all(is_json_data(each, deep - 1) for each in value)
    if deep and isinstance(value, Mapping):
        return all(
            isinstance(key, str) and is_json_data(each, deep - 1) for key, each in value.items()
        )
    return False


@cache
def _build_field_checks(kind: type[Struct]) -> Mapping[str, Check]:
    hints = get_type_hints(kind)
    return {name: _build_type_check(hints[name]) for name in kind.__struct_fields__}


def _build_type_check(hint: Any) -> Check:
    """Return the check for a type hint; KeyError for a type that no field has."""
    if isinstance(hint, TypeAliasType):
        return _build_type_check(hint.__value__)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return lambda value: isinstance(value, str) and value in inner
    if origin in (Union, UnionType):
        checks = [_build_type_check(check_item) for check_item in inner]
        return lambda value: any(fits(value) for fits in checks)
    if origin is tuple:
        check_item = _build_type_check(inner[0])
        return lambda value: isinstance(value, tuple) and all(map(check_item, value))
    if origin is Mapping or origin is dict:
        check_value = _build_type_check(inner[1])
        return lambda value: (
            isinstance(value, Mapping)
            and all(isinstance(key, str) and check_value(item) for key, item in value.items())
        )
    return _SIMPLE[hint]


_SIMPLE: Mapping[Any, Check] = {
    str: lambda value: isinstance(value, str),
    bytes: lambda value: isinstance(value, bytes),
    bool: lambda value: isinstance(value, bool),
    int: lambda value: is_number(value) and isinstance(value, int),
    float: is_number,
    object: is_json_data,
    BodyEdit: lambda value: isinstance(value, BodyEdit),
    TerminalEvent: lambda value: isinstance(value, TerminalEvent),
    NoneType: lambda value: value is None,
}
