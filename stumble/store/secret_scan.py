"""Search for secrets in files: recordings, tables, snapshots, gzip and plain text."""

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from msgspec import Struct

from stumble.store.data_leaves import walk_data_leaves
from traces.bodies.content_encoding import decode_content
from traces.importers.shared.file_reader import read_unpacked_file
from traces.model import Exchange, Headers
from traces.redaction.redactor import Redactor
from traces.redaction.secret_scan import SecretFileScanner, SecretFinding
from traces.tape import frames
from traces.tape.frame_kinds import CHUNK, DONE, HEAD, REQUEST
from traces.tape.payload import unpack
from traces.tape.reader import read_tape

MAX_UNPACKED_BYTES = 1 << 28
"""Most unpacked bytes of a file to scan."""
_ZSTD = b"\x28\xb5\x2f\xfd"
_EXCHANGE_FRAMES = (REQUEST, HEAD, CHUNK, DONE)

type LocatedFinding = tuple[str, SecretFinding]
"""Location in the file as a text, and the finding."""


class FileFindings(Struct, frozen=True, kw_only=True):
    """The findings in one file."""

    path: Path
    found: tuple[LocatedFinding, ...] = ()
    unread: str | None = None
    """Why the file could not be read."""


def scan_files(paths: Iterable[Path], known: Iterable[str] = ()) -> Iterator[FileFindings]:
    """Scan these files, and all files in these folders; links are not followed."""
    known = tuple(known)
    for path in paths:
        for file in sorted(_list_folder_files(path)) if path.is_dir() else (path,):
            try:
                yield FileFindings(path=file, found=tuple(_scan_file(file, known)))
            except (OSError, ValueError, EOFError, zlib.error, zstandard.ZstdError) as error:
                why = getattr(error, "strerror", None) or str(error)
                yield FileFindings(path=file, unread=why)


def _list_folder_files(folder: Path) -> Iterator[Path]:
    return (each for each in folder.rglob("*") if each.is_file() and not each.is_symlink())


def _scan_file(path: Path, known: tuple[str, ...]) -> Iterator[LocatedFinding]:
    data, scanner = read_unpacked_file(path, MAX_UNPACKED_BYTES), SecretFileScanner(known)
    if data.startswith(frames.MAGIC):
        yield from _scan_tape(path, data, known)
    elif path.suffix == ".parquet":
        yield from _scan_table(path, scanner)
    else:
        if data.startswith(_ZSTD):
            unpacker = zstandard.ZstdDecompressor().decompressobj()
            data = unpacker.decompress(data)[:MAX_UNPACKED_BYTES]
        for finding in scanner.find(data):
            yield f"byte {finding.start}", finding


def _scan_table(path: Path, scanner: SecretFileScanner) -> Iterator[LocatedFinding]:
    try:
        rows = pq.read_table(path).to_pylist()
    except pa.ArrowInvalid as error:
        raise ValueError(str(error)) from None
    for place, row in enumerate(rows):
        for name, value in row.items():
            for text in walk_data_leaves(value):
                for finding in scanner.find(text):
                    yield f"row {place}, {name}", finding


def _scan_tape(path: Path, data: bytes, known: tuple[str, ...]) -> Iterator[LocatedFinding]:
    redactor, scanner = Redactor(known), SecretFileScanner(known)
    tape = read_tape(path, data)
    for word, redacted in zip(
        tape.trajectory.command, redactor.redact_command(tape.trajectory.command), strict=True
    ):
        if word != redacted:
            yield "command", SecretFinding(0, len(word), "n")
    for frame in frames.read_frames(data):
        if isinstance(frame, frames.TapeFrame) and frame.kind not in _EXCHANGE_FRAMES:
            for text in walk_data_leaves(unpack(frame.payload)):
                yield from ((f"frame at byte {frame.offset}", each) for each in scanner.find(text))
    for exchange in tape.exchanges:
        for where, finding in _scan_exchange(exchange, redactor, scanner):
            yield f"exchange {exchange.seq}, {where}", finding


def _scan_exchange(
    exchange: Exchange, redactor: Redactor, scanner: SecretFileScanner
) -> Iterator[LocatedFinding]:
    clean = redactor.redact_exchange(exchange)
    request, answer = exchange.request, exchange.response
    if clean.request.url != request.url:
        yield "address", SecretFinding(0, len(request.url), "k")
    yield from _scan_headers("request", request.headers, clean.request.headers)
    yield from _scan_body("request", request.headers, request.body, scanner)
    yield from _scan_body("forwarded", request.headers, exchange.forwarded.body, scanner)
    if answer is not None and clean.response is not None:
        yield from _scan_headers("answer", answer.headers, clean.response.headers)
        yield from _scan_body("answer", answer.headers, answer.body, scanner)


def _scan_headers(side: str, old: Headers, new: Headers) -> Iterator[LocatedFinding]:
    for (name, value), (_, redacted) in zip(old, new, strict=True):
        if value != redacted and name.lower() != "content-length":
            yield f"{side} header {name}", SecretFinding(0, len(value), "k")


def _scan_body(
    side: str, headers: Headers, body: bytes, scanner: SecretFileScanner
) -> Iterator[LocatedFinding]:
    inflated = decode_content(headers, body)
    for finding in scanner.find(body if inflated is None else inflated):
        yield f"{side} body, byte {finding.start}", finding
