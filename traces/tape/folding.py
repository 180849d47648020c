"""Frames folded into exchanges.

An exchange is said in four frames or more, and a frozen value is dear to make: what is said of it
is kept as plain fields, and made into values once, when all has been read.
"""

from dataclasses import dataclass, field
from typing import Any

from traces import delta
from traces.model import Chunk, Ending, Exchange, Injection, Request, Response, Trajectory
from traces.tape import older
from traces.tape.frames import Frame
from traces.tape.payload import edit, headers, unpack, whole


@dataclass(slots=True, eq=False)
class _Said:
    """What has been said of an exchange so far."""

    request: Request
    fields: dict[str, Any]
    """Of the exchange, without its request and answer."""
    answer: dict[str, Any] | None = None
    """The fields of the answer, without its chunks."""
    chunks: list[Chunk] = field(default_factory=list)
    length: int | None = None
    """Bytes of all chunks, where the end of the exchange said so."""

    def exchange(self) -> Exchange:
        """The exchange; named damaged where frames of its answer are lost."""
        fields, answer = self.fields, None
        if self.length is not None:
            here = sum([len(chunk.data) for chunk in self.chunks])
            if here != self.length or self.answer is None:
                why = f"damaged: {here} of {self.length} bytes of the answer are on the tape"
                fields = fields | {"error": why}
        if self.answer is not None:
            answer = Response(**self.answer, chunks=tuple(self.chunks))
        return Exchange(request=self.request, response=answer, **fields)


LAST = 7
"""The last kind that is known; what later ones say is left out."""


class Folder:
    """Takes in the frames of a tape in order."""

    def __init__(self) -> None:
        self.trajectory: Trajectory | None = None
        self.verbatim = False
        self.injections: list[Injection] = []
        self.ending: Ending | None = None
        self.spans: dict[int, tuple[int, int]] = {}
        self._said: dict[int, _Said] = {}

    def fold(self, frame: Frame) -> None:
        """Take in one frame, or leave out one of a kind that is not known.

        KeyError, TypeError, ValueError or zstandard.ZstdError where it does not fit.
        """
        if frame.kind > LAST:
            return
        value = unpack(frame.payload)
        match frame.kind:
            case 4:
                seq, at, *_, data = value
                self._said[seq].chunks.append(Chunk(at=at, data=data))
            case 2:
                self._request(value)
                self.spans[value["seq"]] = (frame.offset, frame.length)
            case 3:
                self._head(value)
            case 5:
                self._done(value)
            case 1:
                self.verbatim = value.get("verbatim", False)
                self.trajectory = whole(Trajectory, value)
            case 6:
                edits = tuple(edit(each) for each in value.get("edits", ()))
                self.injections.append(whole(Injection, value | {"edits": edits}))
            case 7:
                self.ending = whole(Ending, value)

    def _request(self, value: dict[str, Any]) -> None:
        fields = {
            "seq": value["seq"],
            "started": value["started"],
            "connection": value["connection"],
            "stream": value["stream"],
            "transport": value["transport"],
            "answered_by": value["by"],
        }
        if "edits" in value:
            fields["edits"] = tuple(edit(each) for each in value["edits"])
        if "redacted" in value:
            fields["redacted"] = value["redacted"]
        request = Request(
            method=value["method"],
            url=value["url"],
            headers=headers(value["headers"]),
            body=self._body(value["body"]),
        )
        self._said[value["seq"]] = _Said(request, fields)

    def _body(self, said: Any) -> bytes:
        match said:
            case bytes():
                return said
            case {"parent": int(parent), "pieces": list(pieces)}:
                return delta.restore(pieces, self._said[parent].request.body)
            case [int(parent), *_]:
                return older.body(said, self._said[parent].request.body)
        raise TypeError("a body is bytes, pieces or a delta")

    def _head(self, value: dict[str, Any]) -> None:
        said = self._said[value["seq"]]
        said.answer = {
            "status": value["status"],
            "headers": headers(value["headers"]),
            "reason": value["reason"],
            "version": value["version"],
            "at": value["at"],
        }
        said.chunks = []
        said.fields["answered_by"] = value["by"]

    def _done(self, value: dict[str, Any]) -> None:
        said, answer = self._said[value["seq"]], {"ended": value.get("ended")}
        for name in ("headers", "trailers"):
            if name in value:
                answer[name] = headers(value[name])
        said.fields["answered_by"] = value["by"]
        said.fields["error"] = value.get("error")
        if value.get("redacted"):
            said.fields["redacted"] = True
        said.length = value.get("bytes")
        if said.answer is not None:
            said.answer |= answer

    def whole(self) -> tuple[Exchange, ...]:
        """The exchanges with their chunks, in order."""
        return tuple(self._said[seq].exchange() for seq in sorted(self._said))
