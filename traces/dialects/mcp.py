"""MCP: JSON-RPC 2.0 between an agent and its tool servers, over streamable HTTP and stdio.

This is not a lens, since no model uses it: it reads one tool call from one message and its result
from the response, and a lens reads an entire conversation. It also makes the edits that fault
injection needs: replace a result's text, its structured value, or all of it by an error.

Wire facts, of both versions in use (2025-11-25 and 2026-07-28):

- a message is one POST; batches are no longer MCP. A response is JSON, or a stream of events
  of which one is the response and the others are notifications and requests of the server;
- 2025-11-25 begins with `initialize`, answered with `mcp-session-id`, which the client sends
  from then on; a GET opens a stream that lasts as long as the session, DELETE ends it.
  2026-07-28 has none of these: `server/discover` is optional, and each message has version and
  client in `_meta`;
- a result has `content` (parts, for the model) and optionally `structuredContent` (one JSON
  value), two copies of the same data; `isError` means that the tool failed, and is for the model
  to see. A JSON-RPC `error` means that there was no such call; most clients do not show it to
  the model;
- over stdio a message of the client has method MESSAGE and url `stdio://NAME/`, and START
  represents the server's process.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from traces.bodies import json_offsets
from traces.bodies.canonical_json import dump_canonical_json, parse_exact_json
from traces.bodies.content_encoding import decode_content, read_content
from traces.bodies.generated_values import GENERATED_VALUE, is_call_id_name, is_run_scoped_name
from traces.bodies.repeated_search import RepeatedSearch
from traces.bodies.sse import find_sse_event_ends
from traces.bodies.streaming_encoding import decode_complete_content
from traces.dialects import json_access
from traces.dialects.types import ToolCall
from traces.identity_cache import IdentityCache
from traces.model import BodyEdit, Chunk, Exchange, Headers, Request, find_header

type MessageRole = Literal["call", "talk", "reply", "aside"]
"""A tool call; another request with a response; the client's response to a request of the server;
another message without a response.
"""
type McpContinuation = tuple[str, ...]
"""Connects a call whose response has no result yet to the request that will get it."""

_METHOD = re.compile(
    r"initialize\Z|(?:server|tools|resources|prompts|completion|logging|notifications|sampling"
    r"|elicitation|roots|subscriptions|tasks)/."
)
_HEADERS = ("mcp-protocol-version", "mcp-session-id", "mcp-method")
_LISTENS = "subscriptions/listen"
_VERSION = "io.modelcontextprotocol/protocolVersion"
"""In `_meta` of each message, from 2026-07-28 on."""
_LONG = re.compile(rb"\d{19}")
"""A number with this many digits may exceed 64 bits."""
_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\n|\r)")
_EVENT_ID = re.compile(rb"^id: ?([^\r\n]+)", re.MULTILINE)


class McpClientMessage(Struct, frozen=True, kw_only=True):
    """One message of the client."""

    role: MessageRole
    method: str
    """The JSON-RPC method, such as `tools/list`; that of HTTP or stdio if the message has none."""
    call: ToolCall | None = None
    """The tool call; its id is the JSON-RPC id as JSON text, unknown to the model."""
    meta: frozenset[str] = frozenset()
    """The texts in `_meta`; some clients put the model's call id there."""
    stateless: bool = False
    """True for a call that has its own version, as from 2026-07-28 on."""
    reply_to: str | None = None
    """The id of the server's request that this answers, as JSON text. Answers to a ping have none,
    as their time varies."""


class McpReply(Struct, frozen=True, kw_only=True):
    """A server's response to one request."""

    id: str
    """As JSON text."""
    text: str
    """The joined texts of the content, or the message of a JSON-RPC error."""
    structured: str | None = None
    """`structuredContent` as it was written."""
    is_error: bool | None = None
    """None for a result that is not final: the server requests input first."""
    code: int | None = None
    """The code of a JSON-RPC error; None for a result, even one with `isError`."""


