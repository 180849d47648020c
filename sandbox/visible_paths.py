"""The files of this machine that an agent sees in the process sandbox, besides its own folders.

They are the system's folders, those on PATH, and the installation of the agent's program: what its
command names, the links on the way to that, and the interpreters in the first lines of scripts.
Nothing else is there, so no home, no store and no temporary file needs to be known to be hidden.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sandbox.file_links import follow_links, list_outermost_paths

SYSTEM_FOLDERS = tuple(
    Path(name)
    for name in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt")
)
"""Programs and libraries of the system."""
_BINARIES = ("bin", "sbin", ".bin", "shims")
_SHARED = frozenset(
    Path(name).expanduser()
    for name in ("/", "~root", "/home", "/tmp", "/var", "/var/tmp", "/run", "/srv")
)
_KERNEL = ("/proc/", "/sys/", "/dev/")
_LONGEST = 256
"""Characters of a path in a command; a longer word is a text, such as the task."""
_FIRST_LINE = 256
"""Bytes of a script's first line that the kernel reads (execve(2))."""


def list_agent_paths(
    command: Sequence[str], search_path: str, more: Iterable[Path] = ()
) -> tuple[Path, ...]:
    """Return the paths to show to a command, none in another one; `more` are shown as well."""
    on_path = (Path(name) for name in search_path.split(":") if name.startswith("/"))
    folders = (_find_prefix(folder) for folder in on_path if not is_shared_folder(folder))
    program = shutil.which(command[0], path=search_path) if command else None
    named = (*filter(None, (program,)), *filter(_is_installed, command[1:]))
    installed = (path for name in named for path in find_installation(Path(name), search_path))
    return list_outermost_paths((*SYSTEM_FOLDERS, *folders, *installed, *more))


def find_installation(file: Path, search_path: str) -> Iterator[Path]:
    """Yield the folders that a program needs: its own, its links' and its interpreter's."""
    for path in follow_links(file.absolute()):
        if path.is_dir():
            if not path.is_symlink() and not is_shared_folder(path):
                yield path
        else:
            yield path if is_shared_folder(path.parent) else _find_prefix(path.parent)
    for interpreter in _read_interpreters(file, search_path):
        yield from find_installation(interpreter, search_path)


def is_shared_folder(folder: Path) -> bool:
    """Return whether a folder is a home or another one that holds more than one program."""
    return folder in _SHARED or folder.parent == Path("/home") or folder == Path.home()


def _is_installed(word: str) -> bool:
    """Return whether a word of a command is the path of a file that lies on a disk."""
    is_path = word.startswith("/") and len(word) < _LONGEST and "\0" not in word
    return is_path and not word.startswith(_KERNEL) and Path(word).exists()


def _find_prefix(folder: Path) -> Path:
    """Return a folder of programs and their libraries, or it alone if others lie beside it."""
    prefix = folder.parent
    named = folder.name in _BINARIES and prefix != Path.home() / ".local"
    return prefix if named and not is_shared_folder(prefix) else folder


def _read_interpreters(file: Path, search_path: str) -> Iterator[Path]:
    """Yield the programs that the first line of a script names, with `env NAME` looked up."""
    if not file.is_file() or not os.access(file, os.R_OK):
        return
    with file.open("rb") as opened:
        first = opened.readline(_FIRST_LINE)
    if not first.startswith(b"#!"):
        return
    for word in first[2:].decode("utf-8", "replace").split():
        found = word if word.startswith("/") else shutil.which(word, path=search_path)
        if found and Path(found).is_file():
            yield Path(found)
