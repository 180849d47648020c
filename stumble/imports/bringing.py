"""Files and folders brought in one after the other; a bad one stops none of the others."""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from stumble import indexing
from stumble.imports.kinds import Wire, kind
from stumble.imports.taping import name, tape
from traces.formats import rows
from traces.formats.files import named
from traces.formats.traffic import Remark
from traces.store import Store

type State = Literal["new", "known", "refused"]

AT_ONCE = 64
"""Tapes whose rows are written together."""
COUNTED = ("trajectories", "exchanges", "tool_calls", "stages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What became of one file."""

    path: Path
    state: State
    format: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()
    why: str | None = None
    """Why it was refused."""


def files(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The files that are meant: a folder stands for all in it that is not hidden."""
    found: dict[Path, None] = {}
    for path in paths:
        for each in _within(path) if path.is_dir() else (path,):
            found[each] = None
    return tuple(found)


def _within(folder: Path) -> Iterator[Path]:
    unread = list[Path]()
    for at, folders, names in os.walk(folder, onerror=lambda e: unread.append(Path(e.filename))):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        yield from (Path(at, each) for each in sorted(names) if not each.startswith("."))
    yield from unread


def bring(
    store: Store, paths: Iterable[Path], tell: Callable[[int, int], None] = lambda done, all: None
) -> Iterator[Brought]:
    """Bring in each of these files; what became of it, in their order."""
    paths, fresh = tuple(paths), list[str]()
    for number, path in enumerate(paths, 1):
        found = _one(store, path, fresh)
        tell(number, len(paths))
        if len(fresh) >= AT_ONCE or number == len(paths):
            indexing.write(store, fresh)
            fresh.clear()
        yield found


def _check(path: Path) -> None:
    """ValueError for what has no end, or none that can be read twice: a pipe would be waited on."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise ValueError("it is a folder that cannot be read")
    if not stat.S_ISREG(mode):
        raise ValueError("it is no regular file but a pipe, a socket or a device")


def _one(store: Store, path: Path, fresh: list[str]) -> Brought:
    try:
        _check(path)
        found = kind(path)
        if isinstance(found, Wire):
            return _taped(store, path, found, fresh)
        tables = rows(found, path)
        known = store.keeps(path)
        kept = store.keep(path)
        store.write(kept.parent.name, tables)
    except (ValueError, OSError) as error:
        why = getattr(error, "strerror", None) or str(error).removeprefix(f"{path}: ")
        return Brought(path=path, state="refused", why=why)
    counts = {each: tables[each].num_rows for each in COUNTED if each in tables}
    return Brought(
        path=path, state="known" if known else "new", format=found.NAME, counts=Counter(counts)
    )


def _taped(store: Store, path: Path, wire: Wire, fresh: list[str]) -> Brought:
    id = name(wire.source, path)
    if (store.tapes / f"{id}.tape").exists():
        return Brought(path=path, state="known", format=wire.name)
    taped = tape(store, id, wire.read(path), named(path))
    fresh.append(id)
    counts = {"trajectories": 1, "exchanges": taped.exchanges}
    return Brought(path=path, state="new", format=wire.name, counts=counts, remarks=taped.remarks)
