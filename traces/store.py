"""The index of a `.stumble/` folder: Parquet files, and a DuckDB file of views over them.

A DuckDB file locks other processes out for as long as it has one writer, so no row is ever
written to one: `store.duckdb` holds views and macros only, is opened read-only by as many
processes as like, and is replaced, never changed.

    imports/<hash>/<name>                   the source of every import, so the index may be deleted
    index/<relation>/<segment>.parquet      loose: written by whoever has a segment, at any time
    index/packs/<n>/<relation>/*.parquet    packed: generation n of what was merged
    store.duckdb -> index/views-<stamp>.duckdb

The views of generation n read the loose files and the packs of generation n. Packing writes
generation n+1 aside, renames it into place, removes generation n and then the loose files that
were packed. While that lasts, and for a connection made before it, a query either still reads
the old files or fails because they are gone; it never sees a row missing or twice. Connecting
again helps. The lock file keeps whoever packs apart from those who write and connect, who
share it. DuckDB's own limit: no `?` in the path.
"""

import fcntl
import filecmp
import hashlib
import os
import re
import shutil
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from traces.folder import Folder
from traces.relations import SCHEMAS
from traces.sql import definitions

_OTHERS = tuple(name for name in SCHEMAS if name != "trajectories")
_SEGMENT_COLUMN = pa.field("segment", pa.string())
_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_WILD = re.compile(r"[\[\]*?]")
_MEMORY = "2GB"
_PATIENCE = 30.0
"""Seconds to wait for the lock; it is held for as long as a compaction takes."""


