"""Which files of a workspace a stage's programs read while they are graded, and their text.

The kernel reports each opened file (inotify(7)), also those opened in other namespaces. So files
that only lie in the workspace (notes, outputs of trials) do not count as part of a program.
"""

import ctypes
import os
import struct
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from scenarios.pipeline.compiler import starter_workspace
from scenarios.pipeline.compiler.types import FileText
from traces.pipeline.text_pieces import measure_pieces

MOST_PIECES = 4096
"""Digests that are kept of a stage; of a longer program, those of a random part of its pieces."""
MOST_FILES = 50
"""Files that are kept by name, the largest; others are added up under OTHERS."""
OTHERS = "others"
MOST_NAMES = 64 << 10
"""Characters of all names in a workspace up to which they are no text of a program."""
_OPENED, _OVERFLOW = 0x20, 0x4000  # IN_OPEN, IN_Q_OVERFLOW
_NOT_INHERITED = os.O_NONBLOCK | os.O_CLOEXEC
_EVENT = struct.Struct("iIII")


class ReadWatch:
    """The files below a folder that are opened from now on, under whatever name.

    A file that cannot be watched counts as opened: many files hide nothing.
    """

    def __init__(self, folder: Path) -> None:
        """Watch the files that are there. Raises OSError if the kernel cannot at all."""
        if sys.platform != "linux":
            raise OSError("only Linux reports opened files")
        libc, self._lock = ctypes.CDLL(None, use_errno=True), threading.Lock()
        self._fd = libc.inotify_init1(_NOT_INHERITED)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "opened files cannot be watched")
        self._folder, self._libc = folder, libc
        self._watched: dict[int, str] = {}
        self._read: set[str] = set()
        self._watch_files()

    def _watch_files(self) -> None:
        """Watch the files that are there and not watched yet."""
        names = set(self._watched.values())
        for path in _walk_files(self._folder):
            if (name := str(path.relative_to(self._folder))) in names:
                continue
            number = self._libc.inotify_add_watch(self._fd, os.fsencode(path), _OPENED)
            if number < 0 or number in self._watched:  # no watches left, or a second link to it
                self._read.add(name)
            else:
                self._watched[number] = name

    def collect(self) -> None:
        """Take what the kernel has reported; to be called before its queue is full."""
        with self._lock:
            while events := self._read_events():
                for number, mask in _split_events(events):
                    if mask & _OVERFLOW:
                        self._read.update(self._watched.values())
                    elif mask & _OPENED:
                        self._read.add(self._watched[number])

    def end_build(self) -> tuple[str, ...]:
        """Return the names opened so far; from now on, watch what was made as well."""
        opened = tuple(sorted(self._read))
        self._read = set()
        self._watch_files()
        return opened

    def skip(self) -> None:
        """Drop what the kernel has reported: it is the grader's own doing."""
        with self._lock:
            while self._read_events():
                pass

    def close(self) -> tuple[str, ...]:
        """End; return the names of the files that were opened since `end_build`."""
        self.collect()
        os.close(self._fd)
        return tuple(sorted(self._read))

    def _read_events(self) -> bytes:
        try:
            return os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return b""


def _split_events(events: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(events):
        number, mask, _, size = _EVENT.unpack_from(events, at)
        at += _EVENT.size + size
        yield number, mask


def _walk_files(folder: Path) -> Iterator[Path]:
    for at, _, names in os.walk(folder):
        yield from (path for name in names if not (path := Path(at, name)).is_symlink())


def digest_files(contents: Iterable[tuple[str, bytes]]) -> Mapping[str, FileText]:
    """Return the size of each file's text that is not the starter's, and digests of its pieces.

    Files of equal content count once, and programs that `build` made not at all.
    """
    texts: dict[str, str] = {}
    for name, data in contents:
        if not data.startswith(b"\x7fELF"):
            texts.setdefault(data.decode("utf-8", "replace"), name)
    files: dict[str, dict[str, int]] = {}
    known = _measure_starters()
    for text, name in texts.items():
        pieces = files.setdefault(name, {})
        for digest, size in measure_pieces(text).items():
            if size > known.get(digest, 0):
                pieces[digest] = max(pieces.get(digest, 0), size - known.get(digest, 0))
    return _limit_files({name: pieces for name, pieces in files.items() if pieces})


def list_names(folder: Path) -> str:
    """Return all names and targets of links below a folder, if they can hold a program."""
    names = [str(Path(at, name)) for at, inner, files in os.walk(folder) for name in inner + files]
    links = [str(Path(name).readlink()) for name in names if Path(name).is_symlink()]
    text = "\n".join(each.removeprefix(str(folder)) for each in (*names, *links))
    return text if len(text) > MOST_NAMES else ""


def _limit_files(files: Mapping[str, Mapping[str, int]]) -> Mapping[str, FileText]:
    """Keep the largest files by name, and so many pieces of all that a tape has room for."""
    total = sum(map(len, files.values()))
    below = f"{min(0xFFFFFFFF, int(MOST_PIECES / max(total, 1) * 0xFFFFFFFF)):08x}"
    largest = sorted(files, key=lambda name: (-sum(files[name].values()), name))
    kept: dict[str, FileText] = {}
    for at, name in enumerate(largest):
        shown = name if at < MOST_FILES else OTHERS
        before = kept.get(shown, FileText(size=0, pieces={}))
        kept[shown] = FileText(
            size=before.size + sum(files[name].values()),
            pieces={**before.pieces, **{k: n for k, n in files[name].items() if k <= below}},
        )
    return kept


@cache
def _measure_starters() -> Mapping[str, int]:
    """Return the sizes of the pieces of all that a workspace holds at first."""
    found: Counter[str] = Counter()
    for language in starter_workspace.LANGUAGES:
        with tempfile.TemporaryDirectory() as folder:
            starter_workspace.create_starter_workspace(Path(folder), language, bare=False)
            for path in _walk_files(Path(folder)):
                found.update(measure_pieces(path.read_text("utf-8", "replace")))
    return found
