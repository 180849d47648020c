"""The run's side of the tees: MCP over stdio, shown to the taps as exchanges.

One exchange per message of the client: method MESSAGE, url `stdio://NAME/`, the message without
its newline as body; its answer is the server's message with the same JSON-RPC id, as one chunk.
What nobody answers (notifications, answers to the server's own requests, a batch, anything that
is no JSON-RPC) has no response. One more per server process: method START, the command as a JSON
list for body; what the server says unasked are its chunks, and it ends when the process does.

Where the taps only watch, the tee passes messages on and says what it did; where one may
decide, nothing goes on but what the taps left or made. Then the server
is started for START, where no tap answers it, or when the first message is to go on. A server
that starts in the middle first gets the handshake that the client had with the recording; what
else was said before, it does not know.

An error without an answer is shown as a server shows it: after `timeout` and `cancelled` nothing
comes; after any other the server is gone.
"""

import asyncio
import itertools
import json
import math
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from socket import socket
from typing import cast

import orjson

from recorder import tee
from traces.clock import Clock
from traces.model import Chunk, Exchange, Request, Response
from traces.taps import Taps

type Cue = tuple[int, int, float]
"""How many messages a client had sent, and how many answers it had, before something was said;
and how many seconds after the last of these it was."""
type Cues = Callable[[Exchange], tuple[Cue, ...]]
"""When each chunk of an answered START is to be said."""
type Retold = Callable[[bytes], bytes]
"""Such a chunk as this client is to hear it."""