class Store(Folder):
    """A folder of tapes with its index; opening it makes what is missing."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.index = self.root / "index"
        self._packs = self.index / "packs"
        self._packs.mkdir(parents=True, exist_ok=True)

    def write(self, segment: str, tables: Mapping[str, pa.Table]) -> None:
        """Replace all rows of a segment; it is complete once its trajectories are there."""
        self.write_all({segment: tables})

    def write_all(self, segments: Mapping[str, Mapping[str, pa.Table]]) -> None:
        """Replace all rows of several segments, for the price of one where they are packed."""
        for segment, tables in segments.items():
            _check(segment, tables)
        with self._lock(fcntl.LOCK_SH):
            known = self._packed() | self._loose()
            fresh = segments.keys() - known
            for segment in fresh:
                self._put(segment, segments[segment])
        if len(fresh) == len(segments):
            return
        with self._lock(fcntl.LOCK_EX):
            self._unpack(*segments)
            for segment in segments.keys() - fresh:
                self._put(segment, segments[segment])
            self._publish()

    def segments(self) -> tuple[str, ...]:
        """The names of all complete segments, sorted."""
        with self._lock(fcntl.LOCK_SH):
            return tuple(sorted(self._packed() | self._loose()))

    def drop(self, segment: str) -> None:
        """Remove all rows of a segment, if there are any."""
        with self._lock(fcntl.LOCK_EX):
            self._unpack(segment)
            self._remove(segment)
            self._publish()

    def compact(self, limit: int = 256) -> int:
        """Pack the loose segments if there are at least `limit`; how many were packed."""
        with self._lock(fcntl.LOCK_EX):
            self._settle()
            loose = self._loose()
            if not loose or len(loose) < limit:
                return 0
            self._pack(sorted(loose))
            self._publish()
            return len(loose)

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A read-only connection that knows every relation, view and macro.

        DuckDB opens a file more than once for one query, so a query fails, with errors of many
        kinds, if the file was replaced meanwhile; see `reading`.
        """
        with self._views_locked() as views:
            return _open(views)

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection for a moment: until it is closed, no file of the index is replaced."""
        with self._views_locked() as views, _open(views) as connection:
            yield connection

    def changed_at(self) -> float:
        """When a file of the index was last made, replaced or removed, by the system's clock."""
        folders = (self.index, *self.index.iterdir(), *self._packs.iterdir())
        return max(_modified_at(folder) for folder in folders)

    @contextmanager
    def _views_locked(self) -> Iterator[Path]:
        """The file of views, which are those of the files for as long as the block lasts."""
        with self._lock(fcntl.LOCK_SH):
            views = self._views()
            if ready := views.exists() and self._link_is(views):
                yield views
        if not ready:
            with self._lock(fcntl.LOCK_EX):
                yield self._publish()

    def keeps(self, source: Path) -> bool:
        """Whether a file with this content was imported before."""
        return any(self._kept(source).glob("[!.]*"))

    def _kept(self, source: Path) -> Path:
        with source.open("rb") as file:
            name = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        return self.root / "imports" / name

    def keep(self, source: Path) -> Path:
        """A copy of an imported file under `imports/`, in a folder named after its content."""
        folder = self._kept(source)
        for kept in folder.glob("[!.]*"):
            return kept
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / source.name
        with _aside(kept) as aside:
            shutil.copyfile(source, aside)
        return kept

    def imports(self) -> tuple[Path, ...]:
        """The kept sources of all imports; the name of its folder is the segment of each."""
        return tuple(sorted((self.root / "imports").glob("*/[!.]*")))

    # The segments that lie loose.

    def _file(self, relation: str, segment: str) -> Path:
        return self.index / relation / f"{segment}.parquet"

    def _loose(self) -> set[str]:
        return {path.stem for path in (self.index / "trajectories").glob("[!._]*.parquet")}

    def _put(self, segment: str, tables: Mapping[str, pa.Table]) -> None:
        for relation in _OTHERS:
            rows = tables.get(relation)
            if rows is not None and rows.num_rows:
                _save(rows, self._file(relation, segment))
            else:
                self._file(relation, segment).unlink(missing_ok=True)
        rows = tables.get("trajectories", SCHEMAS["trajectories"].empty_table())
        _save(rows, self._file("trajectories", segment))

    def _remove(self, segment: str) -> None:
        for relation in ("trajectories", *_OTHERS):
            self._file(relation, segment).unlink(missing_ok=True)

    # Generations of packs.

    def _generation(self) -> int:
        return max((int(path.name) for path in self._packs.glob("[0-9]*")), default=0)

    def _packed(self) -> set[str]:
        names = self._packs / str(self._generation()) / "segments"
        return set(names.read_text().split()) if names.exists() else set()

    def _pack(self, loose: Iterable[str] = (), less: Collection[str] = ()) -> None:
        """Make the next generation: this one, plus loose segments, less those named."""
        loose, old = tuple(loose), self._generation()
        aside = self._packs / f".{old + 1}"
        shutil.rmtree(aside, ignore_errors=True)
        with ExitStack() as left:
            left.callback(shutil.rmtree, aside, ignore_errors=True)
            for relation, schema in SCHEMAS.items():
                folder = aside / relation
                _save(schema.append(_SEGMENT_COLUMN).empty_table(), folder / "empty.parquet")
                packs = tuple((self._packs / str(old) / relation).glob("[0-9]*.parquet"))
                files = [self._file(relation, segment) for segment in loose]
                files = [file for file in files if file.exists()]
                if not less:
                    for pack in packs:
                        (folder / pack.name).hardlink_to(pack)
                if files or less:
                    target = folder / f"{old + 1}.parquet"
                    _merge(relation, files, packs if less else (), less, target)
            names = (self._packed() | set(loose)) - set(less)
            (aside / "segments").write_text("\n".join(sorted(names)))
            aside.replace(self._packs / str(old + 1))

    def _settle(self) -> None:
        """Put away what the newest generation has made superfluous, also after a crash.

        The older packs go first, by one rename: whoever still reads by them fails from then on,
        before any loose file is gone. Their files stay until the next time, since a query may
        be about to open them.
        """
        newest = self._generation()
        for gone in self._packs.glob(".*"):
            shutil.rmtree(gone)
        for old in self._packs.glob("[0-9]*"):
            if int(old.name) != newest:
                old.rename(old.with_name(f".{old.name}"))
        for segment in self._packed() & self._loose():
            self._remove(segment)

    def _unpack(self, *segments: str) -> None:
        if self._packed() & set(segments):
            self._pack(less=segments)
            self._settle()

    # Views.

    def _publish(self) -> Path:
        """Put the views of the newest generation where connections look for them."""
        if not self._generation():
            self._pack()
        self._settle()
        views = self._views()
        if not views.exists():
            for relation, schema in SCHEMAS.items():
                _save(schema.empty_table(), self._file(relation, "_empty"))
            _build(views, self._definitions())
        with _aside(self.root / "store.duckdb") as link:
            link.symlink_to(f"index/{views.name}")
        for path in self.index.glob("views-*"):
            if path.name != views.name:
                path.unlink()
        return views

    def _link_is(self, views: Path) -> bool:
        link = self.root / "store.duckdb"
        return link.is_symlink() and link.readlink().name == views.name

    def _views(self) -> Path:
        stamp = hashlib.sha256(f"{duckdb.__version__}\n{self._definitions()}".encode())
        return self.index / f"views-{stamp.hexdigest()[:16]}.duckdb"

    def _definitions(self) -> str:
        # Loose files are listed before packs, and removed after packs: see _settle.
        folders = self.index, self._packs / str(self._generation())
        return "\n".join([*(_relation(name, folders) for name in SCHEMAS), definitions()])

    @contextmanager
    def _lock(self, kind: int) -> Iterator[None]:
        """Hold the lock, shared or alone; TimeoutError if others hold it for too long."""
        deadline = time.monotonic() + _PATIENCE
        path = self.index / ".lock"
        # Not for writing: a process that may change no file locks it too.
        file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(file, kind | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"{path} has been locked for too long") from None
                    time.sleep(0.002)
            yield
        finally:
            os.close(file)


