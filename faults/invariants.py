"""What holds within a result, or between it and what was seen: and no longer does when it is bent.

Nothing is declared by hand. A relation counts if it held in the clean result, so that its failing
is a sign and no accident of the data.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from itertools import combinations

from faults.document import Document, Node

_COUNT = re.compile(r"(?i)(?:^|_)(?:count|total|size|length|len|num|number|n)(?:$|_)|Count$|Total$")


def objects(document: Document) -> Iterator[Node]:
    """All objects and rows."""
    return (node for node in document.nodes() if node.kind == "object")


def counts(document: Document) -> Iterator[tuple[Node, Node]]:
    """Each number that says how many items the list beside it has, with that list."""
    for node in objects(document):
        for array in node.items:
            if array.kind == "array":
                for number in node.items:
                    right = number.kind == "number" and number.said == str(len(array.items))
                    if right and _COUNT.search(number.name):
                        yield number, array


def decimal(node: Node) -> Decimal | None:
    """The value of a number as people write it: no exponent, and not too long to reckon with."""
    if node.kind != "number" or len(node.said) > 24 or "e" in node.said.lower():
        return None
    return Decimal(node.said.replace(",", ""))


def held(document: Document) -> frozenset[str]:
    """What holds in a result, each relation named so that it can be looked for in another."""
    return frozenset(
        (*_counts(document), *_sums(document), *_products(document), *_dates(document))
    )


def _where(node: Node) -> str:
    return ".".join(map(str, node.path))


def _counts(document: Document) -> Iterator[str]:
    for number, array in counts(document):
        yield f"{_where(number)} counts {_where(array)}"


def _sums(document: Document) -> Iterator[str]:
    """A number beside a list that is the sum of a column of it."""
    for node in objects(document):
        numbers = [(item, value) for item in node.items if (value := decimal(item)) is not None]
        for array in node.items if numbers else ():
            if array.kind == "array" and len(array.items) >= 2:
                for name, total in _totals(array):
                    for number, value in numbers:
                        if value == total:
                            yield f"{_where(number)} is the sum of {name} in {_where(array)}"


def _totals(array: Node) -> Iterator[tuple[str, Decimal]]:
    """The sum of each column of numbers that all rows have."""
    columns = defaultdict[str, list[Decimal]](list)
    for row in array.items:
        for item in row.items if row.kind == "object" else ():
            if (value := decimal(item)) is not None:
                columns[item.name].append(value)
    for name, values in columns.items():
        if len(values) == len(array.items):
            yield name, sum(values, Decimal(0))


def _products(document: Document) -> Iterator[str]:
    """Three numbers of one object, one of which is the product of the others."""
    for node in objects(document):
        values = [(item, value) for item in node.items if (value := decimal(item)) is not None]
        large = [each for each in values if abs(each[1]) > 1][:12]
        for (one, first), (two, second) in combinations(large, 2):
            for product, value in large:
                if product not in (one, two) and value == first * second:
                    yield f"{_where(product)} is {one.name} times {two.name}"


def _dates(document: Document) -> Iterator[str]:
    """Two dates of one object, one before the other."""
    for node in objects(document):
        days = [(i, day) for i in node.items if (day := iso(i)) is not None]
        for (one, first), (two, second) in combinations(days, 2):
            if first != second:
                before, after = (one, two) if first < second else (two, one)
                yield f"{_where(before)} is before {after.name}"


def iso(node: Node) -> date | None:
    """The day that a date in ISO form says; None for any other."""
    if node.kind != "date":
        return None
    try:
        return date.fromisoformat(node.said[:10])
    except ValueError:
        return None