class McpTool(Struct, frozen=True, kw_only=True):
    """A server's description of one tool."""

    name: str
    read_only: bool | None = None
    """Whether it changes nothing, by its annotations; None if they do not state it."""
    returns: str | None = None
    """JSON Schema of its structured results, as JSON text; None if not declared."""


@IdentityCache
def read_client_message(request: Request) -> McpClientMessage | None:
    """Read a client's message to an MCP server; None if this is not MCP."""
    if request.method in ("POST", "MESSAGE"):
        message = _read_jsonrpc_object(request)
        return None if message is None else _to_client_message(request, message)
    if request.method == "START" and request.url.startswith("stdio://"):
        return McpClientMessage(role="aside", method=request.method)
    if request.method in ("GET", "DELETE") and _has_mcp_transport(request):
        return McpClientMessage(role="aside", method=request.method)
    return None


_find_version_key = RepeatedSearch(b'"jsonrpc"')


@IdentityCache
def mentions_json_rpc(request: Request) -> bool:
    """Whether a body may be JSON-RPC: few bodies have to be parsed for that."""
    return _find_version_key(read_content(request) or request.body) >= 0


@IdentityCache
def _read_jsonrpc_object(request: Request) -> Mapping[str, object] | None:
    if not mentions_json_rpc(request):
        return None
    message = _load_exact_object(read_content(request))
    if message.get("jsonrpc") != "2.0":
        return None
    method = message.get("method")
    has_mcp_method = isinstance(method, str) and _METHOD.match(method) is not None
    return message if has_mcp_method or _has_mcp_transport(request) else None


def _load_exact_object(text: bytes) -> Mapping[str, object]:
    """Parse a JSON object with exact integers: an id or argument may have any size."""
    value = json_access.read_body_object(text)
    if value and _LONG.search(text):
        exact: dict[str, object] = json.loads(text.decode("utf-8", "surrogatepass"))
        return exact
    return value


def _has_mcp_transport(request: Request) -> bool:
    if request.url.startswith("stdio://"):
        return True
    return any(find_header(request.headers, name) is not None for name in _HEADERS)


def _to_client_message(request: Request, table: Mapping[str, object]) -> McpClientMessage:
    method, params = (
        json_access.to_optional_string(table.get("method")),
        json_access.to_json_object(table.get("params")),
    )
    if method is None and "id" in table and table.get("result") != {}:
        return McpClientMessage(
            role="reply", method=request.method, reply_to=_dump_json_text(table["id"])
        )
    if method is None or "id" not in table or method == _LISTENS:
        return McpClientMessage(role="aside", method=method or request.method)
    if method != "tools/call":
        return McpClientMessage(role="talk", method=method)
    meta = json_access.to_json_object(params.get("_meta"))
    call = ToolCall(
        id=_dump_json_text(table["id"]),
        name=json_access.to_optional_string(params.get("name")) or "",
        arguments=_dump_json_text(params.get("arguments", {})),
    )
    texts = frozenset(value for value in meta.values() if isinstance(value, str))
    return McpClientMessage(
        role="call", method=method, call=call, meta=texts, stateless=_VERSION in meta
    )


def _dump_json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def find_reply_id(request: Request) -> str | None:
    """Return the id of the server's request that a message answers; None for another message."""
    message = read_client_message(request)
    return None if message is None else message.reply_to


def is_background_message(request: Request) -> bool:
    """Whether it has no response to wait for: notifications, listening streams, session end.

    Whether and when these are sent varies between runs of many clients.
    """
    message = read_client_message(request)
    return message is not None and message.role == "aside"


def is_listening_request(request: Request) -> bool:
    """Whether its response is a stream that lasts until one side disconnects."""
    message = read_client_message(request)
    return message is not None and message.role == "aside" and message.method in ("GET", _LISTENS)


def find_session(request: Request) -> str | None:
    """Return the id of the session that a message over HTTP belongs to."""
    return find_header(request.headers, "mcp-session-id")


