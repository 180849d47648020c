"""V6 off_by_one: a value of the neighbouring row, or a count that is off by one."""

import re
from random import Random
from typing import Annotated, Literal

from faults.document import (
    DocumentEdit,
    DocumentNode,
    TextDocument,
    apply_document_edits,
    make_removal_edits,
    parse_document,
)
from faults.operator import JsonPath, operator
from faults.operators.value.select_value import choose_one, is_id, rewrite_value
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
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
    """Return the neighbour's value: all values of one field in a list move up by one row.

    Incident: a page that starts one row too late, a fencepost error. `first` and `last` drop that
    item of a list and keep the count next to it; `index` adds one to an integer that counts or
    numbers something, or to the one at `path`: that number is the only fabricated part.
    """
    document = parse_document(decode_response_text(exchange))
    if how == "index":
        numbers = [node for node in document.nodes(path) if node.kind == "number"]
        sites = [
            n for n in numbers if _is_counter_node(n) or (path and n.text.lstrip("-").isdecimal())
        ]
        node = choose_one(rng, sites, "number that counts")
        return replace_response_text(
            exchange, rewrite_value(document, node, str(int(node.text) + 1))
        )
    lists = [n for n in document.nodes(path) if n.kind == "array" and len(n.items) >= 2]
    if not lists:
        raise NoInjectionSite("there is no list of at least two in the result")
    if how == "shift":
        return replace_response_text(
            exchange, apply_document_edits(document, _shift_list_column(document, lists, rng))
        )
    array = choose_one(rng, lists, "list")
    dropped = {0} if how == "first" else {len(array.items) - 1}
    return replace_response_text(
        exchange, apply_document_edits(document, make_removal_edits(array, dropped))
    )


def _is_counter_node(node: DocumentNode) -> bool:
    return node.text.isdecimal() and node.is_whole and bool(_INDEX.search(node.name))


def _shift_list_column(
    document: TextDocument, lists: list[DocumentNode], rng: Random
) -> list[DocumentEdit]:
    """Move the values of one field up by one row; the last row stays unchanged."""
    columns = [column for array in lists for column in _find_list_columns(array)]
    columns = [c for c in columns if len({node.text for node in c}) > 1]
    column = choose_one(rng, columns, "field of a list whose rows differ")
    return [
        DocumentEdit(node.start, node.stop, document.raw(successor))
        for node, successor in zip(column, column[1:], strict=False)
        if node.text != successor.text
    ]


def _find_list_columns(array: DocumentNode) -> list[list[DocumentNode]]:
    """Return the columns of one kind that all rows have, without ids; of scalars the list."""
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
