"""V8 bool_flip: an inverted boolean."""

from random import Random
from typing import Annotated

from faults.document import DocumentNode, parse_document
from faults.operator import JsonPath, operator
from faults.operators.value.select_value import rewrite_value
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
from traces.model import Exchange

_PAIRS = (
    ("true", "false"),
    ("yes", "no"),
    ("on", "off"),
    ("y", "n"),
    ("enabled", "disabled"),
    ("active", "inactive"),
)
_OTHER = {one: two for pair in _PAIRS for one, two in (pair, pair[::-1])}


@operator("V8")
def bool_flip(
    exchange: Exchange, rng: Random, *, path: Annotated[str, JsonPath()] = ""
) -> Exchange:
    """Invert one boolean: true or false, or a word pair such as yes and no, on and off.

    Incident: an inverted flag. That word is the only fabricated part.
    """
    document = parse_document(decode_response_text(exchange))
    sites = [node for node in document.nodes(path) if _invert_truth_word(node) is not None]
    if not sites:
        raise NoInjectionSite("there is no truth value in the result")
    node = rng.choice(sites)
    return replace_response_text(
        exchange, rewrite_value(document, node, _invert_truth_word(node) or "")
    )


def _invert_truth_word(node: DocumentNode) -> str | None:
    if node.kind not in ("bool", "text"):
        return None
    other = _OTHER.get(node.text.lower())
    if other is None or node.text == node.text.lower():
        return other
    return other.upper() if node.text.isupper() and len(node.text) > 1 else other.capitalize()
