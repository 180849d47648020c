"""Search a tape's decoded frames and decompressed bodies for a secret in any spelling.

It shares no code with the redactor: it decodes all data and searches for the plain secret.
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

from stumble.store.data_leaves import walk_data_leaves
from traces.tape import frames
from traces.tape.payload import unpack
from traces.tape.reader import read_tape

RUNS = re.compile(rb"[A-Za-z0-9+/_-]{8,}")


def copies(secret: bytes, data: bytes) -> int:
    """Return the number of decodings of the data that contain the secret."""
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
    """Yield the data, and the output of every codec as far as it can decode it."""
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
    """Yield all data of a tape: each leaf of each frame, including void ones, and each body
    joined.
    """
    answers: dict[int, list[bytes]] = {}
    for frame in frames.read_frames(path.read_bytes()):
        assert isinstance(frame, frames.TapeFrame)
        value = unpack(frame.payload)
        yield from walk_data_leaves(value)
        if frame.kind == 3:
            yield b"".join(answers.pop(value["seq"], []))
        if frame.kind == 4:
            answers.setdefault(value[0], []).append(value[-1])
    yield from (b"".join(chunks) for chunks in answers.values())
    for exchange in read_tape(path).exchanges:
        yield exchange.request.body
        yield exchange.forwarded.body


def leaks(secret: str | bytes, path: Path) -> int:
    """Return the number of copies of the secret on a tape."""
    wanted = secret.encode() if isinstance(secret, str) else secret
    return sum(copies(wanted, text) for data in said(path) for text in inflated(data))
