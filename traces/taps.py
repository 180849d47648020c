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
    whole(exchange)                   head, every chunk and done at once, for an answer that went
                                      to the agent in one piece; who has no such method is told
                                      the three, one after the other

`seq` and `started` are set by whoever listens, before the first tap. Taps run on the event
loop and must not block; one that raises stops the run, since a fault of ours must never look
like a fault of the agent's.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
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
    def whole(self, exchange: Exchange) -> None: ...


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
        self._wholes = [whole for tap in taps for whole in _whole(tap)]

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

    def whole(self, exchange: Exchange) -> None:
        for whole in self._wholes:
            whole(exchange)


def _methods[F](taps: tuple[object, ...], name: str) -> list[F]:
    return [getattr(tap, name) for tap in taps if hasattr(tap, name)]


def _whole(tap: object) -> list[Callable[[Exchange], None]]:
    """What one tap is told of an answer in one piece."""
    wholes: list[Callable[[Exchange], None]] = _methods((tap,), "whole")
    if wholes:
        return wholes
    heads: list[Callable[[Exchange], None]] = _methods((tap,), "head")
    chunks: list[Callable[[Exchange, Chunk], None]] = _methods((tap,), "chunk")
    dones: list[Callable[[Exchange], None]] = _methods((tap,), "done")
    if not (heads or chunks):
        return dones

    def pieces(exchange: Exchange) -> None:
        if (answer := exchange.response) is not None:
            begun = replace(answer, chunks=(), trailers=(), ended=None)
            seen = replace(exchange, response=begun, error=None)
            for head in heads:
                head(seen)
            for chunk, see in product(answer.chunks, chunks):
                see(seen, chunk)
        for done in dones:
            done(exchange)

    return [pieces]
