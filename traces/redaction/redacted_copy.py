"""Copies of files without secrets, of the same length once unpacked."""

import zipfile
from collections.abc import Iterable
from pathlib import Path

from traces.importers.shared.file_reader import open_unpacked_file
from traces.importers.shared.zip_members import check_zip_size, read_zip_member
from traces.model import Chunk
from traces.redaction.redactor import Redactor

_PIECE = 1 << 18
_ZIP = b"PK\x03\x04"


def write_redacted_copy(source: Path, target: Path, *, secrets: Iterable[str] = ()) -> bool:
    """Write `source`, unpacked, to `target` without its secrets; return False if it has none.

    The text is read in pieces, so memory is bounded; that of a zip, such as an Inspect log, member
    by member. Raises ValueError if it cannot be unpacked.
    """
    with source.open("rb") as file:
        is_zip = file.read(len(_ZIP)) == _ZIP
    if is_zip:
        return _write_redacted_zip(source, target, tuple(secrets))
    stream = Redactor(secrets).open_stream(())
    with open_unpacked_file(source) as file, target.open("wb") as out:
        while piece := file.read(_PIECE):
            for chunk in stream.chunk(Chunk(at=0.0, data=piece)):
                out.write(chunk.data)
        for chunk in stream.done():
            out.write(chunk.data)
    return stream.has_changes


def _write_redacted_zip(source: Path, target: Path, secrets: tuple[str, ...]) -> bool:
    """Write a zip again with the text of each member redacted.

    A member that cannot be read is empty in the copy, so that its reader names it and none of its
    bytes is kept beside what was redacted.
    """
    has_changes = False
    try:
        with (
            zipfile.ZipFile(source) as packed,
            zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out,
        ):
            check_zip_size(packed, source)
            for member in packed.infolist():
                try:
                    data = read_zip_member(packed, member.filename)
                except ValueError:
                    data = b""
                clean = _redact_text(data, secrets)
                has_changes |= clean != data
                out.writestr(zipfile.ZipInfo(member.filename, member.date_time), clean)
    except zipfile.BadZipFile as error:
        raise ValueError(f"its zip cannot be read: {error}") from None
    return has_changes


def _redact_text(data: bytes, secrets: tuple[str, ...]) -> bytes:
    stream = Redactor(secrets).open_stream(())
    chunks = [*stream.chunk(Chunk(at=0.0, data=data)), *stream.done()]
    return b"".join(chunk.data for chunk in chunks)
