"""The run's end of the MCP tees: turns stdio messages into exchanges for the taps.

There is one exchange per client message: method MESSAGE, url `stdio://NAME/`, the message without
its newline as body. Its response is the server's message with the same JSON-RPC id, as one chunk.
Messages without an answer (notifications, answers to the server's own requests, batches, anything
that is not JSON-RPC) have no response. There is one more exchange per server process: method START,
the command as a JSON list as body; its chunks are the server's unsolicited messages, and it ends
when the process does.

If taps only observe, the tee forwards messages and reports them; if a tap may decide, only what the
taps pass or produce is forwarded. Then the server is started for START, if no tap answers that, or
when the first message is to be forwarded. A server started in the middle first gets the handshake
that the client had with the recording; it does not know of other earlier messages.

An error without an answer is shown as a server would show it: after `timeout` and `cancelled`
nothing arrives; after any other error the server is gone.
"""

import asyncio
import itertools
import json
import math
import os
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from copy import replace
from pathlib import Path
from socket import socket
from typing import cast

import orjson
from msgspec import Struct, field

from recorder.mcp import tee
from traces.clock import RunClock
from traces.model import Chunk, Exchange, Request, Response
from traces.tape.field_types import to_parsable_url
from traces.taps import TapChain

type StdioTiming = tuple[int, int, float]
"""How many messages the client had sent, and how many answers it had received, before a server
message; and the seconds from the later of these to it.
"""
type StdioTimingFn = Callable[[Exchange], tuple[StdioTiming, ...]]
"""Returns when to send each chunk of an answered START."""
type MessageRewriter = Callable[[bytes], bytes]
"""Rewrites such a chunk for this client."""

SERVER_ENDED = "eof: the server ended"
_ENDED_WITH = re.compile(rf"{SERVER_ENDED} with (-?\d+)")
"""An exit code, or minus the number of a signal."""
CANCELLED_METHOD = "notifications/cancelled"
CLIENT_SECONDS = 120.0
"""Maximum wait for an answer of the client that a recorded server had before its own."""
JSON_RPC_REFUSED = -32001
"""JSON-RPC error code that represents an HTTP status: a refusal or a fault."""
NO_WAY_OUT = Response(status=502, chunks=(Chunk(at=0.0, data=b"refused: no way out"),))


class McpStdioContext(Struct, frozen=True, kw_only=True):
    """The settings and state that all sessions of a run share."""

    taps: TapChain
    clock: RunClock
    seqs: Iterator[int]
    decides: bool = False
    """True if a tap may change what is forwarded; the tees then wait for it."""
    way_out: bool = True
    """False if no server may be started."""
    path: Path = Path(os.devnull)
    """The socket's path."""
    changed_variables: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """Variables that the recorder set: its value and the user's, which servers get."""
    cues: StdioTimingFn = lambda start: ()
    retold: MessageRewriter = lambda message: message
    is_due: Callable[[Exchange, int], bool] = lambda exchange, number: True
    """Whether the client has sent what a recorded server had waited for before an answer."""
    fail: Callable[[BaseException], object]
    sessions: set["McpStdioSession"] = field(default_factory=set)
    served: set[str] = field(default_factory=set)
    """The names of the servers that had a tee."""
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def open_session(self) -> "McpStdioSession":
        """Create the run's end of one more tee."""
        return McpStdioSession(self)

    def now(self) -> float:
        """Return the seconds since the run began."""
        return self.clock.now()

    def drop_sessions(self) -> None:
        """End all sessions and report their open exchanges to the taps."""
        for session in tuple(self.sessions):
            session.drop_session()