def list_server_requests(headers: Headers, body: bytes) -> tuple[str, ...]:
    """Return the ids, as JSON text, of the requests that a server makes in a stream."""
    views = _find_message_views(decode_content(headers, body) or b"")
    messages = (_load_exact_object(view.text) for view in views if b'"method"' in view.text)
    return tuple(
        _dump_json_text(message["id"])
        for message in messages
        if "id" in message and "method" in message
    )


def find_interim_end(stream: bytes) -> int:
    """Return the length of the complete events that precede the response in a stream of events.

    They are notifications, requests of the server, and events that only have an id.
    """
    start = 0
    for stop in find_sse_event_ends(stream):
        if _find_mcp_response(stream[start:stop]) is not None:
            break
        start = stop
    return start


def is_mcp_stream(request: Request, headers: Headers) -> bool:
    """Whether a response with these headers is an unencoded stream with messages of a server."""
    kind = find_header(headers, "content-type") or ""
    return (
        kind.startswith("text/event-stream")
        and find_header(headers, "content-encoding") in (None, "identity")
        and read_client_message(request) is not None
    )


def find_awaited_result(exchange: Exchange) -> McpContinuation | None:
    """Return what identifies the request that gets the result of a call; None if this one has it.

    The server requires input first (2026-07-28), made a task of the call, or closed the stream,
    whose rest the client fetches by the id of its last event.
    """
    message, answer = read_client_message(exchange.request), exchange.response
    if message is None or answer is None or answer.status >= 400 or exchange.error is not None:
        return None
    url = exchange.request.url
    reply = _find_mcp_response(decode_content(answer.headers, answer.body) or b"")
    if reply is None:
        ids = (
            _EVENT_ID.findall(answer.body)
            if is_mcp_stream(exchange.request, answer.headers)
            else []
        )
        return ("stream", url, ids[-1].decode("utf-8", "replace")) if ids else None
    result = json_access.to_json_object(reply[1].get("result"))
    task = json_access.to_json_object(result.get("task")).get("taskId")
    if isinstance(task, str) and "content" not in result:
        return "task", url, task
    if result.get("resultType") == "input_required" and message.call is not None:
        return "input", url, message.call.name
    return None


def find_continued_call(request: Request) -> McpContinuation | None:
    """Return what identifies the call whose result this request continues to get."""
    last_event = find_header(request.headers, "last-event-id")
    if request.method == "GET" and last_event is not None:
        return "stream", request.url, last_event
    message = read_client_message(request)
    if message is None or message.method not in ("tasks/result", "tools/call"):
        return None
    params = json_access.to_json_object((_read_jsonrpc_object(request) or {}).get("params"))
    if message.call is None:
        return "task", request.url, json_access.to_optional_string(params.get("taskId")) or ""
    if "inputResponses" in params or "requestState" in params:
        return "input", request.url, message.call.name
    return None


def find_request_id(request: Request) -> str | None:
    """Return the id of a client's request, as JSON text; None for another message."""
    message = _read_jsonrpc_object(request) if request.method in ("POST", "MESSAGE") else None
    return _dump_json_text(message["id"]) if message is not None and "id" in message else None


def has_mcp_response(exchange: Exchange) -> bool:
    """Whether the response to a message came, regardless of the stream after it.

    Clients disconnect once they have it, which may be before the stream's last byte.
    """
    return to_canonical_response(exchange) is not None


def to_canonical_response(exchange: Exchange) -> bytes | None:
    """Return the response as canonical JSON without its id, to compare servers."""
    response = exchange.response
    if response is None or read_client_message(exchange.request) is None:
        return None
    mcp_response = _find_mcp_response(decode_content(response.headers, response.body) or b"")
    if mcp_response is None:
        return None
    return dump_canonical_json(
        {key: value for key, value in mcp_response[1].items() if key != "id"}
    )


def is_name_of_tool(offered: str, tool: str) -> bool:
    """Whether a model that calls `offered` means this tool of a server.

    Agents prefix the tool's name with the server's (`mcp__shop__issue_refund`,
    `shop__issue_refund`, `shop_issue_refund`) and replace characters that model APIs reject in
    names.
    """
    long, short = _normalize_tool_name(offered), _normalize_tool_name(tool)
    return bool(short) and (long == short or long.endswith(f"_{short}"))


