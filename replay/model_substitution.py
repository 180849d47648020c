"""Model substitution: a tap that sends the live model requests of a run to another model.

The agent still names the recorded model; the request that goes out names the other one, with no
other byte changed. Answers from the recording stay those of the recorded model, so that two forks
of one recording have the same prefix and the same fault, and differ by the model that goes on. Only
requests that name their model in a JSON body can be sent to another one of the same provider;
Gemini's name it in the URL.
"""

import re
from copy import replace

import orjson

from traces.bodies.json_offsets import find_json_members, find_json_root
from traces.dialects import find_dialect
from traces.model import BodyEdit, Exchange, Request, find_header

_BOUND_TO_MODEL = re.compile(
    rb'"(signature|encrypted_content|thoughtSignature|previous_response_id)"\s*:\s*"[^"]'
)
"""Keys whose values a provider accepts from the model that wrote them alone."""


class ModelSubstitution:
    """Names another model in each live model request of one run."""

    def __init__(self, model: str) -> None:
        self._name = orjson.dumps(model)

    def request(self, exchange: Exchange) -> Exchange:
        """Return the exchange with an edit of the model's name, unless it is already answered."""
        if exchange.response is not None or exchange.error is not None:
            return exchange
        span = find_model_name(exchange.request)
        if span is None:
            return exchange
        edit = BodyEdit(start=span[0], stop=span[1], data=self._name)
        edits = sorted((*exchange.edits, edit), key=lambda each: each.start)
        return replace(exchange, edits=tuple(edits))


def find_model_name(request: Request) -> tuple[int, int] | None:
    """Return the offsets of the model's name, quotes included, in the body of a model request.

    None if it is no model request, or its body is compressed or names no model.
    """
    encoding = find_header(request.headers, "content-encoding")
    if find_dialect(request) is None or encoding not in (None, "identity"):
        return None
    body = request.body
    try:
        if not isinstance(orjson.loads(body), dict):
            return None
    except orjson.JSONDecodeError:
        return None
    span = find_json_members(body, find_json_root(body)).get(b"model")
    return span if span and body[span[0] : span[0] + 1] == b'"' else None


def find_model_bound_keys(request: Request) -> tuple[str, ...]:
    """Return the keys of a request whose values another model may refuse, sorted."""
    return tuple(sorted({match[1].decode() for match in _BOUND_TO_MODEL.finditer(request.body)}))
