"""MCP: JSON-RPC 2.0 between an agent and its tool servers, over streamable HTTP and stdio.

No model speaks it, so this is no lens: it reads a tool call from one message and its result
from the answer, where a lens reads a whole conversation. What the fault engine needs is here
too: edits that replace a result's text, its structured value, or the whole by an error.

Wire facts, of both versions that are spoken (2025-11-25 and 2026-07-28):

- a message is one POST; a batch is not MCP any more. An answer is JSON, or a stream of events
  of which one is the response and the others are notifications and requests of the server;
- 2025-11-25 begins with `initialize`, answered with `mcp-session-id`, which the client sends
  from then on; a GET opens a stream that lasts as long as the session, DELETE ends it. In
  2026-07-28 there is none of it: `server/discover` is optional, and each message says version
  and client in `_meta`;
- a result has `content` (parts, for the model) and maybe `structuredContent` (one JSON value),
  two copies of the same; `isError` says that the tool failed, and the model is to see it. A
  JSON-RPC `error` says that there was no such call, and most clients keep it to themselves;
- over stdio a message of the client has method MESSAGE and url `stdio://NAME/`, and START
  stands for the server's process.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from traces import spans
from traces.canonical import canonical_value
from traces.dialects import wire
from traces.encoding import plain
from traces.latest import Latest
from traces.model import Chunk, Edit, Exchange, Headers, Request, header
from traces.step import ToolCall

type Role = Literal["call", "talk", "aside"]
"""A call of a tool; another request that is waited for; what nobody waits for."""

_METHOD = re.compile(
    r"initialize\Z|(?:server|tools|resources|prompts|completion|logging|notifications|sampling"
    r"|elicitation|roots|subscriptions|tasks)/."
)
_HEADERS = ("mcp-protocol-version", "mcp-session-id", "mcp-method")
_LISTENS = "subscriptions/listen"
_VERSION = "io.modelcontextprotocol/protocolVersion"
"""In `_meta` of each message, from 2026-07-28 on."""
_LONG = re.compile(rb"\d{19}")
"""In a number it may say more than 64 bits hold."""
_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\n|\r)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the client."""

    role: Role
    method: str
    """Of JSON-RPC, as `tools/list`; that of HTTP or stdio where the message has none."""
    call: ToolCall | None = None
    """Where a tool is called; its id is that of JSON-RPC, as JSON text, and no model knows it."""
    meta: frozenset[str] = frozenset()
    """The texts in `_meta`, among which some clients give the model's id of the call."""
    stateless: bool = False
    """True for a call that says its version itself, as from 2026-07-28 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a server answered to one request."""

    id: str
    """As JSON text."""
    text: str
    """The joined texts of the content, or the message of a JSON-RPC error."""
    structured: str | None = None
    """`structuredContent` as it was written."""
    is_error: bool | None = None
    """None for a result that is not final: the server wants to know something first."""
    code: int | None = None
    """Of a JSON-RPC error; None for a result, be it one that says `isError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What a server says of one of its tools."""

    name: str
    read_only: bool | None = None
    """Whether it changes nothing, by its annotations; None where they do not say."""
    returns: str | None = None
    """The JSON Schema of its structured results, as JSON text; None where it declares none."""


@Latest
def message(request: Request) -> Message | None:
    """What a client says to an MCP server with this; None where this is no MCP."""
    if request.method in ("POST", "MESSAGE"):
        said = _said(request)
        return None if said is None else _message(request, said)
    if request.method == "START" and request.url.startswith("stdio://"):
        return Message(role="aside", method=request.method)
    if request.method in ("GET", "DELETE") and _says_mcp(request):
        return Message(role="aside", method=request.method)
    return None


@Latest
def _said(request: Request) -> dict[str, object] | None:
    body = plain(request.headers, request.body) or b""
    if body.find(b'"jsonrpc"') < 0:
        return None
    said = _load(body)
    if said.get("jsonrpc") != "2.0":
        return None
    method = said.get("method")
    known = isinstance(method, str) and _METHOD.match(method) is not None
    return said if known or _says_mcp(request) else None


def _load(text: bytes) -> dict[str, object]:
    """The JSON object in a text, exact: an id or an argument may be an integer of any size."""
    said = wire.load(text)
    if said and _LONG.search(text):
        exact: dict[str, object] = json.loads(text.decode("utf-8", "surrogatepass"))
        return exact
    return said


def _says_mcp(request: Request) -> bool:
    if request.url.startswith("stdio://"):
        return True
    return any(header(request.headers, name) is not None for name in _HEADERS)