@lru_cache(maxsize=4096)
def _normalize_tool_name(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name).lower()


_CLIENT_META = frozenset(
    ("progressToken", "traceparent", "tracestate", "baggage", "io.modelcontextprotocol/clientInfo")
)
"""Keys of `_meta` that do not affect the request."""


def to_canonical_message(
    request: Request,
    *,
    any_client: bool = False,
    new_calls: bool = False,
    drawn: list[str] | None = None,
) -> bytes | None:
    """Return a message as canonical JSON, without its id, client identity and trace context.

    `any_client` also removes `_meta` and the params of `initialize`: a client's versions and
    capabilities. `new_calls` also removes call ids assigned by a model. `drawn` gets the ids
    generated per run, which are removed too, in a fixed order. Returns None if this is not a
    JSON-RPC message of MCP, or has a duplicate key.
    """
    if request.method not in ("POST", "MESSAGE") or _read_jsonrpc_object(request) is None:
        return None
    try:
        body = decode_complete_content(request.headers, request.body)
        message = parse_exact_json(body or b"")
    except (ValueError, RecursionError):
        return None
    rest = {key: value for key, value in json_access.to_json_object(message).items() if key != "id"}
    params = rest.get("params")
    if rest.get("method") == "initialize" and any_client:
        rest["params"] = {}
    elif isinstance(params, dict):
        meta = (
            None
            if any_client
            else _mask_generated_meta(
                json_access.to_json_object(params.get("_meta")),
                new_calls,
                [] if drawn is None else drawn,
            )
        )
        rest["params"] = _replace_params_meta(params, meta)
    return dump_canonical_json(rest)


def to_uncounted_message(request: Request) -> bytes | None:
    """Return a message as canonical JSON without what counts a client's messages: id and progress.

    Of equal messages it tells those that are the same. Returns None if this is not JSON.
    """
    try:
        message = parse_exact_json(decode_complete_content(request.headers, request.body) or b"")
    except (ValueError, RecursionError):
        return None
    rest = {key: value for key, value in json_access.to_json_object(message).items() if key != "id"}
    if isinstance(params := rest.get("params"), dict) and isinstance(params.get("_meta"), dict):
        meta = {key: each for key, each in params["_meta"].items() if key != "progressToken"}
        rest["params"] = params | {"_meta": meta}
    return dump_canonical_json(rest)


def _replace_params_meta(
    params: dict[str, object], meta: dict[str, object] | None
) -> dict[str, object]:
    others = {key: each for key, each in params.items() if key not in ("_meta", "clientInfo")}
    return others | {"_meta": meta} if meta else others


def _mask_generated_meta(
    meta: dict[str, object], new_calls: bool, drawn: list[str]
) -> dict[str, object]:
    """Return `_meta` without ids generated per run, recognised by their key."""
    return {
        key: _mask_generated_parts(meta[key], drawn) if is_run_scoped_name(key) else meta[key]
        for key in sorted(meta)
        if key not in _CLIENT_META and not (new_calls and is_call_id_name(key))
    }


def _mask_generated_parts(value: object, drawn: list[str]) -> object:
    match value:
        case str():
            drawn += GENERATED_VALUE.findall(value)
            return [b"DRAWN", *GENERATED_VALUE.split(value)]
        case dict():
            return {key: _mask_generated_parts(value[key], drawn) for key in sorted(value)}
        case int() if GENERATED_VALUE.fullmatch(str(value)):
            drawn.append(str(value))
            return b"DRAWN"
    return value


