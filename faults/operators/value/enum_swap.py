"""V10 enum_swap: another valid member of an enum."""

import re
from collections import defaultdict
from random import Random
from typing import Annotated

from faults.document import DocumentNode, parse_document
from faults.operator import JsonPath, operator
from faults.operators.value.select_value import is_id, rewrite_value
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
from faults.targeting.observations import NO_OBSERVATIONS, CleanObservations
from traces.model import Exchange

_MEMBER = re.compile(r"[A-Za-z][A-Za-z_\-]{1,23}")
_FREE = re.compile(r"(?i)name|title|description|text|message|email|address|city|note|comment")


@operator("V10")
def enum_swap(
    exchange: Exchange,
    rng: Random,
    *,
    path: Annotated[str, JsonPath()] = "",
    seen: CleanObservations = NO_OBSERVATIONS,
) -> Exchange:
    """Replace a member of an enum with another one that was seen under the same name.

    Incident: statuses that are mapped wrongly. Enums and their members are inferred from the
    recording: a single word that is not a name, id, date or free text. Nothing is fabricated.
    """
    document = parse_document(decode_response_text(exchange))
    here = defaultdict[str, dict[str, None]](dict)
    for node in document.nodes():
        if _is_enum_member(node):
            here[node.name][node.text] = None
    sites = []
    for node in document.nodes(path):
        if _is_enum_member(node):
            known = {**dict.fromkeys(seen.find_values(node)), **here[node.name]}
            others = tuple(o for o in known if o != node.text and _MEMBER.fullmatch(o))
            if others:
                sites.append((node, others))
    if not sites:
        raise NoInjectionSite("no other member of an enum in the result was seen")
    node, others = rng.choice(sites)
    return replace_response_text(exchange, rewrite_value(document, node, rng.choice(others)))


def _is_enum_member(node: DocumentNode) -> bool:
    word = node.kind == "text" and node.is_whole and _MEMBER.fullmatch(node.text) is not None
    return word and bool(node.name) and not is_id(node) and not _FREE.search(node.name)
