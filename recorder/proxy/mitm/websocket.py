"""Relay WebSocket messages between agent and server, and show them to the taps as turns.

mitmproxy's own layer ends every connection with a close frame of code 1000, even if the server
vanished without one, and cannot answer in the server's place. Here a close frame passes unchanged,
and a connection that ended without a close frame ends without one on the other side too. Frame
boundaries are not retained: a message is sent in one frame (RFC 6455 5.4 allows an intermediary to
do that).
"""

from collections.abc import Callable, Iterator
from copy import replace
from dataclasses import dataclass
from itertools import count

from mitmproxy import http
from mitmproxy.connection import Connection
from mitmproxy.proxy import commands, context, events, layer
from mitmproxy.proxy.layers import websocket
from msgspec import Struct, field
from wsproto import ConnectionType
from wsproto import events as ws
from wsproto.connection import Connection as Protocol
from wsproto.connection import ConnectionState
from wsproto.extensions import Extension, PerMessageDeflate
from wsproto.frame_protocol import CloseReason

from recorder.proxy.errors import is_reset_error
from traces.bodies.websocket import (
    BINARY_METHOD,
    TEXT_METHOD,
    make_websocket_headers,
    make_websocket_trailers,
    read_binary_flags,
    read_websocket_close,
)
from traces.dialects import find_dialect, is_end_of_turn
from traces.model import Chunk, Exchange, Headers, Request, Response
from traces.taps import TapChain

type WebSocketPayload = tuple[bool, bytes]
"""Whether the message is binary, and its payload."""
type CloseFrame = tuple[int, str]


def parse_websocket_extensions(response: http.Response) -> list[Extension] | None:
    """Return the negotiated extensions, ready for one side; None if one is unsupported."""
    extensions = list[Extension]()
    for offer in response.headers.get("sec-websocket-extensions", "").split(","):
        if not offer.strip():
            continue
        if offer.partition(";")[0].strip() != PerMessageDeflate.name:
            return None
        deflate = PerMessageDeflate()
        try:
            deflate.finalize(offer)
        except ValueError:  # a window size that zlib does not support
            return None
        extensions.append(deflate)
    return extensions


class _OpenWebSocketTurn(Struct):
    """A turn in progress (or the upgrade), with the server's messages for it so far."""

    exchange: Exchange
    head: Response | None = None
    chunks: list[Chunk] = field(default_factory=list)
    binary: list[bool] = field(default_factory=list)
    held: bool = False

    @property
    def is_complete(self) -> bool:
        """Return whether the last message ends a response."""
        return bool(self.chunks) and is_end_of_turn(self.exchange.request, self.chunks[-1].data)


