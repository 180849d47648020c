"""E2 auth: access is denied with 401 or 403."""

from collections.abc import Mapping
from random import Random
from typing import Annotated, Literal

from faults.model_response import is_model_exchange, respond_with_model_error
from faults.operator import FaultVisibility, OneOf, operator
from faults.operators.explicit.error_bodies import encode_json_body
from faults.response_body import respond_with_status
from traces.model import Exchange, Place

_DENIED: Mapping[Place, FaultVisibility] = {
    "http": FaultVisibility("http", "an answer 401 or 403"),
    "mcp": FaultVisibility(
        "http", "the POST is answered 401 or 403; over stdio `isError` says so", True, "flag"
    ),
    "model-boundary": FaultVisibility("text", "the words `HTTP 401: ...` in the tool's result"),
    "model": FaultVisibility("http", "an answer 401 or 403, in the provider's form"),
}


@operator("E2", forwards=False, shows=_DENIED)
def auth(
    exchange: Exchange,
    rng: Random,
    *,
    code: Annotated[int, OneOf((401, 403))] = 401,
    why: Literal["expired", "revoked", "scope"] = "expired",
) -> Exchange:
    """Deny access. The tool never receives the request; the error text is fabricated.

    Incident: a rotated key, an expired token, a role that lost a permission. With a trigger that
    lets some calls pass first, access ends in the middle of the work.
    """
    reasons = {
        "expired": ("token_expired", "The access token has expired."),
        "revoked": ("invalid_token", "The access token was revoked."),
        "scope": ("insufficient_scope", "The caller lacks the permission for this operation."),
    }
    kind, message = reasons[why]
    if is_model_exchange(exchange):
        return respond_with_model_error(exchange, code, message=message)
    challenge = (("www-authenticate", f'Bearer error="{kind}"'),) if code == 401 else ()
    body = encode_json_body({"error": {"code": kind, "message": message}})
    return respond_with_status(exchange, code, body, *challenge)
