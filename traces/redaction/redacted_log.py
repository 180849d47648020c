"""Logs without secrets: what was appended to one is redacted where it is."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from traces.model import Chunk
from traces.redaction.redactor import Redactor

_PIECE = 1 << 18


def redact_file_end(path: Path, start: int, *, secrets: Iterable[str] = ()) -> None:
    """Replace the secrets of a file from offset `start` on, in place.

    Only what changes is written, so that a program may go on appending. A secret that begins
    before `start` is not found.
    """
    stream, at = Redactor(secrets).open_stream(()), start
    with path.open("r+b") as file:
        file.seek(start)
        while piece := file.read(_PIECE):
            at = _overwrite(file, at, stream.chunk(Chunk(at=0.0, data=piece)))
        _overwrite(file, at, stream.done())


def _overwrite(file: BinaryIO, at: int, chunks: Iterable[Chunk]) -> int:
    """Write redacted chunks over those at this offset; return the offset after them."""
    for chunk in chunks:
        if os.pread(file.fileno(), len(chunk.data), at) != chunk.data:
            os.pwrite(file.fileno(), chunk.data, at)
        at += len(chunk.data)
    return at
