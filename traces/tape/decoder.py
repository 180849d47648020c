"""Decode frames into exchanges.

An exchange has four frames or more, and a frozen value is slow to build. The decoder collects plain
fields and builds each value once, after the last frame.
"""

from collections.abc import Mapping
from copy import replace
from typing import Any, cast, get_args

from msgspec import Struct, field

from traces.bodies.chained_body import ChainedBody, read_body
from traces.model import (
    AgentInput,
    AnswerSource,
    BodyEdit,
    Chunk,
    Exchange,
    Headers,
    Injection,
    Request,
    Response,
    RunEnding,
    RunEvent,
    TerminalEvent,
    Trajectory,
    Transport,
)
from traces.redaction.fingerprints import SALT_BYTES, TAG_PATTERN, RedactionRecord
from traces.tape import format1
from traces.tape.field_types import (
    is_count,
    is_number,
    is_parsable_url,
    is_path_safe_name,
    is_text_list,
    parse_struct,
)
from traces.tape.frames import TapeFrame
from traces.tape.inflation import InflationBudget
from traces.tape.payload import decode_edit, decode_headers, unpack

type TapeBody = bytes | ChainedBody
"""A body as it is kept in memory."""

_TRANSPORTS = frozenset(get_args(Transport.__value__))
_SOURCES = frozenset(get_args(AnswerSource.__value__))


class _ResponseHead(Struct, eq=False, kw_only=True):
    """The fields of a response, without its chunks."""

    status: int
    headers: Headers
    reason: str
    version: str
    at: float
    ended: float | None = None
    trailers: Headers = ()


class _PartialExchange(Struct, eq=False, kw_only=True):
    """The fields of an exchange that were read so far."""

    seq: int
    request: Request
    started: float
    connection: int
    stream: int
    transport: Transport
    by: AnswerSource
    edits: tuple[BodyEdit, ...]
    redacted: bool
    cascade: bool
    pinned: tuple[str, ...]
    renamed: tuple[str, ...]
    substituted: tuple[str, ...] = ()
    unparsed: bytes = b""
    error: str | None = None
    head: _ResponseHead | None = None
    chunks: list[Chunk] = field(default_factory=list)
    length: int | None = None
    """Bytes of all chunks, if the `done` frame counts them."""
    over: bool = False
    """Whether the tape holds its `done` frame."""

    @property
    def is_complete_by_length(self) -> bool:
        """Whether a response without a `done` frame is complete by its content-length."""
        if self.over or self.head is None or self.transport != "http":
            return False
        size = sum([len(chunk.data) for chunk in self.chunks])
        return size == _find_promised_size(self.request.method, self.head)

    def to_exchange(self) -> Exchange:
        """Build the exchange; its error is "damaged: ..." if frames of the response are lost."""
        error, head, response = self.error, self.head, None
        if self.length is not None:
            size = sum([len(chunk.data) for chunk in self.chunks])
            if size != self.length or head is None:
                error = f"damaged: {size} of {self.length} bytes of the answer are on the tape"
        if head is not None and self.is_complete_by_length:
            head.ended = self.chunks[-1].at if self.chunks else head.at
        if head is not None:
            response = Response(
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
            response=response,
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
            renamed=self.renamed,
            substituted=self.substituted,
            unparsed=self.unparsed,
        )


def _find_promised_size(method: str, head: _ResponseHead) -> int | None:
    """Return the body size announced by the head (RFC 9112 6.3); None if only the end shows it."""
    if method == "HEAD" or head.status in (204, 304):
        return 0
    if any(name.lower() == "transfer-encoding" for name, _ in head.headers):
        return None
    lengths = {value.strip() for name, value in head.headers if name.lower() == "content-length"}
    if len(lengths) != 1 or not (text := lengths.pop()).isascii() or not text.isdigit():
        return None
    return int(text) if len(text) < 19 else None


def read_parent_seq(said: object) -> int | None:
    """Return the seq of the exchange that this body is a delta of; None for a full body."""
    match said:
        case {"parent": int(seq)} | [int(seq), *_]:
            return seq
    return None


def decode_tape_body(
    said: Any,
    bodies: Mapping[int, TapeBody],
    budget: InflationBudget,
    known: TapeBody | None = None,
) -> TapeBody:
    """Decode a body, given the bodies of earlier exchanges by seq.

    A body in pieces stays in pieces; it is the `known` one if that is equal. Raises ValueError if
    it is longer than the budget allows.
    """
    match said:
        case bytes():
            return said
        case {"parent": int(seq), "pieces": tuple(pieces)}:
            parent = bodies[seq]
            if isinstance(known, ChainedBody) and known.is_made_of(parent, pieces):
                return known
            body = ChainedBody(parent, pieces)
            budget.check(body.size)
            return body
        case [int(seq), *_]:
            whole = read_body(bodies[seq])
            budget.spend(len(whole))
            return format1.decode_format1_body(said, whole)
    raise TypeError("a body is bytes, pieces or a delta")


