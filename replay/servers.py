"""The MCP servers on a tape, and what each of them said as it would say it over another transport.

A message is the same over both; what differs is how its answer is wrapped, and what comes unasked:
over stdio that is said by the server's process, over HTTP on a stream that the client opens. From
one transport to the other that is left out, but for what stands in the answer to a call.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from traces.dialects import mcp
from traces.model import Chunk, Exchange, Request, Response
from traces.tape import Tape

type Server = tuple[Exchange, ...]


def servers(tape: Tape) -> Mapping[str, Server]:
    """All exchanges with each MCP server, by its URL (`stdio://NAME/` or that of HTTP)."""
    found: dict[str, list[Exchange]] = {}
    for exchange in tape.exchanges:
        if mcp.message(exchange.request) is not None:
            found.setdefault(exchange.request.url, []).append(exchange)
    return {url: tuple(said) for url, said in found.items()}


def over_stdio(server: Iterable[Exchange], url: str) -> Server:
    """A server as one of stdio; its answers keep their times, and progress comes before them."""
    return tuple(_as_message(x, url) for x in server if x.request.method in ("POST", "MESSAGE"))


def _as_message(exchange: Exchange, url: str) -> Exchange:
    request = Request(method="MESSAGE", url=url, body=exchange.request.body)
    answer = exchange.response
    if answer is not None and answer.status < 400:
        answer = replace(answer, headers=(), chunks=_said(answer))
    return replace(exchange, request=request, response=answer, transport="stdio")


def _said(answer: Response) -> tuple[Chunk, ...]:
    """A chunk for each message, at the time when the last byte of it came."""
    said, body = list[Chunk](), b""
    for chunk in answer.chunks:
        body += chunk.data
        texts = mcp.messages(answer.headers, body)
        said += [Chunk(at=chunk.at, data=text) for text in texts[len(said) :]]
    return tuple(said)


def over_http(server: Iterable[Exchange], url: str) -> Server:
    """A server as one of HTTP that answers in JSON."""
    return tuple(_as_post(x, url) for x in server if x.request.method == "MESSAGE")


def _as_post(exchange: Exchange, url: str) -> Exchange:
    headers = (("content-type", "application/json"),)
    request = Request(method="POST", url=url, headers=headers, body=exchange.request.body)
    answer = exchange.response
    if answer is not None:
        length = ("content-length", str(len(answer.body)))
        answer = replace(answer, reason="OK", headers=(*headers, length))
    elif exchange.error is None:  # nobody answers a notification
        at = exchange.started
        empty = (("content-length", "0"),)
        answer = Response(status=202, reason="Accepted", headers=empty, at=at, ended=at)
    return replace(exchange, request=request, response=answer, transport="http")
