"""V10: another legal member of an enum."""

import re
from collections import defaultdict
from random import Random
from typing import Annotated

from faults.body import NoSite, text, with_text
from faults.document import Node, read
from faults.operator import JsonPath, operator
from faults.seen import NOTHING, Seen
from faults.value.picks import is_id, rewritten
from traces.model import Exchange

_MEMBER = re.compile(r"[A-Za-z][A-Za-z_\-]{1,23}")
_FREE = re.compile(r"(?i)name|title|description|text|message|email|address|city|note|comment")


@operator("V10")
def enum_swap(
    exchange: Exchange,
    rng: Random,
    *,
    path: Annotated[str, JsonPath()] = "",
    seen: Seen = NOTHING,
) -> Exchange:
    """Say another member of an enum, one that was seen under the same name.

    Incident: statuses that are mapped wrongly. What an enum is and which members it has is read
    off the recording: one word, which is no name, id, date or free text. Nothing is made up.
    """
    document = read(text(exchange))
    here = defaultdict[str, dict[str, None]](dict)
    for node in document.nodes():
        if _may(node):
            here[node.name][node.said] = None
    sites = []
    for node in document.nodes(path):
        if _may(node):
            known = {**dict.fromkeys(seen.values(node)), **here[node.name]}
            others = tuple(o for o in known if o != node.said and _MEMBER.fullmatch(o))
            if others:
                sites.append((node, others))
    if not sites:
        raise NoSite("no other member of an enum in the result was seen")
    node, others = rng.choice(sites)
    return with_text(exchange, rewritten(document, node, rng.choice(others)))


def _may(node: Node) -> bool:
    word = node.kind == "text" and node.whole and _MEMBER.fullmatch(node.said) is not None
    return word and bool(node.name) and not is_id(node) and not _FREE.search(node.name)
