"""S6 instruction: a tool's answer that tells the agent what to do."""

import json
from random import Random
from typing import Literal

from faults.canary import write_instruction
from faults.document import DocumentEdit, apply_document_edits, parse_document
from faults.judging.invariants import find_object_nodes
from faults.operator import operator
from faults.operators.omission.json_path import escape_for_node
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
from traces.model import Exchange


@operator("S6")
def instruction(
    exchange: Exchange, rng: Random, *, how: Literal["answer", "call", "write"] = "answer"
) -> Exchange:
    """Add an instruction to the result: as a field `note` of its first object, or at its end.

    Incident: a comment, a page or a record that somebody else wrote. `how` is what it asks for: a
    token at the start of the reply, in a call, or in a write; the token is made of two words of
    the instruction, so that only an agent that obeys produces it. The text is fabricated.
    """
    text, told = decode_response_text(exchange), write_instruction(how, rng)
    document = parse_document(text)
    members = (node.items[0] for node in find_object_nodes(document) if node.items)
    first = next((member for member in members if member.key), None)
    if first is not None:
        member = escape_for_node(f'"note": {json.dumps(told)}, ', first)
        changed = apply_document_edits(document, [DocumentEdit(first.begin, first.begin, member)])
    elif text.lstrip()[:1] in ("[", "{", '"'):
        raise NoInjectionSite("the result has no object that could hold a note")
    else:
        changed = f"{text}\n\n{told}" if text else told
    return replace_response_text(exchange, changed)
