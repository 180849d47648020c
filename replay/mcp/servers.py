"""Group a tape's exchanges by MCP server, and convert a server to another transport.

Messages are the same over both transports; only their wrapping and the way unsolicited messages
arrive differ: over stdio from the server's process, over HTTP on a stream that the client opens. A
conversion omits unsolicited messages, except those in the answer to a call.
"""

from collections.abc import Iterable, Mapping
from copy import replace

from traces.dialects import mcp
from traces.model import Chunk, Exchange, Request, Response
from traces.tape.reader import Tape

type McpServerExchanges = tuple[Exchange, ...]


def group_by_mcp_server(tape: Tape) -> Mapping[str, McpServerExchanges]:
    """Return all exchanges with each MCP server, by its URL (`stdio://NAME/` or the HTTP URL)."""
    by_url: dict[str, list[Exchange]] = {}
    for exchange in tape.exchanges:
        if mcp.read_client_message(exchange.request) is not None:
            by_url.setdefault(exchange.request.url, []).append(exchange)
    return {url: tuple(exchanges) for url, exchanges in by_url.items()}


def to_stdio_server(server: Iterable[Exchange], url: str) -> McpServerExchanges:
    """Convert to a stdio server; answers keep their times, and progress messages precede them."""
    return tuple(
        _to_stdio_exchange(x, url) for x in server if x.request.method in ("POST", "MESSAGE")
    )


def _to_stdio_exchange(exchange: Exchange, url: str) -> Exchange:
    request = Request(method="MESSAGE", url=url, body=exchange.request.body)
    answer = exchange.response
    if answer is not None and answer.status < 400:
        answer = replace(answer, headers=(), chunks=_to_message_chunks(answer))
    return replace(exchange, request=request, response=answer, transport="stdio")


def _to_message_chunks(answer: Response) -> tuple[Chunk, ...]:
    """Return a chunk per message, at the time its last byte arrived."""
    messages, body = list[Chunk](), b""
    for chunk in answer.chunks:
        body += chunk.data
        texts = mcp.read_server_messages(answer.headers, body)
        messages += [Chunk(at=chunk.at, data=text) for text in texts[len(messages) :]]
    return tuple(messages)


def to_http_server(server: Iterable[Exchange], url: str) -> McpServerExchanges:
    """Convert to an HTTP server that answers in JSON."""
    return tuple(_to_http_exchange(x, url) for x in server if x.request.method == "MESSAGE")


def _to_http_exchange(exchange: Exchange, url: str) -> Exchange:
    headers = (("content-type", "application/json"),)
    request = Request(method="POST", url=url, headers=headers, body=exchange.request.body)
    answer = exchange.response
    if answer is not None:
        length = ("content-length", str(len(answer.body)))
        answer = replace(answer, reason="OK", headers=(*headers, length))
    elif exchange.error is None:  # a notification has no answer
        at = exchange.started
        empty = (("content-length", "0"),)
        answer = Response(status=202, reason="Accepted", headers=empty, at=at, ended=at)
    return replace(exchange, request=request, response=answer, transport="http")
