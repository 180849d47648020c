"""S5 schema_drift: the same data in another structure."""

import json
import re
from collections.abc import Iterator
from random import Random
from typing import Annotated, Literal

from faults.document import (
    DocumentEdit,
    DocumentNode,
    TextDocument,
    apply_document_edits,
    make_json_edit,
    make_name_edit,
    make_removal_edits,
    parse_document,
)
from faults.judging.invariants import find_object_nodes
from faults.operator import JsonPath, operator
from faults.operators.omission.json_path import escape_for_node
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
from traces.model import Exchange


@operator("S5")
def schema_drift(
    exchange: Exchange,
    rng: Random,
    *,
    how: Literal["rename", "retype", "nest", "drop", "add", "case"] = "rename",
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Change the structure: one field in all rows, or (`case`) the case of all names.

    Incident: version 2 of an API, a change in an object mapper. An agent that adapts has handled
    it. `rename` and `nest` put the field under another name, `retype` turns a number or boolean
    into a string and a string into a list, `drop` removes it, `add` puts a new field next to it.
    The new names, and the value of the added field, are fabricated.
    """
    document = parse_document(decode_response_text(exchange))
    members = [node for node in document.nodes() if node.key]
    if not members:
        raise NoInjectionSite("the result has no named fields")
    if how == "case":
        changes = [make_name_edit(node, _change_name_case(node.name)) for node in members]
        changes = [c for c in changes if document.text[c.start : c.stop] != c.text]
        if not changes:
            raise NoInjectionSite("no field has a name of two words")
        return replace_response_text(exchange, apply_document_edits(document, changes))
    chosen = [node for node in document.nodes(path) if node.key]
    if not chosen:
        raise NoInjectionSite(f"{path} is no named field")
    if how == "retype":
        chosen = [node for node in chosen if node.kind not in ("object", "null")] or chosen
    pattern = rng.choice(sorted({node.path_pattern for node in chosen}, key=repr))
    targets = [node for node in members if node.path_pattern == pattern]
    return replace_response_text(
        exchange, apply_document_edits(document, _make_drift_edits(document, targets, how))
    )


def _make_drift_edits(
    document: TextDocument, alike: list[DocumentNode], how: str
) -> Iterator[DocumentEdit]:
    if how == "drop":
        yield from _make_drop_edits(document, {node.begin for node in alike})
        return
    for node in alike:
        match how:
            case "rename":
                yield make_name_edit(node, _change_field_name(node.name))
            case "retype":
                yield make_json_edit(node, _retype_json_value(document, node))
            case "nest":
                raw = document.text[slice(*node.span)]
                yield DocumentEdit(*node.span, escape_for_node('{"value": ', node) + raw + "}")
            case _:
                raw = escape_for_node(f"{json.dumps(_change_field_name(node.name))}: null, ", node)
                yield DocumentEdit(node.begin, node.begin, raw)


def _make_drop_edits(document: TextDocument, begins: set[int]) -> Iterator[DocumentEdit]:
    """Remove the members that begin at these offsets from all objects."""
    for holder in find_object_nodes(document):
        yield from make_removal_edits(
            holder, {n for n, i in enumerate(holder.items) if i.begin in begins}
        )


def _retype_json_value(document: TextDocument, node: DocumentNode) -> str:
    match node.kind:
        case "number" | "bool" if node.literal is None:
            return json.dumps(node.text)
        case "number":
            return node.text
        case "object" | "null":
            return "[]" if node.kind == "null" else json.dumps(document.raw(node))
        case "array":
            return document.text[slice(*node.items[0].span)] if node.items else "null"
        case _:
            return json.dumps([node.text])


def _change_field_name(name: str) -> str:
    """Return a name that another version might use for it: `total_value`, `totalValue`."""
    snake = "_" in name or name.islower() or not name
    return f"{name}_value" if snake else f"{name}Value"


def _change_name_case(name: str) -> str:
    """Turn `order_id` into `orderId`, and vice versa."""
    if "_" in name.strip("_"):
        return re.sub(r"(?<=[^_])_+(\w)", lambda found: found[1].upper(), name)
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: f"_{found[1].lower()}", name)
