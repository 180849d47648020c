"""Search for copies of a secret in files, in any packing and spelling.

It shares no code with the redactor, which it checks. Tapes are read frame by frame, tables row by
row, bodies without their content encoding.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote_from_bytes

import pyarrow.parquet as pq

from stumble.store.data_leaves import walk_data_leaves
from traces.bodies.content_encoding import decode_content
from traces.model import Exchange
from traces.tape import frames
from traces.tape.payload import unpack
from traces.tape.reader import read_tape


def count_secret_copies(secret: str, texts: Iterable[bytes]) -> int:
    """Count the occurrences of the secret in the texts, in any spelling."""
    pattern = re.compile(b"|".join(re.escape(each) for each in list_spellings(secret)))
    return sum(len(pattern.findall(text)) for text in texts)


def list_spellings(secret: str) -> Iterator[bytes]:
    """Yield the secret verbatim, URL-quoted, and in base64 at each of the three offsets."""
    data = secret.encode()
    yield data
    yield quote_from_bytes(data, safe="").encode()
    for shift in range(3):
        # Bytes next to the secret change the first and last characters of its base64.
        coded = b64encode(bytes(shift) + data)
        yield coded[4 * (shift > 0) : -4]


def read_file_texts(path: Path) -> Iterator[bytes]:
    """Yield all texts in a file."""
    data = path.read_bytes()
    yield data
    if data.startswith(frames.MAGIC):
        yield from _read_tape_texts(path, data)
    elif path.suffix == ".parquet":
        yield from walk_data_leaves(pq.read_table(path).to_pylist())


def _read_tape_texts(path: Path, data: bytes) -> Iterator[bytes]:
    for frame in frames.read_frames(data):
        if isinstance(frame, frames.TapeFrame):
            yield from walk_data_leaves(unpack(frame.payload))
    for exchange in read_tape(path).exchanges:
        yield from _decode_bodies(exchange)


def _decode_bodies(exchange: Exchange) -> Iterator[bytes]:
    """Yield request and answer bodies, complete and without content encoding."""
    bodies = [(exchange.request.headers, exchange.request.body)]
    bodies.append((exchange.request.headers, exchange.forwarded.body))
    if exchange.response is not None:
        bodies.append((exchange.response.headers, exchange.response.body))
    for headers, body in bodies:
        inflated = decode_content(headers, body)
        yield body if inflated is None else inflated
