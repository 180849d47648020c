"""Files of spans on their way into the store: one for each trace, of redacted JSON lines.

A folder belongs to the collector that holds its lock. What a killed collector left is found by the
next one.
"""

import fcntl
import os
import shutil
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path

from traces.model import Chunk
from traces.redaction.redactor import Redactor

MAX_TRACE = 64 << 20
"""Maximum bytes of a trace, which is read as a whole in the end."""
MAX_SPOOL = 4 << 30
"""Maximum bytes of all traces that are kept until the collector ends."""
MAX_TRACES = 20_000
OPEN_REDACTORS = 32
"""Traces whose placeholders are remembered, so that equal secrets keep equal ones."""


class SpanSpool:
    """The folder of one collector."""

    def __init__(self, root: Path, secrets: Iterable[str]) -> None:
        self.folder = root / f"{os.getpid()}-{os.urandom(4).hex()}"
        self.folder.mkdir(parents=True)
        self._lock = _lock_folder(self.folder)
        self._secrets = tuple(secrets)
        self._redactors: OrderedDict[str, Redactor] = OrderedDict()
        self._sizes: dict[str, int] = {}

    def append(self, trace: str, line: bytes) -> str | None:
        """Add a line to a trace; return why it was not, if it exceeds a bound."""
        clean = _redact_text(self._find_redactor(trace), line) + b"\n"
        size = self._sizes.get(trace, 0)
        if size + len(clean) > MAX_TRACE:
            return f"trace {trace} has more than {MAX_TRACE >> 20} MB"
        if sum(self._sizes.values()) + len(clean) > MAX_SPOOL:
            return f"all traces together have more than {MAX_SPOOL >> 30} GB"
        if not size and len(self._sizes) >= MAX_TRACES:
            return f"there are more than {MAX_TRACES:,} traces; start another collector"
        with self.path(trace).open("ab") as file:
            file.write(clean)
        self._sizes[trace] = size + len(clean)
        return None

    def path(self, trace: str) -> Path:
        """Return the file of a trace."""
        return self.folder / f"{trace}.jsonl"

    def _find_redactor(self, trace: str) -> Redactor:
        redactor = self._redactors.pop(trace, None) or Redactor(self._secrets)
        self._redactors[trace] = redactor
        if len(self._redactors) > OPEN_REDACTORS:
            self._redactors.popitem(last=False)
        return redactor

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)


def _lock_folder(folder: Path) -> int:
    lock = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(lock)
        raise
    return lock


def iter_left_folders(root: Path) -> Iterator[Path]:
    """Yield the folders of collectors that did not end in order; each is removed after its use."""
    for folder in sorted(root.glob("[!.]*/")):
        try:
            lock = _lock_folder(folder)
        except BlockingIOError:
            continue
        try:
            yield folder
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _redact_text(redactor: Redactor, data: bytes) -> bytes:
    stream = redactor.open_stream(())
    chunks = [*stream.chunk(Chunk(at=0.0, data=data)), *stream.done()]
    return b"".join(chunk.data for chunk in chunks)
