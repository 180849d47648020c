"""A tape: one trajectory on disk, append-only, written while it happens.

Kinds of frame and the msgpack value each holds (maps have text keys, absent keys mean the
default; times are seconds since the trajectory began):

    1 trajectory  map: the fields of `Trajectory`, verbatim; the first frame
    2 request     map: seq, connection, stream, transport, started, by, method, url, headers,
                  body (bytes, or [parent seq, prefix, suffix, middle, packed]: see delta.py),
                  edits, redacted
    3 head        map: seq, at, status, reason, version, headers, by; a second one of the same
                  seq begins the answer anew: the chunks before it are void
    4 chunk       [seq, at, sent, data]
    5 done        map: seq, ended, trailers, error, by, bytes (of all chunks), headers (in
                  place of those of the head, where redaction changed the length), redacted
    6 injection   map: the fields of `Injection`
    7 ending      map: the fields of `Ending`; the last frame of a run that ended

Before, recordings were written when an exchange was over, so a killed run lost what was under
way. Here every fact is a frame of its own, one `write` each; a thread calls fdatasync every
100 ms, so a power cut costs at most that. An exchange without `done` was still under way; a
tape without `ending` was not closed. Redaction happens in here, before the first byte; a chunk
that ends in what may be the beginning of a secret waits for the next one (see held.py).
"""

import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Self, cast

import msgpack
import zstandard

from traces import delta, frames
from traces.frames import Damage, Frame
from traces.model import (
    Chunk,
    Edit,
    Ending,
    Exchange,
    Headers,
    Injection,
    Request,
    Response,
    Trajectory,
)
from traces.redact import Redactor, Stream, with_length

TRAJECTORY, REQUEST, HEAD, CHUNK, DONE, INJECTION, ENDING = frames.KINDS
SYNC_EVERY = 0.1


class Unrecordable(Exception):
    """Better to stop than to record a lie: the tape can no longer be written."""


