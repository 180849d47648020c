"""S1: the end of the text is lost."""

import re
from random import Random
from typing import Annotated, Literal

from faults.body import NoSite, text, with_text
from faults.document import changed, read, without
from faults.operator import BENT, Between, Shows, operator
from traces.model import Exchange

_SHOWS = {**BENT, "model": Shows("none", "an answer, or a tool call's JSON, that ends too soon")}


@operator("S1", shows=_SHOWS)
def truncate(
    exchange: Exchange,
    rng: Random,
    *,
    keep: Annotated[float, Between(0, 1)] = 0.5,
    at: Literal["anywhere", "word", "item"] = "anywhere",
) -> Exchange:
    """Keep the first part of the text, `keep` of its characters, and lose the rest.

    Incident: a log cap, a token limit, a cut pipe that nobody reported. The length headers are
    those of the shorter body, so that no client can tell by the protocol. It ends `anywhere`
    (JSON no longer parses), behind a `word`, or behind a whole `item` of the longest list with
    all brackets closed, which only what is missing gives away.
    """
    whole = text(exchange)
    size = int(len(whole) * keep)
    if at == "item":
        return with_text(exchange, _items(whole, size))
    if at == "word":
        ends = [found.end() for found in re.finditer(r"\w+", whole) if found.end() <= size]
        size = ends[-1] if ends else 0
    part = whole[:size]
    if part == whole:
        raise NoSite("nothing would be cut off")
    return with_text(exchange, part)


def _items(whole: str, size: int) -> str:
    document = read(whole)
    arrays = [node for node in document.nodes() if node.kind == "array" and node.items]
    if not arrays:
        raise NoSite("there is no list whose items could be lost")
    longest = max(arrays, key=lambda node: node.stop - node.start)
    gone = {n for n, item in enumerate(longest.items) if item.span[1] > size}
    if not gone:
        raise NoSite("nothing would be cut off")
    return changed(document, without(longest, gone))
