"""Inject a fault at the place mcp: write the operator's output into the message of the result.

An operator that changes a result receives it as text, and its output is put back into the same
message. Most servers send a result twice, as text in `content` and as `structuredContent`: both
copies are changed alike, or only one if the fault sets `copy`. A structured copy holds JSON only:
if the changed text is not JSON, the copy is removed, unless the tool declares an output schema,
since clients then refuse a result without it.

An operator that changes the transport (`FaultVisibility.wire`) receives the message's own exchange.
Its response is translated to this protocol: a status, `isError`, or a JSON-RPC error. Over stdio
there is no status and no connection per call: a hang ends in the error of a client that timed out,
a cut in the end of the server.

A response is held back until it is changed, except for the messages before it in the same stream:
the server may ask its client something (sampling, elicitation, roots) and wait for the answer. What
the client has already is not changed: a failure after it is one of the protocol, in the stream.

A result may arrive in the response to a later request: AwaitedResultError says to which.
"""

import json
import re
from collections.abc import Callable
from copy import replace
from http import HTTPStatus
from typing import Literal

from msgspec import Struct

from faults.injector.mcp_content import find_result_copies, is_json_value
from faults.injector.output_schema import is_schema_instance
from faults.injector.plausibility import DrawnExchange
from faults.injector.tool_result_text import is_visible_failure
from faults.operator import Channel, FaultVisibility
from faults.response_body import (
    NoInjectionSite,
    decode_response_text,
    keep_first_bytes,
    replace_response_body,
)
from traces.bodies.content_encoding import decode_content
from traces.conversation.tracker import TrackedCall
from traces.dialects import mcp
from traces.model import Chunk, Exchange, Request, Response, apply_body_edits, find_header

type DrawFunction = Callable[[Exchange, Callable[[str], bool]], DrawnExchange]
"""Apply the operator to an exchange; the predicate returns whether a result text is valid."""

TIMED_OUT = -32001
"""JSON-RPC error code of a request that timed out, and of translated HTTP statuses."""
_SECONDS = re.compile(r"timeout: ([\d.]+) s")


class InjectedExchange(Struct, frozen=True, kw_only=True):
    """The result of one injection into an exchange."""

    exchange: Exchange
    original: bytes | None
    """The clean result as text; None if the server was not called."""
    mutated: bytes | None
    channel: Channel
    dead: bool | None = None
    detect: Literal["D1", "D2"] | None = None
    """D1 if the result violates the tool's output schema, D2 if its two copies contradict each
    other; None if the message reveals nothing."""


class AwaitedResultError(NoInjectionSite):
    """The response has no result yet; the request identified by `continuation` gets it."""

    def __init__(self, continuation: mcp.McpContinuation) -> None:
        reason = {
            "input": "the server asked for more before it gives a result",
            "task": "the server made a task of the call, and nobody fetched its result",
            "stream": "the server closed the stream before the result, and nobody resumed it",
        }
        super().__init__(reason[continuation[0]])
        self.continuation = continuation


def inject_into_mcp(
    exchange: Exchange,
    call: TrackedCall,
    shows: FaultVisibility,
    draw: DrawFunction,
    *,
    copy: str,
    returns: str | None,
    known: Response | None,
) -> InjectedExchange:
    """Inject a fault into a call's exchange, with or without its response.

    `copy` selects the copy of a result to change, `returns` is the tool's output schema, `known` a
    response of that tool, whose format fabricated ones take. Raises NoInjectionSite if there is
    nothing to change or this transport does not support the fault.
    """
    if (awaited := mcp.find_awaited_result(exchange)) is not None:
        raise AwaitedResultError(awaited)
    form = _McpResultFormat(returns, _is_mcp_event_stream(exchange.response or known))
    if shows.wire:
        return _inject_mcp_transport(exchange, shows, draw, form)
    return _inject_mcp_result(exchange, call, draw, copy, form)


class _McpResultFormat(Struct, frozen=True):
    """How a server sends the results of a tool."""

    output_schema: str | None
    """The tool's outputSchema."""
    stream: bool

    def is_refused(self, structured: str | None) -> bool:
        """Return whether the output schema is known to forbid a structured copy."""
        if self.output_schema is None:
            return False
        return structured is None or is_schema_instance(self.output_schema, structured) is False