_SPREAD, _CHUNK = 32, 128
"""Bytes of memory per byte of msgpack that is not text, and bytes of memory per chunk."""

KNOWN_KINDS = frozenset((*range(1, 8), 9, 10, 11, 12))
"""The kinds of facts that are decoded; others are skipped."""


class TapeDecoder:
    """Decodes the frames of a tape in order.

    `bodies` maps seq to bodies read before, for when not all frames are passed in. `budget` limits
    the memory that all decoded values may take.
    """

    def __init__(
        self, budget: InflationBudget | None = None, bodies: dict[int, TapeBody] | None = None
    ) -> None:
        self._budget = budget or InflationBudget(0)
        self.trajectory: Trajectory | None = None
        self.verbatim = False
        self.origin: bytes | None = None
        self.injections: list[Injection] = []
        self.marks: list[RunEvent] = []
        self.redactions: list[RedactionRecord] = []
        self._rules: tuple[str, ...] = ()
        self.ending: RunEnding | None = None
        self.input: AgentInput | None = None
        self.spans: dict[int, tuple[int, int]] = {}
        self._said: dict[int, _PartialExchange] = {}
        self._bodies: dict[int, TapeBody] = {} if bodies is None else bodies

    def add_frame(self, frame: TapeFrame) -> int | None:
        """Decode one frame; skip one of an unknown kind.

        Returns the seq of its exchange, or None if it belongs to no exchange. Raises KeyError,
        TypeError, ValueError or zstandard.ZstdError if the value is invalid.
        """
        if frame.kind not in KNOWN_KINDS:
            return None
        value = unpack(frame.payload, self._budget)
        expected: Any = tuple if frame.kind in (4, 10, 11) else dict
        if not isinstance(value, expected):
            raise TypeError("a frame of this kind holds another type")
        self._budget.spend(_estimate_frame_memory(frame, value))
        seq: int | None = None
        match frame.kind:
            case 4:
                seq, at, *_, data = value
                if not (is_number(at) and isinstance(data, bytes)):
                    raise TypeError("a chunk is a time and bytes")
                self._said[seq].chunks.append(Chunk(at=at, data=data))
            case 2:
                seq = self._add_request(value)
                self.spans[seq] = (frame.offset, frame.length)
            case 3:
                seq = self._add_head(value)
            case 5:
                seq = self._add_done(value)
            case 1:
                self.trajectory = decode_trajectory(value)
                self.verbatim = bool(value.get("verbatim"))
                mark = value.get("origin")
                self.origin = mark if isinstance(mark, bytes) else None
            case 6:
                edits = tuple(decode_edit(each) for each in value.get("edits", ()))
                self.injections.append(parse_struct(Injection, value | {"edits": edits}))
            case 7:
                self.ending = parse_struct(RunEnding, value)
            case 12:
                events = tuple(parse_struct(TerminalEvent, e) for e in value.get("events", ()))
                self.input = parse_struct(AgentInput, value | {"events": events})
            case 9:
                self.marks.append(parse_struct(RunEvent, value))
            case 10:
                self.redactions += [_decode_redaction(each) for each in value]
            case 11:
                if not is_text_list(value):
                    raise TypeError("rules are texts")
                self._rules += value
        return seq

    def _add_request(self, value: dict[str, Any]) -> int:
        seq: int = value["seq"]
        if not _has_request_types(value):
            raise TypeError("a field of a request is of another type")
        known = self._bodies.get(seq)
        body = decode_tape_body(value["body"], self._bodies, self._budget, known)
        request = Request(
            method=value["method"],
            url=value["url"],
            headers=decode_headers(value["headers"]),
            body=cast("bytes", body),  # restored when it is read
        )
        self._said[seq] = _PartialExchange(
            seq=seq,
            request=request,
            started=value["started"],
            connection=value["connection"],
            stream=value["stream"],
            transport=value["transport"],
            by=value["by"],
            edits=tuple([decode_edit(each) for each in value.get("edits", ())]),
            redacted=bool(value.get("redacted")),
            cascade=bool(value.get("cascade")),
            pinned=value.get("pinned", ()),
            renamed=value.get("renamed", ()),
        )
        self._bodies[seq] = body
        return seq

    def _add_head(self, value: dict[str, Any]) -> int:
        seq: int = value["seq"]
        if not _has_head_types(value):
            raise TypeError("a field of the head of an answer is of another type")
        partial = self._said[seq]
        partial.head = _ResponseHead(
            status=value["status"],
            headers=decode_headers(value["headers"]),
            reason=value["reason"],
            version=value["version"],
            at=value["at"],
        )
        partial.chunks = []
        partial.by = value["by"]
        return seq

    def _add_done(self, value: dict[str, Any]) -> int:
        seq: int = value["seq"]
        if not _has_done_types(value):
            raise TypeError("a field of the end of an answer is of another type")
        partial, head = self._said[seq], self._said[seq].head
        fields = {
            key: decode_headers(value[key]) for key in ("headers", "trailers") if key in value
        }
        partial.over = True
        partial.by = value["by"]
        partial.error = value.get("error")
        partial.substituted = value.get("substituted", ())
        partial.unparsed = value.get("unparsed", b"")
        partial.redacted = partial.redacted or bool(value.get("redacted"))
        partial.length = value.get("bytes")
        if head is not None:
            head.ended = value.get("ended")
            head.headers = fields.get("headers", head.headers)
            head.trailers = fields.get("trailers", head.trailers)
        return seq

    @property
    def trajectory_with_rules(self) -> Trajectory | None:
        """The trajectory with its appended rules; None if its frame is lost."""
        if self.trajectory is None or not self._rules:
            return self.trajectory
        rules = tuple(dict.fromkeys((*self.trajectory.rules, *self._rules)))
        return replace(self.trajectory, rules=rules)

    def find_complete_by_length(self) -> tuple[int, ...]:
        """Return the seqs without `done` frame whose response is complete by content-length."""
        return tuple(seq for seq in sorted(self._said) if self._said[seq].is_complete_by_length)

    def to_exchanges(self) -> tuple[Exchange, ...]:
        """Return the exchanges with their chunks, ordered by seq."""
        return tuple(self._said[seq].to_exchange() for seq in sorted(self._said))


