"""E1 http_status: an HTTP error status in place of the tool's response."""

from collections.abc import Mapping
from random import Random
from typing import Annotated, Literal

from faults.model_response import is_model_exchange, respond_with_model_error
from faults.operator import FaultVisibility, NumberRange, operator
from faults.operators.explicit.error_bodies import (
    encode_json_body,
    find_status_phrase,
    render_error_page,
)
from faults.operators.explicit.rate_limits import (
    add_retry_info,
    make_limit_headers,
    make_retry_header,
)
from faults.response_body import respond_with_status
from faults.targeting.observations import NO_OBSERVATIONS, CleanObservations
from traces.model import Exchange, Headers, Place

_STATUS: Mapping[Place, FaultVisibility] = {
    "http": FaultVisibility("http", "an answer with this status"),
    "mcp": FaultVisibility(
        "http", "the status of the POST; over stdio there is none, and no site", True
    ),
    "model-boundary": FaultVisibility("text", "the words `HTTP 503: ...` in the tool's result"),
    "model": FaultVisibility("http", "an answer with this status, in the provider's form"),
}


@operator("E1", forwards=False, shows=_STATUS)
def http_status(
    exchange: Exchange,
    rng: Random,
    *,
    code: Annotated[int, NumberRange(400, 599)] = 503,
    retry_after: Annotated[int, NumberRange(0, 86_400)] = 0,
    retry_as: Literal["", "date"] = "",
    shape: Literal["json", "problem", "text", "html", "empty"] = "json",
    seen: CleanObservations = NO_OBSERVATIONS,
) -> Exchange:
    """Answer with an HTTP error status. The tool never receives the request.

    Incident: a deployment, an overload, a quota. `retry_after`, in seconds, adds that header, with
    `retry_as=date` as a date of the run's clock, and with 429 of a model the provider's own
    headers of a used up limit. `shape` is the format of the body, which is fabricated; for a model
    `json` is the provider's error format.
    """
    phrase, now = find_status_phrase(code), seen.began + exchange.started
    headers: Headers = ()
    if retry_after:
        headers = make_retry_header(retry_after, now if retry_as == "date" else None)
    if shape == "json" and is_model_exchange(exchange):
        is_limit, request = bool(retry_after) and code == 429, exchange.request
        headers += make_limit_headers(request, retry_after, now) if is_limit else ()
        answered = respond_with_model_error(exchange, code, *headers)
        return add_retry_info(answered, retry_after) if is_limit else answered
    match shape:
        case "problem":
            body = encode_json_body({"type": "about:blank", "title": phrase, "status": code})
            return respond_with_status(
                exchange, code, body, *headers, kind="application/problem+json"
            )
        case "text":
            return respond_with_status(exchange, code, phrase.encode(), *headers, kind="text/plain")
        case "html":
            return respond_with_status(
                exchange, code, render_error_page(code, phrase), *headers, kind="text/html"
            )
        case "empty":
            return respond_with_status(exchange, code, b"", *headers)
        case _:
            body = encode_json_body({"error": {"code": code, "message": phrase}})
            return respond_with_status(exchange, code, body, *headers)
