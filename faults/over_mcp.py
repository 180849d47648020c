"""The place mcp: what an operator does, put into the message in which a tool's result comes.

What bends a result is shown it as text, and what it makes of that is put back into the same
message. Most servers say a result twice, as text in `content` and as `structuredContent`: both
copies are bent alike, or deliberately one, where the fault says `copy`. A structured copy holds
JSON only: where the bent text is none, it goes, and stays only where the tool declares one, since
clients refuse a result without it.

What bends the transport (`wire` in what the operator shows) is shown the message's own exchange.
An answer that it makes is said as this protocol says it: by a status, by `isError`, or by a
JSON-RPC error. Over stdio there is no status and no connection of a call's own: a hang ends in the
error of a client that timed out, and a cut in a server that is gone.

What is bent is held back whole. Over HTTP, what a server asks its client in the middle of a call,
in the same stream (sampling, elicitation), would come when the call is over: such a call hangs.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Literal

from faults.body import NoSite, text, with_body
from faults.copies import copies_of, is_json
from faults.declared import conforms
from faults.operator import Channel, Shows
from faults.rendering import failed
from faults.validity import Drawn
from traces.conversation import Call
from traces.dialects import mcp
from traces.encoding import plain
from traces.model import Chunk, Exchange, Request, Response, edited, header

type Draw = Callable[[Exchange, Callable[[str], bool]], Drawn]
"""What an operator makes of what it is shown, if it is a result that is valid."""

TIMED_OUT = -32001
"""The code of a request that timed out, and of what stands for an HTTP status."""
_SECONDS = re.compile(r"timeout: ([\d.]+) s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """What a strike made of an exchange."""

    exchange: Exchange
    original: bytes | None
    """The result that was there, as text; None where the server was not asked."""
    mutated: bytes | None
    channel: Channel
    dead: bool | None = None
    detect: Literal["D1", "D2"] | None = None
    """D1 where the result is not what the tool declares, D2 where its two copies contradict each
    other; None where the message gives nothing away."""


def landed(
    exchange: Exchange,
    call: Call,
    shows: Shows,
    draw: Draw,
    *,
    copy: str,
    returns: str | None,
    known: Response | None,
) -> Landed:
    """What a strike makes of a call's exchange, asked or answered.

    `copy` is which copy of a result is bent, `returns` the schema that the tool declares, `known`
    an answer of that tool, in whose form others are made up.
    NoSite where there is nothing to bend, or this transport has no such thing.
    """
    form = _Form(returns, _streams(exchange.response or known))
    if shows.wire:
        return _transport(exchange, shows, draw, form)
    return _bent(exchange, call, draw, copy, form)


@dataclass(frozen=True, slots=True)
class _Form:
    """How a server says the results of a tool."""

    returns: str | None
    """Its outputSchema."""
    stream: bool

    def refuses(self, structured: str | None) -> bool:
        """Whether that schema is known not to allow a structured copy."""
        if self.returns is None:
            return False
        return structured is None or conforms(self.returns, structured) is False


def _bent(exchange: Exchange, call: Call, draw: Draw, copy: str, form: _Form) -> Landed:
    """The exchange with another result in its answer."""
    if exchange.response is None and exchange.error is None:
        return _made_up(exchange, call, draw, form)
    reply = _result(exchange)
    copies = copies_of(reply, copy)
    refused = form.refuses(reply.structured)
    found = draw(
        _as_call(exchange, call, copies.shown),
        lambda said: refused or not copies.structured or not form.refuses(copies.inner(said)),
    )
    said = text(found.exchange)
    broken = copies.structured and not refused and form.refuses(copies.inner(said))
    split = copy != "both" and bool(reply.text) and reply.structured is not None
    landed = Landed(
        exchange=exchange,
        original=copies.shown.encode("utf-8", "surrogatepass"),
        mutated=said.encode("utf-8", "surrogatepass"),
        channel="none",
        dead=found.dead,
        detect="D1" if broken else "D2" if split else None,
    )
    if said == copies.shown:
        return landed
    body = _plain(exchange)
    edits = copies.edits(body, said, declared=form.returns is not None)
    return replace(landed, exchange=with_body(exchange, edited(body, edits)))


def _transport(exchange: Exchange, shows: Shows, draw: Draw, form: _Form) -> Landed:
    """The exchange with a transport that fails, or an answer that says so."""
    reply = _reply(exchange)
    stdio = exchange.transport == "stdio"
    channel = shows.stdio if stdio else shows.channel
    if channel is None:
        raise NoSite("a server over stdio has no HTTP status; strike with tool_error")
    bent = draw(exchange, _any).exchange
    answer = bent.response
    if answer is not None and answer.status >= 400 and channel != "http":
        bent = _said_as(bent, answer, channel, stream=form.stream)
    elif stdio and bent.error is not None:
        bent = _over_stdio(bent)
    elif answer is not None and exchange.response is None and not failed(bent):
        bent = _addressed(bent)
    then = _reply(bent)
    said = then.text if then else text(bent) if bent.response and not stdio else None
    return Landed(
        exchange=bent,
        original=None if reply is None else reply.text.encode("utf-8", "surrogatepass"),
        mutated=None if said is None else said.encode("utf-8", "surrogatepass"),
        channel=channel,
    )


def _any(said: str) -> bool:
    return True


def _streams(answer: Response | None) -> bool:
    """Whether a server answers in streams of events, as this answer says."""
    kind = header(answer.headers, "content-type") if answer else None
    return kind is not None and kind.startswith("text/event-stream")


def _reply(exchange: Exchange) -> mcp.Reply | None:
    answer = exchange.response
    return None if answer is None else mcp.read(answer.headers, answer.body)


def _result(exchange: Exchange) -> mcp.Reply:
    reply = _reply(exchange)
    if reply is None:
        raise NoSite("the server gave no answer to bend")
    if reply.code is not None:
        raise NoSite(f"the server answered with an error of the protocol, {reply.code}")
    if reply.is_error is None:
        raise NoSite("the server asked for more before it gives a result")
    return reply


def _plain(exchange: Exchange) -> bytes:
    answer = exchange.response
    data = plain(answer.headers, answer.body) if answer else None
    if data is None:
        raise NoSite("the answer's content encoding cannot be undone")
    return data


def _as_call(exchange: Exchange, call: Call, document: str) -> Exchange:
    """The result alone, for the operator."""
    at = exchange.response.at if exchange.response else exchange.started
    data = document.encode("utf-8", "surrogatepass")
    request = Request(method="CALL", url=f"tool:{call.tool}", body=call.arguments.encode())
    shown = Response(status=200, chunks=(Chunk(at=at, data=data),), at=at, ended=at)
    return replace(exchange, request=request, response=shown, error=None)


def _made_up(exchange: Exchange, call: Call, draw: Draw, form: _Form) -> Landed:
    """A result in place of the server's, which was not asked."""
    asked = replace(_as_call(exchange, call, ""), response=None)
    said = text(draw(asked, _any).exchange)
    structured = said if form.returns and said.lstrip()[:1] == "{" and is_json(said) else None
    reply = mcp.Reply(id=_id(exchange), text=said, structured=structured, is_error=False)
    return Landed(
        exchange=_answered(exchange, reply, exchange.started, stream=form.stream),
        original=None,
        mutated=said.encode("utf-8", "surrogatepass"),
        channel="none",
    )