def decode_trajectory(value: dict[str, Any]) -> Trajectory:
    """Decode a trajectory; ValueError if its id, snapshot, command or workspace is invalid."""
    trajectory = parse_struct(Trajectory, value)
    for name in (trajectory.id, trajectory.parent, trajectory.snapshot):
        if name is not None and not is_path_safe_name(name):
            raise ValueError(f"{name[:40]!r} is no name of a run or snapshot")
    if any("\0" in word for word in (*trajectory.command, trajectory.workspace or "")):
        raise ValueError("its command or folder cannot be")
    return trajectory


def _has_request_types(value: dict[str, Any]) -> bool:
    """Whether the fields of a request have their types; KeyError if one is missing."""
    return (
        is_count(value["seq"])
        and is_number(value["started"])
        and is_count(value["connection"])
        and is_count(value["stream"])
        and isinstance(value["method"], str)
        and value["transport"] in _TRANSPORTS
        and value["by"] in _SOURCES
        and is_parsable_url(value["url"])
        and ("pinned" not in value or is_text_list(value["pinned"]))
        and ("renamed" not in value or _is_list_of_pairs(value["renamed"]))
    )


def _is_list_of_pairs(value: object) -> bool:
    return isinstance(value, tuple) and is_text_list(value) and len(value) % 2 == 0


def _has_head_types(value: dict[str, Any]) -> bool:
    return (
        is_count(value["seq"])
        and is_number(value["at"])
        and is_count(value["status"])
        and isinstance(value["reason"], str)
        and isinstance(value["version"], str)
        and value["by"] in _SOURCES
    )


def _has_done_types(value: dict[str, Any]) -> bool:
    size, ended, error = value.get("bytes"), value.get("ended"), value.get("error")
    return (
        is_count(value["seq"])
        and (size is None or is_count(size))
        and (ended is None or is_number(ended))
        and (error is None or isinstance(error, str))
        and ("substituted" not in value or is_text_list(value["substituted"]))
        and isinstance(value.get("unparsed", b""), bytes)
        and value["by"] in _SOURCES
    )


def _decode_redaction(value: object) -> RedactionRecord:
    """Decode a redaction record; ValueError if its salt or tag is invalid."""
    if not isinstance(value, dict):
        raise TypeError("a redaction is a map")
    record = parse_struct(RedactionRecord, value)
    if len(record.salt) > SALT_BYTES or not TAG_PATTERN.fullmatch(record.tag):
        raise ValueError("no secret is known by that")
    return record


def _estimate_frame_memory(frame: TapeFrame, value: Any) -> int:
    """Return an upper bound of the memory, in bytes, that the values of a frame take."""
    size, kind = len(frame.payload), frame.kind
    if kind == 4:
        return size + _CHUNK
    if kind == 2:
        body = value.get("body")
        values = (body,) if isinstance(body, bytes) else ()
        values = body.get("pieces", ()) if isinstance(body, dict) else values
    else:
        values = () if kind in (3, 5, 10, 11) else value.values()
    unexpanded = (
        sum([len(each) for each in values if isinstance(each, bytes | str)]) if values else 0
    )
    return unexpanded + _SPREAD * max(0, size - unexpanded)