def _message(request: Request, said: dict[str, object]) -> Message:
    method, params = wire.string(said.get("method")), wire.table(said.get("params"))
    if method is None or "id" not in said or method == _LISTENS:
        return Message(role="aside", method=method or request.method)
    if method != "tools/call":
        return Message(role="talk", method=method)
    meta = wire.table(params.get("_meta"))
    call = ToolCall(
        id=_dumped(said["id"]),
        name=wire.string(params.get("name")) or "",
        arguments=_dumped(params.get("arguments", {})),
    )
    texts = frozenset(value for value in meta.values() if isinstance(value, str))
    return Message(role="call", method=method, call=call, meta=texts, stateless=_VERSION in meta)


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def is_aside(request: Request) -> bool:
    """True for what nobody waits for: notifications, listening streams, the end of a session.

    Whether these come, and when, is a matter of luck in many clients.
    """
    said = message(request)
    return said is not None and said.role == "aside"


def listens(request: Request) -> bool:
    """True for a request whose answer is a stream that lasts until one of the two leaves."""
    said = message(request)
    return said is not None and said.role == "aside" and said.method in ("GET", _LISTENS)


def replied(exchange: Exchange) -> bool:
    """True where the response to a message came, whatever became of the stream after it.

    Clients hang up as soon as they have it, which may be before the stream's last byte.
    """
    return response(exchange) is not None


def response(exchange: Exchange) -> bytes | None:
    """The response as canonical JSON without its id: what one server says as another would."""
    answer = exchange.response
    if answer is None or message(exchange.request) is None:
        return None
    found = _answer(plain(answer.headers, answer.body) or b"")
    if found is None:
        return None
    return canonical_value({key: value for key, value in found[1].items() if key != "id"})


def names(offered: str, tool: str) -> bool:
    """True if a model that calls `offered` means this tool of a server.

    Agents put the server's name before the tool's (`mcp__shop__issue_refund`,
    `shop__issue_refund`, `shop_issue_refund`) and replace what model APIs do not take in names.
    """
    long, short = _plain_name(offered), _plain_name(tool)
    return bool(short) and (long == short or long.endswith(f"_{short}"))


@lru_cache(maxsize=4096)
def _plain_name(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name).lower()


def gist(request: Request) -> bytes | None:
    """What a message says, without its id and `_meta`, which are the client's own business.

    Of `initialize` nothing is left: it says who the client is, what it can do and which version it
    knows. None where this is no JSON-RPC message of MCP.
    """
    said = _said(request) if request.method in ("POST", "MESSAGE") else None
    if said is None:
        return None
    rest = {key: value for key, value in said.items() if key != "id"}
    if said.get("method") == "initialize":
        rest["params"] = {}
    elif isinstance(params := said.get("params"), dict):
        rest["params"] = {key: value for key, value in params.items() if key != "_meta"}
    return canonical_value(rest)


@dataclass(frozen=True, slots=True)
class _View:
    """A message where it stands: its JSON text, and where its lines begin there and in the body.

    In a stream a message may be spread over several `data:` lines.
    """

    text: bytes
    lines: tuple[tuple[int, int], ...]

    def edit(self, span: wire.Span, data: bytes) -> Edit:
        """The edit that puts `data`, which has no line breaks, at a span of the text."""
        start, stop = span
        return Edit(start=self._at(start), stop=self._at(stop - 1) + 1, data=data)

    def _at(self, offset: int) -> int:
        here, there = next(line for line in reversed(self.lines) if line[0] <= offset)
        return there + offset - here


def _views(body: bytes) -> Iterator[_View]:
    """The messages in an answer, in order."""
    if body.lstrip()[:1] == b"{":
        yield _View(body, ((0, 0),))
        return
    data: list[tuple[int, bytes]] = []
    for line in _LINE.finditer(body):
        if line[1].startswith(b"data:"):
            start = line.start() + (6 if line[1][5:6] == b" " else 5)
            data.append((start, body[start : line.end(1)]))
        elif not line[1] and data:
            yield _joined(data)
            data = []


def _joined(data: list[tuple[int, bytes]]) -> _View:
    lines, at = [], 0
    for start, text in data:
        lines.append((at, start))
        at += len(text) + 1
    return _View(b"\n".join(text for _, text in data), tuple(lines))


def messages(headers: Headers, body: bytes) -> tuple[bytes, ...]:
    """What a server says in an answer, be it JSON or a stream: each message on one line."""
    views = _views(plain(headers, body) or b"")
    return tuple(_one_line(view.text) for view in views if _load(view.text))


def _answer(body: bytes) -> tuple[_View, dict[str, object]] | None:
    """The response in an answer, which is the message that has a result or an error."""
    for view in _views(body):
        said = _load(view.text)
        if said.get("jsonrpc") == "2.0" and ("result" in said or "error" in said):
            return view, said
    return None


