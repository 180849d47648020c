"""How many copies of a secret lie in files, however they are packed or spelled.

It shares nothing with the redactor, which it is there to check. Tapes are read frame by frame,
tables row by row, bodies without their content encoding.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote_from_bytes

import pyarrow.parquet as pq

from traces.encoding import plain
from traces.model import Exchange
from traces.tape import frames, read
from traces.tape.payload import unpack


def copies(secret: str, texts: Iterable[bytes]) -> int:
    """How often the secret stands in the texts, in any spelling."""
    wanted = re.compile(b"|".join(re.escape(each) for each in spellings(secret)))
    return sum(len(wanted.findall(text)) for text in texts)


def spellings(secret: str) -> Iterator[bytes]:
    """The secret as it is, in a URL, and within base64 at each of the three places."""
    data = secret.encode()
    yield data
    yield quote_from_bytes(data, safe="").encode()
    for shift in range(3):
        # What stands next to the secret spoils the first and last characters of its base64.
        coded = b64encode(bytes(shift) + data)
        yield coded[4 * (shift > 0) : -4]


def texts(path: Path) -> Iterator[bytes]:
    """All that a file says."""
    data = path.read_bytes()
    yield data
    if data.startswith(frames.MAGIC):
        yield from _tape(path, data)
    elif path.suffix == ".parquet":
        yield from leaves(pq.read_table(path).to_pylist())


def _tape(path: Path, data: bytes) -> Iterator[bytes]:
    for frame in frames.read(data):
        if isinstance(frame, frames.Frame):
            yield from leaves(unpack(frame.payload))
    for exchange in read(path).exchanges:
        yield from _bodies(exchange)


def _bodies(exchange: Exchange) -> Iterator[bytes]:
    """What was asked and answered, joined and without its content encoding."""
    said = [(exchange.request.headers, exchange.request.body)]
    said.append((exchange.request.headers, exchange.forwarded.body))
    if exchange.response is not None:
        said.append((exchange.response.headers, exchange.response.body))
    for headers, body in said:
        inflated = plain(headers, body)
        yield body if inflated is None else inflated


def leaves(value: object) -> Iterator[bytes]:
    """Every text and every bytes in plain data."""
    match value:
        case bytes():
            yield value
        case str():
            yield value.encode("utf-8", "surrogatepass")
        case list() | tuple():
            for each in value:
                yield from leaves(each)
        case dict():
            for each in value.values():
                yield from leaves(each)
