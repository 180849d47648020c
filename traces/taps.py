"""Where rooms meet the traffic: a list of taps, and the list is the order of work.

A tap is any object with any of the methods of `Tap`; there is nothing to inherit. `request`,
`holds` and `response` may change what happens, the others watch what the agent really gets:

    request(exchange) -> exchange     asked; set `response` or `error` to answer it here,
                                      add `edits` to change what goes on
    holds(exchange) -> bool           True keeps the whole answer back so that `response` can
                                      bend it; everything else streams through untouched
    response(exchange) -> exchange    the whole answer that was held back
    head(exchange)                    status and headers went to the agent (chunks are empty)
    chunk(exchange, chunk)            these bytes went to the agent, at this time
    done(exchange)                    the exchange is over, with all that the agent got, but for
                                      the chunks of an answer too large (32 MiB) to be kept

`seq` and `started` are set by whoever listens, before the first tap. Taps run on the event
loop and must not block; one that raises stops the run, since a fault of ours must never look
like a fault of the agent's.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from traces.model import Chunk, Exchange


class Tap(Protocol):
    """Every method is optional; see the module's text."""

    def request(self, exchange: Exchange) -> Exchange: ...
    def holds(self, exchange: Exchange) -> bool: ...
    def response(self, exchange: Exchange) -> Exchange: ...
    def head(self, exchange: Exchange) -> None: ...
    def chunk(self, exchange: Exchange, chunk: Chunk) -> None: ...
    def done(self, exchange: Exchange) -> None: ...


class Taps:
    """The chain of taps as one tap that has every method."""

    def __init__(self, taps: Iterable[object] = ()) -> None:
        taps = tuple(taps)
        self._requests: list[Callable[[Exchange], Exchange]] = _methods(taps, "request")
        self._holds: list[Callable[[Exchange], bool]] = _methods(taps, "holds")
        self._responses: list[Callable[[Exchange], Exchange]] = _methods(taps, "response")
        self._heads: list[Callable[[Exchange], None]] = _methods(taps, "head")
        self._chunks: list[Callable[[Exchange, Chunk], None]] = _methods(taps, "chunk")
        self._dones: list[Callable[[Exchange], None]] = _methods(taps, "done")

    def request(self, exchange: Exchange) -> Exchange:
        for request in self._requests:
            exchange = request(exchange)
        return exchange

    def holds(self, exchange: Exchange) -> bool:
        return any([holds(exchange) for holds in self._holds])

    def response(self, exchange: Exchange) -> Exchange:
        for response in self._responses:
            exchange = response(exchange)
        return exchange

    def head(self, exchange: Exchange) -> None:
        for head in self._heads:
            head(exchange)

    def chunk(self, exchange: Exchange, chunk: Chunk) -> None:
        for see in self._chunks:
            see(exchange, chunk)

    def done(self, exchange: Exchange) -> None:
        for done in self._dones:
            done(exchange)


def _methods[F](taps: tuple[object, ...], name: str) -> list[F]:
    return [getattr(tap, name) for tap in taps if hasattr(tap, name)]
