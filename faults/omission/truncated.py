"""S1: the end of the text is lost."""

import re
from random import Random
from typing import Annotated, Literal

from faults.body import NoSite, text, with_text
from faults.document import changed, read, without
from faults.omission.piece import bent
from faults.operator import BENT, Between, JsonPath, Shows, operator
from faults.spoken import is_spoken, with_words, words
from traces.model import Exchange

_SHOWS = {**BENT, "model": Shows("none", "an answer, or a tool call's JSON, that ends too soon")}


@operator("S1", shows=_SHOWS)
def truncate(
    exchange: Exchange,
    rng: Random,
    *,
    keep: Annotated[float, Between(0, 1)] = 0.5,
    at: Literal["anywhere", "word", "item"] = "anywhere",
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Keep the first part of the text, `keep` of its characters, and lose the rest.

    Incident: a log cap, a token limit, a cut pipe that nobody reported. The length headers are
    those of the shorter body, so that no client can tell by the protocol. It ends `anywhere`
    (JSON no longer parses), behind a `word`, or behind a whole `item` of the longest list with
    all brackets closed, which only what is missing gives away. Of the value at `path` alone,
    where there is one. Of a model's answer the arguments of its last call end so, or its text;
    where a dialect has no string for them, their last members are lost.
    """
    spoken = is_spoken(exchange)
    whole = words(exchange) if spoken else text(exchange)
    part = _part(whole, path, keep, at)
    cut = with_words(exchange, part) if spoken else with_text(exchange, part)
    if cut == exchange:
        raise NoSite("nothing would be cut off")
    return cut


def _part(whole: str, path: str, keep: float, at: str) -> str:
    if at == "item":
        return _items(whole, path, keep)
    return bent(whole, path, lambda value: _first(value, keep, at))


def _first(value: str, keep: float, at: str) -> str:
    size = int(len(value) * keep)
    if at == "word":
        ends = [found.end() for found in re.finditer(r"\w+", value) if found.end() <= size]
        size = ends[-1] if ends else 0
    if size == len(value):
        raise NoSite("nothing would be cut off")
    return value[:size]


def _items(whole: str, path: str, keep: float) -> str:
    document = read(whole)
    arrays = [node for node in document.nodes(path) if node.kind == "array" and node.items]
    if not arrays:
        raise NoSite("there is no list whose items could be lost")
    longest = max(arrays, key=lambda node: node.stop - node.start)
    size = longest.start + (longest.stop - longest.start) * keep if path else len(whole) * keep
    gone = {n for n, item in enumerate(longest.items) if item.span[1] > size}
    if not gone:
        raise NoSite("nothing would be cut off")
    return changed(document, without(longest, gone))