def _inject_mcp_result(
    exchange: Exchange, call: TrackedCall, draw: DrawFunction, copy: str, form: _McpResultFormat
) -> InjectedExchange:
    """Return the exchange with another result in its response."""
    if exchange.response is None and exchange.error is None:
        return _make_up_result(exchange, call, draw, form)
    reply = _require_mcp_result(exchange)
    copies = find_result_copies(reply, copy)
    refused = form.is_refused(reply.structured)
    output = draw(
        _to_result_exchange(exchange, call, copies.shown),
        lambda text: (
            refused or not copies.structured or not form.is_refused(copies.to_structured(text))
        ),
    )
    text = decode_response_text(output.exchange)
    broken = copies.structured and not refused and form.is_refused(copies.to_structured(text))
    split = copy != "both" and bool(reply.text) and reply.structured is not None
    injected = InjectedExchange(
        exchange=exchange,
        original=copies.shown.encode("utf-8", "surrogatepass"),
        mutated=text.encode("utf-8", "surrogatepass"),
        channel="none",
        dead=output.dead,
        detect="D1" if broken else "D2" if split else None,
    )
    if text == copies.shown:
        return injected
    body = _decode_mcp_body(exchange)
    edits = copies.edits(body, text, declared=form.output_schema is not None)
    return replace(
        injected, exchange=replace_response_body(exchange, apply_body_edits(body, edits))
    )


def _inject_mcp_transport(
    exchange: Exchange, shows: FaultVisibility, draw: DrawFunction, form: _McpResultFormat
) -> InjectedExchange:
    """Return the exchange with a transport failure, or with a response that reports one."""
    reply = _find_mcp_reply(exchange)
    stdio = exchange.transport == "stdio"
    channel = shows.stdio if stdio else shows.channel
    if channel is None:
        raise NoInjectionSite("a server over stdio has no HTTP status; use tool_error")
    changed = draw(exchange, _accept_any_result).exchange
    answer = changed.response
    interim = _select_interim_chunks(exchange)
    if answer is not None and answer.status >= 400 and interim and channel == "http":
        channel = "jsonrpc"
    if answer is not None and answer.status >= 400 and channel != "http":
        changed = _translate_error_status(changed, answer, channel, stream=form.stream)
        changed = _put_after_interim(changed, exchange, interim)
    elif stdio and changed.error is not None:
        changed = _end_broken_stdio(changed)
    elif answer is not None and exchange.response is None and not is_visible_failure(changed):
        changed = _readdress_exchange(changed)
    changed_reply = _find_mcp_reply(changed)
    text = (
        changed_reply.text
        if changed_reply
        else decode_response_text(changed)
        if changed.response and not stdio
        else None
    )
    return InjectedExchange(
        exchange=changed,
        original=None if reply is None else reply.text.encode("utf-8", "surrogatepass"),
        mutated=None if text is None else text.encode("utf-8", "surrogatepass"),
        channel=channel,
    )


def _select_interim_chunks(exchange: Exchange) -> tuple[Chunk, ...]:
    """Return the part of a stream that precedes the response."""
    answer = exchange.response
    if answer is None or not mcp.is_mcp_stream(exchange.request, answer.headers):
        return ()
    return keep_first_bytes(answer.chunks, mcp.find_interim_end(answer.body))


def _put_after_interim(
    changed: Exchange, exchange: Exchange, interim: tuple[Chunk, ...]
) -> Exchange:
    """Return the changed exchange with the stream's head and its part before the response."""
    if not interim or exchange.response is None or changed.response is None:
        return changed
    chunks = (*interim, *changed.response.chunks)
    return replace(
        changed,
        response=replace(exchange.response, chunks=chunks, ended=changed.response.ended),
    )


def _accept_any_result(text: str) -> bool:
    return True


def _is_mcp_event_stream(answer: Response | None) -> bool:
    """Return whether a server answers in event streams, judged by this response."""
    kind = find_header(answer.headers, "content-type") if answer else None
    return kind is not None and kind.startswith("text/event-stream")


def _find_mcp_reply(exchange: Exchange) -> mcp.McpReply | None:
    answer = exchange.response
    return None if answer is None else mcp.parse_mcp_reply(answer.headers, answer.body)


def _require_mcp_result(exchange: Exchange) -> mcp.McpReply:
    reply = _find_mcp_reply(exchange)
    if reply is None:
        raise NoInjectionSite("the server gave no answer to bend")
    if reply.code is not None:
        raise NoInjectionSite(f"the server answered with an error of the protocol, {reply.code}")
    if reply.is_error is None:
        raise NoInjectionSite("the server asked for more before it gives a result")
    return reply


def _decode_mcp_body(exchange: Exchange) -> bytes:
    answer = exchange.response
    data = decode_content(answer.headers, answer.body) if answer else None
    if data is None:
        raise NoInjectionSite("the answer's content encoding cannot be undone")
    return data


