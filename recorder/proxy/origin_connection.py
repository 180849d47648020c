"""One connection to a server: HTTP/1.1 over TCP or TLS, one exchange at a time.

Each answer's bytes are given on in the callback in which they arrive, with what the taps are shown
of them; nothing waits for the next turn of the event loop. What the server does between answers
(end, reset, bytes that nobody asked for) is given on too; what it does before the first request is
the answer to that request, as for a client that reads only after it has written.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, cast

from recorder.proxy import tcp
from recorder.proxy.errors import describe_tls_error, to_connection_error
from recorder.proxy.http1_response import AnswerEnd, AnswerPart, Http1ResponseReader
from recorder.proxy.tls import TlsConnection

type TakePart = Callable[[AnswerPart], Awaitable[None] | None]
"""Gets each part of an answer; reading pauses until the awaitable that it may return is done."""

SERVER_CLOSED = "eof: the server closed the connection"


class UpstreamFailedError(Exception):
    """A server could not be reached; the text is `code: detail`."""


class IdleListener(Protocol):
    """Is told what a server does between answers."""

    def on_idle_data(self, raw: bytes) -> None: ...
    def on_idle_end(
        self, connection: "OriginConnection", *, reset: bool, truncated: bool
    ) -> None: ...


class _ConnectionEnd(NamedTuple):
    """How a connection ended."""

    error: str
    truncated: bool = False


_ABORTED = _ConnectionEnd("cancelled: this side ended the connection")


class _PendingAnswer:
    def __init__(self, take: TakePart, done: asyncio.Future[AnswerEnd], head_only: bool) -> None:
        self.take, self.done = take, done
        self.reader = Http1ResponseReader(head_only=head_only)
        self.wait: asyncio.Task[None] | None = None


class OriginConnection(asyncio.Protocol):
    """A connection to a server."""

    def __init__(
        self,
        now: Callable[[], float],
        listener: IdleListener,
        tls: TlsConnection | None,
        forget: "Callable[[OriginConnection], None]",
    ) -> None:
        self._forget = forget
        self.lost = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._now, self._listener, self._tls = now, listener, tls
        self._transport: asyncio.Transport
        self._answer: _PendingAnswer | None = None
        self._handshake: asyncio.Future[None] = self._loop.create_future()
        self._end: _ConnectionEnd | None = None
        self._early: list[bytes] | None = []
        """What came before the first request; None after it."""
        self._keeps = True
        self.opener: asyncio.StreamWriter | None = None
        """What opened the TCP connection, and would close it when it is no longer referenced."""

    @property
    def has_tls(self) -> bool:
        return self._tls is not None

    @property
    def is_usable(self) -> bool:
        """Whether another request can be sent here."""
        return self._keeps and self._end is None and not self._transport.is_closing()

    async def start_tls(self) -> None:
        """Complete the TLS handshake. Raises UpstreamFailedError."""
        if self._tls is not None:
            if self._end is None:
                self._tls.receive(b"")
                self._flush_tls(self._tls)
            await self._handshake

    async def ask(
        self, head: bytes, body: bytes, take: TakePart, *, head_only: bool = False
    ) -> AnswerEnd:
        """Send a request, give the answer's parts to `take`, return how it ended.

        A connection that has ended gives its end. Raises what `take` raises. Cancelled, the
        connection is aborted.
        """
        self._answer = answer = _PendingAnswer(take, self._loop.create_future(), head_only)
        self._keeps = False
        if len(body) < 1 << 16:
            self._write(head + body)
        else:
            self._write(head)
            self._write(body)
        early, self._early = self._early, None
        if early:
            self._set_reading(True)
            self._take_data(answer, b"".join(early))
        if self._end is not None and self._answer is answer:
            self._finish_at_end(answer, self._end)
        try:
            end = await answer.done
            if answer.wait is not None:
                await answer.wait
            return end
        finally:
            if self._answer is answer:
                self.abort()

    def close(self) -> None:
        """End the connection cleanly."""
        self._end_with(_ABORTED)
        if not self._transport.is_closing():
            if self._tls is not None and (outgoing := self._tls.close()):
                self._transport.write(outgoing)
            self._transport.close()

    def abort(self, *, reset: bool = False) -> None:
        """End the connection at once."""
        self._end_with(_ABORTED)
        if reset and not self._transport.is_closing():
            tcp.reset_connection(self._transport)
        self._transport.abort()

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data if self._tls is None else self._tls.send(data))

    def _flush_tls(self, tls: TlsConnection) -> None:
        if outgoing := tls.take_outgoing():
            self._transport.write(outgoing)

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        tls = self._tls
        if tls is None:
            return self._receive(data)
        try:
            plain = tls.receive(data)
        except ssl.SSLError as error:
            self._flush_tls(tls)
            self._end_with(_ConnectionEnd(describe_tls_error(error)))
            return self._transport.abort()
        self._flush_tls(tls)
        if tls.open and not self._handshake.done():
            self._handshake.set_result(None)
        if plain:
            self._receive(plain)
        if tls.over and self._end is None:
            self._end_with(_ConnectionEnd(SERVER_CLOSED))
            self._transport.close()
        return None

    def eof_received(self) -> None:
        truncated = self._tls is not None and not self._tls.over
        self._end_with(_ConnectionEnd(SERVER_CLOSED, truncated))

    def connection_lost(self, error: Exception | None) -> None:
        broken = isinstance(error, OSError)
        text = to_connection_error(error) if isinstance(error, OSError) else SERVER_CLOSED
        self._end_with(_ConnectionEnd(text, self._tls is not None and not broken))
        self._forget(self)
        self.lost.set()

    # Answers.

    def _receive(self, data: bytes) -> None:
        if self._end is not None:
            return
        if self._answer is not None:
            self._take_data(self._answer, data)
        elif self._early is not None:
            self._early.append(data)
            self._set_reading(False)
        else:
            self._keeps = False
            self._listener.on_idle_data(data)

    def _take_data(self, answer: _PendingAnswer, data: bytes) -> None:
        reader, at = answer.reader, self._now()
        reader.feed(data, at)
        end = None
        if reader.complete:
            self._keeps = reader.keeps
            end = AnswerEnd(None, reader.trailers, reader.keeps)
        head, pieces = reader.take_head(), reader.take_pieces()
        self._give(answer, AnswerPart(data, at, head, pieces, end, reader.find_unparsed))
        if end is not None:
            self._finish(answer, end)

    def _give(self, answer: _PendingAnswer, part: AnswerPart) -> None:
        try:
            pending = answer.take(part)
        except BaseException as error:
            return self._fail(answer, error)
        if pending is not None:
            self._set_reading(False)
            answer.wait = self._loop.create_task(self._read_after(answer, answer.wait, pending))
        return None

    async def _read_after(
        self, answer: _PendingAnswer, earlier: asyncio.Task[None] | None, pending: Awaitable[None]
    ) -> None:
        try:
            if earlier is not None:
                await earlier
            await pending
        except BaseException as error:
            self._fail(answer, error)
            raise
        self._set_reading(True)

    def _set_reading(self, wanted: bool) -> None:
        if self._end is None and not self._transport.is_closing():
            (self._transport.resume_reading if wanted else self._transport.pause_reading)()

    def _fail(self, answer: _PendingAnswer, error: BaseException) -> None:
        """End an answer with an error of whoever takes it."""
        if not answer.done.done():
            answer.done.set_exception(error)
        self.abort()

    def _finish(self, answer: _PendingAnswer, end: AnswerEnd) -> None:
        if self._answer is answer:
            self._answer = None
        if not answer.done.done():
            answer.done.set_result(end)

    # The end of the connection.

    def _end_with(self, end: _ConnectionEnd) -> None:
        """Note the first end, and give it to whoever waits: nothing waits for a later one."""
        if self._end is not None:
            return
        self._end = end
        if self._tls is not None and not self._handshake.done():
            code = end.error.partition(":")[0]
            message = end.error if code == "tls" else f"{code}: in the TLS handshake"
            self._handshake.set_exception(UpstreamFailedError(message))
        elif self._answer is not None:
            self._finish_at_end(self._answer, end)
        elif self._early is None and end is not _ABORTED:
            reset = end.error != SERVER_CLOSED
            self._listener.on_idle_end(self, reset=reset, truncated=end.truncated)

    def _finish_at_end(self, answer: _PendingAnswer, end: _ConnectionEnd) -> None:
        """The end completes an answer without a length; else it is why there is no more of it."""
        if end.error == SERVER_CLOSED and answer.reader.finish():
            complete = AnswerEnd(None, truncated=end.truncated)
            unparsed = answer.reader.find_unparsed
            self._give(answer, AnswerPart(b"", self._now(), None, [], complete, unparsed))
            return self._finish(answer, complete)
        ending = end.error.partition(":")[0]
        error, why = end.error, answer.reader.error
        if why is not None:
            error = f"{error}, after what is no HTTP/1.1: {why}"
        return self._finish(answer, AnswerEnd(error, truncated=end.truncated, ending=ending))
