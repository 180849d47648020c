"""Frames folded into exchanges.

An exchange is said in four frames or more, and a frozen value is dear to make: what is said of it
is kept as plain fields, and made into values once, when all has been read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from traces import delta
from traces.model import (
    Chunk,
    Edit,
    Ending,
    Exchange,
    Headers,
    Injection,
    Mark,
    Request,
    Response,
    Source,
    Trajectory,
    Transport,
)
from traces.tape import older
from traces.tape.frames import Frame
from traces.tape.payload import edit, headers, unpack, whole


@dataclass(slots=True, eq=False, kw_only=True)
class _Head:
    """The fields of an answer, without its chunks."""

    status: int
    headers: Headers
    reason: str
    version: str
    at: float
    ended: float | None = None
    trailers: Headers = ()


@dataclass(slots=True, eq=False, kw_only=True)
class _Said:
    """What has been said of an exchange so far."""

    seq: int
    request: Request
    started: float
    connection: int
    stream: int
    transport: Transport
    by: Source
    edits: tuple[Edit, ...]
    redacted: bool
    cascade: bool
    pinned: tuple[str, ...]
    error: str | None = None
    head: _Head | None = None
    chunks: list[Chunk] = field(default_factory=list)
    length: int | None = None
    """Bytes of all chunks, where the end of the exchange said so."""

    def exchange(self) -> Exchange:
        """The exchange; named damaged where frames of its answer are lost."""
        error, head, answer = self.error, self.head, None
        if self.length is not None:
            here = sum([len(chunk.data) for chunk in self.chunks])
            if here != self.length or head is None:
                error = f"damaged: {here} of {self.length} bytes of the answer are on the tape"
        if head is not None:
            answer = Response(
                status=head.status,
                headers=head.headers,
                chunks=tuple(self.chunks),
                trailers=head.trailers,
                reason=head.reason,
                version=head.version,
                at=head.at,
                ended=head.ended,
            )
        return Exchange(
            seq=self.seq,
            request=self.request,
            response=answer,
            error=error,
            started=self.started,
            connection=self.connection,
            stream=self.stream,
            transport=self.transport,
            answered_by=self.by,
            edits=self.edits,
            redacted=self.redacted,
            cascade=self.cascade,
            pinned=self.pinned,
        )


def parent(said: object) -> int | None:
    """The seq of the exchange by way of whose body this one is said; None for one said in full."""
    match said:
        case {"parent": int(seq)} | [int(seq), *_]:
            return seq
    return None


def body(said: Any, bodies: Mapping[int, bytes]) -> bytes:
    """The body that is said by way of others, which are known by their seq."""
    match said:
        case bytes():
            return said
        case {"parent": int(seq), "pieces": tuple(pieces)}:
            return delta.restore(pieces, bodies[seq])
        case [int(seq), *_]:
            return older.body(said, bodies[seq])
    raise TypeError("a body is bytes, pieces or a delta")


KNOWN = frozenset((*range(1, 8), 9))
"""The kinds of facts that are known; what others say is left out."""


class Folder:
    """Takes in the frames of a tape in order.

    `bodies` are those that were read before, by seq, where not all frames come here.
    """

    def __init__(self, bodies: dict[int, bytes] | None = None) -> None:
        self.trajectory: Trajectory | None = None
        self.verbatim = False
        self.injections: list[Injection] = []
        self.marks: list[Mark] = []
        self.ending: Ending | None = None
        self.spans: dict[int, tuple[int, int]] = {}
        self._said: dict[int, _Said] = {}
        self._bodies = {} if bodies is None else bodies

    def fold(self, frame: Frame) -> int | None:
        """Take in one frame, or leave out one of a kind that is not known.

        Returns the seq of its exchange, None where it is of none. KeyError, TypeError, ValueError
        or zstandard.ZstdError where it does not fit.
        """
        if frame.kind not in KNOWN:
            return None
        value = unpack(frame.payload)
        of: int | None = None
        match frame.kind:
            case 4:
                of, at, *_, data = value
                self._said[of].chunks.append(Chunk(at=at, data=data))
            case 2:
                of = self._request(value)
                self.spans[of] = (frame.offset, frame.length)
            case 3:
                of = self._head(value)
            case 5:
                of = self._done(value)
            case 1:
                self.verbatim = value.get("verbatim", False)
                self.trajectory = whole(Trajectory, value)
            case 6:
                edits = tuple(edit(each) for each in value.get("edits", ()))
                self.injections.append(whole(Injection, value | {"edits": edits}))
            case 7:
                self.ending = whole(Ending, value)
            case 9:
                self.marks.append(whole(Mark, value))
        return of

    def _request(self, value: dict[str, Any]) -> int:
        seq: int = value["seq"]
        asked = body(value["body"], self._bodies)
        request = Request(
            method=value["method"],
            url=value["url"],
            headers=headers(value["headers"]),
            body=asked,
        )
        self._said[seq] = _Said(
            seq=seq,
            request=request,
            started=value["started"],
            connection=value["connection"],
            stream=value["stream"],
            transport=value["transport"],
            by=value["by"],
            edits=tuple([edit(each) for each in value.get("edits", ())]),
            redacted=value.get("redacted", False),
            cascade=value.get("cascade", False),
            pinned=value.get("pinned", ()),
        )
        self._bodies[seq] = asked
        return seq

    def _head(self, value: dict[str, Any]) -> int:
        seq: int = value["seq"]
        said = self._said[seq]
        said.head = _Head(
            status=value["status"],
            headers=headers(value["headers"]),
            reason=value["reason"],
            version=value["version"],
            at=value["at"],
        )
        said.chunks = []
        said.by = value["by"]
        return seq

    def _done(self, value: dict[str, Any]) -> int:
        seq: int = value["seq"]
        said, head = self._said[seq], self._said[seq].head
        named = {key: headers(value[key]) for key in ("headers", "trailers") if key in value}
        said.by = value["by"]
        said.error = value.get("error")
        said.redacted = said.redacted or bool(value.get("redacted"))
        said.length = value.get("bytes")
        if head is not None:
            head.ended = value.get("ended")
            head.headers = named.get("headers", head.headers)
            head.trailers = named.get("trailers", head.trailers)
        return seq

    def whole(self) -> tuple[Exchange, ...]:
        """The exchanges with their chunks, in order."""
        return tuple(self._said[seq].exchange() for seq in sorted(self._said))
