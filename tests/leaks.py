"""Looks for a secret in whatever spelling, in decoded frames and inflated bodies of a tape.

It shares no code with the redactor: it decodes what it sees and looks for the plain secret.
"""

import base64
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote_to_bytes

import brotli
import zstandard

from stumble.leaks import leaves
from traces.tape import frames, read
from traces.tape.payload import unpack

RUNS = re.compile(rb"[A-Za-z0-9+/_-]{8,}")


def copies(secret: bytes, data: bytes) -> int:
    """In how many decodings of the data the secret stands, 0 for none."""
    texts = {data, data.replace(b"+", b" ")}
    for _ in range(3):
        texts |= {re.sub(rb"\\+u([0-9a-fA-F]{4})", _unicode, text) for text in texts}
        texts |= {re.sub(rb'\\+([/"\\])', rb"\1", text) for text in texts}
        texts |= {unquote_to_bytes(text) for text in texts}
    decoded = {
        _decoded(run[shift:]) for text in texts for run in RUNS.findall(text) for shift in range(4)
    }
    return sum(secret in text for text in texts | decoded)


def _decoded(run: bytes) -> bytes:
    return base64.b64decode(run.translate(bytes.maketrans(b"-_", b"+/")) + b"A" * (-len(run) % 4))


def _unicode(match: re.Match[bytes]) -> bytes:
    return chr(int(match[1], 16)).encode("utf-8", "surrogatepass")


def inflated(data: bytes) -> Iterator[bytes]:
    """The data, and what any codec makes of it as far as it goes."""
    yield data
    for wbits in (31, 15, -15):
        try:
            yield zlib.decompressobj(wbits).decompress(data)
        except zlib.error:
            continue
    with suppress(brotli.error):
        yield brotli.Decompressor().process(data)
    with suppress(zstandard.ZstdError):
        yield zstandard.ZstdDecompressor().decompressobj().decompress(data)


def said(path: Path) -> Iterator[bytes]:
    """All that a tape says: each leaf of each frame, also void ones, and each body joined."""
    answers: dict[int, list[bytes]] = {}
    for frame in frames.read(path.read_bytes()):
        assert isinstance(frame, frames.Frame)
        value = unpack(frame.payload)
        yield from leaves(value)
        if frame.kind == 3:
            yield b"".join(answers.pop(value["seq"], []))
        if frame.kind == 4:
            answers.setdefault(value[0], []).append(value[-1])
    yield from (b"".join(chunks) for chunks in answers.values())
    for exchange in read(path).exchanges:
        yield exchange.request.body
        yield exchange.forwarded.body


def leaks(secret: str | bytes, path: Path) -> int:
    """How many copies of the secret a tape holds."""
    wanted = secret.encode() if isinstance(secret, str) else secret
    return sum(copies(wanted, text) for data in said(path) for text in inflated(data))