class _McpMessageView(Struct, frozen=True):
    """A message in place: its JSON text, and the offsets of its lines in the text and in the body.

    In a stream a message may span several `data:` lines.
    """

    text: bytes
    lines: tuple[tuple[int, int], ...]

    def make_edit(self, span: json_access.Span, data: bytes) -> BodyEdit:
        """Return the edit that puts `data`, without line breaks, at a span of the text."""
        start, stop = span
        return BodyEdit(
            start=self._to_body_offset(start), stop=self._to_body_offset(stop - 1) + 1, data=data
        )

    def _to_body_offset(self, offset: int) -> int:
        text_start, body_start = next(line for line in reversed(self.lines) if line[0] <= offset)
        return body_start + offset - text_start


def _find_message_views(body: bytes) -> Iterator[_McpMessageView]:
    """Yield the messages in a response body, in order."""
    if body.lstrip()[:1] == b"{":
        yield _McpMessageView(body, ((0, 0),))
        return
    data: list[tuple[int, bytes]] = []
    for line in _LINE.finditer(body):
        if line[1].startswith(b"data:"):
            start = line.start() + (6 if line[1][5:6] == b" " else 5)
            data.append((start, body[start : line.end(1)]))
        elif not line[1] and data:
            yield _join_data_lines(data)
            data = []


def _join_data_lines(data: list[tuple[int, bytes]]) -> _McpMessageView:
    lines, at = [], 0
    for start, text in data:
        lines.append((at, start))
        at += len(text) + 1
    return _McpMessageView(b"\n".join(text for _, text in data), tuple(lines))


def read_server_messages(headers: Headers, body: bytes) -> tuple[bytes, ...]:
    """Return the messages in a response, JSON or stream, each on one line."""
    views = _find_message_views(decode_content(headers, body) or b"")
    return tuple(_join_json_lines(view.text) for view in views if _load_exact_object(view.text))


def _find_mcp_response(body: bytes) -> tuple[_McpMessageView, Mapping[str, object]] | None:
    """Return the message in a response body that has a result or an error."""
    for view in _find_message_views(body):
        message = _load_exact_object(view.text)
        if message.get("jsonrpc") == "2.0" and ("result" in message or "error" in message):
            return view, message
    return None


def parse_mcp_reply(headers: Headers, body: bytes) -> McpReply | None:
    """Parse the response of the server, JSON or stream; None if it has none."""
    mcp_response = _find_mcp_response(decode_content(headers, body) or b"")
    if mcp_response is None:
        return None
    view, message = mcp_response
    id = _dump_json_text(message.get("id"))
    if "error" in message:
        error = json_access.to_json_object(message["error"])
        text = json_access.to_optional_string(error.get("message")) or ""
        return McpReply(
            id=id, text=text, is_error=True, code=json_access.get_integer(error, "code") or 0
        )
    result = json_access.to_json_object(message["result"])
    is_final = result.get("resultType", "complete") == "complete"
    span = _find_result_members(view).get(b"structuredContent")
    return McpReply(
        id=id,
        text=json_access.join_content_text(result.get("content")),
        structured=_decode_view_span(view, span) if span else None,
        is_error=result.get("isError") is True if is_final else None,
    )


def read_tool_list(headers: Headers, body: bytes) -> tuple[McpTool, ...]:
    """Return the tools in a response to `tools/list`; empty for another response or an error."""
    return tuple(map(_to_mcp_tool, read_tool_definitions(headers, body)))


def read_tool_definitions(headers: Headers, body: bytes) -> list[dict[str, object]]:
    """Return the tool definitions in a response to `tools/list`, as the server sent them."""
    mcp_response = _find_mcp_response(decode_content(headers, body) or b"")
    result = json_access.to_json_object(mcp_response[1].get("result")) if mcp_response else {}
    return json_access.to_json_objects(result.get("tools"))


def _to_mcp_tool(table: dict[str, object]) -> McpTool:
    hints, schema = json_access.to_json_object(table.get("annotations")), table.get("outputSchema")
    read_only = hints.get("readOnlyHint")
    if not isinstance(read_only, bool):  # destructiveHint applies only to tools that write
        read_only = False if hints.get("destructiveHint") is True else None
    return McpTool(
        name=json_access.to_optional_string(table.get("name")) or "",
        read_only=read_only,
        returns=_dump_json_text(schema) if isinstance(schema, dict) else None,
    )


