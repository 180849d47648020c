"""Texts in plain data, wherever they stand in it."""

from collections.abc import Iterator


def walk_data_leaves(value: object) -> Iterator[bytes]:
    """Yield every str and bytes in plain data, as bytes."""
    match value:
        case bytes():
            yield value
        case str():
            yield value.encode("utf-8", "surrogatepass")
        case list() | tuple():
            for each in value:
                yield from walk_data_leaves(each)
        case dict():
            for each in value.values():
                yield from walk_data_leaves(each)
