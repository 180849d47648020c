"""Append-only file: complete records, one writer, synced to disk within 100 ms."""

import fcntl
import os
import threading
from pathlib import Path

from traces.errors import TapeWriteError

SYNC_EVERY = 0.1
MOST_PARTS = 1024
"""IOV_MAX of Linux and macOS, the most parts that writev(2) accepts."""


class AppendOnlyFile:
    """The only writer of a new file, which it locks while it is open.

    Raises FileExistsError if the path exists, and TapeWriteError once the disk takes no more bytes.
    A record that does not fit is truncated away, so the file always ends with a complete record.
    """

    def __init__(self, path: Path, first: tuple[bytes, ...] = (), *, sync: bool = True) -> None:
        """Create the file with its first record; without `sync` it is never synced to disk.

        The file has no name until the record is in it, if the file system permits that, so that
        a process which is killed here leaves no empty file.
        """
        self.path = path
        self.size = 0
        self.failed: OSError | None = None
        self._dirty = self._told = False
        unnamed = _open_unnamed_file(path.parent)
        if unnamed is not None:
            self._begin(unnamed, first)
        if unnamed is None or not _name_file(unnamed, path):
            self.size = 0
            named = _open_new_file(path)
            try:
                self._begin(named, first)
            except (OSError, TapeWriteError):
                path.unlink()
                raise
        self._closing = threading.Event()
        self._syncer = threading.Thread(target=self._sync_loop, name="tape-sync", daemon=True)
        self._syncs = sync
        if sync:
            self._syncer.start()

    def _begin(self, file: int, first: tuple[bytes, ...]) -> None:
        """Lock a new file and write its first record; close it if that fails."""
        self._file = file
        try:
            os.fchmod(file, 0o600)  # regardless of the umask
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if first:
                self.append(*first)
        except (OSError, TapeWriteError):
            os.close(file)
            raise

    def append(self, *parts: bytes) -> None:
        """Write one record completely, with a single `write` if the system accepts all of it."""
        if self.failed is not None:
            raise self._to_write_error(self.failed)
        size = sum(map(len, parts))
        if len(parts) > MOST_PARTS:
            parts = (b"".join(parts),)
        try:
            written = os.writev(self._file, parts)
            while written < size:
                written += os.writev(self._file, _skip_written_bytes(parts, written))
        except OSError as error:
            self.failed = error
            os.ftruncate(self._file, self.size)
            raise self._to_write_error(error) from None
        self.size += size
        self._dirty = True

    def close(self) -> None:
        """Flush to disk and close; a second call does nothing."""
        if self._closing.is_set():
            return
        self._closing.set()
        if self._syncs:
            self._syncer.join()
            if self.failed is None:
                self._flush()
        os.close(self._file)
        if self.failed is not None and not self._told:
            raise self._to_write_error(self.failed)

    def _to_write_error(self, error: OSError) -> TapeWriteError:
        self._told = True
        saved = f"the {self.size:,} bytes written before can be read" if self.size else "it is gone"
        return TapeWriteError(
            f"{self.path}: {error.strerror}; {saved}. Make room there, or write somewhere else, "
            "and run again"
        )

    def _sync_loop(self) -> None:
        while not self._closing.wait(SYNC_EVERY):
            if self._dirty and self.failed is None:
                self._dirty = False
                self._flush()

    def _flush(self) -> None:
        try:
            _sync_file(self._file)
        except OSError as error:
            # Raised by the next `append`, or by `close`.
            self.failed = error


def _sync_file(file: int) -> None:
    """Write a file's data to the disk; macOS has no fdatasync(2)."""
    getattr(os, "fdatasync", os.fsync)(file)


def _open_unnamed_file(folder: Path) -> int | None:
    """Open a new file without a name (open(2), O_TMPFILE), if it could be given one later."""
    try:
        file = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_APPEND, 0o600)
    except (AttributeError, OSError):
        return None
    if Path(_descriptor_path(file)).exists():
        return file
    os.close(file)
    return None


def _name_file(file: int, path: Path) -> bool:
    """Give a file its name; False, and it is closed, if the file system refuses that.

    Raises FileExistsError if the path exists.
    """
    try:
        # Only linkat(2) follows the link in /proc, and os.link calls it for a descriptor.
        os.link(_descriptor_path(file), path, src_dir_fd=file)
    except OSError as error:
        os.close(file)
        if isinstance(error, FileExistsError):
            raise
        return False
    return True


def _open_new_file(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)


def _descriptor_path(file: int) -> str:
    return f"/proc/self/fd/{file}"


def _skip_written_bytes(parts: tuple[bytes, ...], written: int) -> list[memoryview]:
    """Return the rest of the parts after the first `written` bytes."""
    rest = []
    for part in parts:
        if written < len(part):
            rest.append(memoryview(part)[written:])
        written = max(0, written - len(part))
    return rest
