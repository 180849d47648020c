"""V6: off by one."""

import re
from random import Random
from typing import Annotated, Literal

from faults.body import NoSite, text, with_text
from faults.document import Change, Document, Node, changed, read, without
from faults.operator import JsonPath, operator
from faults.value.picks import chosen, is_id, rewritten
from traces.model import Exchange

_INDEX = re.compile(
    r"(?i)(?:^|_)(?:index|idx|page|offset|position|pos|rank|line|row|step|start|end|count|quantity"
    r"|number|n|version|stock|days)(?:$|_)"
)


@operator("V6")
def off_by_one(
    exchange: Exchange,
    rng: Random,
    *,
    how: Literal["shift", "first", "last", "index"] = "shift",
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Give the neighbour's value: all of one field in a list move up by one row.

    Incident: a page that starts one row too late, a fencepost. `first` and `last` lose that item
    of a list and keep the count beside it; `index` adds one to a whole number that counts or
    numbers something, or to the one at `path`: that number is all it makes up.
    """
    document = read(text(exchange))
    if how == "index":
        found = [node for node in document.nodes(path) if node.kind == "number"]
        sites = [n for n in found if _counts(n) or (path and n.said.lstrip("-").isdecimal())]
        node = chosen(rng, sites, "number that counts")
        return with_text(exchange, rewritten(document, node, str(int(node.said) + 1)))
    lists = [n for n in document.nodes(path) if n.kind == "array" and len(n.items) >= 2]
    if not lists:
        raise NoSite("there is no list of at least two in the result")
    if how == "shift":
        return with_text(exchange, changed(document, _shifted(document, lists, rng)))
    array = chosen(rng, lists, "list")
    gone = {0} if how == "first" else {len(array.items) - 1}
    return with_text(exchange, changed(document, without(array, gone)))


def _counts(node: Node) -> bool:
    return node.said.isdecimal() and node.whole and bool(_INDEX.search(node.name))


def _shifted(document: Document, lists: list[Node], rng: Random) -> list[Change]:
    """The values of one field, each in place of the one before it; the last stays."""
    columns = [column for array in lists for column in _columns(array)]
    columns = [c for c in columns if len({node.said for node in c}) > 1]
    column = chosen(rng, columns, "field of a list whose rows differ")
    return [
        Change(one.start, one.stop, document.raw(two))
        for one, two in zip(column, column[1:], strict=False)
        if one.said != two.said
    ]


def _columns(array: Node) -> list[list[Node]]:
    """The fields that all rows have, of one kind and no id; of a list of values the list itself."""
    if all(item.kind not in ("object", "array") for item in array.items):
        return [list(array.items)] if len({item.kind for item in array.items}) == 1 else []
    rows = [{item.name: item for item in row.items} for row in array.items]
    shared = [name for name in rows[0] if all(name in row for row in rows)]
    columns = [[row[name] for row in rows] for name in shared]
    return [
        column
        for column in columns
        if len({(node.kind, bool(node.literal)) for node in column}) == 1
        and column[0].kind not in ("object", "array")
        and not is_id(column[0])
    ]
