"""The messages of a WebSocket on their way between agent and server, shown to the taps as turns.

mitmproxy's own layer ends every connection by a close frame of code 1000, also where the server
vanished without one, and cannot answer in the server's place. Here a close passes on as it came,
and what ended without a close ends without one on the other side too. Frames are not kept: a
message goes on in one frame (RFC 6455 5.4 lets an intermediary do that).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from mitmproxy import http
from mitmproxy.connection import Connection
from mitmproxy.proxy import commands, context, events, layer
from mitmproxy.proxy.layers import websocket
from wsproto import ConnectionType
from wsproto import events as ws
from wsproto.connection import Connection as Protocol
from wsproto.connection import ConnectionState
from wsproto.extensions import Extension, PerMessageDeflate
from wsproto.frame_protocol import CloseReason

from recorder.causes import resets
from traces.dialects import ends, lens
from traces.model import Chunk, Exchange, Headers, Request, Response
from traces.taps import Taps
from traces.websocket import BINARY, TEXT, binary, close, first, last

type Message = tuple[bool, bytes]
"""Whether it is binary, and its payload."""
type Close = tuple[int, str]


def extensions(response: http.Response) -> list[Extension] | None:
    """What was agreed on, ready for one side; None where there is something we do not speak."""
    found = list[Extension]()
    for offer in response.headers.get("sec-websocket-extensions", "").split(","):
        if not offer.strip():
            continue
        if offer.partition(";")[0].strip() != PerMessageDeflate.name:
            return None
        deflate = PerMessageDeflate()
        try:
            deflate.finalize(offer)
        except ValueError:  # a window that zlib does not have
            return None
        found.append(deflate)
    return found


@dataclass(slots=True)
class _Turn:
    """A turn under way (or the upgrade), with what the server has sent for it so far."""

    exchange: Exchange
    head: Response | None = None
    chunks: list[Chunk] = field(default_factory=list)
    binary: list[bool] = field(default_factory=list)
    held: bool = False

    @property
    def whole(self) -> bool:
        """Whether the last message is one with which an answer ends."""
        return bool(self.chunks) and ends(self.exchange.request, self.chunks[-1].data)


class Turns:
    """The exchanges of one WebSocket, from the upgrade, whose answer has been shown."""

    def __init__(
        self,
        upgrade: Exchange,
        head: Response,
        taps: Taps,
        clock: Callable[[], float],
        seqs: Iterator[int],
    ) -> None:
        self._upgrade, self._taps, self._clock, self._seqs = upgrade, taps, clock, seqs
        self._numbers = count(1)
        self._turn: _Turn | None = _Turn(upgrade, head)
        self.error: str | None = None
        """Why a tap wants the agent to see the connection break; None while it does not."""
        self.close: Close | None = None
        """How a tap wants the server to have closed."""

    def asked(self, message: Message) -> tuple[Exchange, list[Message]]:
        """A message of the agent: the turn it begins, and what the agent is to be sent now.

        The turn goes on to the server where it has neither response nor error.
        """
        out = self.over()
        is_binary, data = message
        method, url = BINARY if is_binary else TEXT, self._upgrade.request.url
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
        held = self._taps.holds(exchange)
        if exchange.response is None and exchange.error is None:
            self._turn = _Turn(exchange, held=held)
            return exchange, out
        exchange = self._taps.response(exchange) if held else exchange
        self._turn = _Turn(exchange)
        return exchange, out + self._perform()

    def heard(self, message: Message) -> list[Message]:
        """A message of the server: what the agent is to be sent now."""
        turn = self._turn
        if turn is None:  # the server goes on after its last word
            return [message]
        if not turn.held:
            self._show(turn, message)
            return [message]
        turn.chunks.append(Chunk(at=self._clock(), data=message[1]))
        turn.binary.append(message[0])
        whole = turn.whole or lens(turn.exchange.request) is None
        return self._release() if whole else []

    def over(
        self, closed: Close | None = None, *, by_agent: bool = False, error: str | None = None
    ) -> list[Message]:
        """The latest turn is over: what was held back of it and goes to the agent now."""
        out, turn = self._release(), self._turn
        self._turn = None
        if turn is None:
            return out
        error = turn.exchange.error or error
        if error is not None and error.startswith("cancelled") and turn.whole:
            error = None
        answer = turn.head
        if error is None:
            now = self._clock()
            answer = answer or Response(status=101, at=now)
            answer = replace(answer, ended=now)
        if answer is not None:
            trailers = last(turn.binary, closed, by_agent=by_agent)
            answer = replace(answer, chunks=tuple(turn.chunks), trailers=trailers)
        self._taps.done(replace(turn.exchange, response=answer, error=error))
        return out

    def _release(self) -> list[Message]:
        """Bend what was held back of the latest turn."""
        turn = self._turn
        if turn is None or not turn.held or not turn.chunks:
            return []
        whole = Response(
            status=101,
            headers=first(turn.binary[0]),
            chunks=tuple(turn.chunks),
            trailers=last(turn.binary),
            at=turn.chunks[0].at,
            ended=turn.chunks[-1].at,
        )
        exchange = self._taps.response(replace(turn.exchange, response=whole))
        self._turn = _Turn(exchange)
        return self._perform()

    def _perform(self) -> list[Message]:
        """What a tap says in the server's place, as messages."""
        turn = self._turn
        assert turn is not None
        answer, self.error = turn.exchange.response, turn.exchange.error
        if answer is None:
            return []
        self.close = close(answer)
        kinds = zip(binary(answer), answer.chunks, strict=True)
        messages = [(kind, chunk.data) for kind, chunk in kinds]
        for message in messages:
            self._show(turn, message)
        return messages

    def _show(self, turn: _Turn, message: Message) -> None:
        at = self._clock()
        if turn.head is None:
            self._head(turn, first(message[0]), at)
        chunk = Chunk(at=at, data=message[1])
        turn.chunks.append(chunk)
        turn.binary.append(message[0])
        self._taps.chunk(turn.exchange, chunk)

    def _head(self, turn: _Turn, headers: Headers, at: float) -> None:
        turn.head = Response(status=101, headers=headers, at=at)
        turn.exchange = replace(turn.exchange, response=turn.head)
        self._taps.head(turn.exchange)


