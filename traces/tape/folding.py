"""Frames folded into exchanges."""

from dataclasses import replace
from typing import Any

from traces import delta
from traces.model import Chunk, Ending, Exchange, Injection, Request, Response, Trajectory
from traces.tape import older
from traces.tape.frames import Frame
from traces.tape.payload import edit, headers, unpack, whole


class Folder:
    """Takes in the frames of a tape in order."""

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
        """Take in one frame, or leave out one of a kind that is not known.

        KeyError, TypeError, ValueError or zstandard.ZstdError where it does not fit.
        """
        value = unpack(frame.payload)
        match frame.kind:
            case 1:
                self.verbatim = value.get("verbatim", False)
                self.trajectory = whole(Trajectory, value)
            case 2:
                self._request(value, frame)
            case 3:
                self._head(value)
            case 4:
                seq, at, *_, data = value
                self.chunks[seq].append(Chunk(at=at, data=data))
            case 5:
                self._done(value)
            case 6:
                edits = tuple(edit(each) for each in value.get("edits", ()))
                self.injections.append(whole(Injection, value | {"edits": edits}))
            case 7:
                self.ending = whole(Ending, value)

    def _request(self, value: dict[str, Any], frame: Frame) -> None:
        seq = value["seq"]
        self.exchanges[seq] = Exchange(
            seq=seq,
            request=Request(
                method=value["method"],
                url=value["url"],
                headers=headers(value["headers"]),
                body=self._body(value["body"]),
            ),
            started=value["started"],
            connection=value["connection"],
            stream=value["stream"],
            transport=value["transport"],
            answered_by=value["by"],
            edits=tuple(edit(each) for each in value.get("edits", ())),
            redacted=value.get("redacted", False),
        )
        self.chunks[seq] = []
        self.spans[seq] = (frame.offset, frame.length)

    def _body(self, said: Any) -> bytes:
        match said:
            case bytes():
                return said
            case {"parent": int(parent), "pieces": list(pieces)}:
                made = tuple(each if isinstance(each, bytes) else tuple(each) for each in pieces)
                whose = self.exchanges[parent].request.body
                return delta.restore(delta.Delta(parent, made), whose)
            case [int(parent), *_]:
                return older.body(said, self.exchanges[parent].request.body)
        raise TypeError("a body is bytes, pieces or a delta")

    def _head(self, value: dict[str, Any]) -> None:
        seq = value["seq"]
        answer = replace(whole(Response, value), headers=headers(value["headers"]))
        self.chunks[seq] = []
        self.exchanges[seq] = replace(self.exchanges[seq], response=answer, answered_by=value["by"])

    def _done(self, value: dict[str, Any]) -> None:
        exchange = self.exchanges[value["seq"]]
        answer = exchange.response
        if "bytes" in value:
            self.lengths[exchange.seq] = value["bytes"]
        if answer is not None:
            trailers = headers(value.get("trailers", ()))
            answer = replace(answer, ended=value.get("ended"), trailers=trailers)
            if "headers" in value:
                answer = replace(answer, headers=headers(value["headers"]))
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
