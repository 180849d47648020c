"""Import of files and folders one after the other; a bad file does not stop the others."""

import copy
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import orjson
from msgspec import Struct, field

from stumble.imports.detect_format import UNKNOWN_FORMAT, TrafficFormat, detect_file_format
from stumble.imports.import_inputs import ImportInput, iter_inputs
from stumble.imports.session_folders import is_shown_file
from stumble.imports.to_tape import make_import_id, write_imported_tape
from stumble.llm.prices import compute_token_cost
from stumble.store.tape_rows import write_run_rows
from stumble.user_data.known_secrets import find_known_secrets
from traces.importers import ImportedTables, ImportFormat, PartedFormat, read_format_tables
from traces.importers.run_merge import (
    BATCH_BYTES,
    BATCH_FILES,
    MergedRuns,
    import_batch_to_store,
)
from traces.importers.shared.file_reader import decode_file_name, read_unpacked_file
from traces.importers.shared.http_traffic import ImportRemark
from traces.redaction.redacted_copy import write_redacted_copy
from traces.store.trace_store import TraceStore

type ImportState = Literal["new", "known", "refused"]

INDEX_BATCH_TAPES = 64
"""Number of tapes whose rows are written together."""
COUNTED_RELATIONS = ("trajectories", "exchanges", "tool_calls", "stages")


class ImportedFile(Struct, frozen=True, kw_only=True):
    """The result of one file."""

    path: Path
    state: ImportState
    format: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    """Rows that were written, by relation."""
    runs: Mapping[str, int] = field(default_factory=dict)
    """How many of its runs had grown, were completed, or were known already."""
    remarks: tuple[ImportRemark, ...] = ()
    why: str | None = None
    """Why it was refused."""

    @property
    def is_unknown(self) -> bool:
        """Whether it was refused since it has none of the formats."""
        return self.why is not None and self.why.startswith(UNKNOWN_FORMAT)