@dataclass
class SwitchedHook(commands.StartHook):  # type: ignore[no-untyped-call]
    """The upgrade of a flow is through; who runs it must call `begin` of the layer."""

    flow: http.HTTPFlow
    layer: "WebSocket"
    blocking = False


@dataclass
class ResetHook(commands.StartHook):  # type: ignore[no-untyped-call]
    """The agent's connection is to be reset, after all that was sent before."""

    flow: http.HTTPFlow
    blocking = False


class _Side:
    """One of the two who talk: what it said, and how to talk to it."""

    def __init__(self, conn: Connection, kind: ConnectionType, response: http.Response) -> None:
        self.conn = conn
        self._protocol = Protocol(kind, extensions(response) or [])
        self._parts: list[bytes] = []
        self.closed = False
        """Whether it said that it closes."""

    @property
    def open(self) -> bool:
        return self._protocol.state is ConnectionState.OPEN and self.conn.connected

    def said(self, data: bytes) -> Iterator[Message | ws.Event]:
        """Whole messages, pings and pongs, and at most one close."""
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
    def broken(self) -> bool:
        """Whether the close came from wsproto, because this side spoke no WebSocket."""
        return self.closed and self._protocol.state in (
            ConnectionState.OPEN,
            ConnectionState.LOCAL_CLOSING,
        )

    def tell(self, event: ws.Event) -> commands.SendData:
        return commands.SendData(self.conn, bytes(self._protocol.send(event)))

    def message(self, message: Message) -> commands.SendData:
        """A text that is no UTF-8, which only a tap can make, goes on as far as it is."""
        is_binary, data = message
        if is_binary:
            return self.tell(ws.BytesMessage(data))
        return self.tell(ws.TextMessage(data.decode("utf-8", "replace")))

    def close(self, code: int, why: str) -> Iterator[commands.SendData]:
        """Say that the other one closes, if this one is still there and has not been told."""
        state = self._protocol.state
        if self.conn.connected and state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
            # wsproto tells by the type of the number that 1005 is no code to be sent.
            known = CloseReason(code) if code in CloseReason else code
            yield self.tell(ws.CloseConnection(known, why or None))


