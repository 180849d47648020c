"""Which paths of the folders for temporary files an isolated agent keeps: those that are named.

The folders are the agent's own for the run. What its command or environment names in them stays:
its home, a store, sockets, files of ours; of a program in `X/bin` all of `X`, as it finds its
libraries from there.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

UNNAMED_VARIABLES = frozenset(("TMPDIR", "TMP", "TEMP", "PWD", "OLDPWD", "_"))
"""Variables that name a folder without a wish to keep it."""
_PATH = re.compile(r"(?<![\w./~-])(?:[a-z+]+://)?(/[^\s'\"`<>|;&:,()\[\]{}]+)")


def list_scratch_folders() -> tuple[Path, ...]:
    """Return the folders for temporary files outside of /dev, outer ones first."""
    usual = Path(tempfile.gettempdir()).resolve()
    found = dict.fromkeys((Path("/tmp"), Path("/var/tmp"), usual))  # noqa: S108
    return tuple(
        path
        for path in found
        if path.is_dir() and not path.is_symlink() and not path.is_relative_to("/dev")
    )


def find_named_paths(
    words: Iterable[str], env: Mapping[str, str], folders: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Return the paths below `folders` that words or variables name; the folder of one that does
    not exist yet.

    As in `select_outer_paths`.
    """
    values = (text for name, text in env.items() if name not in UNNAMED_VARIABLES)
    paths = (path for text in (*words, *values) for path in _find_paths(text, folders))
    return select_outer_paths(paths, folders)


def select_outer_paths(paths: Iterable[Path], folders: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the paths below `folders`, outer ones first, but none below another of them."""
    below = {path for path in paths if any(each in folders for each in path.parents)}
    outer = sorted(below - set(folders), key=lambda path: (len(path.parts), path))
    return tuple(path for path in outer if below.isdisjoint(path.parents))


def _find_paths(text: str, folders: tuple[Path, ...]) -> Iterator[Path]:
    whole = [text] if text.startswith("/") else []
    for found in (*whole, *(match[1] for match in _PATH.finditer(text))):
        path = Path(os.path.normpath(found.rstrip("/") or "/"))
        if "\0" in found:
            continue
        path = path if os.path.lexists(path) else path.parent  # of a file that is to be made
        below = [each for each in folders if path.is_relative_to(each) and path != each]
        if not below or not os.path.lexists(path):
            continue
        above = path.parent if path.name == "bin" else path.parent.parent
        is_program = path.name == "bin" or path.parent.name == "bin"
        yield above if is_program and all(above not in (e, *e.parents) for e in below) else path