class Writer:
    """The one writer of a new tape; also the tap that records what the agent really got.

    FileExistsError if the path is taken. Unrecordable when the disk no longer takes a frame.
    """

    def __init__(
        self,
        path: Path,
        trajectory: Trajectory,
        *,
        secrets: Iterable[str] = (),
        redact: bool = True,
    ) -> None:
        self.path = path
        self.redactor = Redactor(secrets)
        self._redact = redact
        self._answers: dict[int, tuple[Exchange, Stream]] = {}
        self._bodies = delta.Bodies()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._dirty = self._broken = False
        self._closing = threading.Event()
        self._append(frames.preamble())
        first = self._clean(_sparse(trajectory))
        self._frame(TRAJECTORY, first if redact else first | {"verbatim": True})
        self._syncer = threading.Thread(target=self._sync, name="tape-sync", daemon=True)
        self._syncer.start()

    def request(self, exchange: Exchange) -> Exchange:
        """Write what was asked, and by which edits it went on; returns the exchange as it is."""
        request, edits, redacted = exchange.request, exchange.edits, exchange.redacted
        if self._redact:
            request = self.redactor.request(exchange.request)
            url, body = request.url, request.body
            edits = self.redactor.edits(exchange, body)
            redacted = redacted or (url, body) != (exchange.request.url, exchange.request.body)
        said = self._bodies.encode(exchange.seq, request.body)
        value: dict[str, object] = {
            "seq": exchange.seq,
            "connection": exchange.connection,
            "stream": exchange.stream,
            "transport": exchange.transport,
            "started": exchange.started,
            "by": exchange.answered_by,
            "method": request.method,
            "url": request.url,
            "headers": request.headers,
            "body": said if isinstance(said, bytes) else _delta(said),
        }
        if edits:
            value["edits"] = [_plain_edit(edit) for edit in edits]
        if redacted:
            value["redacted"] = True
        self._frame(REQUEST, value)
        return exchange

    def head(self, exchange: Exchange) -> None:
        """Write the status and headers that went to the agent."""
        answer = exchange.response
        if answer is None:
            raise ValueError(f"exchange {exchange.seq} has no head")
        if self._redact:
            messages = exchange.transport != "http"
            stream = self.redactor.stream(answer.headers, messages=messages)
            self._answers[exchange.seq] = exchange, stream
        self._head(exchange, answer)

    def _head(self, exchange: Exchange, answer: Response) -> None:
        value: dict[str, object] = {
            "seq": exchange.seq,
            "at": answer.at,
            "status": answer.status,
            "reason": answer.reason,
            "version": answer.version,
            "headers": self._headers(answer.headers),
            "by": exchange.answered_by,
        }
        self._frame(HEAD, value)

    def _headers(self, headers: Headers) -> Headers:
        return self.redactor.headers(headers) if self._redact else headers

    def chunk(self, exchange: Exchange, chunk: Chunk) -> None:
        """Write one piece of the answer with its time, or once it is known to be no secret."""
        if (known := self._answers.get(exchange.seq)) is None:
            self._frame(CHUNK, (exchange.seq, chunk.at, chunk.sent, self._clean(chunk.data)))
        else:
            self._free(*known, known[1].chunk(chunk))

    def _free(self, exchange: Exchange, stream: Stream, chunks: list[Chunk]) -> None:
        if stream.anew and exchange.response is not None:
            self._head(exchange, exchange.response)
        for chunk in chunks:
            self._frame(CHUNK, (exchange.seq, chunk.at, chunk.sent, chunk.data))

    def done(self, exchange: Exchange) -> None:
        """Write how the exchange ended, after what of its answer still waited."""
        value: dict[str, object] = {"seq": exchange.seq, "by": exchange.answered_by}
        answer = exchange.response
        if answer is not None:
            value["bytes"] = sum(len(chunk.data) for chunk in answer.chunks)
        if (known := self._answers.pop(exchange.seq, None)) is not None:
            head, stream = known
            self._free(head, stream, stream.done())
            if stream.changed:
                value["redacted"] = True
            if stream.encoded_again and head.response is not None:
                headers = self._headers(head.response.headers)
                value["headers"] = with_length(headers, stream.length)
                value["bytes"] = stream.length
        if answer is not None:
            value["ended"] = answer.ended
            if answer.trailers:
                value["trailers"] = self._headers(answer.trailers)
        if exchange.error is not None:
            value["error"] = self._clean(exchange.error)
        self._frame(DONE, value)

    def exchange(self, exchange: Exchange) -> None:
        """Write a whole exchange that is already over."""
        self.request(exchange)
        if exchange.response is not None:
            self.head(exchange)
            for chunk in exchange.response.chunks:
                self.chunk(exchange, chunk)
        self.done(exchange)

    def injection(self, injection: Injection) -> None:
        """Write the fact that a fault struck."""
        value = _sparse(injection)
        if injection.edits:
            value["edits"] = [_plain_edit(edit) for edit in injection.edits]
        self._frame(INJECTION, self._clean(value))

    def ending(self, ending: Ending) -> None:
        """Write how the run ended."""
        self._frame(ENDING, self._clean(_sparse(ending)))

    def _clean[T](self, value: T) -> T:
        """A value of texts, bytes, sequences and mappings without the secrets in it."""
        if not self._redact:
            return value
        clean: object = value
        match value:
            case bytes():
                clean = self.redactor.bytes(value)
            case str():
                said = self.redactor.bytes(value.encode("utf-8", "surrogatepass"))
                clean = said.decode("utf-8", "surrogatepass")
            case tuple() | list():
                clean = tuple(self._clean(each) for each in value)
            case dict():
                clean = {key: self._clean(each) for key, each in value.items()}
        return cast("T", clean)

    def close(self) -> None:
        """Flush to disk and close; a second call does nothing."""
        if self._closing.is_set():
            return
        if not self._broken:
            for known in self._answers.values():
                self._free(*known, known[1].done())
        self._closing.set()
        self._syncer.join()
        os.fdatasync(self._file)
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _frame(self, kind: int, value: object) -> None:
        self._append(frames.frame(kind, msgpack.packb(value)))

    def _append(self, data: bytes) -> None:
        try:
            written = os.write(self._file, data)
            while written < len(data):
                written += os.write(self._file, memoryview(data)[written:])
        except OSError as error:
            self._broken = True
            raise Unrecordable(f"{self.path}: {error.strerror}") from error
        self._dirty = True

    def _sync(self) -> None:
        while not self._closing.wait(SYNC_EVERY):
            if self._dirty:
                self._dirty = False
                os.fdatasync(self._file)


def _sparse(value: object) -> dict[str, object]:
    """The fields of a frozen value that are not at their default."""
    out: dict[str, object] = {}
    for each in fields(value):  # type: ignore[arg-type]
        item = getattr(value, each.name)
        if item != each.default and not (item == () or item == {}):
            out[each.name] = dict(item) if isinstance(item, Mapping) else item
    return out


def _plain_edit(edit: Edit) -> tuple[int, int, bytes]:
    return edit.start, edit.stop, edit.data