class WebSocket(layer.Layer):
    """Relays the messages between agent and server, and the way in which they end."""

    _turns: Turns
    _broken: Callable[[Connection], str | None]

    def __init__(self, context: context.Context, flow: http.HTTPFlow) -> None:
        super().__init__(context)
        response = flow.response
        assert response is not None
        self._flow = flow
        self._agent = _Side(context.client, ConnectionType.SERVER, response)
        self._server = _Side(context.server, ConnectionType.CLIENT, response)
        self._closed: Close | None = None
        """The first close, of whichever side; the other one repeats it."""
        self._by_agent = self._ended = False

    def begin(self, turns: Turns, broken: Callable[[Connection], str | None]) -> None:
        """Whom to tell of messages, and how to learn the code of why a connection broke."""
        self._turns, self._broken = turns, broken

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, events.Start):
            yield SwitchedHook(self._flow, self)
        elif isinstance(event, events.DataReceived) and not self._ended:
            side = self._agent if event.connection is self.context.client else self._server
            for said in side.said(event.data):
                yield from self._relay(side, said)
        elif isinstance(event, events.ConnectionClosed) and not self._ended:
            yield from self._gone(event.connection is self.context.client)

    def _relay(self, side: _Side, said: Message | ws.Event) -> layer.CommandGenerator[None]:
        other = self._server if side is self._agent else self._agent
        if isinstance(said, tuple):
            yield from self._heard(said) if side is self._server else self._asked(said)
        elif isinstance(said, ws.CloseConnection):
            yield from self._closes(side, other, (int(said.code), said.reason or ""))
        elif other.open:  # a ping or its answer
            yield other.tell(said)

    def _asked(self, message: Message) -> layer.CommandGenerator[None]:
        exchange, out = self._turns.asked(message)
        yield from self._to_agent(out)
        answered = exchange.response is not None or exchange.error is not None
        if not answered and not self._ended and self._server.open:
            yield self._server.message((message[0], exchange.forwarded.body))

    def _heard(self, message: Message) -> layer.CommandGenerator[None]:
        yield from self._to_agent(self._turns.heard(message))

    def _to_agent(self, messages: list[Message]) -> layer.CommandGenerator[None]:
        """Send these, and end as a tap wants it, if one wants it."""
        for message in messages:
            if self._agent.open:
                yield self._agent.message(message)
        if self._turns.error is not None:
            yield from self._break(self._turns.error)
        elif self._turns.close is not None and self._closed is None:
            self._closed = self._turns.close
            self._turns.over(self._closed)
            yield from self._agent.close(*self._closed)
            yield from self._server.close(CloseReason.GOING_AWAY, "")

    def _closes(self, side: _Side, other: _Side, said: Close) -> layer.CommandGenerator[None]:
        if side.broken:
            whose = "agent" if side is self._agent else "server"
            yield from self._break(f"protocol: the {whose} spoke no WebSocket: {said[1]}")
            return
        if self._closed is None:
            self._closed, self._by_agent = said, side is self._agent
        if side is self._server:  # an agent that closes still hears what is on its way
            yield from self._to_agent(self._turns.over(self._closed, by_agent=self._by_agent))
        yield from other.close(*said)

    def _gone(self, agent: bool) -> layer.CommandGenerator[None]:
        """A connection has ended: without a close on either side, the other one ends without."""
        broken = self._broken(self.context.client if agent else self.context.server)
        error = None
        if self._closed is None and agent:
            error = f"cancelled: {broken or 'eof'} by the agent"
        elif self._closed is None:
            error = f"{broken or 'eof'}: the server went without a close"
        yield from self._to_agent(
            self._turns.over(self._closed, by_agent=self._by_agent, error=error)
        )
        yield from self._end(reset=not agent and error is not None and broken is not None)

    def _break(self, error: str) -> layer.CommandGenerator[None]:
        self._turns.over(error=error)
        yield from self._end(reset=resets(error))

    def _end(self, *, reset: bool) -> layer.CommandGenerator[None]:
        if self._ended:
            return
        self._ended = True
        if reset:
            yield ResetHook(self._flow)
        else:
            yield commands.CloseConnection(self.context.client)
        if self.context.server.connected:
            yield commands.CloseConnection(self.context.server)


# Where mitmproxy's stream of HTTP makes its own layer, it makes ours.
websocket.WebsocketLayer = WebSocket  # type: ignore[misc, assignment]