@asynccontextmanager
async def serve_tees(
    taps: TapChain,
    path: Path,
    *,
    began: float,
    seqs: Iterator[int],
    decides: bool = False,
    way_out: bool = True,
    cues: StdioTimingFn = lambda start: (),
    retold: MessageRewriter = lambda message: message,
    is_due: Callable[[Exchange, int], bool] = lambda exchange, number: True,
) -> AsyncIterator[McpStdioContext]:
    """Serve the tees that connect to the socket `path` while the block runs.

    `path` is in a folder that only the user can access. An exception from a tap cancels the block
    and is raised here.
    """
    task = asyncio.current_task()
    assert task is not None
    failures: list[BaseException] = []

    def fail(error: BaseException) -> None:
        failures.append(error)
        if len(failures) == 1:
            task.cancel()

    clock = RunClock(began)
    stdio = McpStdioContext(
        taps=taps,
        clock=clock,
        seqs=seqs,
        decides=decides,
        way_out=way_out,
        path=path,
        cues=cues,
        retold=retold,
        is_due=is_due,
        fail=fail,
    )
    server = await asyncio.get_running_loop().create_unix_server(stdio.open_session, path)
    try:
        yield stdio
    except asyncio.CancelledError:
        if not failures or task.uncancel() > 0:
            raise
    finally:
        server.close()
        if not failures:
            stdio.drop_sessions()
        clock.close()
    if failures:
        raise failures[0]


async def record_single_tee(
    taps: TapChain, line: socket, *, began: float, seqs: Iterator[int]
) -> int | None:
    """Record one tee at the other end of `line`; return its server's wait status, if known."""
    failures: list[BaseException] = []
    stdio = McpStdioContext(taps=taps, clock=RunClock(began), seqs=seqs, fail=failures.append)
    session = stdio.open_session()
    await asyncio.get_running_loop().create_connection(lambda: session, sock=line)
    await session.over.wait()
    if failures:
        raise failures[0]
    return session.status


