"""V11 replace: a result edited by hand."""

import json
from random import Random
from typing import Annotated

from faults.document import (
    DocumentEdit,
    DocumentNode,
    apply_document_edits,
    make_json_edit,
    make_value_edit,
    parse_document,
)
from faults.operator import JsonPath, operator
from faults.operators.omission.json_path import find_value_node
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
from traces.model import Exchange


@operator("V11", by_hand=True)
def replace(
    exchange: Exchange,
    rng: Random,
    *,
    value: str = "not available",
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Replace the result, or the value at `path`, by `value`.

    Incident: the one that you have in mind. A text at `path` stays a text; any other value becomes
    `value` as JSON, or as a text if it is none. The complete result becomes `value` as it is. All
    of it is fabricated.
    """
    text = decode_response_text(exchange)
    changed = value
    if path:
        document = parse_document(text)
        changed = apply_document_edits(document, [_edit(find_value_node(document, path), value)])
    if changed == text:
        raise NoInjectionSite("the result has this value already")
    return replace_response_text(exchange, changed)


def _edit(node: DocumentNode, value: str) -> DocumentEdit:
    if node.literal or node.is_cell:
        return make_value_edit(node, value)
    return make_json_edit(node, value if _is_json(value) else json.dumps(value))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
