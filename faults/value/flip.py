"""V8: yes for no."""

from random import Random
from typing import Annotated

from faults.body import NoSite, text, with_text
from faults.document import Node, read
from faults.operator import JsonPath, operator
from faults.value.picks import rewritten
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
    """Make false of one true, or true of one false; words that mean it (yes, off) count too.

    Incident: a flag that was inverted. That word is all it makes up.
    """
    document = read(text(exchange))
    sites = [node for node in document.nodes(path) if _other(node) is not None]
    if not sites:
        raise NoSite("there is no truth value in the result")
    node = rng.choice(sites)
    return with_text(exchange, rewritten(document, node, _other(node) or ""))


def _other(node: Node) -> str | None:
    if node.kind not in ("bool", "text"):
        return None
    other = _OTHER.get(node.said.lower())
    if other is None or node.said == node.said.lower():
        return other
    return other.upper() if node.said.isupper() and len(node.said) > 1 else other.capitalize()
