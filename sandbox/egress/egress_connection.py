"""One client connection to the egress proxy, forwarded to the proxy outside.

Every request is parsed and encoded again, so that no second request can be hidden in the first;
answers are forwarded unchanged as they arrive, and a reset stays a reset.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine

import h11

from sandbox.egress.allowlist import EgressAllowlist

MAX_HEAD = 256 << 10
"""Maximum bytes of a request's head."""
PIECE = 1 << 16
CONNECT = b"CONNECT"
AUTHORITY = r"(?P<host>\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?"
TUNNEL = re.compile(AUTHORITY, re.ASCII)
ABSOLUTE = re.compile(f"http://{AUTHORITY}(?:[/?].*)?", re.ASCII | re.IGNORECASE)
"""So strict that the proxy outside cannot parse a different host from it."""

type Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
type CopyTask = Coroutine[object, object, None]


class EgressRefused(Exception):
    """A request that is not forwarded: its status, the reason, and the target (host:port)."""

    def __init__(self, status: str, why: str, whom: str = "") -> None:
        super().__init__(why)
        self.status, self.whom = status, whom


class EgressConnection:
    """Forwards allowed requests. Raises EgressRefused for others, ConnectionError on a break."""

    def __init__(
        self, client: Streams, allow: EgressAllowlist, reach: Callable[[], Awaitable[Streams]]
    ) -> None:
        self._reader, self._writer = client
        self._allow, self._reach = allow, reach
        self.upstream: Streams | None = None
        """The connection to the proxy outside, once it is open."""

    async def serve(self) -> None:
        """Serve until the client has sent all requests and received all answers."""
        try:
            parser = _make_request_reader(b"")
            if not isinstance(request := await self._read_event(parser), h11.Request):
                return
            await self._check_allowed(request)
            self.upstream = await self._reach()
            if request.method == CONNECT:
                await self._run_tunnel(request, parser)
            else:
                answers = copy_stream(self.upstream[0], self._writer)
                await _run_both_ways(
                    self._forward_requests(request, parser), answers, together=False
                )
        except (h11.RemoteProtocolError, h11.LocalProtocolError) as error:
            raise EgressRefused("400 Bad Request", str(error)) from None

    async def _forward_requests(self, request: object, asked: h11.Connection) -> None:
        while isinstance(request, h11.Request):
            await self._forward_request(request, asked)
            asked = _make_request_reader(asked.trailing_data[0])
            request = await self._read_event(asked)
            if isinstance(request, h11.Request):
                if request.method == CONNECT:
                    raise EgressRefused("400 Bad Request", "CONNECT needs a connection of its own")
                await self._check_allowed(request)
        assert self.upstream
        self.upstream[1].write_eof()

    async def _read_event(self, asked: h11.Connection) -> object:
        while (event := asked.next_event()) is h11.NEED_DATA:
            asked.receive_data(await self._reader.read(PIECE))
        return event

    async def _check_allowed(self, request: h11.Request) -> None:
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in request.headers}:
            raise EgressRefused("400 Bad Request", "a body has one length")
        host, port = _parse_target(request)
        if reason := await self._allow.find_refusal(host, port):
            raise EgressRefused("403 Forbidden", reason, f"{host}:{port}")

    async def _forward_request(self, request: h11.Request, asked: h11.Connection) -> None:
        """Forward a request and its body as it arrives, without Upgrade, which hides traffic."""
        assert self.upstream
        encoder = h11.Connection(h11.CLIENT)
        headers = [each for each in request.headers.raw_items() if each[0].lower() != b"upgrade"]
        event: object = h11.Request(method=request.method, target=request.target, headers=headers)
        while True:
            assert isinstance(event, h11.Request | h11.Data | h11.EndOfMessage)
            self.upstream[1].write(encoder.send(event) or b"")
            await self.upstream[1].drain()
            if isinstance(event, h11.EndOfMessage):
                return
            event = await self._read_event(asked)

    async def _run_tunnel(self, request: h11.Request, asked: h11.Connection) -> None:
        """Forward the bytes after a CONNECT unchanged, if the proxy outside accepted it."""
        assert self.upstream
        reader, writer = self.upstream
        await self._forward_request(request, asked)
        response_parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        response_parser.send(request)
        response_parser.send(h11.EndOfMessage())
        while (event := response_parser.next_event()) is not h11.PAUSED:
            if isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                return None  # it refused, and the answer is complete
            if event is h11.NEED_DATA:
                self._writer.write(data := await reader.read(PIECE))
                response_parser.receive_data(data)
        writer.write(asked.trailing_data[0])
        copies = (copy_stream(self._reader, writer), copy_stream(reader, self._writer))
        return await _run_both_ways(*copies, together=True)


async def copy_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy all bytes and the end of the stream. Raises ConnectionError if either side broke."""
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _run_both_ways(first: CopyTask, second: CopyTask, *, together: bool) -> None:
    """Run until both are over, or, if not `together`, the second is; raise the first error."""
    tasks = (asyncio.ensure_future(first), asyncio.ensure_future(second))
    try:
        waiting = set(tasks)
        while waiting and (together or tasks[1] in waiting):
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _make_request_reader(rest: bytes) -> h11.Connection:
    """Return a connection that parses one request, of which `rest` was already read."""
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
    if rest:
        parser.receive_data(rest)
    return parser


def _parse_target(request: h11.Request) -> tuple[str, int]:
    """Return host and port of a request's target."""
    target, tunnel = request.target.decode("ascii"), request.method == CONNECT
    match = (TUNNEL if tunnel else ABSOLUTE).fullmatch(target)
    if match is None:
        raise EgressRefused(
            "400 Bad Request", f"{target[:80]} is nothing that a proxy can be asked for"
        )
    return match["host"], int(match["port"] or (443 if tunnel else 80))