def find_offered_tool(offered: str, tools: Iterable[McpTool]) -> McpTool | None:
    """Return the tool that a model means by this name; the longest name wins.

    None if several servers have such a tool with different descriptions.
    """
    matching = [tool for tool in tools if is_name_of_tool(offered, tool.name)]
    max_length = max((len(tool.name) for tool in matching), default=0)
    longest = {tool for tool in matching if len(tool.name) == max_length}
    return longest.pop() if len(longest) == 1 else None


def _find_result_members(view: _McpMessageView) -> dict[bytes, json_access.Span]:
    """Return the members of the result; empty if it is not an object."""
    span = json_offsets.find_json_members(view.text, json_offsets.find_json_root(view.text)).get(
        b"result"
    )
    if span is None or view.text[span[0] : span[0] + 1] != b"{":
        return {}
    return json_offsets.find_json_members(view.text, span[0])


def _decode_view_span(view: _McpMessageView, span: json_access.Span) -> str:
    return view.text[slice(*span)].decode("utf-8", "replace")


def replace_mcp_result(
    body: bytes, text: str | None = None, structured: str | None = None
) -> tuple[BodyEdit, ...]:
    """Return the edits of an identity-coded response that replace a result's two copies.

    None leaves a copy as it is. A missing copy is not added, and an equal one is not edited. Of
    several texts the first takes the new one and the others become empty. Raises ValueError if
    `structured` is not JSON.
    """
    mcp_response = _find_mcp_response(body)
    members = _find_result_members(mcp_response[0]) if mcp_response else {}
    if mcp_response is None or not members:
        return ()
    view, edits = mcp_response[0], list[BodyEdit]()
    content = members.get(b"content")
    if (
        text is not None
        and content
        and json_access.join_content_text(json.loads(_decode_view_span(view, content))) != text
    ):
        places = _find_content_texts(view, content)
        edits += [
            view.make_edit((e.start, e.stop), e.data)
            for e in json_access.replace_string_spans(view.text, places, text)
        ]
        if not places:
            edits.append(view.make_edit(content, _make_text_content(view.text, text)))
    place = members.get(b"structuredContent")
    if structured is not None and place and _decode_view_span(view, place) != structured:
        json.loads(structured)
        edits.append(
            view.make_edit(place, _join_json_lines(structured.encode("utf-8", "surrogatepass")))
        )
    return tuple(sorted(edits, key=lambda edit: edit.start))


def _find_content_texts(view: _McpMessageView, content: json_access.Span) -> list[json_access.Span]:
    return (
        json_access.find_content_strings(view.text, content)
        if view.text[content[0]] == ord("[")
        else []
    )


def _make_text_content(body: bytes, text: str) -> bytes:
    return b'[{"type":"text","text":' + json_access.dump_json_string(body, text) + b"}]"


def _join_json_lines(text: bytes) -> bytes:
    """Put JSON on one line: it has line breaks between tokens only."""
    return b" ".join(text.splitlines())


def remove_structured_content(body: bytes) -> tuple[BodyEdit, ...]:
    """Return the edit that removes a result's structured value; none if it has none."""
    mcp_response = _find_mcp_response(body)
    members = _find_result_members(mcp_response[0]) if mcp_response else {}
    if mcp_response is None or b"structuredContent" not in members:
        return ()
    view, names = mcp_response[0], list(members)
    at, (_, stop) = names.index(b"structuredContent"), members[b"structuredContent"]
    start = view.text.rfind(b'"structuredContent"', 0, members[b"structuredContent"][0])
    if at + 1 < len(names):
        after = members[names[at + 1]][0]
        stop = view.text.rfind(b'"' + names[at + 1] + b'"', stop, after)
    elif at:
        start = members[names[at - 1]][1]
    return (view.make_edit((start, stop), b""),)


