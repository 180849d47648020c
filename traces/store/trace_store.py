"""The index of a `.stumble/` folder: Parquet files, and a DuckDB file of views over them.

A DuckDB file with a writer is locked for other processes, so rows are never written to one:
`store.duckdb` contains views and macros only, is opened read-only by any number of processes, and
is replaced, never changed.

    imports/<hash>/<name>                   the source of every import, so the index may be deleted
    index/<relation>/<segment>.parquet      loose: written by any process, at any time
    index/bundles/<name>/<relation>.parquet loose too: the segments of one batch together
    index/packs/<n>/<relation>/*.parquet    packed: generation n of merged segments
    store.duckdb -> index/views-<generation>-<stamp>.duckdb

The views of generation n read the loose files and the packs of generation n. Packing writes
generation n+1 aside, renames it into place, removes generation n and then the loose files that were
packed. Meanwhile, and on a connection made before it, a query either still reads the old files or
fails because they are gone; it never sees a row missing or twice. Connecting again helps. Packing
takes the lock file exclusively, writing and connecting share it. DuckDB's own limits: the path is
UTF-8, without a `?`.
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
from itertools import batched
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from traces.store.definitions_file import OLDEST_CLIENT, compute_definitions_hash, load_definitions
from traces.store.query_signals import restore_interrupts
from traces.store.schema import SCHEMAS
from traces.store.segment_bundles import SEGMENT_COLUMN, SegmentBundles
from traces.store.store_dir import StoreDirectory

_OTHERS = tuple(name for name in SCHEMAS if name != "trajectories")
_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_WILD = re.compile(r"[\[\]*?]")
_MEMORY = "2GB"
_MERGE_MEMORY = "256MB"
_MERGED_TOGETHER = 256
"""Files that are merged into one: the memory of a merge depends on their number."""
_BUNDLED = 4
"""Fewest new segments of one call that are worth a folder of their own."""
_COLUMNS_WITH_TAPE = "* REPLACE ($tapes || '/' || trajectory_id || '.tape' AS tape)"
_PATIENCE = 30.0
"""Seconds to wait for the lock; a compaction holds it until it ends."""


class TraceStore(StoreDirectory):
    """A folder of tapes with its index; opening it creates what is missing."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.index = self.root / "index"
        self._packs = self.index / "packs"
        self._packs.mkdir(parents=True, exist_ok=True)
        self._bundles = SegmentBundles(self.index)

    def write(self, segment: str, tables: Mapping[str, pa.Table]) -> None:
        """Replace all rows of a segment; it is complete once its trajectories are written."""
        self.write_all({segment: tables})

    def write_all(self, segments: Mapping[str, Mapping[str, pa.Table]]) -> None:
        """Replace all rows of several segments; packed ones cost one rewrite together."""
        for segment, tables in segments.items():
            _check_segment_tables(segment, tables)
        if len(segments) < _BUNDLED and self._write_loose(segments):
            return
        # Exclusively, since two processes may write the same segments, in bundles of other names.
        with self._lock(fcntl.LOCK_EX):
            loose = self._loose_segments() & segments.keys()
            fixed = (self._packed_segments() | self._bundles.segments()) & segments.keys()
            self._unpack_segments(fixed)
            apart = loose if len(segments) - len(loose) >= _BUNDLED else segments.keys()
            for segment in apart:
                self._write_segment(segment, segments[segment])
            if together := {name: segments[name] for name in segments.keys() - apart}:
                self._bundles.write(together)
            if fixed:
                self._publish_views()

    def _write_loose(self, segments: Mapping[str, Mapping[str, pa.Table]]) -> bool:
        """Write segments as loose files, unless one of them exists: False then."""
        with self._lock(fcntl.LOCK_SH):
            if self._all_segments() & segments.keys():
                return False
            for segment, tables in segments.items():
                self._write_segment(segment, tables)
            return True

    def segments(self) -> tuple[str, ...]:
        """Return the names of all complete segments, sorted."""
        with self._lock(fcntl.LOCK_SH):
            return tuple(sorted(self._all_segments()))

    def drop(self, *segments: str) -> None:
        """Remove all rows of these segments, if there are any, at the price of one."""
        with self._lock(fcntl.LOCK_EX):
            self._unpack_segments(segments)
            for segment in self._loose_segments() & set(segments):
                self._remove_segment(segment)
            self._publish_views()

    def compact(self, limit: int = 256) -> int:
        """Pack the loose segments if they are in at least `limit` files; return the number
        packed."""
        with self._lock(fcntl.LOCK_EX):
            self._remove_superseded()
            loose, bundles = self._loose_segments(), self._bundles.names()
            if not (loose or bundles) or len(loose) + len(bundles) < limit:
                return 0
            packed = loose | self._bundles.segments()
            self._write_generation(sorted(loose), bundles)
            self._publish_views()
            return len(packed)

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Open a read-only connection with every relation, view and macro.

        DuckDB opens a file more than once for one query, so a query fails, with various errors, if
        the file was replaced meanwhile; see `open_locked`.
        """
        with self._views_locked() as views:
            return _open_views_file(views)

    @contextmanager
    def open_locked(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a short-lived connection: until it is closed, no file of the index is replaced."""
        with (
            restore_interrupts(),
            self._views_locked() as views,
            _open_views_file(views) as connection,
        ):
            yield connection

    def find_segments(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the segment of each of these runs that is in the index."""
        with self.open_locked(), duckdb.connect() as reader:
            _restrict_connection(reader)
            query = (
                f"SELECT trajectory_id, segment FROM ({self._rows_with_segment('trajectories')})"
                " WHERE trajectory_id IN $ids"
            )
            return dict(reader.execute(query, {"ids": list(ids)}).fetchall())

    def copy_segments(self, origin: "TraceStore", segments: Collection[str]) -> None:
        """Copy all rows of these segments of another store, none of which is in this one.

        Their tapes, `tapes/<run>.tape`, are in both stores.
        """
        rows: dict[str, pa.Table] = {}
        with origin.open_locked(), duckdb.connect() as reader:
            _restrict_connection(reader)
            for name, schema in SCHEMAS.items():
                given: dict[str, object] = {"names": list(segments)}
                columns = "*"
                if "tape" in schema.names:
                    given["tapes"], columns = str(self.tapes), _COLUMNS_WITH_TAPE
                query = f"SELECT {columns} FROM ({origin._rows_with_segment(name)})"
                query += " WHERE segment IN $names"
                found: pa.Table = reader.sql(query, params=given).to_arrow_table()
                if found.num_rows:
                    rows[name] = found.cast(schema.append(SEGMENT_COLUMN))
        with self._lock(fcntl.LOCK_EX):
            self._bundles.write_rows(segments, rows)

    def _rows_with_segment(self, relation: str) -> str:
        """Return SQL for all rows of a relation, each with its segment."""
        pack = self._packs / str(self._newest_generation()) / relation / "*.parquet"
        files = (self.index / relation / "*.parquet", pack, *self._bundles.paths(relation))
        return (
            f"SELECT {_format_column_list(relation)},"
            " coalesce(segment, parse_filename(filename, true)) AS segment"
            f" FROM read_parquet([{_format_path_list(files)}],"
            " union_by_name = true, filename = true)"
        )

    def read_segment(self, segment: str) -> dict[str, pa.Table]:
        """Return all rows of a segment; empty if there is none."""
        found: dict[str, pa.Table] = {}
        with self.open_locked(), duckdb.connect() as reader:
            _restrict_connection(reader)
            generation = self._packs / str(self._newest_generation())
            for name, schema in SCHEMAS.items():
                loose = self._segment_path(name, segment)
                packed = (generation / name / "*.parquet", *self._bundles.paths(name))
                pack = _format_path_list(packed)
                source, params = f"read_parquet([{pack}], union_by_name = true)", [segment]
                where = "WHERE segment = ?"
                if loose.exists():
                    files = (self._segment_path(name, "_empty"), loose)
                    source = f"read_parquet([{_format_path_list(files)}], union_by_name = true)"
                    where, params = "", []
                query = f"SELECT {_format_column_list(name)} FROM {source} {where}"
                rows: pa.Table = reader.sql(query, params=params).to_arrow_table()
                rows = rows.cast(schema)
                if rows.num_rows:
                    found[name] = rows
        return found

    def changed_at(self) -> float:
        """Return the time at which an index file was last created, replaced or removed, by the
        system clock."""
        folders = (self.index, *self.index.iterdir(), *self._packs.iterdir())
        return max(_read_folder_mtime(folder) for folder in folders)

    @contextmanager
    def _views_locked(self) -> Iterator[Path]:
        """Yield the views file, which stays consistent with the other files until the block
        ends."""
        with self._lock(fcntl.LOCK_SH):
            views = self._views_path()
            # The link may lead to the views of another version of DuckDB that reads this store.
            if ready := views.exists() and (self.root / "store.duckdb").exists():
                yield views
        if not ready:
            with self._lock(fcntl.LOCK_EX):
                yield self._publish_views()

    def has_import(self, source: Path) -> bool:
        """Whether a file with this content was imported before."""
        return any(self._import_dir(source).glob("[!.]*"))

    def _import_dir(self, source: Path) -> Path:
        with source.open("rb") as file:
            name = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        return self.root / "imports" / name

    def keep_import(self, source: Path, *, rename: bool = False) -> Path:
        """Copy an imported file to `imports/`, into a folder named after its content; return the
        copy. A copy under another name is kept as it is, or renamed."""
        folder = self._import_dir(source)
        for copy in folder.glob("[!.]*"):
            if rename and copy.name != source.name:
                copy = copy.rename(folder / source.name)
            return copy
        folder.mkdir(parents=True, exist_ok=True)
        copy = folder / source.name
        with _replace_atomically(copy) as temporary:
            shutil.copyfile(source, temporary)
        return copy

    def drop_import(self, segment: str) -> None:
        """Remove the kept source of an import, and all rows of it."""
        shutil.rmtree(self.root / "imports" / segment, ignore_errors=True)
        self.drop(segment)

    def imports(self) -> tuple[Path, ...]:
        """Return the stored sources of all imports, the oldest first; the name of each one's folder
        is its segment."""
        kept = (self.root / "imports").glob("*/[!.]*")
        return tuple(sorted(kept, key=lambda path: (path.stat().st_mtime_ns, path)))

    @contextmanager
    def import_lock(self) -> Iterator[None]:
        """Hold the lock of imports: what is known may not change while it is compared."""
        (self.root / "imports").mkdir(parents=True, exist_ok=True)
        with self._lock(fcntl.LOCK_EX, self.root / "imports" / ".lock"):
            yield

    # Loose segments.

    def _segment_path(self, relation: str, segment: str) -> Path:
        return self.index / relation / f"{segment}.parquet"

    def _loose_segments(self) -> set[str]:
        return {path.stem for path in (self.index / "trajectories").glob("[!._]*.parquet")}

    def _write_segment(self, segment: str, tables: Mapping[str, pa.Table]) -> None:
        for relation in _OTHERS:
            rows = tables.get(relation)
            if rows is not None and rows.num_rows:
                _save_parquet(rows, self._segment_path(relation, segment))
            else:
                self._segment_path(relation, segment).unlink(missing_ok=True)
        rows = tables.get("trajectories", SCHEMAS["trajectories"].empty_table())
        _save_parquet(rows, self._segment_path("trajectories", segment))

    def _remove_segment(self, segment: str) -> None:
        for relation in ("trajectories", *_OTHERS):
            self._segment_path(relation, segment).unlink(missing_ok=True)

    # Generations of packs.

    def _newest_generation(self) -> int:
        return max((int(path.name) for path in self._packs.glob("[0-9]*")), default=0)

    def _packed_segments(self) -> set[str]:
        names = self._packs / str(self._newest_generation()) / "segments"
        return set(names.read_text().split()) if names.exists() else set()

    def _all_segments(self) -> set[str]:
        return self._packed_segments() | self._loose_segments() | self._bundles.segments()

    def _write_generation(
        self, loose: Iterable[str] = (), bundles: Iterable[str] = (), less: Collection[str] = ()
    ) -> None:
        """Write the next generation: this one, plus loose segments and bundles, minus segments."""
        loose, bundles, old = tuple(loose), tuple(bundles), self._newest_generation()
        temporary = self._packs / f".{old + 1}"
        shutil.rmtree(temporary, ignore_errors=True)
        with ExitStack() as cleanup:
            cleanup.callback(shutil.rmtree, temporary, ignore_errors=True)
            merger = cleanup.enter_context(_open_merger())
            for relation, schema in SCHEMAS.items():
                folder = temporary / relation
                _prepare_empty_pack(folder, schema)
                for pack in (self._packs / str(old) / relation).glob("[0-9]*.parquet"):
                    _copy_pack(merger, relation, pack, less, folder / pack.name)
                files = [self._segment_path(relation, segment) for segment in loose]
                files += [self._bundles.path(name, relation) for name in bundles]
                files = [file for file in files if file.exists()]
                for part, some in enumerate(batched(files, _MERGED_TOGETHER, strict=False)):
                    target = folder / f"{old + 1}-{part}.parquet"
                    _merge_segments(merger, relation, some, less, target)
            added = {
                *loose,
                *(name for each in bundles for name in self._bundles.segments_of(each)),
            }
            names = (self._packed_segments() | added) - set(less)
            (temporary / "segments").write_text("\n".join(sorted(names)))
            (temporary / "bundles").write_text("\n".join(bundles))
            temporary.replace(self._packs / str(old + 1))

    def _remove_superseded(self) -> None:
        """Remove files that the newest generation supersedes, also after a crash.

        The older packs go first, by one rename: queries that still read them fail from then on,
        before any loose file is gone. Their files stay until the next call, since a query may be
        about to open them.
        """
        newest = self._newest_generation()
        for hidden in self._packs.glob(".*"):
            shutil.rmtree(hidden)
        for old in self._packs.glob("[0-9]*"):
            if int(old.name) != newest:
                old.rename(old.with_name(f".{old.name}"))
        for segment in self._packed_segments() & self._loose_segments():
            self._remove_segment(segment)
        for name in self._packed_bundles() & set(self._bundles.names()):
            self._bundles.remove(name)

    def _packed_bundles(self) -> set[str]:
        names = self._packs / str(self._newest_generation()) / "bundles"
        return set(names.read_text().split()) if names.exists() else set()

    def _unpack_segments(self, segments: Collection[str]) -> None:
        """Remove these segments from the packs, and from the bundles, which are packed first."""
        bundled = self._bundles.segments() & set(segments)
        if bundled or self._packed_segments() & set(segments):
            self._write_generation(bundles=self._bundles.names() if bundled else (), less=segments)
            self._remove_superseded()

    # Views.

    def _publish_views(self) -> Path:
        """Put the views of the newest generation where connections look for them."""
        if not self._newest_generation():
            self._write_generation()
        self._remove_superseded()
        views = self._views_path()
        if not views.exists():
            for relation, schema in SCHEMAS.items():
                _save_parquet(schema.empty_table(), self._segment_path(relation, "_empty"))
                # An earlier version that wrote the packs had fewer relations.
                _prepare_empty_pack(self._packs / str(self._newest_generation()) / relation, schema)
            self._bundles.prepare_empty()
            _build_views_file(views, self._relation_views())
        with _replace_atomically(self.root / "store.duckdb") as link:
            link.symlink_to(f"index/{views.name}")
        for path in self.index.glob("views-*"):
            if not path.name.startswith(self._views_prefix()):
                path.unlink()
        return views

    def _views_prefix(self) -> str:
        return f"views-{self._newest_generation()}-"

    def _views_path(self) -> Path:
        stamp = hashlib.sha256(f"{compute_definitions_hash()}\n{self._relation_views()}".encode())
        return self.index / f"{self._views_prefix()}{stamp.hexdigest()[:16]}.duckdb"

    def _relation_views(self) -> str:
        # Loose files are listed before packs, and removed after packs: see _remove_superseded.
        packs = self._packs / str(self._newest_generation())
        return "\n".join(
            _build_view_sql(
                name, (self.index / name, packs / name), self._bundles.folder, f"*/{name}.parquet"
            )
            for name in SCHEMAS
        )

    @contextmanager
    def _lock(self, kind: int, path: Path | None = None) -> Iterator[None]:
        """Hold the lock, shared or exclusive; raise TimeoutError if others hold it for too long."""
        deadline = time.monotonic() + _PATIENCE
        path = path or self.index / ".lock"
        # Read-only: a process that may not change files locks it too.
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


def _check_segment_tables(segment: str, tables: Mapping[str, pa.Table]) -> None:
    if not _SEGMENT.fullmatch(segment):
        raise ValueError(f"a segment's name is letters, digits, '.', '_', '-': {segment!r}")
    for name, rows in tables.items():
        if name not in SCHEMAS:
            raise ValueError(f"no relation {name}; there are {', '.join(SCHEMAS)}")
        if rows.schema != SCHEMAS[name]:
            raise ValueError(f"{name}: these columns are not the relation's: {rows.schema.names}")


@contextmanager
def _replace_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to this one that no other process uses and no view reads.

    At the end the file made there replaces this one, or is removed if the block failed. An equal
    existing file is left alone: it may be open.
    """
    temporary = path.with_name(f".{os.getpid()}-{threading.get_ident()}-{path.name}.part")
    temporary.unlink(missing_ok=True)
    try:
        yield temporary
        if not (path.exists() and filecmp.cmp(temporary, path, shallow=False)):
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _save_parquet(rows: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _replace_atomically(path) as temporary:
        pq.write_table(rows, temporary, compression="zstd")


def _prepare_empty_pack(folder: Path, schema: pa.Schema) -> None:
    """Write the pack without rows, unless it is there: DuckDB refuses a folder without files."""
    empty = folder / "empty.parquet"
    if not empty.exists():
        _save_parquet(schema.append(SEGMENT_COLUMN).empty_table(), empty)


def _build_view_sql(name: str, folders: Iterable[Path], bundles: Path, pattern: str) -> str:
    loose, packs = (_format_path_list([folder / "*.parquet"]) for folder in folders)
    bundled = _quote_sql_text(f"{escape_wildcards(str(bundles))}/{pattern}")
    source = f"read_parquet([{loose}, {bundled}, {packs}], union_by_name = true)"
    return f'CREATE OR REPLACE VIEW "{name}" AS SELECT {_format_column_list(name)} FROM {source};'


@contextmanager
def _open_merger() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a connection that merges files in little memory, without an order of rows to keep."""
    with duckdb.connect() as merger:
        _restrict_connection(merger)
        merger.execute(f"SET memory_limit = '{_MERGE_MEMORY}'")
        merger.execute("SET threads = 1")
        merger.execute("SET preserve_insertion_order = false")
        yield merger


def _merge_segments(
    merger: duckdb.DuckDBPyConnection,
    relation: str,
    files: Iterable[Path],
    less: Collection[str],
    target: Path,
) -> None:
    """Write one Parquet file of all rows, each with the segment it came from.

    A file without that column is named by its segment.
    """
    columns, empty = _format_column_list(relation), target.with_name("empty.parquet")
    merger.execute(
        f"COPY (SELECT {columns}, coalesce(segment, parse_filename(filename, true)) AS segment"
        f" FROM read_parquet([{_format_path_list((empty, *files))}],"
        f" union_by_name = true, filename = true) WHERE {_not_in(less)})"
        f" TO {_quote_sql_text(str(target))}"
        " (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 16384)"
    )


def _copy_pack(
    merger: duckdb.DuckDBPyConnection,
    relation: str,
    pack: Path,
    less: Collection[str],
    target: Path,
) -> None:
    """Link a pack into the next generation, or write it anew if it holds any of these segments."""
    if less:
        found = merger.execute(
            f"SELECT count(*) FILTER (NOT {_not_in(less)}), count(*)"
            f" FROM read_parquet({_quote_sql_text(escape_wildcards(str(pack)))})"
        ).fetchone()
        assert found is not None
        if found[0] == found[1]:
            return
        if found[0]:
            _merge_segments(merger, relation, [pack], less, target)
            return
    target.hardlink_to(pack)


def _not_in(segments: Collection[str]) -> str:
    if not segments:
        return "true"
    return f"segment NOT IN ({', '.join(map(_quote_sql_text, segments))})"


def _build_views_file(views: Path, relations: str) -> None:
    with _replace_atomically(views) as temporary:
        try:
            with duckdb.connect(temporary, config=OLDEST_CLIENT) as builder:
                load_definitions(builder)
                builder.execute(relations)
                # Closing would do it too, but raises nothing if the disk is full.
                builder.execute("CHECKPOINT")
        finally:
            temporary.with_name(f"{temporary.name}.wal").unlink(missing_ok=True)


def _open_views_file(views: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(views, read_only=True)
    _restrict_connection(connection)
    return connection


def _restrict_connection(connection: duckdb.DuckDBPyConnection) -> None:
    """Forbid Python variables as relations and extension downloads, and limit memory."""
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute(f"SET memory_limit = '{_MEMORY}'")


def confine_connection(connection: duckdb.DuckDBPyConnection, folder: Path, memory: float) -> None:
    """Forbid a connection permanently to read anything outside a folder.

    `memory` is in GB. A query that needs more fails: nothing is spilled to disk.
    """
    connection.execute("SET temp_directory = ''")
    connection.execute(f"SET memory_limit = '{memory}GB'")
    name = str(folder.resolve())
    # A pattern is compared with them as it is written, with its escapes.
    folders = ", ".join(map(_quote_sql_text, {name, escape_wildcards(name)}))
    connection.execute(f"SET allowed_directories = [{folders}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _read_folder_mtime(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return time.time()


def _format_column_list(relation: str) -> str:
    return ", ".join(f'"{column}"' for column in SCHEMAS[relation].names)


def _format_path_list(paths: Iterable[Path]) -> str:
    """Format paths as SQL text; only a `*` in the last part is a pattern."""
    return ", ".join(
        _quote_sql_text(f"{escape_wildcards(str(path.parent))}/{path.name}") for path in paths
    )


def escape_wildcards(text: str) -> str:
    """Return a path that DuckDB does not take for a pattern."""
    return _WILD.sub(r"[\g<0>]", text)


def _quote_sql_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
