"""Write a tape during a run; secrets are redacted before the first byte is written.

The tape of a replay is written like any other, whole, and does not refer to its source: it can be
copied, exported and kept when the source is deleted. What was recorded is searched again, since a
value may have become a secret since then. Nothing is compressed during a run, which costs more than
writing it: sealing does that.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import replace
from itertools import chain
from pathlib import Path
from typing import Self, cast

from traces.bodies.body_delta import BodyDeltaEncoder
from traces.model import (
    AgentInput,
    Chunk,
    Exchange,
    Headers,
    Injection,
    Response,
    RunEnding,
    RunEvent,
    Trajectory,
)
from traces.redaction.fingerprints import KnownSecrets, RedactionRecord
from traces.redaction.redactor import RedactionStream, Redactor, set_content_length
from traces.tape import frames
from traces.tape.append_file import AppendOnlyFile
from traces.tape.decoder import decode_trajectory
from traces.tape.field_types import is_parsable_url, to_json_data, to_parsable_url
from traces.tape.frame_kinds import (
    CHUNK,
    DONE,
    ENDING,
    HEAD,
    INJECTION,
    INPUT,
    MARK,
    REDACTIONS,
    REQUEST,
    TRAJECTORY,
)
from traces.tape.frames import encode_frame
from traces.tape.origin_mark import make_origin_mark
from traces.tape.payload import LARGE, UNCOPIED, PayloadPacker, encode_edit, to_sparse_dict

STATE_KEPT = 8192
"""Characters of an end state that are written."""
_NO_FRAMES: tuple[bytes, ...] = ()


class TapeWriter:
    """The only writer of a new tape, and the tap that records what the agent received.

    Facts that become known together are written with one `write`. Raises FileExistsError if the
    path exists, TypeError or ValueError if the trajectory could not be read again, and
    TapeWriteError once the disk takes no more frames.
    """

    def __init__(
        self,
        path: Path,
        trajectory: Trajectory,
        *,
        secrets: Iterable[str] | KnownSecrets = (),
        redact: bool = True,
        recorded: Iterable[RedactionRecord] = (),
        seen: Iterable[RedactionRecord] = (),
        sync: bool = True,
        origin_key: bytes | None = None,
    ) -> None:
        """Create the tape; `recorded` are the redactions of the tape that is replayed, `seen`
        those of the agent's files.

        Without `sync` nothing syncs it to disk: a kill loses nothing, a power failure may. A run
        of this user's has the mark of `origin_key`.
        """
        self.path = path
        self.redactor = Redactor(secrets, recorded, seen)
        self._redact = redact
        self._answers: dict[int, tuple[Exchange, RedactionStream]] = {}
        self._lengths: dict[int, int] = {}
        self._answered = Counter[str]()
        self._unended: dict[int, str] = {}
        self._bodies = BodyDeltaEncoder()
        self._packer = PayloadPacker()
        if redact and trajectory.command:
            trajectory = replace(
                trajectory, command=self.redactor.redact_command(trajectory.command)
            )
        first = self._redact_value(to_sparse_dict(trajectory))
        written = decode_trajectory(first)
        first = first if redact else first | {"verbatim": True}
        if origin_key is not None:
            first |= {"origin": make_origin_mark(written, origin_key)}
        preamble = frames.make_tape_preamble() + self._encode_frame(TRAJECTORY, first)
        self._file = AppendOnlyFile(path, (preamble, *self._encode_redactions()), sync=sync)

    def request(self, exchange: Exchange) -> Exchange:
        """Write the request, and the edits with which it was forwarded; return the exchange
        unchanged.
        """
        self._append(*self._encode_request(exchange))
        return exchange

    def head(self, exchange: Exchange) -> None:
        """Write the status and headers that were sent to the agent."""
        self._append(self._begin_answer(exchange))

    def chunk(self, exchange: Exchange, chunk: Chunk) -> None:
        """Write one chunk of the response with its time, once it is known to hold no secret."""
        if frames := self._encode_redacted_chunk(exchange, chunk):
            self._append(*frames)

    def done(self, exchange: Exchange) -> None:
        """Write the pending chunks of the response, then how the exchange ended."""
        self._append(*self._encode_done(exchange))

    def whole(self, exchange: Exchange) -> None:
        """Write a response that was sent in one piece, and how the exchange ended."""
        self._append(*self._encode_answer(exchange))

    def write_exchange(self, exchange: Exchange) -> None:
        """Write a complete exchange that is already over."""
        self._append(*self._encode_request(exchange), *self._encode_answer(exchange))

    def write_injection(self, injection: Injection) -> None:
        """Write that a fault was injected."""
        value = to_sparse_dict(injection)
        if injection.edits:
            value["edits"] = [encode_edit(edit) for edit in injection.edits]
        self._append(self._encode_frame(INJECTION, self._redact_value(value)))

    def write_mark(self, mark: RunEvent) -> None:
        """Write a run event reported by the command of the run."""
        value = to_sparse_dict(mark) | {"data": to_json_data(mark.data)}
        self._append(self._encode_frame(MARK, self._redact_value(value)))

    def write_input(self, given: AgentInput) -> None:
        """Write the agent's standard input, once it is complete."""
        value = to_sparse_dict(given) | {"data": given.data}
        if given.events:
            value["events"] = [to_sparse_dict(event) for event in given.events]
        self._append(self._encode_frame(INPUT, self._redact_value(value)))

    def write_ending(self, ending: RunEnding) -> None:
        """Write how the run ended, with the first STATE_KEPT characters of the end state."""
        value = self._redact_value(to_sparse_dict(ending))
        if ending.state_text:
            # Truncated after redaction: half of a secret would not be recognised.
            value["state_text"] = str(value["state_text"])[:STATE_KEPT]
        self._append(self._encode_frame(ENDING, value))

    def count_answers(self) -> Mapping[str, int]:
        """Count the written exchanges by what answered them."""
        return self._answered + Counter(self._unended.values())

    def close(self) -> None:
        """Write pending chunks, flush to disk and close; a second call does nothing."""
        try:
            for pending in self._answers.values():
                if (
                    frames := self._encode_released_chunks(*pending, pending[1].done())
                ) and not self._file.failed:
                    self._append(*frames)
        finally:
            self._answers.clear()
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Encoding of facts as frames.

    def _append(self, *frames: bytes) -> None:
        """Write the pending redaction records and these frames with one write."""
        self._file.append(*self._encode_redactions(), *frames)

    def _encode_redactions(self) -> tuple[bytes, ...]:
        records = self.redactor.take_unwritten()
        return (
            (self._encode_frame(REDACTIONS, [to_sparse_dict(each) for each in records]),)
            if records
            else ()
        )

    def _encode_request(self, exchange: Exchange) -> tuple[bytes, ...]:
        request, edits, redacted = exchange.request, exchange.edits, exchange.redacted
        if not is_parsable_url(request.url):
            request = replace(request, url=to_parsable_url(request.url))
        if self._redact:
            request = self.redactor.redact_request(request)
            url, body = request.url, request.body
            edits = self.redactor.redact_edits(exchange, body)
            redacted = redacted or (url, body) != (exchange.request.url, exchange.request.body)
        value: dict[str, object] = {
            "seq": exchange.seq,
            "connection": exchange.connection,
            "stream": exchange.stream,
            "transport": exchange.transport,
            "started": exchange.started,
            "by": exchange.answered_by,
            "method": request.method,
            "url": to_parsable_url(request.url),
            "headers": request.headers,
            "body": self._encode_body(exchange.seq, request.body),
        }
        self._unended[exchange.seq] = exchange.answered_by
        if edits:
            value["edits"] = [encode_edit(edit) for edit in edits]
        if redacted:
            value["redacted"] = True
        if exchange.cascade:
            value["cascade"] = True
        if exchange.pinned:
            value["pinned"] = self._redact_value(exchange.pinned)
        if exchange.renamed:
            value["renamed"] = self._redact_value(exchange.renamed)
        encoded = value["body"]
        if isinstance(encoded, bytes) and len(encoded) > LARGE:
            del value["body"]
            return frames.encode_frame_parts(
                REQUEST, self._packer.pack_before_bytes(value, "body", encoded), encoded
            )
        return (self._encode_frame(REQUEST, value),)

    def _encode_answer(self, exchange: Exchange) -> tuple[bytes, ...]:
        response, seq = exchange.response, exchange.seq
        if response is None:
            return self._encode_done(exchange)
        head = self._encode_head(exchange, response)  # first: its secrets must not be in the body
        if exchange.transport == "http" and (
            not self._redact or self.redactor.can_write_unchanged(response)
        ):
            self._lengths[seq] = sum([len(chunk.data) for chunk in response.chunks])
            chunks = [self._encode_chunk(seq, chunk, chunk.data) for chunk in response.chunks]
        else:
            head = self._begin_answer(exchange)
            chunks = [self._encode_redacted_chunk(exchange, chunk) for chunk in response.chunks]
        return head, *chain.from_iterable(chunks), *self._encode_done(exchange)

    def _encode_body(self, seq: int, body: bytes) -> object:
        encoded = self._bodies.encode(seq, body)
        if isinstance(encoded, bytes):
            return encoded
        return {"parent": encoded.parent, "pieces": encoded.pieces}

    def _begin_answer(self, exchange: Exchange) -> bytes:
        response = exchange.response
        if response is None:
            raise ValueError(f"exchange {exchange.seq} has no head")
        self._lengths[exchange.seq] = 0
        if self._redact:
            is_messages = exchange.transport != "http"
            stream = self.redactor.open_stream(response.headers, messages=is_messages)
            self._answers[exchange.seq] = exchange, stream
        return self._encode_head(exchange, response)

    def _encode_head(self, exchange: Exchange, answer: Response) -> bytes:
        value: dict[str, object] = {
            "seq": exchange.seq,
            "at": answer.at,
            "status": answer.status,
            "reason": answer.reason,
            "version": answer.version,
            "headers": self._redact_headers(answer.headers),
            "by": exchange.answered_by,
        }
        return self._encode_frame(HEAD, value)

    def _redact_headers(self, headers: Headers) -> Headers:
        return self.redactor.redact_headers(headers) if self._redact else headers

    def _encode_redacted_chunk(self, exchange: Exchange, chunk: Chunk) -> tuple[bytes, ...]:
        self._lengths[exchange.seq] = self._lengths.get(exchange.seq, 0) + len(chunk.data)
        if (pending := self._answers.get(exchange.seq)) is None:
            return self._encode_chunk(exchange.seq, chunk, self._redact_value(chunk.data))
        return self._encode_released_chunks(*pending, pending[1].chunk(chunk))

    def _encode_chunk(self, seq: int, chunk: Chunk, data: bytes) -> tuple[bytes, ...]:
        if len(data) > UNCOPIED:
            start = self._packer.pack_list_before_bytes((seq, chunk.at), data)
            return frames.encode_frame_parts(CHUNK, start, data)
        return (self._encode_frame(CHUNK, (seq, chunk.at, data)),)

    def _encode_released_chunks(
        self, exchange: Exchange, stream: RedactionStream, chunks: list[Chunk]
    ) -> tuple[bytes, ...]:
        response = exchange.response if stream.anew else None
        head = () if response is None else (self._encode_head(exchange, response),)
        encoded = [self._encode_chunk(exchange.seq, chunk, chunk.data) for chunk in chunks]
        return *head, *chain.from_iterable(encoded)

    def _encode_done(self, exchange: Exchange) -> tuple[bytes, ...]:
        value: dict[str, object] = {"seq": exchange.seq, "by": exchange.answered_by}
        self._answered[exchange.answered_by] += 1
        self._unended.pop(exchange.seq, None)
        response, released = exchange.response, _NO_FRAMES
        length = self._lengths.pop(exchange.seq, 0)
        if response is not None:
            value["bytes"] = length
        if (pending := self._answers.pop(exchange.seq, None)) is not None:
            head, stream = pending
            released = self._encode_released_chunks(head, stream, stream.done())
            if stream.has_changes:
                value["redacted"] = True
            if stream.is_reencoded and head.response is not None:
                headers = self._redact_headers(head.response.headers)
                value["headers"] = set_content_length(headers, stream.length)
                value["bytes"] = stream.length
        if response is not None:
            value["ended"] = response.ended
            if response.trailers:
                value["trailers"] = self._redact_headers(response.trailers)
        if exchange.substituted:
            value["substituted"] = self._redact_value(exchange.substituted)
        if exchange.unparsed:
            unparsed, clean = exchange.unparsed, self.redactor.redact_unparsed
            value["unparsed"] = clean(unparsed) if self._redact else unparsed
        if exchange.error is not None:
            value["error"] = self._redact_value(exchange.error)
        return *released, self._encode_frame(DONE, value)

    def _redact_value[T](self, value: T) -> T:
        """Redact the secrets in a value of texts, bytes, sequences and mappings."""
        if not self._redact:
            return value
        clean: object = value
        match value:
            case bytes():
                clean = self.redactor.redact_bytes(value)
            case str():
                redacted = self.redactor.redact_bytes(value.encode("utf-8", "surrogatepass"))
                clean = redacted.decode("utf-8", "surrogatepass")
            case tuple() | list():
                clean = tuple(self._redact_value(each) for each in value)
            case dict():
                clean = {key: self._redact_value(each) for key, each in value.items()}
        return cast("T", clean)

    def _encode_frame(self, kind: int, value: object) -> bytes:
        return encode_frame(kind, self._packer.pack(value))
