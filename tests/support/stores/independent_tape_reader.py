"""A reader of tapes written from the text of `traces.tape` alone, to prove that the text suffices.

It imports nothing of stumble and needs the standard library and one codec: zstd, which is part of
Python from 3.14 on and of `zstandard` before.
"""

import hashlib
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from zstandard import DICT_TYPE_RAWCONTENT, ZstdCompressionDict, ZstdDecompressor, ZstdError

CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
NUMBERS = dict(
    zip(range(0xCA, 0xD4), ("f", "d", "B", "H", "I", "Q", "b", "h", "i", "q"), strict=True)
)
LONG = {0xC4: "bin", 0xC7: "ext", 0xD9: "str", 0xDC: "list", 0xDE: "map"}


class Msgpack:
    """Decode consecutive values from bytes, following the msgpack specification."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack(f">{form}", self.take(struct.calcsize(f">{form}")))[0]

    def value(self) -> Any:
        code = self.number("B")
        if code < 0x80 or code >= 0xE0:
            return code if code < 0x80 else code - 256
        if code < 0xC0:
            kind = "map" if code < 0x90 else "list" if code < 0xA0 else "str"
            return self.sized(kind, code & (31 if kind == "str" else 15))
        if code in CONSTANTS:
            return CONSTANTS[code]
        if code in NUMBERS:
            return self.number(NUMBERS[code])
        if 0xD4 <= code <= 0xD8:
            return self.sized("ext", 1 << (code - 0xD4))
        first = max(each for each in LONG if each <= code)
        forms = "HI" if first >= 0xDC else "BHI"
        return self.sized(LONG[first], self.number(forms[code - first]))

    def sized(self, kind: str, size: int) -> Any:
        if kind == "map":
            return {self.value(): self.value() for _ in range(size)}
        if kind == "list":
            return [self.value() for _ in range(size)]
        if kind == "ext":
            return ZstdDecompressor().decompress(self.take(size + 1)[1:])
        return self.take(size) if kind == "bin" else self.take(size).decode()


def whole(data: bytes, at: int) -> tuple[int, bytes, int] | None:
    """Return kind, payload and end of the frame at `at`, if it is complete."""
    if len(data) - at < 9:
        return None
    size, crc, kind = struct.unpack_from("<IIB", data, at)
    fits = 1 <= kind <= 64 and at + 9 + size <= len(data)
    good = fits and zlib.crc32(data[at + 8 : at + 9 + size]) == crc
    return (kind, data[at + 9 : at + 9 + size], at + 9 + size) if good else None


def frames(data: bytes, at: int, lost: list[int]) -> Iterator[tuple[int, bytes]]:
    """Yield kind and payload of each frame; count unreadable bytes in `lost`."""
    while at < len(data):
        if (found := whole(data, at)) is None:
            near = range(at + 1, min(len(data), at + (1 << 20)))
            after = next((each for each in near if whole(data, each)), len(data))
            lost.append(after - at)
            at = after
            continue
        kind, payload, at = found
        if kind == 64:
            yield from frames(ZstdDecompressor().decompress(payload), 0, lost)
        else:
            yield kind, payload


def body(said: Any, asked: dict[int, dict[str, Any]]) -> bytes:
    """Return a body, resolving references to the bodies of earlier requests."""
    if isinstance(said, bytes):
        return said
    parent: bytes = asked[said[0] if isinstance(said, list) else said["parent"]]["body"]
    if isinstance(said, dict):
        parts = said["pieces"]
        return b"".join(p if isinstance(p, bytes) else parent[slice(*p)] for p in parts)
    _, prefix, suffix, middle, packed = said
    if not packed:
        return bytes(parent[:prefix] + middle + parent[len(parent) - suffix :])
    words = ZstdCompressionDict(parent, dict_type=DICT_TYPE_RAWCONTENT)
    return ZstdDecompressor(dict_data=words, max_window_size=1 << 27).decompress(middle)


def read(data: bytes) -> dict[str, Any]:
    """Return the contents of a tape as maps; `lost` is the number of undecodable bytes."""
    if data[:7] != b"STUMBLE" or data[7] > 2:
        raise ValueError("no tape, or a newer one")
    lost = list[int]()
    asked = dict[int, dict[str, Any]]()
    tape: dict[str, Any] = {"exchanges": asked, "injections": [], "ending": None}
    for kind, payload in frames(data, 8, lost):
        try:
            if kind <= 7:
                fold(kind, Msgpack(payload).value(), tape, asked)
        except (KeyError, ValueError, ZstdError):
            lost.append(len(payload) + 9)
    return tape | {"lost": sum(lost)}


def fold(kind: int, said: Any, tape: dict[str, Any], asked: dict[int, dict[str, Any]]) -> None:
    """Apply one frame."""
    if kind == 2:
        asked[said["seq"]] = said | {"body": body(said["body"], asked)}
    elif kind == 3:
        asked[said["seq"]] |= {"head": said, "chunks": [], "by": said["by"]}
    elif kind == 4:
        asked[said[0]]["chunks"].append((said[1], said[-1]))
    elif kind == 5:
        asked[said["seq"]] |= {"done": said, "by": said["by"]}
    elif kind == 6:
        tape["injections"].append(said)
    elif kind in (1, 7):
        tape["trajectory" if kind == 1 else "ending"] = said


def by_contents(data: bytes) -> dict[bytes, dict[str, Any]]:
    """Return the exchanges of a sealed tape by key, each read separately through the contents."""
    held, at, opened = dict[str, Any](), 8, b""
    while at < len(data):
        found = whole(data, at)
        assert found is not None, "damaged"
        kind, payload, end = found
        opened += ZstdDecompressor().decompress(payload) if kind == 64 else data[at:end]
        held, at = Msgpack(payload).value() if kind == 8 else {}, end
    runs = list(pairs(held["runs"]))
    asked = dict[int, dict[str, Any]]()
    exchanges = dict[bytes, dict[str, Any]]()
    for number, (seq, count) in enumerate(zip(held["seqs"], held["counts"], strict=True)):
        for start, stop in runs[:count]:
            for kind, payload in frames(opened[start:stop], 0, []):
                fold(kind, Msgpack(payload).value(), {}, asked)
        del runs[:count]
        exchanges[held["keys"][number * 16 : number * 16 + 16]] = asked[seq]
    return exchanges


def pairs(steps: list[int]) -> Iterator[tuple[int, int]]:
    """Yield start and stop of each run."""
    at = 0
    for over, long in zip(steps[::2], steps[1::2], strict=True):
        yield at + over, (at := at + over + long)


def key(asked: dict[str, Any]) -> bytes:
    """Return the key of an exchange's request in the contents of its tape."""
    head = f"{asked['method']} {asked['url']}".encode("utf-8", "surrogatepass")
    said = struct.pack(">Q", len(head)) + head + asked["body"]
    return hashlib.blake2b(said, digest_size=16).digest()
