"""S2 empty: an empty result."""

from random import Random
from typing import Annotated, Literal

from faults.document import (
    DocumentEdit,
    DocumentNode,
    TextDocument,
    apply_document_edits,
    make_json_edit,
    make_removal_edits,
    make_value_edit,
    parse_document,
)
from faults.judging.invariants import find_count_nodes
from faults.model_response import empty_model_output, is_model_exchange
from faults.operator import CHANGED_RESULT, FaultVisibility, JsonPath, operator
from faults.operators.omission.json_path import find_value_node
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
from traces.model import Exchange

_SHOWS = {
    **CHANGED_RESULT,
    "model": FaultVisibility("none", "an answer without text and without calls"),
}


@operator("S2", shows=_SHOWS)
def empty(
    exchange: Exchange,
    rng: Random,
    *,
    how: Literal["same", "null", "text", "list", "object", "nothing"] = "same",
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Empty the result, or the value at `path`.

    Incident: an index that lags behind, a swallowed error, the wrong tenant. `same` keeps the
    shape: all lists are emptied and the count next to them becomes 0; without lists an object or
    text is emptied. The others are `null`, `""`, `[]`, `{}`, and no bytes at all. Only these, and
    the count of 0, are fabricated. A model's response gets neither text nor calls, whatever `how`
    is.
    """
    if is_model_exchange(exchange):
        return empty_model_output(exchange)
    text = decode_response_text(exchange)
    if not text.strip():
        raise NoInjectionSite("the result is empty already")
    if how == "nothing" and not path:
        return replace_response_text(exchange, "")
    document = parse_document(text)
    changed = (
        _empty_in_shape(document, path)
        if how == "same"
        else _put_empty_form(document, path, _FORMS[how])
    )
    if changed == text:
        raise NoInjectionSite("the result is empty already")
    return replace_response_text(exchange, changed)


_FORMS = {"null": "null", "text": '""', "list": "[]", "object": "{}", "nothing": ""}


def _put_empty_form(document: TextDocument, path: str, form: str) -> str:
    """Replace the complete text, or the value at a path, with one form."""
    if not path:
        return form
    node = find_value_node(document, path)
    blank = node.is_cell or form == ""
    return apply_document_edits(
        document, [make_value_edit(node, "") if blank else make_json_edit(node, form)]
    )


def _empty_in_shape(document: TextDocument, path: str) -> str:
    """Empty the result and keep its shape."""
    if path:
        return apply_document_edits(document, _make_empty_edits(find_value_node(document, path)))
    outer = [node for node in document.nodes() if node.kind == "array" and node.items]
    outer = [node for node in outer if not any(_is_inside_node(node, other) for other in outer)]
    if outer:
        zeros = [
            make_value_edit(count, "0")
            for count, array in find_count_nodes(document)
            if array in outer
        ]
        return apply_document_edits(
            document, [change for node in outer for change in _make_empty_edits(node)] + zeros
        )
    return apply_document_edits(document, _make_empty_edits(document.root)) if document.root else ""


def _make_empty_edits(node: DocumentNode) -> list[DocumentEdit]:
    if node.kind in ("object", "array"):
        return list(make_removal_edits(node, range(len(node.items))))
    if node.literal or node.is_cell:
        return [make_value_edit(node, "")]
    return [make_json_edit(node, "null")]


def _is_inside_node(node: DocumentNode, other: DocumentNode) -> bool:
    return other.start < node.start and node.stop < other.stop
