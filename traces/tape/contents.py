"""The contents of a sealed tape: what each exchange asked, as a hash, and where its frames stand.

Who wants an answer from a tape need not read all of it: a request is looked up by its key, and
then the frames of that one exchange are. What a key stands for is looked at again when the
exchange is read, so contents that do not fit the tape are an error and never a wrong answer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from typing import Any

import zstandard

from traces.model import Exchange, Request
from traces.tape import frames
from traces.tape.folding import Folder
from traces.tape.frames import Frame
from traces.tape.payload import pack, unpack

CONTENTS = 8
KEY = 16
"""Bytes of a key."""
UNFIT = (KeyError, TypeError, ValueError, zstandard.ZstdError)
"""What a value raises that does not fit into its tape."""


def digest(method: str, url: str, body: bytes) -> bytes:
    """A key for what was asked; headers do not count."""
    head = f"{method} {url}".encode("utf-8", "surrogatepass")
    said = blake2b(len(head).to_bytes(8) + head, digest_size=KEY)
    said.update(body)
    return said.digest()


def key_of(request: Request) -> bytes:
    """The key of a request by its very bytes."""
    return digest(request.method, request.url, request.body)


def over(exchange: Exchange) -> bool:
    """True for an exchange that came to its end, and is whole on the tape."""
    if exchange.error is not None:
        return not exchange.error.startswith("damaged")
    return exchange.response is not None and exchange.response.ended is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What kind 8 says, one entry in each column for each exchange, in the order of asking."""

    seqs: tuple[int, ...]
    keys: tuple[bytes, ...]
    firsts: tuple[int, ...]
    """Where the runs of each begin in `starts`, and of the last one end."""
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    """Each run of whole frames: bytes of the tape with its blocks opened."""
    open: frozenset[int]
    """The seqs of those that are not over."""
    rest: tuple[tuple[int, int], ...]
    """The runs of what belongs to no exchange."""


def read(payload: bytes | memoryview) -> Contents:
    """The contents that a frame holds. ValueError, or another of `UNFIT`, where it holds none."""
    value: Mapping[str, Any] = unpack(payload)
    seqs, counts, runs, together = value["seqs"], value["counts"], value["runs"], value["keys"]
    keys = tuple([together[at : at + KEY] for at in range(0, len(together), KEY)])
    firsts, (starts, stops) = tuple(accumulate(counts, initial=0)), _edges(runs)
    if not len(seqs) == len(keys) == len(counts) or firsts[-1] * 2 != len(runs):
        raise ValueError("the columns of its contents are not equally long")
    return Contents(
        seqs=seqs,
        keys=keys,
        firsts=firsts,
        starts=starts,
        stops=stops,
        open=frozenset(value["open"]),
        rest=tuple(zip(*_edges(value["rest"]), strict=True)),
    )


def _edges(steps: Iterable[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where runs start, and where they stop."""
    edges = tuple(accumulate(steps))
    return edges[::2], edges[1::2]


class Noting:
    """What the frames of a tape say, and where they come to stand in a new one."""

    def __init__(self, whole: Iterable[Frame]) -> None:
        self.bodies: dict[int, bytes] = {}
        folder = Folder(self.bodies)
        self.ordered = True
        """All frames fit, and what was asked first has the lower number."""
        self._of = list[int | None]()
        for each in whole:
            try:
                self._of.append(folder.fold(each))
            except UNFIT:
                self._of.append(None)
                self.ordered = False
        self.exchanges = folder.whole()
        started = [exchange.started for exchange in self.exchanges]
        self.ordered = self.ordered and started == sorted(started)
        self._at = self._noted = 0
        self._runs: dict[int | None, list[int]] = {}

    def loose(self, whole: Iterable[Frame]) -> list[Frame]:
        """Those of the frames that belong to no exchange."""
        return [each for each, of in zip(whole, self._of, strict=True) if of is None]

    def note(self, size: int) -> None:
        """The next of the frames takes so many bytes in the new tape."""
        seq, start = self._of[self._noted], self._at
        self._at, self._noted = start + size, self._noted + 1
        runs = self._runs.setdefault(seq, [])
        if runs and runs[-1] == start:
            runs[-1] = self._at
        else:
            runs += [start, self._at]

    def frame(self) -> bytes:
        """The frame to end the new tape with; nothing where who reads it has to read all."""
        if not self.ordered:
            return b""
        runs = [self._runs[exchange.seq] for exchange in self.exchanges]
        value = {
            "seqs": [exchange.seq for exchange in self.exchanges],
            "keys": b"".join(key_of(exchange.request) for exchange in self.exchanges),
            "counts": [len(each) // 2 for each in runs],
            "runs": _steps([edge for each in runs for edge in each]),
            "open": [exchange.seq for exchange in self.exchanges if not over(exchange)],
            "rest": _steps(self._runs.get(None, [])),
        }
        return frames.frame(CONTENTS, pack(value))


def _steps(edges: list[int]) -> list[int]:
    """From each edge to the next: small numbers, most of them 0."""
    return [edge - before for before, edge in zip([0, *edges], edges, strict=False)]
