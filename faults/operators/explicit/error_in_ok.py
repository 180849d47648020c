"""E5 error_in_ok: an error in the body of a response with status 200."""

from collections.abc import Mapping
from random import Random
from typing import Literal

from faults.operator import FaultVisibility, operator
from faults.operators.explicit.error_bodies import (
    encode_json_body,
    find_status_phrase,
    render_error_page,
)
from faults.response_body import respond_with_status
from traces.model import Exchange, Place

_AS_SUCCESS: Mapping[Place, FaultVisibility] = {
    "http": FaultVisibility("none", "an answer 200 that holds an error"),
    "mcp": FaultVisibility("none", "a result without `isError` that holds an error"),
    "model-boundary": FaultVisibility("none", "a tool's result that holds an error"),
    "model": FaultVisibility("none", "an answer 200 that holds an error and no answer"),
}
_TRACE = b"""Traceback (most recent call last):
  File "/app/server/handlers.py", line 118, in handle
    return self.backend.fetch(query, timeout=self.timeout)
  File "/app/server/backend.py", line 57, in fetch
    raise ConnectionError(f"{self.host}: connection pool exhausted")
ConnectionError: db-replica-2: connection pool exhausted
"""


@operator("E5", forwards=False, shows=_AS_SUCCESS)
def error_in_ok(
    exchange: Exchange, rng: Random, *, how: Literal["html", "json", "trace"] = "html"
) -> Exchange:
    """Answer 200 with an error in the body. The tool never receives the request.

    Incident: a proxy's error page (`html`), a swallowed exception: an error next to a flag that
    says ok (`json`), or a stack trace as text (`trace`). The body is fabricated.
    """
    match how:
        case "html":
            return respond_with_status(
                exchange, 200, render_error_page(502, find_status_phrase(502)), kind="text/html"
            )
        case "json":
            error = {"code": "internal", "message": "upstream request failed"}
            return respond_with_status(
                exchange, 200, encode_json_body({"ok": True, "data": None, "error": error})
            )
        case _:
            return respond_with_status(exchange, 200, _TRACE, kind="text/plain")
