"""E4 tool_error: the tool reports that it failed."""

from collections.abc import Mapping
from random import Random
from typing import Literal

from faults.model_response import is_model_exchange, respond_with_refusal
from faults.operator import FaultVisibility, operator
from faults.operators.explicit.error_bodies import encode_json_body
from faults.response_body import is_bare_result, respond_with_status
from traces.model import Exchange, Place

_FAILED: Mapping[Place, FaultVisibility] = {
    "http": FaultVisibility("http", "an answer 400, 404, 409, 410 or 503 that says why"),
    "mcp": FaultVisibility("flag", "a result with `isError` that says why", True, "flag"),
    "model-boundary": FaultVisibility(
        "flag", "the words `Error: ...` as the tool's result, with `is_error` where there is that"
    ),
    "model": FaultVisibility("text", "a refusal in place of the answer"),
}


@operator("E4", forwards=False, shows=_FAILED)
def tool_error(
    exchange: Exchange,
    rng: Random,
    *,
    how: Literal[
        "validation", "not_found", "business", "transient", "permanent", "refusal"
    ] = "validation",
) -> Exchange:
    """Report a failure as the tool itself. It never receives the request; the text is fabricated.

    Incident: an argument that a stricter version refuses (`validation`), a stale index
    (`not_found`), a business rule (`business`), a dependency that is down for now (`transient`) or
    for good (`permanent`): the text hints at whether a retry makes sense. `refusal` is the text of
    a model that refuses to answer; at the model itself every `how` is a refusal.
    """
    failures = {
        "validation": (400, "invalid_argument", "A required argument is missing or invalid."),
        "not_found": (404, "not_found", "The requested record was not found."),
        "business": (409, "not_allowed", "The operation is not allowed in the current state."),
        "transient": (503, "unavailable", "Temporarily unavailable, please try again later."),
        "permanent": (410, "gone", "This operation has been discontinued."),
        "refusal": (403, "refused", "I'm sorry, but I can't help with that."),
    }
    status, kind, message = failures[how]
    if is_model_exchange(exchange):
        return respond_with_refusal(exchange, rng)
    if is_bare_result(exchange):
        return respond_with_status(exchange, 200, f"Error: {message}".encode(), kind="text/plain")
    return respond_with_status(
        exchange, status, encode_json_body({"error": {"code": kind, "message": message}})
    )
