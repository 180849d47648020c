"""Writing a tape while the run happens; secrets are replaced in here, before the first byte."""

from collections.abc import Iterable
from pathlib import Path
from typing import Self, cast

from traces.delta import Bodies
from traces.model import (
    Chunk,
    Ending,
    Exchange,
    Headers,
    Injection,
    Mark,
    Response,
    Trajectory,
)
from traces.redact import Redactor, Stream, with_length
from traces.tape import frames
from traces.tape.file import Appending
from traces.tape.payload import LARGE, Packer, said_edit, sparse
from traces.unrecordable import Unrecordable

STATE_KEPT = 8192
"""Characters of an end state that are written."""
TRAJECTORY, REQUEST, HEAD, CHUNK, DONE, INJECTION, ENDING = range(1, 8)
MARK = 9


class Writer:
    """The one writer of a new tape; also the tap that records what the agent really got.

    FileExistsError if the path is taken. Unrecordable when the disk no longer takes a frame.
    What becomes known at once is written at once, with one `write`.
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
        self._lengths: dict[int, int] = {}
        self._bodies = Bodies()
        self._packer = Packer()
        first = self._clean(sparse(trajectory))
        first = first if redact else first | {"verbatim": True}
        self._file = Appending(path)
        try:
            self._file.append(frames.preamble() + self._frame(TRAJECTORY, first))
        except Unrecordable:
            # Nothing was recorded, so there is nothing to keep.
            self._file.close()
            path.unlink()
            raise

    def request(self, exchange: Exchange) -> Exchange:
        """Write what was asked, and by which edits it went on; returns the exchange as it is."""
        self._file.append(*self._asked(exchange))
        return exchange

    def head(self, exchange: Exchange) -> None:
        """Write the status and headers that went to the agent."""
        self._file.append(self._begun(exchange))

    def chunk(self, exchange: Exchange, chunk: Chunk) -> None:
        """Write one piece of the answer with its time, or once it is known to be no secret."""
        if data := self._told(exchange, chunk):
            self._file.append(data)

    def done(self, exchange: Exchange) -> None:
        """Write how the exchange ended, after what of its answer still waited."""
        self._file.append(self._over(exchange))

    def whole(self, exchange: Exchange) -> None:
        """Write an answer that went out in one piece, and how the exchange ended."""
        self._file.append(*self._answered(exchange))

    def exchange(self, exchange: Exchange) -> None:
        """Write a whole exchange that is already over."""
        self._file.append(*self._asked(exchange), *self._answered(exchange))

    def injection(self, injection: Injection) -> None:
        """Write the fact that a fault struck."""
        value = sparse(injection)
        if injection.edits:
            value["edits"] = [said_edit(edit) for edit in injection.edits]
        self._file.append(self._frame(INJECTION, self._clean(value)))

    def mark(self, mark: Mark) -> None:
        """Write what the command of the run told."""
        self._file.append(self._frame(MARK, self._clean(sparse(mark))))

    def ending(self, ending: Ending) -> None:
        """Write how the run ended, and of the text of its end state the first STATE_KEPT."""
        value = self._clean(sparse(ending))
        if ending.state_text:
            # Cut once it is clean: of half a secret nobody knows that it is one.
            value["state_text"] = str(value["state_text"])[:STATE_KEPT]
        self._file.append(self._frame(ENDING, value))

    def close(self) -> None:
        """Write what still waited, flush to disk and close; a second call does nothing."""
        try:
            for known in self._answers.values():
                if (data := self._free(*known, known[1].done())) and not self._file.failed:
                    self._file.append(data)
        finally:
            self._answers.clear()
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The frames of each fact.

    def _asked(self, exchange: Exchange) -> tuple[bytes, ...]:
        request, edits, redacted = exchange.request, exchange.edits, exchange.redacted
        if self._redact:
            request = self.redactor.request(exchange.request)
            url, body = request.url, request.body
            edits = self.redactor.edits(exchange, body)
            redacted = redacted or (url, body) != (exchange.request.url, exchange.request.body)
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
            "body": self._body(exchange.seq, request.body),
        }
        if edits:
            value["edits"] = [said_edit(edit) for edit in edits]
        if redacted:
            value["redacted"] = True
        if exchange.cascade:
            value["cascade"] = True
        if exchange.pinned:
            value["pinned"] = self._clean(exchange.pinned)
        said = value["body"]
        if isinstance(said, bytes) and len(said) > LARGE:
            del value["body"]
            return frames.parts(REQUEST, self._packer.around(value, "body", said), said)
        return (self._frame(REQUEST, value),)

    def _answered(self, exchange: Exchange) -> tuple[bytes, ...]:
        answer, seq = exchange.response, exchange.seq
        if answer is None:
            return (self._over(exchange),)
        head = self._head(exchange, answer)  # first: what it holds is not to stand in the body
        if exchange.transport == "http" and (not self._redact or self.redactor.keeps(answer)):
            self._lengths[seq] = sum([len(chunk.data) for chunk in answer.chunks])
            said = [self._chunk(seq, chunk, chunk.data) for chunk in answer.chunks]
            return head, *said, self._over(exchange)
        begun = self._begun(exchange)
        said = [self._told(exchange, chunk) for chunk in answer.chunks]
        return begun, *said, self._over(exchange)

    def _body(self, seq: int, body: bytes) -> object:
        said = self._bodies.encode(seq, body)
        if isinstance(said, bytes):
            return self._packer.short(said)
        pieces = [
            self._packer.short(each) if isinstance(each, bytes) else each for each in said.pieces
        ]
        return {"parent": said.parent, "pieces": pieces}

    def _begun(self, exchange: Exchange) -> bytes:
        answer = exchange.response
        if answer is None:
            raise ValueError(f"exchange {exchange.seq} has no head")
        self._lengths[exchange.seq] = 0
        if self._redact:
            messages = exchange.transport != "http"
            stream = self.redactor.stream(answer.headers, messages=messages)
            self._answers[exchange.seq] = exchange, stream
        return self._head(exchange, answer)

    def _head(self, exchange: Exchange, answer: Response) -> bytes:
        value: dict[str, object] = {
            "seq": exchange.seq,
            "at": answer.at,
            "status": answer.status,
            "reason": answer.reason,
            "version": answer.version,
            "headers": self._headers(answer.headers),
            "by": exchange.answered_by,
        }
        return self._frame(HEAD, value)

    def _headers(self, headers: Headers) -> Headers:
        return self.redactor.headers(headers) if self._redact else headers

    def _told(self, exchange: Exchange, chunk: Chunk) -> bytes:
        self._lengths[exchange.seq] = self._lengths.get(exchange.seq, 0) + len(chunk.data)
        if (known := self._answers.get(exchange.seq)) is None:
            return self._chunk(exchange.seq, chunk, self._clean(chunk.data))
        return self._free(*known, known[1].chunk(chunk))

    def _chunk(self, seq: int, chunk: Chunk, data: bytes) -> bytes:
        return self._frame(CHUNK, (seq, chunk.at, self._packer.short(data)))

    def _free(self, exchange: Exchange, stream: Stream, chunks: list[Chunk]) -> bytes:
        anew = stream.anew and exchange.response is not None
        said = [self._head(exchange, exchange.response)] if anew and exchange.response else []
        said += [self._chunk(exchange.seq, chunk, chunk.data) for chunk in chunks]
        return b"".join(said)

    def _over(self, exchange: Exchange) -> bytes:
        value: dict[str, object] = {"seq": exchange.seq, "by": exchange.answered_by}
        answer, waited = exchange.response, b""
        length = self._lengths.pop(exchange.seq, 0)
        if answer is not None:
            value["bytes"] = length
        if (known := self._answers.pop(exchange.seq, None)) is not None:
            head, stream = known
            waited = self._free(head, stream, stream.done())
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
        return waited + self._frame(DONE, value)

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

    def _frame(self, kind: int, value: object) -> bytes:
        return frames.frame(kind, self._packer.pack(value))
