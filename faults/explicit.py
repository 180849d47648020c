"""E: the tool says that it failed, or the answer is an error that does not say so."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from random import Random
from typing import Annotated, Literal

from faults.body import answer, is_call
from faults.operator import Between, OneOf, Shows, operator
from faults.spoken import failure, is_spoken, refused
from traces.model import Exchange, Place

_STATUS: Mapping[Place, Shows] = {
    "http": Shows("http", "an answer with this status"),
    "mcp": Shows("http", "the status of the POST; over stdio there is none, and no site", True),
    "model-boundary": Shows("text", "the words `HTTP 503: ...` in the tool's result"),
    "model": Shows("http", "an answer with this status, in the provider's form"),
}
_DENIED: Mapping[Place, Shows] = {
    "http": Shows("http", "an answer 401 or 403"),
    "mcp": Shows(
        "http", "the POST is answered 401 or 403; over stdio `isError` says so", True, "flag"
    ),
    "model-boundary": Shows("text", "the words `HTTP 401: ...` in the tool's result"),
    "model": Shows("http", "an answer 401 or 403, in the provider's form"),
}
_PROTOCOL: Mapping[Place, Shows] = {
    "mcp": Shows(
        "jsonrpc", "a JSON-RPC `error` with this code, which clients may keep back", True, "jsonrpc"
    ),
    "model-boundary": Shows("text", "the words of an MCP client that was told so"),
}
_FAILED: Mapping[Place, Shows] = {
    "http": Shows("http", "an answer 400, 404, 409, 410 or 503 that says why"),
    "mcp": Shows("flag", "a result with `isError` that says why", True, "flag"),
    "model-boundary": Shows(
        "flag", "the words `Error: ...` as the tool's result, with `is_error` where there is that"
    ),
    "model": Shows("text", "a refusal in place of the answer"),
}
_AS_SUCCESS: Mapping[Place, Shows] = {
    "http": Shows("none", "an answer 200 that holds an error"),
    "mcp": Shows("none", "a result without `isError` that holds an error"),
    "model-boundary": Shows("none", "a tool's result that holds an error"),
    "model": Shows("none", "an answer 200 that holds an error and no answer"),
}


@operator("E1", forwards=False, shows=_STATUS)
def http_status(
    exchange: Exchange,
    rng: Random,
    *,
    code: Annotated[int, Between(400, 599)] = 503,
    retry_after: Annotated[int, Between(0, 86_400)] = 0,
    shape: Literal["json", "problem", "text", "html", "empty"] = "json",
) -> Exchange:
    """Answer with this status in place of the tool, which never sees the request.

    Incident: a deploy, an overload, a quota. `retry_after` in seconds adds that header; `shape`
    is the form of the body, which is made up; of a model `json` is that of its provider.
    """
    phrase = _phrase(code)
    headers = (("retry-after", str(retry_after)),) if retry_after else ()
    if shape == "json" and is_spoken(exchange):
        return failure(exchange, code, *headers)
    match shape:
        case "problem":
            body = _dump({"type": "about:blank", "title": phrase, "status": code})
            return answer(exchange, code, body, *headers, kind="application/problem+json")
        case "text":
            return answer(exchange, code, phrase.encode(), *headers, kind="text/plain")
        case "html":
            return answer(exchange, code, _page(code, phrase), *headers, kind="text/html")
        case "empty":
            return answer(exchange, code, b"", *headers)
        case _:
            body = _dump({"error": {"code": code, "message": phrase}})
            return answer(exchange, code, body, *headers)


@operator("E2", forwards=False, shows=_DENIED)
def auth(
    exchange: Exchange,
    rng: Random,
    *,
    code: Annotated[int, OneOf((401, 403))] = 401,
    why: Literal["expired", "revoked", "scope"] = "expired",
) -> Exchange:
    """Deny access. The tool never sees the request; the words are made up.

    Incident: a rotated key, a token that ran out, a role that lost its right. With a trigger
    that lets some calls pass first, the access runs out in the middle of the work.
    """
    said = {
        "expired": ("token_expired", "The access token has expired."),
        "revoked": ("invalid_token", "The access token was revoked."),
        "scope": ("insufficient_scope", "The caller lacks the permission for this operation."),
    }
    kind, message = said[why]
    if is_spoken(exchange):
        return failure(exchange, code, message=message)
    challenge = (("www-authenticate", f'Bearer error="{kind}"'),) if code == 401 else ()
    body = _dump({"error": {"code": kind, "message": message}})
    return answer(exchange, code, body, *challenge)


@operator("E3", forwards=False, shows=_PROTOCOL)
def protocol_error(
    exchange: Exchange,
    rng: Random,
    *,
    code: Annotated[int, Between(-32768, -32000)] = -32603,
) -> Exchange:
    """Answer a call with an error of the protocol and no result.

    Incident: client and server of different versions, a server that broke down. MCP clients may
    keep such an error from the model. What bends the exchange answers with the error object; its
    words are made up.
    """
    words = {
        -32700: "Parse error",
        -32600: "Invalid Request",
        -32601: "Method not found",
        -32602: "Invalid params",
        -32603: "Internal error",
    }
    message = words.get(code, "Server error")
    if is_call(exchange):
        return answer(exchange, 200, f"MCP error {code}: {message}".encode(), kind="text/plain")
    return answer(exchange, 500, _dump({"code": code, "message": message}))


@operator("E4", forwards=False, shows=_FAILED)
def tool_error(
    exchange: Exchange,
    rng: Random,
    *,
    how: Literal[
        "validation", "not_found", "business", "transient", "permanent", "refusal"
    ] = "validation",
) -> Exchange:
    """Let the tool itself say that it failed. It never sees the request; the words are made up.

    Incident: an argument that a stricter version refuses (`validation`), an index that lags
    behind (`not_found`), a business rule, a dependency that is down for now (`transient`) or for
    good (`permanent`): the words hint at whether trying again makes sense. `refusal` is what a
    model says that will not answer; at the model itself nothing else is.
    """
    said = {
        "validation": (400, "invalid_argument", "A required argument is missing or invalid."),
        "not_found": (404, "not_found", "The requested record was not found."),
        "business": (409, "not_allowed", "The operation is not allowed in the current state."),
        "transient": (503, "unavailable", "Temporarily unavailable, please try again later."),
        "permanent": (410, "gone", "This operation has been discontinued."),
        "refusal": (403, "refused", "I'm sorry, but I can't help with that."),
    }
    status, kind, message = said[how]
    if is_spoken(exchange):
        return refused(exchange, rng)
    if is_call(exchange):
        return answer(exchange, 200, f"Error: {message}".encode(), kind="text/plain")
    return answer(exchange, status, _dump({"error": {"code": kind, "message": message}}))


@operator("E5", forwards=False, shows=_AS_SUCCESS)
def error_in_ok(
    exchange: Exchange, rng: Random, *, how: Literal["html", "json", "trace"] = "html"
) -> Exchange:
    """Answer 200, with an error in it. The tool never sees the request; the words are made up.

    Incident: a proxy's own page (`html`), an exception that was swallowed: an error beside a
    flag that says ok (`json`), or a stack trace as text (`trace`).
    """
    match how:
        case "html":
            return answer(exchange, 200, _page(502, _phrase(502)), kind="text/html")
        case "json":
            error = {"code": "internal", "message": "upstream request failed"}
            return answer(exchange, 200, _dump({"ok": True, "data": None, "error": error}))
        case _:
            return answer(exchange, 200, _TRACE, kind="text/plain")


_TRACE = b"""Traceback (most recent call last):
  File "/app/server/handlers.py", line 118, in handle
    return self.backend.fetch(query, timeout=self.timeout)
  File "/app/server/backend.py", line 57, in fetch
    raise ConnectionError(f"{self.host}: connection pool exhausted")
ConnectionError: db-replica-2: connection pool exhausted
"""


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return {529: "Overloaded"}.get(code, "Error")


def _page(code: int, phrase: str) -> bytes:
    title = f"{code} {phrase}"
    return (
        f"<html>\n<head><title>{title}</title></head>\n<body>\n<center><h1>{title}</h1></center>\n"
        "<hr><center>nginx</center>\n</body>\n</html>\n"
    ).encode()


def _dump(value: object) -> bytes:
    return json.dumps(value).encode()