class WebSocketExchanges:
    """The exchanges of one WebSocket, starting after the upgrade, whose response has been shown."""

    def __init__(
        self,
        upgrade: Exchange,
        head: Response,
        taps: TapChain,
        clock: Callable[[], float],
        seqs: Iterator[int],
    ) -> None:
        self._upgrade, self._taps, self._clock, self._seqs = upgrade, taps, clock, seqs
        self._numbers = count(1)
        self._turn: _OpenWebSocketTurn | None = _OpenWebSocketTurn(upgrade, head)
        self.error: str | None = None
        """Why a tap wants the agent's connection to break; None if it does not."""
        self.close: CloseFrame | None = None
        """The close frame that a tap wants the server to have sent."""

    def take_agent_message(
        self, message: WebSocketPayload
    ) -> tuple[Exchange, list[WebSocketPayload]]:
        """Handle a message of the agent; return its turn and the messages to send to the agent now.

        The turn is forwarded to the server if it has neither response nor error.
        """
        messages = self.finish_turn()
        is_binary, data = message
        method, url = BINARY_METHOD if is_binary else TEXT_METHOD, self._upgrade.request.url
        exchange = self._taps.request(
            Exchange(
                seq=next(self._seqs),
                request=Request(method=method, url=url, body=data),
                started=self._clock(),
                connection=self._upgrade.connection,
                stream=next(self._numbers),
                transport="websocket",
            )
        )
        is_held = self._taps.holds(exchange)
        if exchange.response is None and exchange.error is None:
            self._turn = _OpenWebSocketTurn(exchange, held=is_held)
            return exchange, messages
        exchange = self._taps.response(exchange) if is_held else exchange
        self._turn = _OpenWebSocketTurn(exchange)
        return exchange, messages + self._show_tap_answer()

    def take_server_message(self, message: WebSocketPayload) -> list[WebSocketPayload]:
        """Handle a message of the server; return the messages to send to the agent now."""
        turn = self._turn
        if turn is None:  # the server sends after the end of the turn
            return [message]
        if not turn.held:
            self._show_message(turn, message)
            return [message]
        turn.chunks.append(Chunk(at=self._clock(), data=message[1]))
        turn.binary.append(message[0])
        is_complete = turn.is_complete or find_dialect(turn.exchange.request) is None
        return self._release_held() if is_complete else []

    def finish_turn(
        self, closed: CloseFrame | None = None, *, by_agent: bool = False, error: str | None = None
    ) -> list[WebSocketPayload]:
        """End the latest turn; return the messages that were held back."""
        messages, turn = self._release_held(), self._turn
        self._turn = None
        if turn is None:
            return messages
        error = turn.exchange.error or error
        if error is not None and error.startswith("cancelled") and turn.is_complete:
            error = None
        if turn.head is None and error is None:  # the end of the connection is the answer
            self._show_head(turn, (), self._clock())
        answer = turn.head
        if answer is not None:
            answer = replace(answer, ended=self._clock() if error is None else None)
            trailers = make_websocket_trailers(turn.binary, closed, by_agent=by_agent)
            answer = replace(answer, chunks=tuple(turn.chunks), trailers=trailers)
        self._taps.done(replace(turn.exchange, response=answer, error=error))
        return messages

    def _release_held(self) -> list[WebSocketPayload]:
        """Pass the held messages of the latest turn through the taps."""
        turn = self._turn
        if turn is None or not turn.held or not turn.chunks:
            return []
        response = Response(
            status=101,
            headers=make_websocket_headers(turn.binary[0]),
            chunks=tuple(turn.chunks),
            trailers=make_websocket_trailers(turn.binary),
            at=turn.chunks[0].at,
            ended=turn.chunks[-1].at,
        )
        exchange = self._taps.response(replace(turn.exchange, response=response))
        self._turn = _OpenWebSocketTurn(exchange)
        return self._show_tap_answer()

    def _show_tap_answer(self) -> list[WebSocketPayload]:
        """Return a tap's response as messages."""
        turn = self._turn
        assert turn is not None
        answer, self.error = turn.exchange.response, turn.exchange.error
        if answer is None:
            return []
        self.close = read_websocket_close(answer)
        kinds = zip(read_binary_flags(answer), answer.chunks, strict=True)
        messages = [(kind, chunk.data) for kind, chunk in kinds]
        for message in messages:
            self._show_message(turn, message)
        return messages

    def _show_message(self, turn: _OpenWebSocketTurn, message: WebSocketPayload) -> None:
        at = self._clock()
        if turn.head is None:
            self._show_head(turn, make_websocket_headers(message[0]), at)
        chunk = Chunk(at=at, data=message[1])
        turn.chunks.append(chunk)
        turn.binary.append(message[0])
        self._taps.chunk(turn.exchange, chunk)

    def _show_head(self, turn: _OpenWebSocketTurn, headers: Headers, at: float) -> None:
        turn.head = Response(status=101, headers=headers, at=at)
        turn.exchange = replace(turn.exchange, response=turn.head)
        self._taps.head(turn.exchange)


@dataclass
class SwitchedHook(commands.StartHook):  # type: ignore[no-untyped-call]
    """A flow's upgrade is complete; the handler must call `attach_exchanges` of the layer."""

    flow: http.HTTPFlow
    layer: "WebSocketRelay"
    blocking = False


@dataclass
class ResetHook(commands.StartHook):  # type: ignore[no-untyped-call]
    """The agent's connection is to be reset, after everything sent before."""

    flow: http.HTTPFlow
    blocking = False


class _WebSocketPeer:
    """One side of a WebSocket: parses its frames, and encodes frames for it."""

    def __init__(self, conn: Connection, kind: ConnectionType, response: http.Response) -> None:
        self.conn = conn
        self._protocol = Protocol(kind, parse_websocket_extensions(response) or [])
        self._parts: list[bytes] = []
        self.closed = False
        """Whether it has sent a close frame."""

    @property
    def is_open(self) -> bool:
        return self._protocol.state is ConnectionState.OPEN and self.conn.connected

    def receive_data(self, data: bytes) -> Iterator[WebSocketPayload | ws.Event]:
        """Yield complete messages, pings and pongs, and at most one close."""
        if self.closed:
            return
        self._protocol.receive_data(data)
        for event in self._protocol.events():
            if isinstance(event, ws.Message):
                text = isinstance(event.data, str)
                self._parts.append(event.data.encode() if text else bytes(event.data))
                if event.message_finished:
                    message, self._parts = b"".join(self._parts), []
                    yield not text, message
                continue
            self.closed = self.closed or isinstance(event, ws.CloseConnection)
            yield event

    @property
    def is_broken(self) -> bool:
        """Return whether the close came from wsproto, because this side violated the protocol."""
        return self.closed and self._protocol.state in (
            ConnectionState.OPEN,
            ConnectionState.LOCAL_CLOSING,
        )

    def encode_event(self, event: ws.Event) -> commands.SendData:
        return commands.SendData(self.conn, bytes(self._protocol.send(event)))

    def encode_message(self, message: WebSocketPayload) -> commands.SendData:
        """Invalid UTF-8 in a text, which only a tap can produce, is replaced."""
        is_binary, data = message
        if is_binary:
            return self.encode_event(ws.BytesMessage(data))
        return self.encode_event(ws.TextMessage(data.decode("utf-8", "replace")))

    def encode_close(self, code: int, why: str) -> Iterator[commands.SendData]:
        """Send a close frame, if this side is still connected and has not got one."""
        state = self._protocol.state
        if self.conn.connected and state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
            # wsproto recognises by the type that 1005 must not be sent.
            close_code = CloseReason(code) if code in CloseReason else code
            yield self.encode_event(ws.CloseConnection(close_code, why or None))


