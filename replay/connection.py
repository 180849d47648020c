"""One connection of the agent: plain HTTP, or CONNECT and whatever is spoken inside.

Bytes go through `_receive`, which is `_http` at first, `_sniff` after a CONNECT, and from the
first byte in the tunnel on `_encrypted` or again `_http` (some clients tunnel plain HTTP too).
Requests are performed one after the other, in their order; while one is under way the next wait,
and when too many wait the agent is not read. A tap runs inside a task that starts at once, so an
answer that is due is written before `data_received` returns.

The end of what the agent sends is taken for the agent having left, as most servers do: somebody
who waits for an answer keeps the connection open.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from replay import tcp
from replay.h1 import CONTINUE, ESTABLISHED, REFUSALS, Asked, Requests, absolute, host, normal
from replay.performance import Gone, Performance
from replay.tls import HANDSHAKE, NO_APPLICATION_PROTOCOL, Hello, Tls, client_hello
from replay.websocket import Closed, Turn
from traces.model import header

if TYPE_CHECKING:
    from replay.performer import Stage
    from replay.turns import Turns

WAITING = 32
"""Requests that may wait behind the one under way before the agent is no longer read."""

LINGER = 2.0
"""Seconds between our end of a connection and the agent's, before it is closed for good."""

_DELIVERY = 5.0
"""Seconds an agent that does not read can delay a reset."""