def set_response_id(body: bytes, id: str) -> tuple[BodyEdit, ...]:
    """Return the edit that gives the response this id (JSON text)."""
    mcp_response = _find_mcp_response(body)
    if mcp_response is None or _dump_json_text(mcp_response[1].get("id")) == id:
        return ()
    view = mcp_response[0]
    span = json_offsets.find_json_members(view.text, json_offsets.find_json_root(view.text)).get(
        b"id"
    )
    return (view.make_edit(span, id.encode()),) if span else ()


def write_mcp_reply(
    reply: McpReply, *, stream: bool, stateless: bool = False
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and the one chunk, at time 0, of a response as a server sends it.

    In 2026-07-28, without a session, a result has `resultType`.
    """
    message: dict[str, object] = {"jsonrpc": "2.0", "id": json.loads(reply.id)}
    if reply.code is not None:
        message["error"] = {"code": reply.code, "message": reply.text}
    else:
        result: dict[str, object] = {"content": [{"type": "text", "text": reply.text}]}
        if reply.structured is not None:
            result["structuredContent"] = json.loads(reply.structured)
        result["isError"] = bool(reply.is_error)
        message["result"] = result | ({"resultType": "complete"} if stateless else {})
    body = json.dumps(message, separators=(",", ":")).encode()
    if stream:
        data = b"event: message\r\ndata: " + body + b"\r\n\r\n"
        return (("content-type", "text/event-stream"),), (Chunk(at=0.0, data=data),)
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    return headers, (Chunk(at=0.0, data=body),)


def readdress_mcp_answer(request: Request, recorded: Request, body: bytes) -> tuple[BodyEdit, ...]:
    """Return the edits that make a recorded response answer an equivalent message.

    The response gets the id of the new message, and progress notifications get its token.
    """
    message, recorded_message = (
        _read_jsonrpc_object(request) or {},
        _read_jsonrpc_object(recorded) or {},
    )
    edits: list[BodyEdit] = []
    for view in _find_message_views(body):
        event = _load_exact_object(view.text)
        event_members = (
            json_offsets.find_json_members(view.text, json_offsets.find_json_root(view.text))
            if event
            else {}
        )
        if ("result" in event or "error" in event) and event.get("id") == recorded_message.get(
            "id"
        ):
            if b"id" in event_members and event["id"] != message.get("id"):
                edits.append(
                    view.make_edit(event_members[b"id"], _dump_json_bytes(message.get("id")))
                )
        elif event.get("method") == "notifications/progress" and b"params" in event_members:
            params = json_offsets.find_json_members(view.text, event_members[b"params"][0])
            token = json_access.to_json_object(event.get("params")).get("progressToken")
            if b"progressToken" in params and token == _get_progress_token(
                recorded_message
            ) != _get_progress_token(message):
                edits.append(
                    view.make_edit(
                        params[b"progressToken"], _dump_json_bytes(_get_progress_token(message))
                    )
                )
    return tuple(edits)


def read_progress_token(request: Request) -> str | None:
    """Return the progress token of a call, as JSON text; None if it requests no progress."""
    token = _get_progress_token(_read_jsonrpc_object(request) or {})
    return None if token is None else json.dumps(token)


def replace_progress_token(message: bytes, tokens: Mapping[str, str]) -> bytes:
    """Rewrite a stdio progress notification to the token of the current run."""
    notification = _load_exact_object(message)
    token = json_access.to_json_object(notification.get("params")).get("progressToken")
    if notification.get("method") != "notifications/progress" or json.dumps(token) not in tokens:
        return message
    params = json_offsets.find_json_members(
        message,
        json_offsets.find_json_members(message, json_offsets.find_json_root(message))[b"params"][0],
    )
    start, stop = params[b"progressToken"]
    return message[:start] + tokens[json.dumps(token)].encode() + message[stop:]


def _get_progress_token(table: Mapping[str, object]) -> object:
    return json_access.to_json_object(
        json_access.to_json_object(table.get("params")).get("_meta")
    ).get("progressToken")


def _dump_json_bytes(value: object) -> bytes:
    return json.dumps(value).encode()
