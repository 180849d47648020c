"""Paths of the recording machine that a pack names, as they may identify who made it.

They cannot be taken out: the recorded bytes are replayed as they are, and an agent finds its folder
at its recorded path. So they are listed, before a pack is handed on.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from traces.tape.reader import Tape

_HOME = re.compile(
    rb"(?<![\w.-])(?:/home|/Users|/export/home|[A-Za-z]:(?:\\{1,4}|/)Users)(?:\\{1,4}|/)[\w.@-]+"
)
"""A home folder, in JSON as well, in which a backslash is written twice."""
_BACKSLASHES = re.compile(rb"\\+")


@dataclass(kw_only=True)
class MachinePath:
    """A path of the recording machine, and where it stands."""

    path: str
    kind: str
    """`folder` in which the agent was recorded, or `home` of a user."""
    places: Counter[str] = field(default_factory=Counter)
    """By kind of place, how many."""

    def describe_places(self) -> str:
        """Return the places as one line."""
        return ", ".join(f"{name}: {count}" for name, count in sorted(self.places.items()))


def find_machine_paths(
    tapes: Iterable[Tape], files: Iterable[Path] = ()
) -> tuple[MachinePath, ...]:
    """Find recorded folders and homes in tapes, and in tables and scenarios beside them."""
    found, folders = dict[str, MachinePath](), set[str]()
    for tape in tapes:
        if tape.trajectory.workspace:
            folders.add(tape.trajectory.workspace)
        for place, data in _list_texts(tape):
            _add_places(found, place, data, folders)
    for path in files:
        _add_places(found, "other parts", path.read_bytes(), folders)
    return tuple(found[path] for path in sorted(found))


def _list_texts(tape: Tape) -> Iterator[tuple[str, bytes]]:
    head = tape.trajectory
    yield "tape heads", json.dumps([head.workspace, *head.command], ensure_ascii=False).encode()
    for exchange in tape.exchanges:
        request, response = exchange.request, exchange.response
        headers = [f"{name}: {value}" for name, value in request.headers]
        yield "requests", "\n".join([request.url, *headers]).encode() + b"\n" + request.body
        if response is not None:
            yield "answers", b"".join(chunk.data for chunk in response.chunks)


def _add_places(
    found: dict[str, MachinePath], place: str, data: bytes, folders: Iterable[str]
) -> None:
    homes = {_BACKSLASHES.sub(rb"\\", each.group()).decode() for each in _HOME.finditer(data)}
    here = {folder for folder in folders if any(each in data for each in _spellings(folder))}
    for path, kind in [(p, "home") for p in homes] + [(p, "folder") for p in here]:
        if path != "/":
            found.setdefault(path, MachinePath(path=path, kind=kind)).places[place] += 1


def _spellings(folder: str) -> set[bytes]:
    """Return a path as it stands in text, and in JSON with and without letters beyond ASCII."""
    return {
        folder.encode(),
        json.dumps(folder)[1:-1].encode(),
        json.dumps(folder, ensure_ascii=False)[1:-1].encode(),
    }