def _delta(said: delta.Delta) -> tuple[object, ...]:
    return tuple(asdict(said).values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Tape:
    """What a tape says: exchanges in order of `seq`, and what of it could not be read."""

    path: Path
    trajectory: Trajectory
    exchanges: tuple[Exchange, ...]
    injections: tuple[Injection, ...] = ()
    ending: Ending | None = None
    """None for a run that is still going on or was killed."""
    spans: Mapping[int, tuple[int, int]]
    """seq to (offset, length) of its request frame, for finding a body again."""
    damage: tuple[Damage, ...] = ()
    verbatim: bool = False
    """True where secrets were written as they came."""

    @property
    def dropped(self) -> int:
        """How many bytes could not be read."""
        return sum(damage.length for damage in self.damage)


def read(path: Path) -> Tape:
    """The tape at `path`, as far as it can be read.

    ValueError where it is no tape, is of a newer format, or lost its first frame.
    """
    try:
        return _fold(path, frames.read(path.read_bytes()))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


class _Folder:
    """Folds frames into exchanges."""

    def __init__(self) -> None:
        self.trajectory: Trajectory | None = None
        self.verbatim = False
        self.exchanges: dict[int, Exchange] = {}
        self.chunks: dict[int, list[Chunk]] = {}
        self.lengths: dict[int, int] = {}
        self.injections: list[Injection] = []
        self.ending: Ending | None = None
        self.spans: dict[int, tuple[int, int]] = {}

    def fold(self, frame: Frame) -> None:
        """Take in one frame; KeyError, TypeError or ValueError where it does not fit."""
        value = msgpack.unpackb(frame.payload, strict_map_key=False)
        match frame.kind:
            case 1:
                self.verbatim = value.pop("verbatim", False)
                self.trajectory = Trajectory(**_tupled(value))
            case 2:
                self._request(value, frame)
            case 3:
                self._head(value)
            case 4:
                seq, at, sent, data = value
                self.chunks[seq].append(Chunk(at=at, data=data, sent=sent))
            case 5:
                self._done(value)
            case 6:
                edits = tuple(_edit(edit) for edit in value.pop("edits", ()))
                self.injections.append(Injection(**value, edits=edits))
            case 7:
                self.ending = Ending(**value)

    def _request(self, value: dict[str, Any], frame: Frame) -> None:
        seq, body = value["seq"], value["body"]
        if not isinstance(body, bytes):
            said = delta.Delta(*body)
            body = delta.restore(said, self.exchanges[said.parent].request.body)
        headers = _headers(value["headers"])
        self.exchanges[seq] = Exchange(
            seq=seq,
            request=Request(method=value["method"], url=value["url"], headers=headers, body=body),
            started=value["started"],
            connection=value["connection"],
            stream=value["stream"],
            transport=value["transport"],
            answered_by=value["by"],
            edits=tuple(_edit(edit) for edit in value.get("edits", ())),
            redacted=value.get("redacted", False),
        )
        self.chunks[seq] = []
        self.spans[seq] = (frame.offset, frame.length)

    def _head(self, value: dict[str, Any]) -> None:
        seq, by = value.pop("seq"), value.pop("by")
        answer = Response(**(value | {"headers": _headers(value["headers"])}))
        self.chunks[seq] = []
        self.exchanges[seq] = replace(self.exchanges[seq], response=answer, answered_by=by)

    def _done(self, value: dict[str, Any]) -> None:
        exchange = self.exchanges[value["seq"]]
        answer = exchange.response
        if "bytes" in value:
            self.lengths[exchange.seq] = value["bytes"]
        if answer is not None:
            trailers = _headers(value.get("trailers", ()))
            answer = replace(answer, ended=value.get("ended"), trailers=trailers)
            if "headers" in value:
                answer = replace(answer, headers=_headers(value["headers"]))
        self.exchanges[exchange.seq] = replace(
            exchange,
            response=answer,
            error=value.get("error"),
            answered_by=value["by"],
            redacted=exchange.redacted or value.get("redacted", False),
        )

    def whole(self) -> tuple[Exchange, ...]:
        """The exchanges with their chunks, in order."""
        return tuple(self._whole(self.exchanges[seq]) for seq in sorted(self.exchanges))

    def _whole(self, exchange: Exchange) -> Exchange:
        """The exchange with its chunks; named damaged where frames of its answer are lost."""
        answer, chunks = exchange.response, tuple(self.chunks[exchange.seq])
        if answer is not None:
            answer = replace(answer, chunks=chunks)
        here = sum(len(chunk.data) for chunk in chunks)
        all_of_it = self.lengths.get(exchange.seq, here)
        error = exchange.error
        if here != all_of_it or (answer is None and exchange.seq in self.lengths):
            error = f"damaged: {here} of {all_of_it} bytes of the answer are on the tape"
        return replace(exchange, response=answer, error=error)


def _fold(path: Path, found: Iterable[Frame | Damage]) -> Tape:
    folder, damage = _Folder(), list[Damage]()
    for each in found:
        if isinstance(each, Damage):
            damage.append(each)
            continue
        try:
            folder.fold(each)
        except (KeyError, TypeError, ValueError, zstandard.ZstdError) as error:
            damage.append(Damage(each.offset, each.length, f"{type(error).__name__}: {error}"))
    if folder.trajectory is None:
        raise ValueError("the tape has lost its first frame")
    return Tape(
        path=path,
        trajectory=folder.trajectory,
        exchanges=folder.whole(),
        injections=tuple(folder.injections),
        ending=folder.ending,
        spans=folder.spans,
        damage=tuple(damage),
        verbatim=folder.verbatim,
    )


def _tupled(value: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(item) if isinstance(item, list) else item for key, item in value.items()}


def _headers(value: Iterable[tuple[str, str]]) -> Headers:
    return tuple((name, text) for name, text in value)


def _edit(value: tuple[int, int, bytes]) -> Edit:
    start, stop, data = value
    return Edit(start=start, stop=stop, data=data)