def _check(segment: str, tables: Mapping[str, pa.Table]) -> None:
    if not _SEGMENT.fullmatch(segment):
        raise ValueError(f"a segment's name is letters, digits, '.', '_', '-': {segment!r}")
    for name, rows in tables.items():
        if name not in SCHEMAS:
            raise ValueError(f"no relation {name}; there are {', '.join(SCHEMAS)}")
        if rows.schema != SCHEMAS[name]:
            raise ValueError(f"{name}: these columns are not the relation's: {rows.schema.names}")


@contextmanager
def _aside(path: Path) -> Iterator[Path]:
    """A path beside this one that nobody else uses and no pattern of the views matches.

    What was made there is put in place at the end, or removed where it could not be finished.
    What is there already is left alone: it may be open.
    """
    aside = path.with_name(f".{os.getpid()}-{threading.get_ident()}-{path.name}.part")
    aside.unlink(missing_ok=True)
    try:
        yield aside
        if not (path.exists() and filecmp.cmp(aside, path, shallow=False)):
            aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _save(rows: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _aside(path) as aside:
        pq.write_table(rows, aside, compression="zstd")


def _relation(name: str, folders: Iterable[Path]) -> str:
    files = _listed(folder / name / "*.parquet" for folder in folders)
    read = f"read_parquet([{files}], union_by_name = true)"
    return f'CREATE VIEW "{name}" AS SELECT {_columns(name)} FROM {read};'


def _merge(
    relation: str, loose: Iterable[Path], packs: Iterable[Path], less: Iterable[str], target: Path
) -> None:
    """One Parquet file of all rows, each with the segment it came from."""
    columns, empty = _columns(relation), target.with_name("empty.parquet")
    with duckdb.connect() as merger:
        _tame(merger)
        merger.execute(
            f"COPY (SELECT {columns}, parse_filename(filename, true) AS segment"
            f" FROM read_parquet([{_listed((empty, *loose))}],"
            f" union_by_name = true, filename = true)"
            f" UNION ALL SELECT {columns}, segment"
            f" FROM read_parquet([{_listed((empty, *packs))}], union_by_name = true)"
            f" WHERE segment NOT IN ({', '.join(map(_quoted, ('', *less)))}))"
            f" TO {_quoted(str(target))} (FORMAT parquet, COMPRESSION zstd)"
        )


def _build(views: Path, definitions: str) -> None:
    with _aside(views) as aside:
        try:
            with duckdb.connect(aside) as builder:
                builder.execute(definitions)
                # Closing would do it too, but says nothing where the disk is full.
                builder.execute("CHECKPOINT")
        finally:
            aside.with_name(f"{aside.name}.wal").unlink(missing_ok=True)


def _open(views: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(views, read_only=True)
    _tame(connection)
    return connection


def _tame(connection: duckdb.DuckDBPyConnection) -> None:
    """No variable of the caller can pass for a relation, and nothing is fetched or hoarded."""
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute(f"SET memory_limit = '{_MEMORY}'")


def confine(connection: duckdb.DuckDBPyConnection, folder: Path, memory: float) -> None:
    """From here on the connection reads nothing outside a folder, and cannot be let out again.

    `memory` is in GB. What does not fit into it fails: nothing is put aside on the disk.
    """
    connection.execute("SET temp_directory = ''")
    connection.execute(f"SET memory_limit = '{memory}GB'")
    connection.execute(f"SET allowed_directories = [{_quoted(str(folder.resolve()))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _modified_at(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return time.time()


def _columns(relation: str) -> str:
    return ", ".join(f'"{column}"' for column in SCHEMAS[relation].names)


def _listed(paths: Iterable[Path]) -> str:
    """Paths as SQL text; only a `*` in the last part is a pattern."""
    return ", ".join(
        _quoted(f"{_WILD.sub(r'[\g<0>]', str(path.parent))}/{path.name}") for path in paths
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