def list_import_files(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the files; a folder is replaced by all files in it that are not hidden."""
    files: dict[Path, None] = {}
    for path in paths:
        for each in _walk_import_folder(path) if path.is_dir() else (path,):
            files[each] = None
    return tuple(files)


def _walk_import_folder(folder: Path) -> Iterator[Path]:
    unreadable = list[Path]()
    for at, folders, names in os.walk(
        folder, onerror=lambda e: unreadable.append(Path(e.filename))
    ):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        yield from (Path(at, each) for each in sorted(names) if is_shown_file(each))
    yield from unreadable


def import_recordings(
    store: TraceStore,
    paths: Iterable[Path],
    report: Callable[[int, int], None] = lambda done, all: None,
    *,
    replace: bool = False,
) -> Iterator[ImportedFile]:
    """Import these files; yield the result of each, in their order.

    With `replace` a file's state of a run counts, whatever the store knows of it.
    """
    parts = _import_parts(store, paths, report, replace=replace)
    for _, results in groupby(parts, key=lambda each: each.path):
        yield _join_parts(list(results))


def _join_parts(parts: list[ImportedFile]) -> ImportedFile:
    """Return the result of a file that was imported in parts; refused ones are remarks of it."""
    read = [each for each in parts if each.state != "refused"]
    if len(parts) == 1 or not read:
        return parts[0]
    counts, runs = Counter[str](), Counter[str]()
    for each in read:
        counts.update(each.counts)
        runs.update(each.runs)
    lost = [ImportRemark(where="part", why=each.why) for each in parts if each.why is not None]
    return copy.replace(
        read[0],
        state="new" if any(each.state == "new" for each in read) else "known",
        counts=counts,
        runs=runs,
        remarks=(*lost, *(remark for each in read for remark in each.remarks)),
    )


def _import_parts(
    store: TraceStore,
    paths: Iterable[Path],
    report: Callable[[int, int], None],
    *,
    replace: bool,
) -> Iterator[ImportedFile]:
    paths, taped = tuple(paths), list[str]()
    batch = _ImportBatch(store, replace=replace)
    for number, path in enumerate(paths, 1):
        with ExitStack() as unpacked:
            for each in iter_inputs(path, unpacked):
                batch.add(_read_one_file(store, each, taped, batch.held))
                if each.file != path and batch.is_full:
                    yield from batch.merge()
            if each.file != path:  # it is removed now
                yield from batch.merge()
        report(number, len(paths))
        is_last = number == len(paths)
        if len(taped) >= INDEX_BATCH_TAPES or is_last:
            write_run_rows(store, taped)
            taped.clear()
        if batch.is_full or is_last:
            yield from batch.merge()


class _ReadFile(Struct, frozen=True, kw_only=True):
    """A file of conversations that was read, and has to be merged."""

    path: Path
    clean: Path
    """The file, or its redacted copy."""
    format: str
    read: ImportedTables


class _ImportBatch(Struct):
    """Files in their order that are merged into the index together; `held` are their copies."""

    store: TraceStore
    replace: bool
    held: ExitStack = field(default_factory=ExitStack)
    _files: list[ImportedFile | _ReadFile] = field(default_factory=list)
    _size: int = 0

    def add(self, file: "ImportedFile | _ReadFile") -> None:
        self._files.append(file)
        if isinstance(file, _ReadFile):
            self._size += sum(table.nbytes for table in file.read.tables.values())

    @property
    def is_full(self) -> bool:
        return len(self._files) >= BATCH_FILES or self._size > BATCH_BYTES

    def merge(self) -> Iterator[ImportedFile]:
        """Yield the result of each file, and begin another batch."""
        files, self._files, self._size = self._files, [], 0
        read = [each for each in files if isinstance(each, _ReadFile)]
        with self.held:
            merged = self._merge_read(read)
        results = dict(zip(map(id, read), merged, strict=True))
        for each in files:
            yield each if isinstance(each, ImportedFile) else results[id(each)]

    def _merge_read(self, files: list[_ReadFile]) -> list[ImportedFile]:
        pairs = [(each.clean, each.read) for each in files]
        try:
            merged = import_batch_to_store(self.store, pairs, replace=self.replace)
        except (ValueError, OSError) as error:
            if len(files) == 1:
                return [_refuse_file(files[0].path, error)]
            return [result for each in files for result in self._merge_read([each])]
        return [_describe_merged(each, runs) for each, runs in zip(files, merged, strict=True)]


def _check_regular_file(path: Path) -> None:
    """Raise ValueError for a folder, pipe, socket or device; reading a pipe would block."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise ValueError("it is a folder that cannot be read")
    if not stat.S_ISREG(mode):
        raise ValueError("it is no regular file but a pipe, a socket or a device")


def _read_one_file(
    store: TraceStore, given: ImportInput, taped: list[str], held: ExitStack
) -> ImportedFile | _ReadFile:
    path, shown = given.file, given.shown
    try:
        if given.why is not None:
            raise ValueError(given.why)
        _check_regular_file(path)
        format = detect_file_format(path)
        if isinstance(format, TrafficFormat):
            done = _import_traffic(store, path, format, taped)
            return copy.replace(done, path=shown)
        joined = held.enter_context(_open_joined_parts(store, path, format))
        clean = held.enter_context(_open_redacted_copy(store, joined))
        read = read_format_tables(format, clean, compute_token_cost)
    except (ValueError, OSError) as error:
        return copy.replace(_refuse_file(path, error), path=shown)
    read = copy.replace(read, remarks=tuple(_shift(each, given.before) for each in read.remarks))
    return _ReadFile(path=shown, clean=clean, format=format.NAME, read=read)


def _shift(remark: ImportRemark, before: int) -> ImportRemark:
    """Return a remark on a record of a part with its number in the file."""
    name, _, number = remark.where.rpartition(" ")
    if not before or not number.isdecimal():
        return remark
    return copy.replace(remark, where=f"{name} {int(number) + before}")


def _refuse_file(path: Path, error: Exception) -> ImportedFile:
    why = getattr(error, "strerror", None) or str(error).removeprefix(f"{path}: ")
    return ImportedFile(path=path, state="refused", why=why)


def _describe_merged(file: _ReadFile, merged: MergedRuns) -> ImportedFile:
    counts = {
        each: merged.tables[each].num_rows for each in COUNTED_RELATIONS if each in merged.tables
    }
    runs = {"grown": merged.grown, "updated": merged.updated, "known": merged.known}
    return ImportedFile(
        path=file.path,
        state="known" if merged.is_known else "new",
        format=file.format,
        counts=Counter(counts),
        runs={name: len(ids) for name, ids in runs.items()},
        remarks=file.read.remarks,
    )


@contextmanager
def _open_joined_parts(store: TraceStore, path: Path, format: ImportFormat) -> Iterator[Path]:
    """Yield the file, or one with the lines of all files of its run."""
    parts = format.find_parts(path) if isinstance(format, PartedFormat) else (path,)
    if len(parts) == 1:
        yield path
        return
    with TemporaryDirectory(prefix=".import-", dir=store.root) as folder:
        joined = Path(folder) / parts[0].name
        lines = (orjson.dumps(orjson.loads(read_unpacked_file(part))) for part in parts)
        joined.write_bytes(b"\n".join(lines))
        yield joined


@contextmanager
def _open_redacted_copy(store: TraceStore, path: Path) -> Iterator[Path]:
    """Yield the file, or a redacted copy of it if it contains secrets."""
    with TemporaryDirectory(prefix=".import-", dir=store.root) as folder:
        copy = Path(folder) / path.name
        yield copy if write_redacted_copy(path, copy, secrets=find_known_secrets()) else path


def _import_traffic(
    store: TraceStore, path: Path, wire: TrafficFormat, fresh: list[str]
) -> ImportedFile:
    id = make_import_id(wire.source, path)
    if (store.tapes / f"{id}.tape").exists():
        return ImportedFile(path=path, state="known", format=wire.name)
    taped = write_imported_tape(store, id, wire.read(path), decode_file_name(path))
    fresh.append(id)
    counts = {"trajectories": 1, "exchanges": taped.exchanges}
    return ImportedFile(
        path=path, state="new", format=wire.name, counts=counts, remarks=taped.remarks
    )
