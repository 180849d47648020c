"""Copies of files without secrets, of the same length once unpacked."""

from collections.abc import Iterable
from pathlib import Path

from traces.importers.shared.file_reader import open_unpacked_file
from traces.model import Chunk
from traces.redaction.redactor import Redactor

_PIECE = 1 << 18


def write_redacted_copy(source: Path, target: Path, *, secrets: Iterable[str] = ()) -> bool:
    """Write `source`, unpacked, to `target` without its secrets; return False if it has none.

    The text is read in pieces, so memory is bounded. Raises ValueError if it cannot be unpacked.
    """
    stream = Redactor(secrets).open_stream(())
    with open_unpacked_file(source) as file, target.open("wb") as out:
        while piece := file.read(_PIECE):
            for chunk in stream.chunk(Chunk(at=0.0, data=piece)):
                out.write(chunk.data)
        for chunk in stream.done():
            out.write(chunk.data)
    return stream.has_changes