def _to_result_exchange(exchange: Exchange, call: TrackedCall, document: str) -> Exchange:
    """Return the result alone as an exchange, for the operator."""
    at = exchange.response.at if exchange.response else exchange.started
    data = document.encode("utf-8", "surrogatepass")
    request = Request(method="CALL", url=f"tool:{call.tool}", body=call.arguments.encode())
    shown = Response(status=200, chunks=(Chunk(at=at, data=data),), at=at, ended=at)
    return replace(exchange, request=request, response=shown, error=None)


def _make_up_result(
    exchange: Exchange, call: TrackedCall, draw: DrawFunction, form: _McpResultFormat
) -> InjectedExchange:
    """Fabricate a result in place of the server's, which was not called."""
    request_only = replace(_to_result_exchange(exchange, call, ""), response=None)
    text = decode_response_text(draw(request_only, _accept_any_result).exchange)
    structured = (
        text if form.output_schema and text.lstrip()[:1] == "{" and is_json_value(text) else None
    )
    reply = mcp.McpReply(
        id=_find_request_id(exchange), text=text, structured=structured, is_error=False
    )
    return InjectedExchange(
        exchange=_respond_with_reply(exchange, reply, exchange.started, stream=form.stream),
        original=None,
        mutated=text.encode("utf-8", "surrogatepass"),
        channel="none",
    )


def _find_request_id(exchange: Exchange) -> str:
    """Return the id of the request that is answered: over a resumed stream that of the response."""
    id = mcp.find_request_id(exchange.request)
    if id is None and exchange.response is not None:
        reply = _find_mcp_reply(exchange)
        id = reply.id if reply else None
    if id is None:
        raise NoInjectionSite("the response to the call has not arrived")
    return id


def _respond_with_reply(
    exchange: Exchange, reply: mcp.McpReply, at: float, *, stream: bool
) -> Exchange:
    """Return the exchange with this reply, in the format of the server's transport and version."""
    message = mcp.read_client_message(exchange.request)
    stdio = exchange.transport == "stdio"
    headers, (chunk,) = mcp.write_mcp_reply(
        reply, stream=stream and not stdio, stateless=message is not None and message.stateless
    )
    answer = Response(
        status=200,
        headers=() if stdio else headers,
        chunks=(replace(chunk, at=at),),
        at=at,
        ended=at,
    )
    return replace(exchange, response=answer, error=None)


def _translate_error_status(
    exchange: Exchange, answer: Response, channel: Channel, *, stream: bool
) -> Exchange:
    """Translate a response with an error status into a result or a JSON-RPC error."""
    body = decode_content(answer.headers, answer.body) or b""
    if channel == "flag":
        text = body.decode("utf-8", "replace")
        reply = mcp.McpReply(id=_find_request_id(exchange), text=text, is_error=True)
    else:
        code, words = _to_jsonrpc_error(answer.status, body)
        reply = mcp.McpReply(id=_find_request_id(exchange), text=words, is_error=True, code=code)
    return _respond_with_reply(exchange, reply, answer.at, stream=stream)


def _to_jsonrpc_error(status: int, body: bytes) -> tuple[int, str]:
    """Return code and message of a JSON-RPC error: from the body, else from the status."""
    try:
        error = json.loads(body)
    except ValueError:
        error = None
    match error:
        case {"code": int(code), "message": str(words)}:
            return code, words
    try:
        return TIMED_OUT, HTTPStatus(status).phrase
    except ValueError:
        return TIMED_OUT, f"HTTP {status}"


def _end_broken_stdio(exchange: Exchange) -> Exchange:
    """End a broken response over stdio, where a call has no connection of its own."""
    code = (exchange.error or "").partition(":")[0]
    if code != "timeout":
        return replace(exchange, response=None, error="eof: the server ended")
    match = _SECONDS.match(exchange.error or "")
    if match is None:
        return exchange
    chunks = exchange.response.chunks if exchange.response else ()
    at = (chunks[-1].at if chunks else exchange.started) + float(match[1])
    reply = mcp.McpReply(
        id=_find_request_id(exchange), text="Request timed out", is_error=True, code=TIMED_OUT
    )
    ended = _respond_with_reply(exchange, reply, at, stream=False)
    assert ended.response is not None
    all_chunks = (*chunks, *ended.response.chunks)
    return replace(ended, response=replace(ended.response, at=exchange.started, chunks=all_chunks))


def _readdress_exchange(exchange: Exchange) -> Exchange:
    """Turn the response to another message into one to this: its id, and no session header."""
    body = _decode_mcp_body(exchange)
    exchange = replace_response_body(
        exchange, apply_body_edits(body, mcp.set_response_id(body, _find_request_id(exchange)))
    )
    assert exchange.response is not None
    headers = tuple(
        each for each in exchange.response.headers if each[0].lower() != "mcp-session-id"
    )
    return replace(exchange, response=replace(exchange.response, headers=headers))
