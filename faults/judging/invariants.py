"""Invariants within a result that a wrong value breaks.

Nothing is declared by hand. A relation counts if it held in the clean result, so that its failure
indicates the fault.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from itertools import combinations

from faults.document import DocumentNode, TextDocument

_COUNT = re.compile(r"(?i)(?:^|_)(?:count|total|size|length|len|num|number|n)(?:$|_)|Count$|Total$")


def find_object_nodes(document: TextDocument) -> Iterator[DocumentNode]:
    """Return all objects and rows."""
    return (node for node in document.nodes() if node.kind == "object")


def find_count_nodes(document: TextDocument) -> Iterator[tuple[DocumentNode, DocumentNode]]:
    """Yield each number that counts the items of a list in the same object, with the list."""
    for node in find_object_nodes(document):
        for array in node.items:
            if array.kind == "array":
                for number in node.items:
                    matches_length = number.kind == "number" and number.text == str(
                        len(array.items)
                    )
                    if matches_length and _COUNT.search(number.name):
                        yield number, array


def parse_node_decimal(node: DocumentNode) -> Decimal | None:
    """Return the value of a number without exponent and with at most 24 characters; else None."""
    if node.kind != "number" or len(node.text) > 24 or "e" in node.text.lower():
        return None
    return Decimal(node.text.replace(",", ""))


def find_invariants(document: TextDocument) -> frozenset[str]:
    """Return the relations that hold in a result, by names that are comparable across results."""
    return frozenset(
        (
            *_describe_counts(document),
            *_find_column_sums(document),
            *_find_products(document),
            *_find_date_order(document),
        )
    )


def _join_node_path(node: DocumentNode) -> str:
    return ".".join(map(str, node.path))


def _describe_counts(document: TextDocument) -> Iterator[str]:
    for number, array in find_count_nodes(document):
        yield f"{_join_node_path(number)} counts {_join_node_path(array)}"


def _find_column_sums(document: TextDocument) -> Iterator[str]:
    """Yield numbers that are the sum of a column in a list of the same object."""
    for node in find_object_nodes(document):
        numbers = [
            (item, value) for item in node.items if (value := parse_node_decimal(item)) is not None
        ]
        for array in node.items if numbers else ():
            if array.kind == "array" and len(array.items) >= 2:
                for name, total in _sum_number_columns(array):
                    for number, value in numbers:
                        if value == total:
                            yield (
                                f"{_join_node_path(number)} is the sum "
                                f"of {name} in {_join_node_path(array)}"
                            )


def _sum_number_columns(array: DocumentNode) -> Iterator[tuple[str, Decimal]]:
    """Yield the sum of each numeric column that all rows have."""
    columns = defaultdict[str, list[Decimal]](list)
    for row in array.items:
        for item in row.items if row.kind == "object" else ():
            if (value := parse_node_decimal(item)) is not None:
                columns[item.name].append(value)
    for name, values in columns.items():
        if len(values) == len(array.items):
            yield name, sum(values, Decimal(0))


def _find_products(document: TextDocument) -> Iterator[str]:
    """Yield three numbers of one object, one the product of the others."""
    for node in find_object_nodes(document):
        values = [
            (item, value) for item in node.items if (value := parse_node_decimal(item)) is not None
        ]
        large = [each for each in values if abs(each[1]) > 1][:12]
        for (left, first), (right, second) in combinations(large, 2):
            for product, value in large:
                if product not in (left, right) and value == first * second:
                    yield f"{_join_node_path(product)} is {left.name} times {right.name}"


def _find_date_order(document: TextDocument) -> Iterator[str]:
    """Yield pairs of dates of one object in their order."""
    for node in find_object_nodes(document):
        days = [(i, day) for i in node.items if (day := parse_iso_day(i)) is not None]
        for (left, first), (right, second) in combinations(days, 2):
            if first != second:
                before, after = (left, right) if first < second else (right, left)
                yield f"{_join_node_path(before)} is before {after.name}"


def parse_iso_day(node: DocumentNode) -> date | None:
    """Return the day of an ISO date; None for any other node."""
    if node.kind != "date":
        return None
    try:
        return date.fromisoformat(node.text[:10])
    except ValueError:
        return None
