"""Parse an agent's WebSocket messages with wsproto; imported when the first WebSocket opens."""

from collections import deque
from collections.abc import Callable

from wsproto import ConnectionType
from wsproto.connection import Connection
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.utilities import LocalProtocolError

from recorder.proxy.websocket_writer import AgentWebSocketClose, AgentWebSocketMessage


class WebSocketReader:
    """Parses the agent's messages on one WebSocket, in order; fed with bytes as they arrive."""

    def __init__(self, now: Callable[[], float], write: Callable[[bytes], None]) -> None:
        self.ready: deque[AgentWebSocketMessage | AgentWebSocketClose] = deque()
        self.rest, self.waits = b"", False
        """Always empty and False: no bytes follow a WebSocket, no 100 Continue is awaited."""
        self._now, self._write = now, write
        self._protocol = Connection(ConnectionType.SERVER)
        self._parts: list[bytes] = []
        self._over = False

    def feed(self, data: bytes) -> None:
        if self._over:
            return
        self._protocol.receive_data(data)
        for event in self._protocol.events():
            if isinstance(event, Ping):
                self._write(bytes(self._protocol.send(event.response())))
            elif isinstance(event, CloseConnection):
                self._over = True
                self.ready.append(AgentWebSocketClose(self._encode_close(event)))
            elif isinstance(event, TextMessage):
                self._add_message_part(event.data.encode(), event.message_finished, binary=False)
            elif isinstance(event, BytesMessage):
                self._add_message_part(bytes(event.data), event.message_finished, binary=True)

    def _add_message_part(self, data: bytes, last: bool, *, binary: bool) -> None:
        self._parts.append(data)
        if last:
            message, self._parts = b"".join(self._parts), []
            self.ready.append(
                AgentWebSocketMessage(binary=binary, data=message, started=self._now())
            )

    def _encode_close(self, event: CloseConnection) -> bytes:
        try:
            return bytes(self._protocol.send(event.response()))
        except LocalProtocolError:  # a protocol error: there is no valid close frame to answer
            return bytes(self._protocol.send(event))
