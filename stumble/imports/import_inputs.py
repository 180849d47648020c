"""Files in a form that can be imported: those of zip archives, rows of Parquet, standard input, and
sessions of opencode in its database or folder.
"""

import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from msgspec import Struct

from stumble.imports.large_files import iter_parts, may_have_parts
from stumble.imports.opencode_storage import (
    SQLITE,
    is_session_file,
    iter_database_sessions,
    read_session_files,
)
from stumble.imports.session_folders import is_shown_file
from traces.importers.inspect_ai import can_import as is_inspect_log
from traces.importers.shared.zip_members import check_zip_size, read_zip_member

STDIN = Path("-")
_PARQUET = b"PAR1"
_BATCH_ROWS = 64


class ImportInput(Struct, frozen=True, kw_only=True):
    """A file to import, and its name for the user."""

    shown: Path
    file: Path
    before: int = 0
    """How many records of a large file come before this part of it."""
    why: str | None = None
    """Why it could not be unpacked, or a record of it not be read."""


def iter_inputs(path: Path, held: ExitStack) -> Iterator[ImportInput]:
    """Yield a file, or the members of an archive. `held` removes what was unpacked.

    One that cannot be unpacked is yielded as it is, with the reason.
    """
    try:
        unpack = _find_unpacking(path)
        if unpack is None and not may_have_parts(path):
            yield ImportInput(shown=path, file=path)
            return
        folder, number = _make_folder(held), -1
        for number, file in enumerate(unpack(path, folder) if unpack else [path]):
            shown = path / file.relative_to(folder) if unpack is _unpack_zip else path
            pieces = folder / f"parts-{number}"
            pieces.mkdir()
            for part in iter_parts(file, pieces):
                yield ImportInput(shown=shown, file=part.file, before=part.before, why=part.why)
        if number < 0:
            yield ImportInput(shown=path, file=path, why="no file is in it")
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        yield ImportInput(shown=path, file=path, why=f"it cannot be unpacked: {error}")


def _make_folder(held: ExitStack) -> Path:
    return Path(held.enter_context(TemporaryDirectory(prefix="stumble-import-")))


def _find_unpacking(path: Path) -> Callable[[Path, Path], Iterator[Path]] | None:
    if path == STDIN:
        return _copy_stdin
    if not path.is_file():
        return None
    if is_session_file(path):
        return _write_session
    with path.open("rb") as file:
        magic = file.read(16)
    if magic == SQLITE:
        return _write_database_sessions
    magic = magic[:4]
    if magic == _PARQUET:
        return _write_parquet_rows
    return _unpack_zip if magic == b"PK\3\4" and not is_inspect_log(path) else None


def _write_session(path: Path, folder: Path) -> Iterator[Path]:
    (folder / path.name).write_bytes(orjson.dumps(read_session_files(path)))
    yield folder / path.name


def _write_database_sessions(path: Path, folder: Path) -> Iterator[Path]:
    """Yield a file of JSON lines, with a line for each session."""
    target = folder / f"{path.stem}.jsonl"
    with target.open("wb") as file:
        for session in iter_database_sessions(path):
            file.write(orjson.dumps(session) + b"\n")
    yield target


def _copy_stdin(_: Path, folder: Path) -> Iterator[Path]:
    with (folder / "stdin").open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    yield folder / "stdin"


def _unpack_zip(path: Path, folder: Path) -> Iterator[Path]:
    """Yield the members, each in a folder of its own, as names may be there twice."""
    with zipfile.ZipFile(path) as packed:
        check_zip_size(packed, path)
        members = [each for each in packed.infolist() if not each.is_dir()]
        for number, each in enumerate(members):
            name = Path(each.filename).name
            if not is_shown_file(name):
                continue
            own = folder / str(number) / name
            own.parent.mkdir()
            own.write_bytes(read_zip_member(packed, each.filename))
            yield own


def _write_parquet_rows(path: Path, folder: Path) -> Iterator[Path]:
    """Yield a file of JSON lines, with a line for each row."""
    import pyarrow.parquet as pq

    target = folder / f"{path.stem}.jsonl"
    with target.open("wb") as file:
        for batch in pq.ParquetFile(path).iter_batches(_BATCH_ROWS):
            for row in batch.to_pylist():
                file.write(orjson.dumps(row, default=str) + b"\n")
    yield target