def read(headers: Headers, body: bytes) -> Reply | None:
    """What the server answered, as JSON or among the events of a stream; None where it did not."""
    found = _answer(plain(headers, body) or b"")
    if found is None:
        return None
    view, said = found
    id = _dumped(said.get("id"))
    if "error" in said:
        error = wire.table(said["error"])
        text = wire.string(error.get("message")) or ""
        return Reply(id=id, text=text, is_error=True, code=wire.count(error, "code") or 0)
    result = wire.table(said["result"])
    final = result.get("resultType", "complete") == "complete"
    place = _members(view).get(b"structuredContent")
    return Reply(
        id=id,
        text=wire.text(result.get("content")),
        structured=_text(view, place) if place else None,
        is_error=result.get("isError") is True if final else None,
    )


def tools(headers: Headers, body: bytes) -> tuple[Tool, ...]:
    """The tools in an answer to `tools/list`; none where it is another, or an error."""
    return tuple(map(_tool, definitions(headers, body)))


def definitions(headers: Headers, body: bytes) -> list[dict[str, object]]:
    """The definitions of tools in an answer to `tools/list`, as the server gave them."""
    found = _answer(plain(headers, body) or b"")
    result = wire.table(found[1].get("result")) if found else {}
    return wire.tables(result.get("tools"))


def _tool(said: dict[str, object]) -> Tool:
    hints, schema = wire.table(said.get("annotations")), said.get("outputSchema")
    read = hints.get("readOnlyHint")
    if not isinstance(read, bool):  # that it destroys is said of what writes, and only of that
        read = False if hints.get("destructiveHint") is True else None
    return Tool(
        name=wire.string(said.get("name")) or "",
        read_only=read,
        returns=_dumped(schema) if isinstance(schema, dict) else None,
    )


def meant(offered: str, tools: Iterable[Tool]) -> Tool | None:
    """The tool that a model means by this name: of several the one with the longest name.

    None where two servers have such a tool, and say different things of it.
    """
    fitting = [tool for tool in tools if names(offered, tool.name)]
    most = max((len(tool.name) for tool in fitting), default=0)
    longest = {tool for tool in fitting if len(tool.name) == most}
    return longest.pop() if len(longest) == 1 else None


def _members(view: _View) -> dict[bytes, wire.Span]:
    """The members of the result; none where it is no object."""
    span = spans.members(view.text, spans.root(view.text)).get(b"result")
    if span is None or view.text[span[0] : span[0] + 1] != b"{":
        return {}
    return spans.members(view.text, span[0])


def _text(view: _View, span: wire.Span) -> str:
    return view.text[slice(*span)].decode("utf-8", "replace")


def replace(
    body: bytes, text: str | None = None, structured: str | None = None
) -> tuple[Edit, ...]:
    """The edits of an identity-coded answer that put these in place of a result's two copies.

    None leaves one as it is; what a result does not have is not added, and where it already says
    so no byte moves. Of several texts the first takes the new one and the others become empty.
    ValueError where `structured` is no JSON.
    """
    found = _answer(body)
    members = _members(found[0]) if found else {}
    if found is None or not members:
        return ()
    view, edits = found[0], list[Edit]()
    content = members.get(b"content")
    if text is not None and content and wire.text(json.loads(_text(view, content))) != text:
        places = _texts(view, content)
        edits += [view.edit((e.start, e.stop), e.data) for e in wire.put(view.text, places, text)]
        if not places:
            edits.append(view.edit(content, _content(view.text, text)))
    place = members.get(b"structuredContent")
    if structured is not None and place and _text(view, place) != structured:
        json.loads(structured)
        edits.append(view.edit(place, _one_line(structured.encode("utf-8", "surrogatepass"))))
    return tuple(sorted(edits, key=lambda edit: edit.start))


def _texts(view: _View, content: wire.Span) -> list[wire.Span]:
    return wire.strings(view.text, content) if view.text[content[0]] == ord("[") else []


def _content(body: bytes, text: str) -> bytes:
    return b'[{"type":"text","text":' + wire.dump(body, text) + b"}]"


def _one_line(text: bytes) -> bytes:
    """JSON has line breaks between its tokens only."""
    return b" ".join(text.splitlines())


def fail(body: bytes, text: str) -> tuple[Edit, ...]:
    """The edits that make a result one in which the tool says that it failed, and why.

    It keeps what else the result holds, but for the structured value. No edit where there is no
    result.
    """
    found = _answer(body)
    if found is None or (span := _result(found[0])) is None:
        return ()
    view = found[0]
    said = [b'"content":' + _content(view.text, text), b'"isError":true']
    for key, place in _members(view).items():
        if key not in (b"content", b"isError", b"structuredContent"):
            said.append(b'"' + key + b'":' + _one_line(view.text[slice(*place)]))
    return (view.edit(span, b"{" + b",".join(said) + b"}"),)