class McpStdioSession(asyncio.Protocol):
    """One tee, from its hello frame to its end."""

    def __init__(self, stdio: McpStdioContext) -> None:
        self._run, self._taps = stdio, stdio.taps
        self.over = asyncio.Event()
        self.status: int | None = None
        self._transport: asyncio.Transport
        self._read = b""
        self._url, self._connection, self._streams = "", next(stdio.numbers), itertools.count(1)
        self._start: Exchange | None = None
        self._said: list[Chunk] = []
        self._waiting: dict[str, Exchange] = {}
        """Requests without an answer yet, by JSON-RPC id."""
        self._held: set[int] = set()
        self._performing: set[asyncio.Task[None]] = set()
        self._answering: set[asyncio.Task[None]] = set()
        """The tasks in `_performing` that end with an answer."""
        self._began = self._closed = False
        self._handshake: list[bytes] = []
        self._repeated: set[str] = set()
        """Ids of a replayed handshake, whose answers are dropped."""
        self._cued: deque[tuple[StdioTiming, Chunk]] = deque()
        self._due: deque[tuple[float, Chunk]] = deque()
        """Unsolicited messages of a recorded server with their due times; their cue has come."""
        self._asked = self._answered = 0
        self._heard = asyncio.Event()
        """Set by each message of the client."""

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._run.sessions.add(self)

    def data_received(self, data: bytes) -> None:
        self._start_eagerly(self._receive_frames(data))

    def connection_lost(self, error: Exception | None) -> None:
        self.drop_session()

    def drop_session(self) -> None:
        """End the session; requests that are open stay unanswered."""
        if self.over.is_set():
            return
        self.over.set()
        self._run.sessions.discard(self)
        self._transport.abort()
        for task in self._performing:
            task.cancel()
        self._start_eagerly(self._finish_session(self._run.now()))

    def _start_eagerly(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run it up to its first suspension now; an exception from a tap ends the run."""
        task = asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)
        if task.done():
            self._on_task_done(task)
        else:
            self._performing.add(task)
            task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._performing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._start = None
            self._waiting.clear()
            self._run.fail(error)
            self.drop_session()

    async def _receive_frames(self, data: bytes) -> None:
        self._read = data = self._read + data if self._read else data
        offset = 0
        while len(data) - offset >= tee.FRAME_HEAD.size:
            kind, number, when, length = tee.FRAME_HEAD.unpack_from(data, offset)
            end = offset + tee.FRAME_HEAD.size + length
            if end > len(data):
                break
            await self._handle_frame(
                kind, number, when - self._run.clock.began, data[end - length : end]
            )
            offset = end
        self._read = data[offset:]

    async def _handle_frame(self, kind: bytes, number: int, at: float, data: bytes) -> None:
        match kind:
            case tee.TEE_HELLO:
                self._on_hello(at, data)
            case tee.CLIENT_MESSAGE:
                self._on_client_message(at, data)
            case tee.SERVER_MESSAGE:
                self._on_server_message(at, data)
            case tee.CLIENT_CLOSED:
                self._on_client_closed()
            case tee.SERVER_EXITED:
                self.status = number
                await self._finish_session(at)
                self._stop_tee(number)

    def _on_hello(self, at: float, data: bytes) -> None:
        name, *command = data.decode("utf-8", "surrogateescape").split("\0")
        self._run.served.add(name)
        self._url = to_parsable_url(f"stdio://{name}/")
        self._send_frame(
            tee.LET_RUN_DECIDE if self._run.decides else tee.ONLY_WATCH,
            data=_pack_changed_variables(self._run.changed_variables),
        )
        start = self._taps.request(self._new_exchange("START", at, json.dumps(command).encode()))
        self._start = start
        if start.response is not None and self._run.decides:
            cues = self._run.cues(start)
            without_timing = [(0, 0, 0.0)] * (len(start.response.chunks) - len(cues))
            self._cued.extend(zip((*cues, *without_timing), start.response.chunks, strict=True))
            self._start = replace(start, response=replace(start.response, chunks=()))
        else:
            self._start = replace(start, response=Response(status=200, at=at))
        self._taps.head(self._start)
        if self._run.decides and self._run.way_out and start.response is None:
            self._start_server()

    def _new_exchange(self, method: str, at: float, body: bytes) -> Exchange:
        return Exchange(
            seq=next(self._run.seqs),
            request=Request(method=method, url=self._url, body=body),
            started=at,
            connection=self._connection,
            stream=next(self._streams),
            transport="stdio",
        )

    # Messages from the client.

    def _on_client_message(self, at: float, message: bytes) -> None:
        method, id = parse_method_and_id(message)
        asks = method is not None and id is not None
        if method == CANCELLED_METHOD:
            self._on_cancelled(message)
        exchange = self._taps.request(self._new_exchange("MESSAGE", at, message))
        self._asked += _is_recordable(exchange)
        self._heard.set()
        if not self._run.decides:
            if exchange.response is not None or exchange.error is not None or exchange.edits:
                raise RuntimeError("a tap decides, where the tee was told that none does")
            self._expect_answer(exchange, id if asks else None)
            return
        is_held = self._taps.holds(exchange)
        answered = exchange.response is not None or exchange.error is not None
        if answered and (not asks or method == "initialize"):
            self._handshake.append(message)
        if not answered and self._run.way_out:
            self._forward_to_server(exchange, id if asks else None, is_held)
            self._schedule_unasked()
            return
        if not answered:
            exchange = replace(exchange, response=NO_WAY_OUT, answered_by="refused")
        elif is_held:
            exchange = self._taps.response(exchange)
        if not asks:  # a message that expects no answer gets none, whatever a tap produces
            exchange = replace(exchange, response=None)
        elif exchange.response is not None and exchange.response.status >= 400:
            exchange = replace(
                exchange, response=to_json_rpc_error(exchange.response, id or "null")
            )
        self._start_playing(exchange)

    def _on_cancelled(self, message: bytes) -> None:
        """Stop waiting for an answer; if the server still sends one, it counts as unsolicited."""
        params = orjson.loads(message).get("params")
        id = params.get("requestId") if isinstance(params, dict) else None
        if (exchange := self._waiting.pop(json.dumps(id), None)) is not None:
            self._held.discard(exchange.seq)
            self._taps.done(replace(exchange, error="cancelled: by the agent"))

    def _expect_answer(self, exchange: Exchange, id: str | None) -> None:
        if id is None:
            self._taps.done(exchange)
        else:
            self._waiting[id] = exchange

    def _forward_to_server(self, exchange: Exchange, id: str | None, held: bool) -> None:
        if not self._began:
            self._start_server()
            for message in self._handshake:
                self._send_frame(tee.SEND_TO_SERVER, data=message)
                method, repeated = parse_method_and_id(message)
                if method is not None and repeated is not None:
                    self._repeated.add(repeated)
        if held and id is not None:
            self._held.add(exchange.seq)
        self._send_frame(tee.SEND_TO_SERVER, data=exchange.forwarded.body)
        self._expect_answer(exchange, id)

    def _start_server(self) -> None:
        self._began = True
        self._send_frame(tee.START_SERVER)

    def _on_client_closed(self) -> None:
        self._closed = True
        if self._began:
            self._send_frame(tee.CLOSE_INPUT)
        else:
            self._start_eagerly(self._stop_after_answers())

    async def _stop_after_answers(self) -> None:
        """Let a server without further input send its remaining answers and messages."""
        if self._answering:
            await asyncio.wait(self._answering)
        self._show_due_messages(math.inf)
        self._stop_tee(0)

    def _stop_tee(self, status: int) -> None:
        if self._run.decides:
            self._send_frame(tee.STOP_TEE, status)

    # Messages from the server.

    def _on_server_message(self, at: float, message: bytes) -> None:
        method, id = parse_method_and_id(message)
        if method is None and id is not None:
            if id in self._repeated:
                self._repeated.discard(id)
                return
            if (exchange := self._waiting.pop(id, None)) is not None:
                self._complete_exchange(exchange, at, message)
                return
        self._show_unasked(Chunk(at=at, data=message))

    def _complete_exchange(self, exchange: Exchange, at: float, message: bytes) -> None:
        answer = to_stdio_response(message, at)
        if exchange.seq in self._held:
            self._held.discard(exchange.seq)
            self._start_playing(self._taps.response(replace(exchange, response=answer)))
        else:
            self._show_answer(exchange, answer)

    def _show_unasked(self, chunk: Chunk) -> None:
        if self._run.decides:
            self._send_frame(tee.SEND_TO_CLIENT, data=chunk.data)
        if self._start is not None:
            self._said.append(chunk)
            self._taps.chunk(self._start, chunk)

    # Messages to the client.

    def _show_answer(self, exchange: Exchange, answer: Response) -> None:
        """Send a complete answer now, after all unsolicited messages that precede it."""
        self._show_due_messages(math.inf)
        head = replace(exchange, response=replace(answer, chunks=(), ended=None))
        self._taps.head(head)
        for chunk in answer.chunks:
            if self._run.decides:
                self._send_frame(tee.SEND_TO_CLIENT, data=chunk.data)
            self._taps.chunk(head, chunk)
        self._answered += _is_recordable(exchange)
        self._taps.done(replace(exchange, response=answer))

    def _start_playing(self, exchange: Exchange) -> None:
        self._schedule_unasked()
        task = self._start_eagerly(self._play_answer(exchange))
        if exchange.response is not None and not task.done():
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _play_answer(self, exchange: Exchange) -> None:
        """Send an answer produced by a tap when it is due."""
        try:
            if exchange.response is not None:
                await self._wait_until(exchange.response.at)
                for chunk in exchange.response.chunks[:-1]:  # progress, if injected
                    await self._wait_until(chunk.at)
                    self._show_unasked(replace(chunk, at=self._run.now()))
                last = replace(exchange.response, chunks=exchange.response.chunks[-1:])
                for chunk in last.chunks:
                    await self._wait_until(chunk.at)
                await self._wait_for_client(exchange)
                self._show_answer(exchange, _to_response_at(last, self._run.now()))
                self._schedule_unasked()
                return
            if exchange.error is not None:
                if exchange.error.partition(":")[0] in ("timeout", "cancelled"):
                    await self.over.wait()
                await self._wait_for_client(exchange)  # an end of the session is its last event
                if self._answering:
                    await asyncio.wait(self._answering)
                self._stop_tee(_find_wait_status(exchange.error))
        except asyncio.CancelledError:
            self._taps.done(replace(exchange, response=None, error=exchange.error or "cancelled"))
            raise
        self._taps.done(exchange)

    async def _wait_for_client(self, exchange: Exchange) -> None:
        """Wait until the client has sent what it had sent before the recorded answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLIENT_SECONDS):
                while not self._run.is_due(exchange, 0):
                    self._heard.clear()
                    await self._heard.wait()

    async def _wait_until(self, at: float) -> None:
        await self._run.clock.wait_until(at)

    def _schedule_unasked(self) -> None:
        """Give a recorded server's unsolicited messages their due time once their cue has come."""
        idle = not self._due
        while self._cued:
            (requests, answers, after), chunk = self._cued[0]
            if requests > self._asked or answers > self._answered:
                break
            self._cued.popleft()
            self._due.append((self._run.now() + after, chunk))
        self._show_due_messages(self._run.now())
        if idle and self._due:
            self._start_eagerly(self._show_messages_on_time())

    def _show_due_messages(self, at: float) -> None:
        while self._due and self._due[0][0] <= at:
            message = self._run.retold(self._due.popleft()[1].data)
            self._show_unasked(Chunk(at=self._run.now(), data=message))

    async def _show_messages_on_time(self) -> None:
        while self._due:
            await self._wait_until(self._due[0][0])
            self._show_due_messages(self._run.now())

    async def _finish_session(self, at: float) -> None:
        """Complete all open exchanges: the server has exited or the session is over."""
        open_exchanges, self._waiting = tuple(self._waiting.values()), {}
        for exchange in open_exchanges:
            error = self._describe_end()
            self._taps.done(replace(exchange, error=error))
        start, self._start = self._start, None
        if start is not None and start.response is not None:
            ended = replace(start.response, chunks=tuple(self._said), ended=at)
            self._taps.done(replace(start, response=ended))

    def _describe_end(self) -> str:
        """Return whether the server exited by itself, or the client ended it.

        A client that kills a server at once kills the tee, which reports nothing more.
        """
        status = self.status
        if status is None or self._closed:
            return "cancelled: the session was over"
        code = os.waitstatus_to_exitcode(status)
        if -code in tee.TEE_SIGNALS:
            return "cancelled: the session was over"
        return f"{SERVER_ENDED} with {code}"

    def _send_frame(self, kind: bytes, number: int = 0, data: bytes = b"") -> None:
        self._transport.write(tee.pack_tee_frame(kind, number, 0.0, data))


