"""Which files of a workspace a stage's programs read while they are graded, and their text.

The kernel reports each opened file (inotify(7)), also those opened in other namespaces. So files
that only lie in the workspace (notes, outputs of trials) do not count as part of a program.
"""

import codecs
import ctypes
import hashlib
import os
import stat
import struct
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from scenarios.pipeline.compiler import machine_code, starter_workspace
from scenarios.pipeline.compiler.types import FileText
from traces.pipeline.text_pieces import REST, TextMeter, digest_piece, measure_pieces

MOST_PIECES = 4096
"""Digests that are kept of a stage; of a longer program, those of a random part of its pieces."""
MOST_FILES = 50
"""Files that are kept by name, the largest; others are added up under OTHERS."""
OTHERS = "others"
NAMES = "names of files"
MOST_NAMES = 8 << 10
"""Characters of names and sizes in a workspace up to which they are no text of a program."""
MOST_DATA = 64 << 10
"""Bytes that are no code in the programs that are read, beyond as many as are code."""
_PART = 1 << 20
"""Bytes of a file that are read at once."""
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
        """Watch the files that are there: those of names that are known may be others now."""
        for path in _walk_files(self._folder):
            name = str(path.relative_to(self._folder))
            number = self._libc.inotify_add_watch(self._fd, os.fsencode(path), _OPENED)
            if number < 0 or self._watched.get(number, name) != name:  # none left, or a second link
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


def digest_files(files: Iterable[tuple[str, Path]], names: str) -> Mapping[str, FileText]:
    """Return the size of each file's text that is not the starter's, and digests of its pieces; the
    text `names` is that of NAMES.

    Files of equal content count once, and programs that `build` made not at all, if they are code
    for the most part. Files are read in parts: of each, a random part of the pieces is kept.
    """
    found: dict[str, FileText] = {}
    seen, listed_files = set[bytes](), list(files)
    programs = _find_programs(path for _, path in listed_files)
    for name, path in listed_files:
        with suppress(OSError), path.open("rb") as file:  # removed, or made unreadable
            content = hashlib.file_digest(file, "blake2b").digest()
            if content in seen or path in programs:
                continue
            seen.add(content)
            file.seek(0)
            found[_to_printable_name(name)] = _measure_text(_iter_text(file))
    listed = _measure_text([names])
    found |= {NAMES: listed} if listed.size > MOST_NAMES else {}
    return _limit_files({name: text for name, text in found.items() if text.size})


def _find_programs(paths: Iterable[Path]) -> frozenset[Path]:
    """Return the files that are programs; none if all together are data rather than code."""
    code, rest, programs = 0, 0, set[Path]()
    for path in paths:
        with suppress(OSError):
            own_code, own_rest = machine_code.measure_program(path)
            code, rest = code + own_code, rest + own_rest
            programs |= {path} if own_code else set()
    return frozenset(programs if rest <= code + MOST_DATA else ())


def _iter_text(file: BinaryIO) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    while part := file.read(_PART):
        yield decoder.decode(part)
    yield decoder.decode(b"", final=True)


def _measure_text(parts: Iterable[str]) -> FileText:
    """Measure a text beyond the starter's, with a random part of its pieces."""
    starter, used = _measure_starters(), Counter[str]()
    size, pieces, below = 0, Counter[str](), "ffffffff"
    meter = TextMeter()
    for piece in meter.iter_pieces(parts):
        digest = digest_piece(piece)
        used[digest] += len(piece) if digest in starter else 0
        new = max(0, min(len(piece), used[digest] - starter.get(digest, 0)))
        if digest not in starter:
            new = len(piece)
            del used[digest]
        size += new
        if new and digest <= below:
            pieces[digest] += new
        if len(pieces) > 4 * MOST_PIECES:
            below = sorted(pieces)[len(pieces) // 2]
            pieces = Counter({each: n for each, n in pieces.items() if each <= below})
    rest = max(0, meter.measure_rest() - starter.get(REST, 0))
    return FileText(size=size + rest, pieces=pieces | ({REST: rest} if rest else {}))


def _to_printable_name(name: str) -> str:
    """Return a file's name as text: a name is any bytes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def list_names(folder: Path) -> str:
    """Return all names below a folder, sizes of files and targets of links, one entry a line.

    Each line is long enough to be a piece, whatever the others are.
    """
    lines = []
    for at, inner, files in os.walk(folder):
        for path in (Path(at, name) for name in (*inner, *files)):
            status = path.lstat()
            target = f" -> {path.readlink()}" if stat.S_ISLNK(status.st_mode) else ""
            size = status.st_size if stat.S_ISREG(status.st_mode) else 0
            lines.append(f"{path.relative_to(folder)}{target}: {size:>12} bytes")
    return _to_printable_name("\n".join(sorted(lines)))


def _limit_files(files: Mapping[str, FileText]) -> Mapping[str, FileText]:
    """Keep the largest files by name, and so many pieces of all that a tape has room for."""
    total = sum(len(text.pieces) for text in files.values())
    below = f"{min(0xFFFFFFFF, int(MOST_PIECES / max(total, 1) * 0xFFFFFFFF)):08x}"
    kept: dict[str, FileText] = {}
    for at, name in enumerate(sorted(files, key=lambda name: (-files[name].size, name))):
        shown = name if at < MOST_FILES else OTHERS
        before = kept.get(shown, FileText(size=0, pieces={}))
        kept[shown] = FileText(
            size=before.size + files[name].size,
            pieces={**before.pieces, **{k: n for k, n in files[name].pieces.items() if k <= below}},
        )
    return kept


@cache
def _measure_starters() -> Mapping[str, int]:
    """Return the sizes of the pieces of all that a workspace holds at first, and of its names."""
    found: Counter[str] = Counter()
    for language in starter_workspace.LANGUAGES:
        with tempfile.TemporaryDirectory() as folder:
            starter_workspace.create_starter_workspace(Path(folder), language, bare=False)
            found.update(measure_pieces(list_names(Path(folder))))
            for path in _walk_files(Path(folder)):
                found.update(measure_pieces(path.read_text("utf-8", "replace")))
    return found
