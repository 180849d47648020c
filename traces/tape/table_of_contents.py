"""Table of contents of a sealed tape: a hash of each request, and where its frames are.

One response can be read without the rest of the tape: its request is found by its key, then the
frames of that exchange are read. The key is checked against the exchange that was read, so contents
that do not fit the tape cause an error and never a wrong response.
"""

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

import zstandard
from msgspec import Struct

from traces.bodies.repeated_hash import RepeatedBodyHash
from traces.model import Exchange, Request
from traces.tape import frames
from traces.tape.decoder import TapeBody, TapeDecoder
from traces.tape.field_types import is_count
from traces.tape.frames import TapeFrame
from traces.tape.inflation import InflationBudget
from traces.tape.payload import pack, unpack

CONTENTS = 8
KEY_SIZE = 16
"""Bytes of a key."""
_hash_body = RepeatedBodyHash(KEY_SIZE)
DECODE_ERRORS = (KeyError, TypeError, ValueError, zstandard.ZstdError)
"""The errors of decoding a value that does not fit into its tape."""


def hash_request_parts(method: str, url: str, body: bytes) -> bytes:
    """Hash a request to its key; headers do not count."""
    head = f"{method} {url}".encode("utf-8", "surrogatepass")
    return _hash_body(len(head).to_bytes(8) + head, body)


def hash_request(request: Request) -> bytes:
    """Hash a request to its key, by its exact bytes."""
    return hash_request_parts(request.method, request.url, request.body)


def is_complete_exchange(exchange: Exchange) -> bool:
    """Whether an exchange ended and is complete on the tape."""
    if exchange.error is not None:
        return not exchange.error.startswith("damaged")
    return exchange.response is not None and exchange.response.ended is not None


class TableOfContents(Struct, frozen=True, kw_only=True):
    """The payload of kind 8: columns with one entry per exchange, in request order."""

    seqs: tuple[int, ...]
    keys: tuple[bytes, ...]
    firsts: tuple[int, ...]
    """Index in `starts` of the first run of each exchange, and the end of the last."""
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    """Start and end of each run of frames, as offsets with the blocks opened."""
    open: frozenset[int]
    """The seqs of the incomplete ones."""
    rest: tuple[tuple[int, int], ...]
    """The runs of frames that belong to no exchange."""


def read_table_of_contents(payload: bytes | memoryview) -> TableOfContents:
    """Decode a table of contents; one of `DECODE_ERRORS` if it is invalid."""
    value: Mapping[str, Any] = unpack(payload)
    seqs, counts, runs, joined_keys = value["seqs"], value["counts"], value["runs"], value["keys"]
    keys = tuple([joined_keys[at : at + KEY_SIZE] for at in range(0, len(joined_keys), KEY_SIZE)])
    firsts, (starts, stops) = tuple(accumulate(counts, initial=0)), _split_run_edges(runs)
    if not all(map(is_count, (*seqs, *counts))) or not isinstance(joined_keys, bytes):
        raise TypeError("its contents are not of the types they should be")
    if not len(seqs) == len(keys) == len(counts) or firsts[-1] * 2 != len(runs):
        raise ValueError("the columns of its contents are not equally long")
    return TableOfContents(
        seqs=seqs,
        keys=keys,
        firsts=firsts,
        starts=starts,
        stops=stops,
        open=frozenset(value["open"]),
        rest=tuple(zip(*_split_run_edges(value["rest"]), strict=True)),
    )


def _split_run_edges(steps: Iterable[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Split steps into the starts and the stops of runs."""
    edges = tuple(accumulate(steps))
    return edges[::2], edges[1::2]


class TableOfContentsBuilder:
    """Decodes the frames of a tape and records their offsets in the sealed one."""

    def __init__(self, whole: Iterable[TapeFrame], budget: InflationBudget) -> None:
        self.bodies: dict[int, TapeBody] = {}
        decoder = TapeDecoder(budget, self.bodies)
        self.fits = True
        """Whether every frame decodes."""
        self._of = list[int | None]()
        for each in whole:
            try:
                self._of.append(decoder.add_frame(each))
            except DECODE_ERRORS:
                self._of.append(None)
                self.fits = False
        self.exchanges = decoder.to_exchanges()
        started = [exchange.started for exchange in self.exchanges]
        self.ordered = self.fits and started == sorted(started)
        """Whether, besides, seqs are in order of request time."""
        self._at = self._noted = 0
        self._runs: dict[int | None, list[int]] = {}

    def find_loose_frames(self, whole: Iterable[TapeFrame]) -> list[TapeFrame]:
        """Return the frames that belong to no exchange."""
        return [each for each, seq in zip(whole, self._of, strict=True) if seq is None]

    def add_frame_size(self, size: int) -> None:
        """Record that the next frame takes `size` bytes in the sealed tape."""
        seq, start = self._of[self._noted], self._at
        self._at, self._noted = start + size, self._noted + 1
        runs = self._runs.setdefault(seq, [])
        if runs and runs[-1] == start:
            runs[-1] = self._at
        else:
            runs += [start, self._at]

    def build_frame(self) -> bytes:
        """Encode the last frame of the sealed tape; empty if requests are out of order."""
        if not self.ordered:
            return b""
        runs = [self._runs[exchange.seq] for exchange in self.exchanges]
        value = {
            "seqs": [exchange.seq for exchange in self.exchanges],
            "keys": b"".join(hash_request(exchange.request) for exchange in self.exchanges),
            "counts": [len(each) // 2 for each in runs],
            "runs": _to_edge_steps([edge for each in runs for edge in each]),
            "open": [
                exchange.seq for exchange in self.exchanges if not is_complete_exchange(exchange)
            ],
            "rest": _to_edge_steps(self._runs.get(None, [])),
        }
        return frames.encode_frame(CONTENTS, pack(value))


def _to_edge_steps(edges: list[int]) -> list[int]:
    """Return the differences between edges: small numbers, most of them 0."""
    return [edge - before for before, edge in zip([0, *edges], edges, strict=False)]
