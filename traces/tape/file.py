"""A new file that takes whole pieces, says when it cannot, and is on disk 100 ms later."""

import fcntl
import os
import threading
from pathlib import Path

from traces.unrecordable import Unrecordable

SYNC_EVERY = 0.1


class Appending:
    """The one writer of a new file, which is locked for as long as it is open.

    FileExistsError if the path is taken. Unrecordable once the disk takes no more: what does
    not fit is taken back, so that the file ends with a whole piece.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.failed: OSError | None = None
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        os.fchmod(self._file, 0o600)  # whatever the umask takes away
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._dirty = self._told = False
        self._closing = threading.Event()
        self._syncer = threading.Thread(target=self._sync, name="tape-sync", daemon=True)
        self._syncer.start()

    def append(self, *parts: bytes) -> None:
        """Write a whole piece, with one `write` wherever the system takes it at once."""
        if self.failed is not None:
            raise self._refusal(self.failed)
        size = sum(map(len, parts))
        try:
            written = os.writev(self._file, parts)
            while written < size:
                written += os.writev(self._file, _behind(parts, written))
        except OSError as error:
            self.failed = error
            os.ftruncate(self._file, self.size)
            raise self._refusal(error) from None
        self.size += size
        self._dirty = True

    def close(self) -> None:
        """Flush to disk and close; a second call does nothing."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._syncer.join()
        if self.failed is None:
            self._flush()
        os.close(self._file)
        if self.failed is not None and not self._told:
            raise self._refusal(self.failed)

    def _refusal(self, error: OSError) -> Unrecordable:
        self._told = True
        kept = f"the {self.size:,} bytes written before can be read" if self.size else "it is gone"
        return Unrecordable(
            f"{self.path}: {error.strerror}; {kept}. Make room there, or write somewhere else, "
            "and run again"
        )

    def _sync(self) -> None:
        while not self._closing.wait(SYNC_EVERY):
            if self._dirty and self.failed is None:
                self._dirty = False
                self._flush()

    def _flush(self) -> None:
        try:
            os.fdatasync(self._file)
        except OSError as error:
            # Said by the next piece, or when the file is closed.
            self.failed = error


def _behind(parts: tuple[bytes, ...], written: int) -> list[memoryview]:
    """What of the parts comes after so many bytes."""
    left = []
    for part in parts:
        if written < len(part):
            left.append(memoryview(part)[written:])
        written = max(0, written - len(part))
    return left
