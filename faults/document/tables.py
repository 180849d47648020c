"""Tables in text: cells that commas, semicolons, tabs or bars part, one row to a line.

A row is an object with the header's names, so that `$[*].total` means the same as in JSON.
"""

import re
from collections.abc import Iterator, Mapping

from faults.document import words
from faults.document.nodes import Inner, Node
from faults.query import Path

_LINE = re.compile(r"[^\r\n]+(?:\r\n|\n|\r)?")
_CELLS: Mapping[str, re.Pattern[str]] = {
    mark: re.compile(rf'\s*(?:"((?:[^"]|"")*)"|([^{re.escape(mark)}"\r\n]*?))\s*(?:$|[{mark}])')
    for mark in ("\t", ";", ",")
} | {"|": re.compile(r"[ \t]*(?:(?!)()|([^|\r\n]*?))[ \t]*(?:$|\|)")}
_NAME = re.compile(r'"?[^\W\d][\w ./%()#\-]{0,39}(?<!\.)"?')
_RULE = re.compile(r"[\s|+:\-=]+")

type _Place = tuple[int, int]


def table(inner: Inner, start: int = 0, path: Path = ()) -> Node | None:
    """The table that a text is from `start` on, header first; None where it is none."""
    lines = [
        (found.start(), found.end())
        for found in _LINE.finditer(inner.text, start)
        if found[0].strip()
    ]
    if len(lines) < 2:
        return None
    for mark, pattern in _CELLS.items():
        found = [(line, list(_cells(inner.text, *line, mark, pattern))) for line in lines]
        rows = [(line, cells) for line, cells in found if cells]
        wide = {len(cells) for _, cells in rows}
        if len(rows) >= 2 and len(wide) == 1 and wide != {1}:
            names = [inner.text[at:stop] for at, stop in rows[0][1]]
            if all(_NAME.fullmatch(name) and words.kind(name) == "text" for name in names):
                return _table(inner, rows[1:], names, path)
    return None


def _cells(text: str, at: int, stop: int, mark: str, pattern: re.Pattern[str]) -> Iterator[_Place]:
    """Where the cells of a line are; none for a line that is a rule."""
    line = text[at:stop].rstrip("\r\n")
    if mark == "|":
        if _RULE.fullmatch(line):
            return
        # Outer bars part nothing.
        lead = len(line) - len(line.lstrip().removeprefix("|"))
        at, line = at + lead, line[lead:].rstrip().removesuffix("|")
    place = 0
    while place <= len(line):
        found = pattern.match(line, place)
        if found is None:
            return
        which = 1 if found[1] is not None else 2
        yield at + found.start(which), at + found.end(which)
        if found.end() == place or line[found.end() - 1 : found.end()] != mark:
            return
        place = found.end()


def _words(inner: Inner, path: Path, at: int, stop: int) -> tuple[Node, ...]:
    whole = words.kind(inner.text[at:stop]) != "text"
    return () if whole else tuple(words.words(inner, path, at, stop))


def _table(
    inner: Inner,
    rows: list[tuple[_Place, list[_Place]]],
    names: list[str],
    path: Path,
) -> Node:
    items = []
    for number, ((begin, end), row) in enumerate(rows):
        cells = tuple(
            Node(
                kind=words.kind(inner.text[at:stop]),
                path=(*path, number, name),
                start=inner.spot(at),
                stop=inner.spot(stop),
                said=inner.text[at:stop],
                items=_words(inner, (*path, number, name), at, stop),
                quoted=inner.quoted,
            )
            for name, (at, stop) in zip(names, row, strict=True)
        )
        items.append(
            Node(
                kind="object",
                path=(*path, number),
                start=inner.spot(begin),
                stop=inner.spot(end),
                items=cells,
                line=(inner.spot(begin), inner.spot(end)),
                quoted=inner.quoted,
            )
        )
    return Node(
        kind="array",
        path=path,
        start=items[0].start,
        stop=items[-1].stop,
        items=tuple(items),
        quoted=inner.quoted,
    )
