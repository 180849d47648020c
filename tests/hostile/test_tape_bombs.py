"""Tapes that were made to fill the memory, to take for ever, or to be believed."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zstandard

from tests.hostile.measured import measured
from traces.tape import frames
from traces.tape.inflation import inflate
from traces.tape.reader import read_tape, read_tape_lazily

MOST_MEMORY = 1_000_000_000
"""Bytes; Python with what is loaded takes 100 to 200 MB."""
MOST_SECONDS = 20.0
BLOCK = frames.BLOCK


def first(**more: object) -> bytes:
    """How a tape begins."""
    run = {"id": "run", "recorded_at": 0.0, "command": ["true"], **more}
    return frames.make_tape_preamble() + frames.encode_frame(1, msgpack.packb(run))


def asked(seq: int, body: object) -> bytes:
    """The frame of a request."""
    value = {
        "seq": seq,
        "connection": 0,
        "stream": 0,
        "transport": "http",
        "started": float(seq),
        "by": "live",
        "method": "POST",
        "url": "http://model.test/v1/chat/completions",
        "headers": [],
        "body": body,
    }
    return frames.encode_frame(2, msgpack.packb(value))


def block(data: bytes) -> bytes:
    return frames.encode_frame(BLOCK, zstandard.compress(data, 3))


def claimed(size: int) -> bytes:
    """A zstd frame that claims to hold so many bytes."""
    return zstandard.FRAME_HEADER + b"\xe0" + struct.pack("<Q", size) + b"\x01\x00\x00"


def zeros_of(size: int) -> bytes:
    """A zstd frame of so many zeros, which says its size."""
    packer = zstandard.ZstdCompressor(level=3).compressobj(size=size)
    piece = bytes(1 << 20)
    return b"".join([*(packer.compress(piece) for _ in range(size >> 20)), packer.flush()])


def a_block_of_a_gigabyte() -> bytes:
    return first() + frames.encode_frame(BLOCK, zeros_of(1 << 30))


def a_gigabyte_in_many_blocks() -> bytes:
    return first() + frames.encode_frame(BLOCK, zeros_of(1 << 25)) * 32


def bodies_of_a_gigabyte() -> bytes:
    packed = msgpack.ExtType(1, zeros_of(1 << 30))
    return first() + b"".join(asked(seq, packed) for seq in range(10))


def packed_bodies_in_a_block() -> bytes:
    packed = msgpack.ExtType(1, zeros_of(1 << 20))
    return first() + block(b"".join(asked(seq, packed) for seq in range(5000)))


def bodies_that_double() -> bytes:
    bodies: list[object] = [b"x" * 1000]
    for seq in range(1, 48):
        size = 1000 << (seq - 1)
        bodies.append({"parent": seq - 1, "pieces": [[0, size], [0, size]]})
    return first() + b"".join(asked(seq, body) for seq, body in enumerate(bodies))


def bodies_by_way_of_one() -> bytes:
    whole: list[object] = [b"x" * 1_000_000]
    again: list[object] = [{"parent": 0, "pieces": [[0, 999_999]]}] * 20_000
    return first() + block(b"".join(asked(seq, body) for seq, body in enumerate(whole + again)))


def a_block_that_claims_a_terabyte() -> bytes:
    return first() + frames.encode_frame(BLOCK, claimed(1 << 40))


def a_body_that_claims_a_terabyte() -> bytes:
    return first() + asked(0, msgpack.ExtType(1, claimed(1 << 40)))


def forty_megabytes_of_ones() -> bytes:
    return first() + b"\x01" * (40 << 20)


def many_headers_that_may_be_frames() -> bytes:
    head = struct.pack("<IIB", 12_000_000, 0, 2) + b"\x82\xa3seq"
    return first() + b"\x01" + head * ((24 << 20) // len(head))


def damage_in_a_block_that_goes_on() -> bytes:
    whole = frames.encode_frame(BLOCK, zeros_of(1 << 30))
    return first() + whole[: len(whole) - 9] + b"damage" * 3 + asked(1, b"x")


def lists_of_empty_maps() -> bytes:
    value = {"seq": 0, "junk": [{}] * 30_000_000}
    return first() + block(frames.encode_frame(9, msgpack.packb(value)))


def marks_of_many_small_things() -> bytes:
    mark = frames.encode_frame(
        9, msgpack.packb({"at": 0.0, "name": "m", "data": {"a": [{}] * 60_000}})
    )
    return first() + block(mark * 500)


def contents_that_count_for_ever() -> bytes:
    value = {
        "seqs": [0, 1],
        "keys": bytes(32),
        "counts": [2**50, 1 - 2**50],
        "runs": [0, 1],
        "open": [],
        "rest": [0, len(first()) - 8],
    }
    return first() + asked(0, b"x") + frames.encode_frame(8, msgpack.packb(value))


BOMBS: list[Callable[[], bytes]] = [
    a_block_of_a_gigabyte,
    a_gigabyte_in_many_blocks,
    bodies_of_a_gigabyte,
    packed_bodies_in_a_block,
    bodies_that_double,
    bodies_by_way_of_one,
    a_block_that_claims_a_terabyte,
    a_body_that_claims_a_terabyte,
    forty_megabytes_of_ones,
    many_headers_that_may_be_frames,
    damage_in_a_block_that_goes_on,
    lists_of_empty_maps,
    marks_of_many_small_things,
    contents_that_count_for_ever,
]


@pytest.mark.many(4)
@pytest.mark.parametrize("made", BOMBS)
def test_a_bomb_is_shown_in_bounded_time_and_memory(
    made: Callable[[], bytes], tmp_path: Path
) -> None:
    tape = tmp_path / "bomb.tape"
    tape.write_bytes(made())
    found = measured("show", str(tape), folder=tmp_path)
    assert found.code in (0, 2), found.err
    assert "Traceback" not in found.err
    assert found.memory < MOST_MEMORY
    assert found.seconds < MOST_SECONDS


def nested(depth: int) -> bytes:
    return b'{"model":"m","messages":' + b"[" * depth + b"]" * depth + b"}"


def nested_content(depth: int) -> bytes:
    inner = b'{"type":"tool_result","content":[' * depth + b'{"type":"text"}' + b"]}" * depth
    return b'{"model":"m","messages":[{"role":"user","content":[' + inner + b"]}]}"


@pytest.mark.many(3)
@pytest.mark.parametrize("depth", [100, 340, 1000, 100_000])
@pytest.mark.parametrize("body", [nested, nested_content])
def test_depth_of_a_body_is_no_trouble(
    body: Callable[[int], bytes], depth: int, tmp_path: Path
) -> None:
    tape = tmp_path / "deep.tape"
    tape.write_bytes(first() + asked(0, body(depth)))
    for words in (("show",), ("show", "--json"), ("scrub", "-o", str(tmp_path / "new.tape"))):
        found = measured(*words, str(tape), folder=tmp_path)
        assert found.code == 0, found.err


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "../" * 14 + "tmp/x"},
        {"id": "a/b"},
        {"id": ""},
        {"id": ".hidden"},
        {"id": "x" * 5000},
        {"id": "a\0b"},
        {"id": 7},
        {"command": [1, 2]},
        {"command": "true"},
        {"command": ["a\0b"]},
        {"parent": "../x"},
        {"snapshot": "../../x"},
        {"workspace": 7},
        {"tools": {"a": 1}},
        {"trial": 2**63},
        {"recorded_at": float("nan")},
        {"condition": "none"},
    ],
)
def test_a_run_that_cannot_be_is_no_tape(wrong: dict[str, Any], tmp_path: Path) -> None:
    tape = tmp_path / "wrong.tape"
    tape.write_bytes(first(**wrong) + asked(0, b"x"))
    for opened in (read_tape, read_tape_lazily):
        with pytest.raises(ValueError, match="lost its first frame"):
            opened(tape)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/urandom", "/proc/self/mem", "."])
def test_what_is_no_file_is_no_tape(path: str, tmp_path: Path) -> None:
    found = measured("show", path, folder=tmp_path)
    assert found.code == 2, found.err
    assert found.memory < MOST_MEMORY


def test_a_tape_names_no_file_outside_the_store(tmp_path: Path) -> None:
    folder, victim = tmp_path / "here", tmp_path / "pwned.tape"
    (folder / ".stumble").mkdir(parents=True)
    victim.write_text("VICTIM")
    evil = folder / "evil.tape"
    evil.write_bytes(first(id="../../../pwned") + asked(0, b"x"))
    assert measured("sql", "select 1", folder=folder).code == 0
    assert measured("scrub", "--in-place", str(evil), folder=folder).code == 2
    (folder / ".stumble" / "tapes" / "evil.tape").write_bytes(evil.read_bytes())
    found = measured("sql", "select count(*) from trajectories", folder=folder)
    assert found.code == 0
    assert "Traceback" not in found.err
    assert "evil.tape" in found.err
    assert victim.read_text() == "VICTIM"


@pytest.mark.parametrize("packed", [claimed(1 << 40), claimed(1 << 21), zeros_of(1 << 28)])
def test_a_zstd_frame_claims_no_more_than_it_can_hold(packed: bytes) -> None:
    with pytest.raises(ValueError, match="packed bytes say that they are"):
        inflate(packed)
