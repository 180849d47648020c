"""Tool calls of a program without a model: each request to a tool is a call of its own."""

import json
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from urllib.parse import parse_qsl, urlsplit

from traces.bodies.content_encoding import decode_content_or_raw, read_content
from traces.conversation.classify import classify_request
from traces.dialects import json_access, mcp
from traces.dialects.types import ToolCall, ToolResult
from traces.model import Exchange, Request

_ID_SEGMENT = re.compile(r"(?!v\d+\Z)[^/]*\d[^/]*")
"""A part of a path that names one thing: it has a digit, and is no version as `v1`."""
_MAX_BODY = 100_000
"""Characters of a body without fields that count as its argument."""


def has_model_traffic(exchanges: Iterable[Exchange]) -> bool:
    """Whether any of these exchanges is with a model."""
    return any(classify_request(exchange.request) == "model" for exchange in exchanges)


def to_program_call(request: Request, tools: Mapping[str, str]) -> ToolCall:
    """Return a request to a tool as a call without an id.

    An HTTP call is named by the route that the user declared, else `POST /orders/*`, with `*` for
    each id in the path. Its arguments are the path with ids, the query and the body's fields.
    """
    message = mcp.read_client_message(request)
    if message is not None and message.call is not None:
        return message.call
    url = urlsplit(request.url)
    route = "/".join("*" if _ID_SEGMENT.fullmatch(part) else part for part in url.path.split("/"))
    mapped = (tool for tool in tools if is_declared_route(tools, tool, request))
    fields: dict[str, object] = {} if route == url.path else {"path": url.path}
    fields |= dict(parse_qsl(url.query, keep_blank_values=True))
    name = next(mapped, f"{request.method} {route}")
    return ToolCall(id="", name=name, arguments=json.dumps(fields | _read_body_fields(request)))


def is_declared_route(tools: Mapping[str, str], tool: str, request: Request) -> bool:
    """Whether a request goes where the user declared that a tool goes: `POST */refunds`."""
    method, _, glob = tools.get(tool, "").partition(" ")
    return request.method == method and fnmatchcase(urlsplit(request.url).path, glob)


def _read_body_fields(request: Request) -> dict[str, object]:
    body = read_content(request)
    if not body:
        return {}
    text = body.decode("utf-8", "replace")
    fields = json_access.read_body_object(body) or parse_qsl(text)
    return dict[str, object](fields) or {"body": text[:_MAX_BODY]}


def to_program_result(call_id: str, exchange: Exchange) -> ToolResult:
    """Return what a program got for a request: the text of the answer, or why there is none."""
    answer, text = exchange.response, exchange.error or ""
    if answer is not None and (answer.chunks or not text):
        text = decode_content_or_raw(answer.headers, answer.body).decode("utf-8", "replace")
        if mcp.read_client_message(exchange.request) is not None:
            reply = mcp.parse_mcp_reply(answer.headers, answer.body)
            text = text if reply is None else reply.text
    return ToolResult(call_id=call_id, text=text, start=0, stop=0)
