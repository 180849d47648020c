"""Taps: hooks on the traffic, in a list that is the order of work.

A tap is any object with any of the methods of `Tap`; there is no base class. `request`, `holds` and
`response` may change the traffic, the others observe what the agent receives:

    request(exchange) -> exchange     a request arrived; set `response` or `error` to answer it
                                      here, add `edits` to change what is forwarded
    holds(exchange) -> bool           True buffers the complete response so that `response` can
                                      change it; everything else streams through unchanged
    response(exchange) -> exchange    the complete response that was buffered
    head(exchange)                    status and headers went to the agent (chunks are empty)
    chunk(exchange, chunk)            these bytes went to the agent, at this time
    done(exchange)                    the exchange is over, with all that the agent received,
                                      except the chunks of a response over 32 MiB
    whole(exchange)                   head, every chunk and done at once, for a response that
                                      went to the agent in one piece; a tap without this method
                                      gets these three calls, in order

The listener sets `seq` and `started` before the first tap. Taps run on the event loop and must not
block; one that raises stops the run, since an error of the recorder must never look like an error
of the agent.
"""

from collections.abc import Callable, Iterable
from copy import replace
from itertools import product
from typing import Protocol

from traces.model import Chunk, Exchange


class Tap(Protocol):
    """Every method is optional; see the module docstring."""

    def request(self, exchange: Exchange) -> Exchange: ...
    def holds(self, exchange: Exchange) -> bool: ...
    def response(self, exchange: Exchange) -> Exchange: ...
    def head(self, exchange: Exchange) -> None: ...
    def chunk(self, exchange: Exchange, chunk: Chunk) -> None: ...
    def done(self, exchange: Exchange) -> None: ...
    def whole(self, exchange: Exchange) -> None: ...


class TapChain:
    """The chain of taps as one tap that has every method."""

    def __init__(self, taps: Iterable[object] = ()) -> None:
        taps = tuple(taps)
        self._requests: list[Callable[[Exchange], Exchange]] = _find_tap_methods(taps, "request")
        self._holds: list[Callable[[Exchange], bool]] = _find_tap_methods(taps, "holds")
        self._responses: list[Callable[[Exchange], Exchange]] = _find_tap_methods(taps, "response")
        self._heads: list[Callable[[Exchange], None]] = _find_tap_methods(taps, "head")
        self._chunks: list[Callable[[Exchange, Chunk], None]] = _find_tap_methods(taps, "chunk")
        self._dones: list[Callable[[Exchange], None]] = _find_tap_methods(taps, "done")
        self._wholes = [whole for tap in taps for whole in _find_whole_handlers(tap)]

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
        for handle in self._chunks:
            handle(exchange, chunk)

    def done(self, exchange: Exchange) -> None:
        for done in self._dones:
            done(exchange)

    def whole(self, exchange: Exchange) -> None:
        for whole in self._wholes:
            whole(exchange)


def _find_tap_methods[F](taps: tuple[object, ...], name: str) -> list[F]:
    return [getattr(tap, name) for tap in taps if hasattr(tap, name)]


def _find_whole_handlers(tap: object) -> list[Callable[[Exchange], None]]:
    """Return the functions that pass a response in one piece to one tap."""
    wholes: list[Callable[[Exchange], None]] = _find_tap_methods((tap,), "whole")
    if wholes:
        return wholes
    heads: list[Callable[[Exchange], None]] = _find_tap_methods((tap,), "head")
    chunks: list[Callable[[Exchange, Chunk], None]] = _find_tap_methods((tap,), "chunk")
    dones: list[Callable[[Exchange], None]] = _find_tap_methods((tap,), "done")
    if not (heads or chunks):
        return dones

    def pieces(exchange: Exchange) -> None:
        if (answer := exchange.response) is not None:
            head_only = replace(answer, chunks=(), trailers=(), ended=None)
            seen = replace(exchange, response=head_only, error=None)
            for head in heads:
                head(seen)
            for chunk, handle in product(answer.chunks, chunks):
                handle(seen, chunk)
        for done in dones:
            done(exchange)

    return [pieces]