def _id(exchange: Exchange) -> str:
    said = mcp.message(exchange.request)
    assert said is not None
    assert said.call is not None
    return said.call.id


def _answered(exchange: Exchange, reply: mcp.Reply, at: float, *, stream: bool) -> Exchange:
    """The exchange with this reply, as a server of its transport and version says it."""
    said = mcp.message(exchange.request)
    stdio = exchange.transport == "stdio"
    headers, (chunk,) = mcp.write(
        reply, stream=stream and not stdio, stateless=said is not None and said.stateless
    )
    answer = Response(
        status=200,
        headers=() if stdio else headers,
        chunks=(replace(chunk, at=at),),
        at=at,
        ended=at,
    )
    return replace(exchange, response=answer, error=None)


def _said_as(bent: Exchange, answer: Response, channel: Channel, *, stream: bool) -> Exchange:
    """An answer with a status, as the result or as the error that this protocol has for it."""
    body = plain(answer.headers, answer.body) or b""
    if channel == "flag":
        said = body.decode("utf-8", "replace")
        reply = mcp.Reply(id=_id(bent), text=said, is_error=True)
    else:
        code, words = _error(answer.status, body)
        reply = mcp.Reply(id=_id(bent), text=words, is_error=True, code=code)
    return _answered(bent, reply, answer.at, stream=stream)


def _error(status: int, body: bytes) -> tuple[int, str]:
    """Code and message of a JSON-RPC error: those in the body, else what the status says."""
    try:
        said = json.loads(body)
    except ValueError:
        said = None
    match said:
        case {"code": int(code), "message": str(words)}:
            return code, words
    try:
        return TIMED_OUT, HTTPStatus(status).phrase
    except ValueError:
        return TIMED_OUT, f"HTTP {status}"


def _over_stdio(bent: Exchange) -> Exchange:
    """How an answer that broke off ends where there is no connection of its own."""
    code = (bent.error or "").partition(":")[0]
    if code != "timeout":
        return replace(bent, response=None, error="eof: the server ended")
    found = _SECONDS.match(bent.error or "")
    if found is None:
        return bent
    said = bent.response.chunks if bent.response else ()
    at = (said[-1].at if said else bent.started) + float(found[1])
    reply = mcp.Reply(id=_id(bent), text="Request timed out", is_error=True, code=TIMED_OUT)
    ended = _answered(bent, reply, at, stream=False)
    assert ended.response is not None
    chunks = (*said, *ended.response.chunks)
    return replace(ended, response=replace(ended.response, at=bent.started, chunks=chunks))


def _addressed(bent: Exchange) -> Exchange:
    """The answer of another message as one to this: with its id, and of no other session."""
    body = _plain(bent)
    bent = with_body(bent, edited(body, mcp.addressed(body, _id(bent))))
    assert bent.response is not None
    headers = tuple(each for each in bent.response.headers if each[0].lower() != "mcp-session-id")
    return replace(bent, response=replace(bent.response, headers=headers))
