"""S1 truncate: the end of the text is lost."""

import re
from random import Random
from typing import Annotated, Literal

from faults.document import apply_document_edits, make_removal_edits, parse_document
from faults.model_response import is_model_exchange, read_model_output, replace_model_output
from faults.operator import CHANGED_RESULT, FaultVisibility, JsonPath, NumberRange, operator
from faults.operators.omission.json_path import transform_at_path
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
from traces.model import Exchange

_SHOWS = {
    **CHANGED_RESULT,
    "model": FaultVisibility("none", "an answer, or a tool call's JSON, that ends too soon"),
}


@operator("S1", shows=_SHOWS)
def truncate(
    exchange: Exchange,
    rng: Random,
    *,
    keep: Annotated[float, NumberRange(0, 1)] = 0.5,
    at: Literal["anywhere", "word", "item"] = "anywhere",
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Keep the first part of the text, `keep` of its characters, and drop the rest.

    Incident: a log limit, a token limit, a pipe that closed without an error. The length headers
    match the shorter body, so that no client can detect it by the protocol. The text ends
    `anywhere` (JSON no longer parses), after a `word`, or after a complete `item` of the longest
    list with all brackets closed, which only the missing items reveal. With `path` only that value
    is cut. In a model's response the arguments of the last call are cut, or its text; if the
    dialect has no string for the arguments, their last members are dropped.
    """
    from_model = is_model_exchange(exchange)
    text = read_model_output(exchange) if from_model else decode_response_text(exchange)
    part = _keep_text_part(text, path, keep, at)
    cut = (
        replace_model_output(exchange, part)
        if from_model
        else replace_response_text(exchange, part)
    )
    if cut == exchange:
        raise NoInjectionSite("nothing would be cut off")
    return cut


def _keep_text_part(whole: str, path: str, keep: float, at: str) -> str:
    if at == "item":
        return _keep_list_items(whole, path, keep)
    return transform_at_path(whole, path, lambda value: _keep_text_prefix(value, keep, at))


def _keep_text_prefix(value: str, keep: float, at: str) -> str:
    size = int(len(value) * keep)
    if at == "word":
        ends = [match.end() for match in re.finditer(r"\w+", value) if match.end() <= size]
        size = ends[-1] if ends else 0
    if size == len(value):
        raise NoInjectionSite("nothing would be cut off")
    return value[:size]


def _keep_list_items(whole: str, path: str, keep: float) -> str:
    document = parse_document(whole)
    arrays = [node for node in document.nodes(path) if node.kind == "array" and node.items]
    if not arrays:
        raise NoInjectionSite("there is no list whose items could be lost")
    longest = max(arrays, key=lambda node: node.stop - node.start)
    size = longest.start + (longest.stop - longest.start) * keep if path else len(whole) * keep
    dropped = {n for n, item in enumerate(longest.items) if item.span[1] > size}
    if not dropped:
        raise NoInjectionSite("nothing would be cut off")
    return apply_document_edits(document, make_removal_edits(longest, dropped))
