"""Locate values in a parsed JSON body by the path that a divergence prints: `messages[0].content`.

A key is written literally, even with a dot in it; `[2]` is an item of a list and `[*]` every item.
`.2` and `.*` are equivalent.
"""

import re
from collections.abc import Iterator

type Holder = dict[str, object] | list[object]

_ITEM = re.compile(r"\.?(?:\[(\d+|\*)\]|(\d+|\*)(?=[.\[]|\Z))")


def find_path_holders(value: object, path: str) -> Iterator[tuple[Holder, str | int]]:
    """Yield each container with a value at the path, and the value's key or index in it."""
    if isinstance(value, list) and (item := _ITEM.match(path)) is not None:
        index, rest = item[1] or item[2], path[item.end() :]
        indexes = range(len(value)) if index == "*" else (int(index),)
        for place in indexes:
            if not rest and place < len(value):
                yield value, place
            elif place < len(value):
                yield from find_path_holders(value[place], rest)
    elif isinstance(value, dict):
        path = path.removeprefix(".")
        for key in [key for key in value if path.startswith(key)]:
            rest = path[len(key) :]
            if not rest:
                yield value, key
            elif rest[0] in ".[":
                yield from find_path_holders(value[key], rest)


def is_indexed_path(path: str, key: str) -> bool:
    """Return whether the path names one item by index in the top-level list under `key`."""
    item = _ITEM.match(path, len(key)) if path.startswith(key) else None
    return item is not None and "*" not in item[0]


def generalize_path(path: str) -> str:
    """Return the path with each index as `*`, in dotted form."""
    return re.sub(r"\.?\[(?:\d+|\*)\]|\.\d+(?=[.\[]|\Z)", ".*", path)


def iter_leaf_values(path: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield each value without children, with the path that a divergence prints."""
    match value:
        case dict() if value:
            for key, item in value.items():
                yield from iter_leaf_values(f"{path}.{key}" if path else str(key), item)
        case list() if value:
            for index, item in enumerate(value):
                yield from iter_leaf_values(f"{path}[{index}]", item)
        case _:
            yield path, value