class Connection(asyncio.Protocol):
    """The server side of one connection."""

    def __init__(self, stage: "Stage", number: int) -> None:
        self.stage, self.number = stage, number
        self.paused = False
        """The kernel has not taken all that was written: wait for `drained`."""
        self._transport: asyncio.Transport
        self._receive: Callable[[bytes], None] = self._http
        self._requests: Requests | Turns = Requests(stage.now)
        self._scheme, self._authority = "http", ""
        self._socket = ""
        """The URL of the WebSocket that this connection has become; empty while it is HTTP."""
        self._tls: Tls | None = None
        self._hello = b""
        self._streams = 0
        self._task: asyncio.Task[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._reading = True
        self._ending = self._lost = False
        self._timer: asyncio.TimerHandle | None = None

    # What the loop says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        # Nothing stays in the transport unnoticed: what is written is in the kernel, or paused.
        transport.set_write_buffer_limits(high=0)
        self.stage.connections.add(self)
        if self.stage.over:
            self.reset()

    def data_received(self, data: bytes) -> None:
        if not self._ending:
            self._receive(data)

    def eof_received(self) -> None:
        self._ending = True
        if self._task is not None:
            self._task.cancel()

    def connection_lost(self, error: Exception | None) -> None:
        self._ending = self._lost = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        else:
            self.stage.left(self)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._advance()

    # What arrives.

    def _http(self, data: bytes) -> None:
        self._requests.feed(data)
        self._advance()

    def _advance(self) -> None:
        requests = self._requests
        while requests.ready and self._task is None and not (self.paused or self._closed):
            asked = requests.ready.popleft()
            if isinstance(asked, int):
                self._refuse(asked)
            elif isinstance(asked, Closed):
                self._part(asked)
            elif asked.method == "CONNECT":
                assert isinstance(asked, Asked)
                return self._tunnel(asked.target)
            else:
                self._perform(asked)
                requests = self._requests
        if self._closed:
            return None
        if requests.waits and not requests.ready and self._task is None:
            requests.waits = False
            self.write(CONTINUE)
        self._read(len(requests.ready) < WAITING and not (requests.ready and requests.rest))
        return None

    def _perform(self, asked: Asked | Turn) -> None:
        url = self._socket if isinstance(asked, Turn) else self._url(asked)
        if url is None:
            return self._refuse(400)
        if self.stage.bases and isinstance(asked, Asked):
            asked, url = self._of_the_origin(asked, url)
        self._streams += 1
        performance = Performance(self, asked, url, self._streams)
        task = asyncio.Task(performance.run(), loop=self.stage.loop, eager_start=True)
        if task.done():
            return self._settle(task)
        self._task = task
        task.add_done_callback(self._over)
        return None

    def _of_the_origin(self, asked: Asked, url: str) -> tuple[Asked, str]:
        """What was asked, of the origin for which a port of ours stands."""
        scheme, _, rest = url.partition("://")
        authority, slash, path = rest.partition("/")
        if (origin := self.stage.bases.get(f"{scheme}://{authority}")) is None:
            return asked, url
        named = origin.partition("://")[2]
        headers = tuple((k, named if k.lower() == "host" else v) for k, v in asked.headers)
        return asked._replace(headers=headers), f"{origin}{slash}{path}"

    def _over(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._settle(task)
        if self._lost:
            self.stage.left(self)
        else:
            self._advance()

    def _settle(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.stage.fail(error)

    def _url(self, asked: Asked) -> str | None:
        if "://" in asked.target.partition("?")[0] and not asked.target.startswith("/"):
            url = normal(asked.target)
            if not self._authority:
                return url
            # A tunnel leads to its host, whoever is named in there: else it would be a way past
            # whoever let it through, and mitmproxy sees it so too.
            _, _, path = url.partition("://")[2].partition("/")
            return absolute(self._scheme, self._authority, f"/{path}")
        authority = self._authority or header(asked.headers, "host")
        if not authority and asked.version == "1.0":
            authority = self.stage.url.removeprefix("http://")
        return absolute(self._scheme, authority, asked.target) if authority else None

    def _refuse(self, status: int) -> None:
        self.write(REFUSALS[status])
        self.hang_up()

    def _tunnel(self, authority: str) -> None:
        rest = self._requests.rest
        if self._authority:
            return self._refuse(400)
        self._authority = authority
        self.write(ESTABLISHED)
        self._receive = self._sniff
        self._read(True)
        if rest:
            self._sniff(rest)
        return None

    def _sniff(self, data: bytes) -> None:
        """Finds out what is spoken in the tunnel."""
        self._hello += data
        if self._hello[0] != HANDSHAKE:
            return self._inside("http", self._http)
        try:
            hello = client_hello(self._hello)
        except ValueError as error:
            return self._untrusted(str(error))
        if hello is None:
            return None
        if hello.alpn and "http/1.1" not in hello.alpn:
            return self._splice(hello)
        try:
            context = self.stage.authority.context(hello.sni or host(self._authority))
        except ValueError as error:
            return self._untrusted(str(error))
        self._tls = Tls(context)
        return self._inside("https", partial(self._encrypted, self._tls))

    def _splice(self, hello: Hello) -> None:
        """An agent that speaks only other protocols (HTTP/2) is refused by alert.

        Where such agents are to be served, this is the place: `_hello` holds every byte of theirs
        so far, and nothing was answered yet.
        """
        self._transport.write(NO_APPLICATION_PROTOCOL)
        self._untrusted(f"the agent speaks only {', '.join(hello.alpn)}")

    def _inside(self, scheme: str, receive: Callable[[bytes], None]) -> None:
        self._scheme, self._receive = scheme, receive
        self._requests = Requests(self.stage.now)
        data, self._hello = self._hello, b""
        receive(data)

    def _encrypted(self, tls: Tls, data: bytes) -> None:
        try:
            plain = tls.receive(data)
        except ssl.SSLError as error:
            self._transport.write(tls.outgoing())
            return self._untrusted(error.reason or str(error))
        if out := tls.outgoing():
            self._transport.write(out)
        if plain:
            self._http(plain)
        if tls.over and not self._closed:
            self.eof_received()
            self._transport.close()
        return None

    def _untrusted(self, why: str) -> None:
        self.stage.untrusted[self._authority] = why
        if self._task is not None:
            self._task.cancel()
        self.hang_up()

    def _part(self, closed: Closed) -> None:
        self.write(closed.answer)
        self.hang_up()

    # What a performance does.

    def switch(self, url: str) -> None:
        """From here on what the agent says are the messages of a WebSocket."""
        from replay.turns import Turns

        rest = self._requests.rest
        self._socket, self._streams = url, 0
        self._requests = Turns(self.stage.now, self.write)
        self._requests.feed(rest)

    def write(self, data: bytes) -> None:
        if self._closed:
            raise Gone
        self._transport.write(data if self._tls is None else self._tls.send(data))

    async def drained(self) -> None:
        """The kernel has taken everything that was written."""
        while self.paused:
            self._drained = self.stage.loop.create_future()
            await self._drained

    async def delivered(self) -> None:
        """The kernel has sent what it took, unless the agent does not read: a reset drops it."""
        deadline = time.monotonic() + _DELIVERY
        while not self._closed and tcp.unsent(self._transport) and time.monotonic() < deadline:
            await asyncio.sleep(0.001)

    def hang_up(self) -> None:
        """A clean end: after what was written close_notify and FIN, and the agent may answer it."""
        if self._closed:
            return
        if self._tls is not None and (out := self._tls.close()):
            self._transport.write(out)
        self._ending = True
        self._transport.write_eof()
        self._read(True)
        # Closed at once, with bytes of the agent's unread, the FIN would become a reset.
        self._timer = self.stage.loop.call_later(LINGER, self._transport.abort)

    def reset(self) -> None:
        """An RST, also in the middle of TLS."""
        if not self._transport.is_closing():
            self._ending = True
            tcp.reset(self._transport)

    def drop(self) -> None:
        """The stage is over."""
        self._ending = True
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    @property
    def _closed(self) -> bool:
        return self._ending or self._transport.is_closing()

    def _read(self, wanted: bool) -> None:
        if wanted != self._reading:
            self._reading = wanted
            (self._transport.resume_reading if wanted else self._transport.pause_reading)()