def _find_wait_status(error: str) -> int:
    """Return the wait status with which a recorded server ended; that of exit code 1 if unknown."""
    match = _ENDED_WITH.fullmatch(error)
    code = int(match[1]) if match else 1
    return code << 8 if 0 <= code < 256 else -code & 0x7F


def _is_recordable(exchange: Exchange) -> bool:
    """Return whether a recording may contain it: only then does it count for cues."""
    return exchange.answered_by not in ("simulated", "refused")


def parse_method_and_id(message: bytes) -> tuple[str | None, str | None]:
    """Return method and id (as JSON) of a JSON-RPC message; None for a missing one."""
    try:
        parsed = orjson.loads(message)
    except orjson.JSONDecodeError:
        return None, None
    if not isinstance(parsed, dict):
        return None, None
    method, id = parsed.get("method"), parsed.get("id")
    is_valid_id = isinstance(id, str | int | float) and not isinstance(id, bool)
    return method if isinstance(method, str) else None, json.dumps(id) if is_valid_id else None


def to_stdio_response(message: bytes, at: float) -> Response:
    """Return a server message as a response."""
    return Response(status=200, chunks=(Chunk(at=at, data=message),), at=at, ended=at)


def to_json_rpc_error(answer: Response, id: str) -> Response:
    """Return an HTTP error response as a JSON-RPC error that an MCP client can read."""
    text = answer.body.decode("utf-8", "replace")
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError:
        parsed = None
    match parsed:
        case {"error": {"message": str(message)}}:
            text = message
    error = {"code": JSON_RPC_REFUSED, "message": text or f"HTTP {answer.status}"}
    body = f'{{"jsonrpc":"2.0","id":{id},"error":{json.dumps(error)}}}'.encode()
    return to_stdio_response(body, answer.at)


def _to_response_at(answer: Response, at: float) -> Response:
    chunks = tuple(replace(chunk, at=at) for chunk in answer.chunks)
    return replace(answer, chunks=chunks, at=at, ended=at)


def find_changed_variables(
    theirs: Mapping[str, str], ours: Mapping[str, str]
) -> dict[str, tuple[str, str | None]]:
    """Return each variable that the recorder set or removed ("" here): its value and the user's."""
    names = {name for name in (*theirs, *ours) if theirs.get(name) != ours.get(name)}
    return {name: (ours.get(name, ""), theirs.get(name)) for name in sorted(names)}


def _pack_changed_variables(variables: Mapping[str, tuple[str, str | None]]) -> bytes:
    """Pack for the tee: name, the recorder's value, and `=` with the user's value, or ""."""
    words = [
        word
        for name, (ours, theirs) in variables.items()
        for word in (name, ours, "" if theirs is None else f"={theirs}")
    ]
    return "\0".join(words).encode("utf-8", "surrogateescape")