class WebSocketRelay(layer.Layer):
    """Relays messages between agent and server, and the way the connection ends."""

    _turns: WebSocketExchanges
    _broken: Callable[[Connection], str | None]

    def __init__(self, context: context.Context, flow: http.HTTPFlow) -> None:
        super().__init__(context)
        response = flow.response
        assert response is not None
        self._flow = flow
        self._agent = _WebSocketPeer(context.client, ConnectionType.SERVER, response)
        self._server = _WebSocketPeer(context.server, ConnectionType.CLIENT, response)
        self._closed: CloseFrame | None = None
        """The first close frame, of either side; the other side repeats it."""
        self._by_agent = self._ended = False

    def attach_exchanges(
        self, turns: WebSocketExchanges, broken: Callable[[Connection], str | None]
    ) -> None:
        """Set the message handler, and a function that returns a connection's error code."""
        self._turns, self._broken = turns, broken

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, events.Start):
            yield SwitchedHook(self._flow, self)
        elif isinstance(event, events.DataReceived) and not self._ended:
            side = self._agent if event.connection is self.context.client else self._server
            for payload in side.receive_data(event.data):
                yield from self._relay_event(side, payload)
        elif isinstance(event, events.ConnectionClosed) and not self._ended:
            yield from self._on_connection_end(event.connection is self.context.client)

    def _relay_event(
        self, side: _WebSocketPeer, said: WebSocketPayload | ws.Event
    ) -> layer.CommandGenerator[None]:
        other = self._server if side is self._agent else self._agent
        if isinstance(said, tuple):
            yield from (
                self._on_server_message(said)
                if side is self._server
                else self._on_agent_message(said)
            )
        elif isinstance(said, ws.CloseConnection):
            yield from self._on_close(side, other, (int(said.code), said.reason or ""))
        elif other.is_open:  # a ping or a pong
            yield other.encode_event(said)

    def _on_agent_message(self, message: WebSocketPayload) -> layer.CommandGenerator[None]:
        exchange, messages = self._turns.take_agent_message(message)
        yield from self._send_to_agent(messages)
        answered = exchange.response is not None or exchange.error is not None
        if not answered and not self._ended and self._server.is_open:
            yield self._server.encode_message((message[0], exchange.forwarded.body))

    def _on_server_message(self, message: WebSocketPayload) -> layer.CommandGenerator[None]:
        yield from self._send_to_agent(self._turns.take_server_message(message))

    def _send_to_agent(self, messages: list[WebSocketPayload]) -> layer.CommandGenerator[None]:
        """Send messages, then end the connection if a tap requests it."""
        for message in messages:
            if self._agent.is_open:
                yield self._agent.encode_message(message)
        if self._turns.error is not None:
            yield from self._break_off(self._turns.error)
        elif self._turns.close is not None and self._closed is None:
            self._closed = self._turns.close
            self._turns.finish_turn(self._closed)
            yield from self._agent.encode_close(*self._closed)
            yield from self._server.encode_close(CloseReason.GOING_AWAY, "")

    def _on_close(
        self, side: _WebSocketPeer, other: _WebSocketPeer, said: CloseFrame
    ) -> layer.CommandGenerator[None]:
        if side.is_broken:
            name = "agent" if side is self._agent else "server"
            yield from self._break_off(f"protocol: the {name} spoke no WebSocket: {said[1]}")
            return
        if self._closed is None:
            self._closed, self._by_agent = said, side is self._agent
        if side is self._server:  # an agent that closes still receives messages in transit
            yield from self._send_to_agent(
                self._turns.finish_turn(self._closed, by_agent=self._by_agent)
            )
        yield from other.encode_close(*said)

    def _on_connection_end(self, agent: bool) -> layer.CommandGenerator[None]:
        """Handle a connection's end: without a close frame, the other side gets none either."""
        broken = self._broken(self.context.client if agent else self.context.server)
        error = None
        if self._closed is None and agent:
            error = f"cancelled: {broken or 'eof'} by the agent"
        elif self._closed is None:
            error = f"{broken or 'eof'}: the server went without a close"
        yield from self._send_to_agent(
            self._turns.finish_turn(self._closed, by_agent=self._by_agent, error=error)
        )
        yield from self._end_connections(
            reset=not agent and error is not None and broken is not None
        )

    def _break_off(self, error: str) -> layer.CommandGenerator[None]:
        self._turns.finish_turn(error=error)
        yield from self._end_connections(reset=is_reset_error(error))

    def _end_connections(self, *, reset: bool) -> layer.CommandGenerator[None]:
        if self._ended:
            return
        self._ended = True
        if reset:
            yield ResetHook(self._flow)
        else:
            yield commands.CloseConnection(self.context.client)
        if self.context.server.connected:
            yield commands.CloseConnection(self.context.server)


# mitmproxy's HTTP stream creates this layer instead of its own.
websocket.WebsocketLayer = WebSocketRelay  # type: ignore[misc, assignment]
