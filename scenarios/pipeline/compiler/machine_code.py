"""Machine code in a workspace that is not the agent's own: copies of programs, and huge programs.

An agent can put a compiler into its workspace, by itself or with `build`. So compiled code that
lies in a workspace is removed before `build` is called, which makes it anew from its source. Of
what `build` leaves, ELF files are removed whose code is that of a program on PATH, whatever their
name and their other sections, or larger than what anybody writes for a task: LLVM, gcc and the
engines of JavaScript and Java have 15 MiB and more, compilers that agents write less than 2. The
source of a small compiler, or data from which `build` makes one, is not found here: that the model
wrote neither is in `stages.unwritten_bytes`.
"""

import hashlib
import os
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from scenarios.pipeline.compiler.graded_cell import FOLDERS, list_cell_paths

MOST_CODE = 8 << 20
"""Bytes of machine code that one file may have."""
_HEADER, _SEGMENT = struct.Struct("<16x2HI3QI6H"), struct.Struct("<2I6Q")  # elf(5), 64 bits
_LOADED, _EXECUTABLE = 1, 1
_COMPILED = (
    b"\x7fELF",
    b"!<arch>\n",
    b"!<thin>\n",
    b"\0asm",
    b"BC\xc0\xde",
    b"\xca\xfe\xba\xbe",
    b"MZ\x90\0",
)
"""How files of compiled code begin: ELF, archives of it, WebAssembly, LLVM's, Java's, Windows'."""
_BYTECODE = (".pyc", ".pyo")


class _CodeSegment(Struct, frozen=True):
    """Where code lies in an ELF file."""

    offset: int
    size: int


def remove_foreign_code(folder: Path) -> dict[str, str]:
    """Remove files with code that is not the agent's own; return the reason for each, by its path.

    Folders are made readable for that. Raises OSError if a file cannot be removed.
    """
    removed = {}
    for path in _walk_files(folder):
        if reason := find_reason_against(path):
            _remove_file(path)
            removed[str(path.relative_to(folder))] = reason
    return removed


def remove_compiled_files(folder: Path) -> dict[str, str]:
    """Remove compiled code, which `build` makes anew; return the reason for each, by its path.

    Python's own bytecode is removed without a reason: the interpreter reads the source instead.
    """
    removed = {}
    for path in _walk_files(folder):
        if path.suffix in _BYTECODE:
            _remove_file(path)
        elif _is_compiled(path):
            reason = find_reason_against(path) or "compiled before, which only `build` may do"
            removed[str(path.relative_to(folder))] = reason
            _remove_file(path)
    return removed


def _is_compiled(path: Path) -> bool:
    """Whether a file is compiled code; files that cannot be read are left for later."""
    try:
        with path.open("rb") as file:
            return file.read(8).startswith(_COMPILED)
    except PermissionError:
        return False


def _remove_file(path: Path) -> None:
    path.parent.chmod(0o755)
    path.unlink()


def find_reason_against(path: Path) -> str | None:
    """Return why a file is not left to a graded program; None if it has no code, or its own."""
    try:
        with path.open("rb") as file:
            code = _read_code_segments(file)
            size = sum(each.size for each in code)
            if size > MOST_CODE:
                return f"{size >> 20} MiB of machine code, more than {MOST_CODE >> 20}"
            same = _list_machine_programs().get(size, ()) if size else ()
            digest = _hash_code(file, code) if same else b""
    except PermissionError:
        return "it cannot be read"
    return next((f"a copy of {each}" for each in same if _hash_program(each) == digest), None)


def _walk_files(folder: Path) -> Iterator[Path]:
    """Yield all files but links, also of folders that cannot be listed as they are."""
    for at, inner, names in os.walk(folder):
        for name in inner:
            path = Path(at, name)
            if not path.is_symlink() and not os.access(path, os.R_OK | os.X_OK):
                path.chmod(0o755)
        for name in names:
            if not (path := Path(at, name)).is_symlink() and path.is_file():
                yield path


def _read_code_segments(file: BinaryIO) -> list[_CodeSegment]:
    """Return the executable segments of an ELF file; [] of another file.

    Files for 32 bits are others: their system calls are refused.
    """
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or not head.startswith(b"\x7fELF\x02\x01"):
        return []
    _, _, _, _, table, _, _, _, entry, count, *_ = _HEADER.unpack(head)
    segments = []
    for number in range(count if entry >= _SEGMENT.size else 0):
        file.seek(table + number * entry)
        if len(row := file.read(_SEGMENT.size)) < _SEGMENT.size:
            break
        kind, flags, offset, _, _, size, _, _ = _SEGMENT.unpack(row)
        if kind == _LOADED and flags & _EXECUTABLE:
            segments.append(_CodeSegment(offset, size))
    return segments


def measure_program(path: Path) -> tuple[int, int]:
    """Return the bytes of code and of all else in an ELF file for 64 bits; (0, 0) of another file.

    Raises OSError if it cannot be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        segments = _read_code_segments(file)
    code = sum(segment.size for segment in segments)
    is_whole = all(segment.offset + segment.size <= size for segment in segments)
    return (code, size - code) if is_whole and 0 < code <= size else (0, 0)


def _hash_code(file: BinaryIO, code: Sequence[_CodeSegment]) -> bytes:
    digest = hashlib.sha256()
    for each in code:
        file.seek(each.offset)
        digest.update(file.read(each.size))
    return digest.digest()


@cache
def _hash_program(path: Path) -> bytes:
    with path.open("rb") as file:
        return _hash_code(file, _read_code_segments(file))


@cache
def _list_machine_programs() -> Mapping[int, Sequence[Path]]:
    """Return the programs on PATH that a graded program does not see, by the size of their code."""
    programs: dict[int, list[Path]] = defaultdict(list)
    on_path = (Path(name) for name in os.environ.get("PATH", "").split(os.pathsep) if name)
    seen = {path.resolve() for path in list_cell_paths()}
    for folder in dict.fromkeys((*on_path, *FOLDERS, Path("/usr/sbin"))):
        for path in folder.glob("*"):
            if path.is_file() and (real := path.resolve()) not in seen and os.access(real, os.R_OK):
                seen.add(real)
                with real.open("rb") as file:
                    if size := sum(each.size for each in _read_code_segments(file)):
                        programs[size].append(path)
    return programs