def refuse(body: bytes, code: int, text: str) -> tuple[Edit, ...]:
    """The edits that put a JSON-RPC error in place of a result: there was no such call."""
    found = _answer(body)
    if found is None or (span := _result(found[0])) is None:
        return ()
    view = found[0]
    key = view.text.rfind(b'"result"', 0, span[0])
    said = b'"error":{"code":%d,"message":%s}' % (code, wire.dump(view.text, text))
    return (view.edit((key, span[1]), said),)


def unstructured(body: bytes) -> tuple[Edit, ...]:
    """The edit that takes a result's structured value away; none where it has none."""
    found = _answer(body)
    members = _members(found[0]) if found else {}
    if found is None or b"structuredContent" not in members:
        return ()
    view, names = found[0], list(members)
    at, (_, stop) = names.index(b"structuredContent"), members[b"structuredContent"]
    start = view.text.rfind(b'"structuredContent"', 0, members[b"structuredContent"][0])
    if at + 1 < len(names):
        after = members[names[at + 1]][0]
        stop = view.text.rfind(b'"' + names[at + 1] + b'"', stop, after)
    elif at:
        start = members[names[at - 1]][1]
    return (view.edit((start, stop), b""),)


def addressed(body: bytes, id: str) -> tuple[Edit, ...]:
    """The edit that makes the response in an answer one to the message of this id (JSON text)."""
    found = _answer(body)
    if found is None or _dumped(found[1].get("id")) == id:
        return ()
    view = found[0]
    span = spans.members(view.text, spans.root(view.text)).get(b"id")
    return (view.edit(span, id.encode()),) if span else ()


def _result(view: _View) -> wire.Span | None:
    return spans.members(view.text, spans.root(view.text)).get(b"result")


def write(
    reply: Reply, *, stream: bool, stateless: bool = False
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Headers and the one chunk, at time 0, of an answer as a server sends it.

    In 2026-07-28, where no session remembers the version, a result says that it is one.
    """
    said: dict[str, object] = {"jsonrpc": "2.0", "id": json.loads(reply.id)}
    if reply.code is not None:
        said["error"] = {"code": reply.code, "message": reply.text}
    else:
        result: dict[str, object] = {"content": [{"type": "text", "text": reply.text}]}
        if reply.structured is not None:
            result["structuredContent"] = json.loads(reply.structured)
        result["isError"] = bool(reply.is_error)
        said["result"] = result | ({"resultType": "complete"} if stateless else {})
    body = json.dumps(said, separators=(",", ":")).encode()
    if stream:
        data = b"event: message\r\ndata: " + body + b"\r\n\r\n"
        return (("content-type", "text/event-stream"),), (Chunk(at=0.0, data=data),)
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    return headers, (Chunk(at=0.0, data=body),)


def readdress(asked: Request, recorded: Request, body: bytes) -> tuple[Edit, ...]:
    """The edits that make the answer to one message the answer to another of the same gist.

    The response gets the id that was asked with, and progress the token that was asked for.
    """
    now, was = _said(asked) or {}, _said(recorded) or {}
    edits: list[Edit] = []
    for view in _views(body):
        said = _load(view.text)
        top = spans.members(view.text, spans.root(view.text)) if said else {}
        if ("result" in said or "error" in said) and said.get("id") == was.get("id"):
            if b"id" in top and said["id"] != now.get("id"):
                edits.append(view.edit(top[b"id"], _token(now.get("id"))))
        elif said.get("method") == "notifications/progress" and b"params" in top:
            params = spans.members(view.text, top[b"params"][0])
            token = wire.table(said.get("params")).get("progressToken")
            if b"progressToken" in params and token == _progress(was) != _progress(now):
                edits.append(view.edit(params[b"progressToken"], _token(_progress(now))))
    return tuple(edits)


def progress_token(request: Request) -> str | None:
    """What progress of a call is reported under, as JSON text; None where none is wanted."""
    token = _progress(_said(request) or {})
    return None if token is None else json.dumps(token)


def retold(message: bytes, tokens: Mapping[str, str]) -> bytes:
    """What a server of stdio says unasked, with progress under the tokens of another run."""
    said = _load(message)
    token = wire.table(said.get("params")).get("progressToken")
    if said.get("method") != "notifications/progress" or json.dumps(token) not in tokens:
        return message
    params = spans.members(message, spans.members(message, spans.root(message))[b"params"][0])
    start, stop = params[b"progressToken"]
    return message[:start] + tokens[json.dumps(token)].encode() + message[stop:]


def _progress(said: dict[str, object]) -> object:
    return wire.table(wire.table(said.get("params")).get("_meta")).get("progressToken")


def _token(value: object) -> bytes:
    return json.dumps(value).encode()
