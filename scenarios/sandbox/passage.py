"""One connection of a client to the relay, and what of it is passed on to the proxy outside.

Every request is read and written anew, so that nobody hides a second one in the first; what
comes back is passed on as it comes, byte for byte, and a reset stays a reset.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine

import h11

from scenarios.sandbox.allow import Allow

HEAD = 256 << 10
"""Bytes that the head of a request may have."""
PIECE = 1 << 16
CONNECT = b"CONNECT"
AUTHORITY = r"(?P<host>\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?"
TUNNEL = re.compile(AUTHORITY, re.ASCII)
ABSOLUTE = re.compile(f"http://{AUTHORITY}(?:[/?].*)?", re.ASCII | re.IGNORECASE)
"""So narrow that the proxy outside cannot read another host out of it than we do."""

type Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
type Way = Coroutine[object, object, None]


class Refused(Exception):
    """A request that is not passed on: with which status, why, and to whom (host:port)."""

    def __init__(self, status: str, why: str, whom: str = "") -> None:
        super().__init__(why)
        self.status, self.whom = status, whom


class Passage:
    """Passes on what the list allows; Refused for the rest, ConnectionError where a side broke."""

    def __init__(
        self, client: Streams, allow: Allow, reach: Callable[[], Awaitable[Streams]]
    ) -> None:
        self._reader, self._writer = client
        self._allow, self._reach = allow, reach
        self.upstream: Streams | None = None
        """The connection to the proxy outside, once there is one."""

    async def run(self) -> None:
        """Until the client has said all, and has heard all that was answered."""
        try:
            asked = _asked(b"")
            if not isinstance(request := await self._next(asked), h11.Request):
                return
            await self._check(request)
            self.upstream = await self._reach()
            if request.method == CONNECT:
                await self._tunnel(request, asked)
            else:
                answers = copy(self.upstream[0], self._writer)
                await _ended(self._requests(request, asked), answers, together=False)
        except (h11.RemoteProtocolError, h11.LocalProtocolError) as error:
            raise Refused("400 Bad Request", str(error)) from None

    async def _requests(self, request: object, asked: h11.Connection) -> None:
        while isinstance(request, h11.Request):
            await self._forward(request, asked)
            asked = _asked(asked.trailing_data[0])
            request = await self._next(asked)
            if isinstance(request, h11.Request):
                if request.method == CONNECT:
                    raise Refused("400 Bad Request", "CONNECT needs a connection of its own")
                await self._check(request)
        assert self.upstream
        self.upstream[1].write_eof()

    async def _next(self, asked: h11.Connection) -> object:
        while (event := asked.next_event()) is h11.NEED_DATA:
            asked.receive_data(await self._reader.read(PIECE))
        return event

    async def _check(self, request: h11.Request) -> None:
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in request.headers}:
            raise Refused("400 Bad Request", "a body has one length")
        host, port = _whom(request)
        if why := await self._allow.refusal(host, port):
            raise Refused("403 Forbidden", why, f"{host}:{port}")

    async def _forward(self, request: h11.Request, asked: h11.Connection) -> None:
        """The request, and its body as it comes; without an Upgrade, behind which all could be."""
        assert self.upstream
        ours = h11.Connection(h11.CLIENT)
        kept = [each for each in request.headers.raw_items() if each[0].lower() != b"upgrade"]
        event: object = h11.Request(method=request.method, target=request.target, headers=kept)
        while True:
            assert isinstance(event, h11.Request | h11.Data | h11.EndOfMessage)
            self.upstream[1].write(ours.send(event) or b"")
            await self.upstream[1].drain()
            if isinstance(event, h11.EndOfMessage):
                return
            event = await self._next(asked)

    async def _tunnel(self, request: h11.Request, asked: h11.Connection) -> None:
        """What follows a CONNECT is passed on as it is, if the proxy outside agreed to it."""
        assert self.upstream
        reader, writer = self.upstream
        await self._forward(request, asked)
        answered = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD)
        answered.send(request)
        answered.send(h11.EndOfMessage())
        while (event := answered.next_event()) is not h11.PAUSED:
            if isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                return None  # it refused, and with it all is said
            if event is h11.NEED_DATA:
                self._writer.write(piece := await reader.read(PIECE))
                answered.receive_data(piece)
        writer.write(asked.trailing_data[0])
        ways = (copy(self._reader, writer), copy(reader, self._writer))
        return await _ended(*ways, together=True)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """All bytes up to the end, which is passed on; ConnectionError where either side broke."""
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _ended(first: Way, second: Way, *, together: bool) -> None:
    """Until both ways are over, or, if not `together`, the second is; raises what failed first."""
    ways = (asyncio.ensure_future(first), asyncio.ensure_future(second))
    try:
        waiting = set(ways)
        while waiting and (together or ways[1] in waiting):
            over, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for each in over:
                each.result()
    finally:
        for each in ways:
            each.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


def _asked(rest: bytes) -> h11.Connection:
    """A connection that reads one request, of which this was read already."""
    asked = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD)
    if rest:
        asked.receive_data(rest)
    return asked


def _whom(request: h11.Request) -> tuple[str, int]:
    """Host and port that a request is for."""
    target, tunnel = request.target.decode("ascii"), request.method == CONNECT
    found = (TUNNEL if tunnel else ABSOLUTE).fullmatch(target)
    if found is None:
        raise Refused("400 Bad Request", f"{target[:80]} is nothing that a proxy can be asked for")
    return found["host"], int(found["port"] or (443 if tunnel else 80))
