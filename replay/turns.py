"""What an agent says on a WebSocket, read by wsproto; loaded with the first one that is opened."""

from collections import deque
from collections.abc import Callable

from wsproto import ConnectionType
from wsproto.connection import Connection
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.utilities import LocalProtocolError

from replay.websocket import Closed, Turn


class Turns:
    """What the agent says on one WebSocket, in order; fed with bytes as they come."""

    def __init__(self, now: Callable[[], float], write: Callable[[bytes], None]) -> None:
        self.ready: deque[Turn | Closed] = deque()
        self.rest, self.waits = b"", False
        """Nothing follows a WebSocket, and its agent waits for no permission to go on."""
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
                self.ready.append(Closed(self._farewell(event)))
            elif isinstance(event, TextMessage):
                self._message(event.data.encode(), event.message_finished, binary=False)
            elif isinstance(event, BytesMessage):
                self._message(bytes(event.data), event.message_finished, binary=True)

    def _message(self, data: bytes, last: bool, *, binary: bool) -> None:
        self._parts.append(data)
        if last:
            whole, self._parts = b"".join(self._parts), []
            self.ready.append(Turn(binary=binary, data=whole, started=self._now()))

    def _farewell(self, event: CloseConnection) -> bytes:
        try:
            return bytes(self._protocol.send(event.response()))
        except LocalProtocolError:  # it broke the protocol, so there is no close to be repeated
            return bytes(self._protocol.send(event))
