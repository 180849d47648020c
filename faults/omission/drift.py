"""S5: the same data in another shape."""

import json
import re
from collections.abc import Iterator
from random import Random
from typing import Annotated, Literal

from faults.body import NoSite, text, with_text
from faults.document import Change, Document, Node, changed, read, renamed, retyped, without
from faults.invariants import objects
from faults.operator import JsonPath, operator
from traces.model import Exchange


@operator("S5")
def schema_drift(
    exchange: Exchange,
    rng: Random,
    *,
    how: Literal["rename", "retype", "nest", "drop", "add", "case"] = "rename",
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Say the same in another shape: one field of all rows alike, or (`case`) the case of all.

    Incident: version 2 of an API, a change in an object mapper. An agent that adapts has handled
    it. `rename` and `nest` put the field under another name, `retype` makes text of a number or
    a truth value and a list of a text, `drop` leaves it out, `add` puts a new one beside it. The
    new names, and the value of what is added, are made up.
    """
    document = read(text(exchange))
    members = [node for node in document.nodes() if node.key]
    if not members:
        raise NoSite("the result has no named fields")
    if how == "case":
        changes = [renamed(node, _other_case(node.name)) for node in members]
        changes = [c for c in changes if document.text[c.start : c.stop] != c.text]
        if not changes:
            raise NoSite("no field has a name of two words")
        return with_text(exchange, changed(document, changes))
    chosen = [node for node in document.nodes(path) if node.key]
    if not chosen:
        raise NoSite(f"{path} is no named field")
    if how == "retype":
        chosen = [node for node in chosen if node.kind not in ("object", "null")] or chosen
    general = rng.choice(sorted({node.general for node in chosen}, key=repr))
    alike = [node for node in members if node.general == general]
    return with_text(exchange, changed(document, _drift(document, alike, how)))


def _drift(document: Document, alike: list[Node], how: str) -> Iterator[Change]:
    if how == "drop":
        yield from _dropped(document, {node.begin for node in alike})
        return
    for node in alike:
        match how:
            case "rename":
                yield renamed(node, _other_name(node.name))
            case "retype":
                yield retyped(node, _retyped(document, node))
            case "nest":
                raw = document.text[slice(*node.span)]
                yield Change(*node.span, _quoted('{"value": ', node) + raw + "}")
            case _:
                raw = _quoted(f"{json.dumps(_other_name(node.name))}: null, ", node)
                yield Change(node.begin, node.begin, raw)


def _dropped(document: Document, begins: set[int]) -> Iterator[Change]:
    """All objects without the members that begin there."""
    for holder in objects(document):
        yield from without(holder, {n for n, i in enumerate(holder.items) if i.begin in begins})


def _quoted(written: str, node: Node) -> str:
    for _ in range(node.quoted):
        written = json.dumps(written)[1:-1]
    return written


def _retyped(document: Document, node: Node) -> str:
    match node.kind:
        case "number" | "bool" if node.literal is None:
            return json.dumps(node.said)
        case "number":
            return node.said
        case "object" | "null":
            return "[]" if node.kind == "null" else json.dumps(document.raw(node))
        case "array":
            return document.text[slice(*node.items[0].span)] if node.items else "null"
        case _:
            return json.dumps([node.said])


def _other_name(name: str) -> str:
    """A name that another version might use for it: `total_value`, `totalValue`."""
    snake = "_" in name or name.islower() or not name
    return f"{name}_value" if snake else f"{name}Value"


def _other_case(name: str) -> str:
    """`order_id` as `orderId`, and the other way round."""
    if "_" in name.strip("_"):
        return re.sub(r"(?<=[^_])_+(\w)", lambda found: found[1].upper(), name)
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: f"_{found[1].lower()}", name)
