"""One exchange of a large tape at a time."""

import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from stumble.ui.reading.tape_access import OPEN_BLOCKS, TapeAccess
from traces.model import Chunk, Exchange, Request, Response, RunEnding, Trajectory
from traces.tape.frames import (
    BLOCK,
    TapeFrame,
    encode_frame,
    make_tape_preamble,
    read_outer_frames,
)
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter

BODY = 1 << 20
BODIES = 24


def exchanges() -> Iterator[Exchange]:
    """Answers of 1 MB that compress to a half, and requests that refer to one another."""
    request = b'{"messages": [' + b'{"role": "user", "content": "again"}, ' * 50
    for seq in range(BODIES):
        request += b'{"role": "user", "content": "and %d"}, ' % seq
        yield Exchange(
            seq=seq,
            request=Request(method="POST", url="http://files/one", body=request),
            response=Response(
                status=200,
                chunks=(Chunk(at=0.0, data=os.urandom(BODY // 2).hex().encode()),),
                ended=0.0,
            ),
        )


@pytest.mark.gate
def test_a_tape_that_is_not_sealed_is_read_exchange_by_exchange(tmp_path: Path) -> None:
    path = tmp_path / "large.tape"
    with TapeWriter(path, Trajectory(id="large", recorded_at=0.0), redact=False) as tape:
        for exchange in exchanges():
            tape.write_exchange(exchange)
        tape.write_ending(RunEnding(ended="final"))
    _pack_into_blocks(path)
    whole = read_tape(path).exchanges

    tracemalloc.start()
    try:
        access = TapeAccess(path)
        assert access.seqs == tuple(range(BODIES))
        for seq in (*access.seqs, 7, 7):
            assert access.read_exchange(seq) == whole[seq]
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < (OPEN_BLOCKS + 2) * BODY
    assert peak < (OPEN_BLOCKS + 6) * BODY


def _pack_into_blocks(path: Path) -> None:
    """Compress each frame after the first, as in a sealed tape that lost its contents."""
    outer = [each for each in read_outer_frames(path.read_bytes()) if isinstance(each, TapeFrame)]
    encoded = [encode_frame(each.kind, bytes(each.payload)) for each in outer]
    blocks = [encode_frame(BLOCK, zstandard.compress(each)) for each in encoded[1:]]
    path.write_bytes(b"".join((make_tape_preamble(), encoded[0], *blocks)))
