"""Places in a parsed JSON body by the path that a divergence prints: `messages[0].content`.

A key is written as it is, also one with a dot in it; `[2]` is an item of a list and `[*]` each of
them. `.2` and `.*` say the same.
"""

import re
from collections.abc import Iterator

type Holder = dict[str, object] | list[object]

_ITEM = re.compile(r"\.?(?:\[(\d+|\*)\]|(\d+|\*)(?=[.\[]|\Z))")


def find(value: object, path: str) -> Iterator[tuple[Holder, str | int]]:
    """Each container with a value at the path, and the key or index of that value in it."""
    if isinstance(value, list) and (item := _ITEM.match(path)) is not None:
        wanted, rest = item[1] or item[2], path[item.end() :]
        places = range(len(value)) if wanted == "*" else (int(wanted),)
        for place in places:
            if not rest and place < len(value):
                yield value, place
            elif place < len(value):
                yield from find(value[place], rest)
    elif isinstance(value, dict):
        path = path.removeprefix(".")
        for key in [key for key in value if path.startswith(key)]:
            rest = path[len(key) :]
            if not rest:
                yield value, key
            elif rest[0] in ".[":
                yield from find(value[key], rest)


def is_indexed(path: str, key: str) -> bool:
    """True if the path names one item, by its number, of the list at the top under `key`."""
    item = _ITEM.match(path, len(key)) if path.startswith(key) else None
    return item is not None and "*" not in item[0]


def any_item(path: str) -> str:
    """The path with each index as `*`, in the form with dots."""
    return re.sub(r"\.?\[(?:\d+|\*)\]|\.\d+(?=[.\[]|\Z)", ".*", path)