GONE = "eof: the server ended"
CANCELLED = "notifications/cancelled"
REFUSED = -32001
"""The JSON-RPC code of what stands for an HTTP status: a refusal, or a fault."""
NO_WAY_OUT = Response(status=502, chunks=(Chunk(at=0.0, data=b"refused: no way out"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdio:
    """What all sessions of a run share."""

    taps: Taps
    clock: Clock
    seqs: Iterator[int]
    decides: bool = False
    """True where a tap may change what goes on; then the tees wait for it."""
    way_out: bool = True
    """False where no server may be started."""
    path: Path = Path(os.devnull)
    """The socket."""
    put_back: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """Variables that we set, with our value and the user's: the servers get the user's."""
    cues: Cues = lambda start: ()
    retold: Retold = lambda message: message
    fail: Callable[[BaseException], object]
    sessions: set["Session"] = field(default_factory=set)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def session(self) -> "Session":
        """The run's end of one more tee."""
        return Session(self)

    def now(self) -> float:
        """Seconds since the run began."""
        return self.clock.now()

    def close(self) -> None:
        """All sessions end, and what was under way in them is told."""
        for session in tuple(self.sessions):
            session.drop()


@asynccontextmanager
async def listening(
    taps: Taps,
    path: Path,
    *,
    began: float,
    seqs: Iterator[int],
    decides: bool = False,
    way_out: bool = True,
    cues: Cues = lambda start: (),
    retold: Retold = lambda message: message,
) -> AsyncIterator[Stdio]:
    """Serve the tees that come to the socket `path` for as long as the block runs.

    `path` lies in a folder that is the user's alone. What a tap raises cancels the block and is
    raised here.
    """
    task = asyncio.current_task()
    assert task is not None
    failures: list[BaseException] = []

    def fail(error: BaseException) -> None:
        failures.append(error)
        if len(failures) == 1:
            task.cancel()

    clock = Clock(began)
    stdio = Stdio(
        taps=taps,
        clock=clock,
        seqs=seqs,
        decides=decides,
        way_out=way_out,
        path=path,
        cues=cues,
        retold=retold,
        fail=fail,
    )
    server = await asyncio.get_running_loop().create_unix_server(stdio.session, path)
    try:
        yield stdio
    except asyncio.CancelledError:
        if not failures or task.uncancel() > 0:
            raise
    finally:
        server.close()
        if not failures:
            stdio.close()
        clock.close()
    if failures:
        raise failures[0]


async def alone(taps: Taps, line: socket, *, began: float, seqs: Iterator[int]) -> int | None:
    """Record the one tee at the other end of `line`; its server's wait status, if it said so."""
    failures: list[BaseException] = []
    stdio = Stdio(taps=taps, clock=Clock(began), seqs=seqs, fail=failures.append)
    session = stdio.session()
    await asyncio.get_running_loop().create_connection(lambda: session, sock=line)
    await session.over.wait()
    if failures:
        raise failures[0]
    return session.status


class Session(asyncio.Protocol):
    """One tee, from its hello to its end."""

    def __init__(self, stdio: Stdio) -> None:
        self._run, self._taps = stdio, stdio.taps
        self.over = asyncio.Event()
        self.status: int | None = None
        self._transport: asyncio.Transport
        self._read = b""
        self._url, self._connection, self._streams = "", next(stdio.numbers), itertools.count(1)
        self._start: Exchange | None = None
        self._said: list[Chunk] = []
        self._waiting: dict[str, Exchange] = {}
        """What was asked and is not answered, by JSON-RPC id."""
        self._held: set[int] = set()
        self._performing: set[asyncio.Task[None]] = set()
        self._answering: set[asyncio.Task[None]] = set()
        """Those of them that end with an answer."""
        self._began = self._closed = False
        self._handshake: list[bytes] = []
        self._repeated: set[str] = set()
        """Ids of a handshake that we repeat: its answers are for nobody."""
        self._cued: deque[tuple[Cue, Chunk]] = deque()
        self._due: deque[tuple[float, Chunk]] = deque()
        """What a recorded server says unasked, and when: its cue has come."""
        self._asked = self._answered = 0

    # What the loop says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._run.sessions.add(self)

    def data_received(self, data: bytes) -> None:
        self._at_once(self._receive(data))

    def connection_lost(self, error: Exception | None) -> None:
        self.drop()

    def drop(self) -> None:
        """The session is over: whoever waits for an answer gets none."""
        if self.over.is_set():
            return
        self.over.set()
        self._run.sessions.discard(self)
        self._transport.abort()
        for task in self._performing:
            task.cancel()
        self._at_once(self._finish(self._run.now()))

    def _at_once(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Do it now, as far as it goes; what a tap raises ends the run."""
        task = asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)
        if task.done():
            self._settle(task)
        else:
            self._performing.add(task)
            task.add_done_callback(self._settle)
        return task

    def _settle(self, task: asyncio.Task[None]) -> None:
        self._performing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._start = None
            self._waiting.clear()
            self._run.fail(error)
            self.drop()

    async def _receive(self, data: bytes) -> None:
        self._read = data = self._read + data if self._read else data
        at = 0
        while len(data) - at >= tee.HEAD.size:
            kind, number, when, length = tee.HEAD.unpack_from(data, at)
            end = at + tee.HEAD.size + length
            if end > len(data):
                break
            await self._take(kind, number, when - self._run.clock.began, data[end - length : end])
            at = end
        self._read = data[at:]

    async def _take(self, kind: bytes, number: int, at: float, data: bytes) -> None:
        match kind:
            case tee.HELLO:
                self._hello(at, data)
            case tee.ASKED:
                self._ask(at, data)
            case tee.SAID:
                self._hear(at, data)
            case tee.CLOSED:
                self._close()
            case tee.ENDED:
                self.status = number
                await self._finish(at)
                self._stop(number)

    def _hello(self, at: float, data: bytes) -> None:
        name, *command = data.decode("utf-8", "surrogateescape").split("\0")
        self._url = f"stdio://{name}/"
        self._send(tee.ASK if self._run.decides else tee.WATCH, data=_triples(self._run.put_back))
        start = self._taps.request(self._exchange("START", at, json.dumps(command).encode()))
        self._start = start
        if start.response is not None and self._run.decides:
            cues = self._run.cues(start)
            late = [(0, 0, 0.0)] * (len(start.response.chunks) - len(cues))
            self._cued.extend(zip((*cues, *late), start.response.chunks, strict=True))
            self._start = replace(start, response=replace(start.response, chunks=()))
        else:
            self._start = replace(start, response=Response(status=200, at=at))
        self._taps.head(self._start)
        if self._run.decides and self._run.way_out and start.response is None:
            self._begin()

    def _exchange(self, method: str, at: float, body: bytes) -> Exchange:
        return Exchange(
            seq=next(self._run.seqs),
            request=Request(method=method, url=self._url, body=body),
            started=at,
            connection=self._connection,
            stream=next(self._streams),
            transport="stdio",
        )

    # What the client says.

    def _ask(self, at: float, message: bytes) -> None:
        method, id = sort(message)
        asks = method is not None and id is not None
        if method == CANCELLED:
            self._cancel(message)
        exchange = self._taps.request(self._exchange("MESSAGE", at, message))
        self._asked += _counts(exchange)
        if not self._run.decides:
            if exchange.response is not None or exchange.error is not None or exchange.edits:
                raise RuntimeError("a tap decides, where the tee was told that none does")
            self._wait(exchange, id if asks else None)
            return
        held = self._taps.holds(exchange)
        answered = exchange.response is not None or exchange.error is not None
        if answered and (not asks or method == "initialize"):
            self._handshake.append(message)
        if not answered and self._run.way_out:
            self._pass_on(exchange, id if asks else None, held)
            self._cue()
            return
        if not answered:
            exchange = replace(exchange, response=NO_WAY_OUT, answered_by="refused")
        elif held:
            exchange = self._taps.response(exchange)
        if not asks:  # whatever a tap makes of it, nothing is said to what nobody answers
            exchange = replace(exchange, response=None)
        elif exchange.response is not None and exchange.response.status >= 400:
            exchange = replace(exchange, response=as_error(exchange.response, id or "null"))
        self._perform(exchange)

    def _cancel(self, message: bytes) -> None:
        """The client waits no longer; what the server says nevertheless, it says unasked."""
        params = orjson.loads(message).get("params")
        id = params.get("requestId") if isinstance(params, dict) else None
        if (exchange := self._waiting.pop(json.dumps(id), None)) is not None:
            self._held.discard(exchange.seq)
            self._taps.done(replace(exchange, error="cancelled: by the agent"))

    def _wait(self, exchange: Exchange, id: str | None) -> None:
        if id is None:
            self._taps.done(exchange)
        else:
            self._waiting[id] = exchange

    def _pass_on(self, exchange: Exchange, id: str | None, held: bool) -> None:
        if not self._began:
            self._begin()
            for message in self._handshake:
                self._send(tee.TELL, data=message)
                method, repeated = sort(message)
                if method is not None and repeated is not None:
                    self._repeated.add(repeated)
        if held and id is not None:
            self._held.add(exchange.seq)
        self._send(tee.TELL, data=exchange.forwarded.body)
        self._wait(exchange, id)

    def _begin(self) -> None:
        self._began = True
        self._send(tee.START)

    def _close(self) -> None:
        self._closed = True
        if self._began:
            self._send(tee.SHUT)
        else:
            self._at_once(self._stop_when_said())

    async def _stop_when_said(self) -> None:
        """A server that gets no more input still says what it has to say."""
        if self._answering:
            await asyncio.wait(self._answering)
        self._speak(math.inf)
        self._stop(0)

    def _stop(self, status: int) -> None:
        if self._run.decides:
            self._send(tee.STOP, status)

    # What the server says.

    def _hear(self, at: float, message: bytes) -> None:
        method, id = sort(message)
        if method is None and id is not None:
            if id in self._repeated:
                self._repeated.discard(id)
                return
            if (exchange := self._waiting.pop(id, None)) is not None:
                self._reply(exchange, at, message)
                return
        self._unasked(Chunk(at=at, data=message))

    def _reply(self, exchange: Exchange, at: float, message: bytes) -> None:
        answer = whole(message, at)
        if exchange.seq in self._held:
            self._held.discard(exchange.seq)
            self._perform(self._taps.response(replace(exchange, response=answer)))
        else:
            self._show(exchange, answer)

    def _unasked(self, chunk: Chunk) -> None:
        if self._run.decides:
            self._send(tee.SAY, data=chunk.data)
        if self._start is not None:
            self._said.append(chunk)
            self._taps.chunk(self._start, chunk)

    # What the client gets.

    def _show(self, exchange: Exchange, answer: Response) -> None:
        """All of an answer, now, and before it all that was said before it."""
        self._speak(math.inf)
        head = replace(exchange, response=replace(answer, chunks=(), ended=None))
        self._taps.head(head)
        for chunk in answer.chunks:
            if self._run.decides:
                self._send(tee.SAY, data=chunk.data)
            self._taps.chunk(head, chunk)
        self._answered += _counts(exchange)
        self._taps.done(replace(exchange, response=answer))

    def _perform(self, exchange: Exchange) -> None:
        self._cue()
        task = self._at_once(self._play(exchange))
        if exchange.response is not None and not task.done():
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _play(self, exchange: Exchange) -> None:
        """The answer that a tap made, when it is due."""
        try:
            if exchange.response is not None:
                await self._until(exchange.response.at)
                for chunk in exchange.response.chunks[:-1]:  # progress, in what a fault made
                    await self._until(chunk.at)
                    self._unasked(replace(chunk, at=self._run.now()))
                last = replace(exchange.response, chunks=exchange.response.chunks[-1:])
                for chunk in last.chunks:
                    await self._until(chunk.at)
                self._show(exchange, _as_said(last, self._run.now()))
                self._cue()
                return
            if exchange.error is not None:
                if exchange.error.partition(":")[0] in ("timeout", "cancelled"):
                    await self.over.wait()
                self._stop(1 << 8)
        except asyncio.CancelledError:
            self._taps.done(replace(exchange, response=None, error=exchange.error or "cancelled"))
            raise
        self._taps.done(exchange)

    async def _until(self, at: float) -> None:
        await self._run.clock.until(at)

    def _cue(self) -> None:
        """What a recorded server says unasked has its time from here on, if its cue has come."""
        idle = not self._due
        while self._cued:
            (asked, answered, after), chunk = self._cued[0]
            if asked > self._asked or answered > self._answered:
                break
            self._cued.popleft()
            self._due.append((self._run.now() + after, chunk))
        self._speak(self._run.now())
        if idle and self._due:
            self._at_once(self._speak_on_time())

    def _speak(self, at: float) -> None:
        while self._due and self._due[0][0] <= at:
            said = self._run.retold(self._due.popleft()[1].data)
            self._unasked(Chunk(at=self._run.now(), data=said))

    async def _speak_on_time(self) -> None:
        while self._due:
            await self._until(self._due[0][0])
            self._speak(self._run.now())

    async def _finish(self, at: float) -> None:
        """The server is gone, or nobody will hear it any more."""
        waiting, self._waiting = tuple(self._waiting.values()), {}
        gone = self.status is not None and not self._closed
        for exchange in waiting:
            why = GONE if gone else "cancelled: the session was over"
            self._taps.done(replace(exchange, error=why))
        start, self._start = self._start, None
        if start is not None and start.response is not None:
            ended = replace(start.response, chunks=tuple(self._said), ended=at)
            self._taps.done(replace(start, response=ended))

    def _send(self, kind: bytes, number: int = 0, data: bytes = b"") -> None:
        self._transport.write(tee.frame(kind, number, 0.0, data))


def _counts(exchange: Exchange) -> bool:
    """Whether a recording may hold it: else it is no cue for anything."""
    return exchange.answered_by not in ("simulated", "refused")


def sort(message: bytes) -> tuple[str | None, str | None]:
    """Method and id (as JSON) of a JSON-RPC message; None for what it does not have."""
    try:
        said = orjson.loads(message)
    except orjson.JSONDecodeError:
        return None, None
    if not isinstance(said, dict):
        return None, None
    method, id = said.get("method"), said.get("id")
    known = isinstance(id, str | int | float) and not isinstance(id, bool)
    return method if isinstance(method, str) else None, json.dumps(id) if known else None


def whole(message: bytes, at: float) -> Response:
    """A message as an answer."""
    return Response(status=200, chunks=(Chunk(at=at, data=message),), at=at, ended=at)


def as_error(answer: Response, id: str) -> Response:
    """An HTTP error as the JSON-RPC error that an MCP client can read."""
    text = answer.body.decode("utf-8", "replace")
    try:
        said = orjson.loads(text)
    except orjson.JSONDecodeError:
        said = None
    match said:
        case {"error": {"message": str(message)}}:
            text = message
    error = {"code": REFUSED, "message": text or f"HTTP {answer.status}"}
    body = f'{{"jsonrpc":"2.0","id":{id},"error":{json.dumps(error)}}}'.encode()
    return whole(body, answer.at)


def _as_said(answer: Response, at: float) -> Response:
    chunks = tuple(replace(chunk, at=at) for chunk in answer.chunks)
    return replace(answer, chunks=chunks, at=at, ended=at)


def changed(
    theirs: Mapping[str, str], ours: Mapping[str, str]
) -> dict[str, tuple[str, str | None]]:
    """Each variable that we set or (ours is empty) took away, with our value and the user's."""
    names = {name for name in (*theirs, *ours) if theirs.get(name) != ours.get(name)}
    return {name: (ours.get(name, ""), theirs.get(name)) for name in sorted(names)}


def _triples(variables: Mapping[str, tuple[str, str | None]]) -> bytes:
    """As the tee reads them: name, ours, and `=theirs` or nothing."""
    words = [
        word
        for name, (ours, theirs) in variables.items()
        for word in (name, ours, "" if theirs is None else f"={theirs}")
    ]
    return "\0".join(words).encode("utf-8", "surrogateescape")
