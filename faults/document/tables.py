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
        rows = [list(_cells(inner.text, at, stop, mark, pattern)) for at, stop in lines]
        rows = [row for row in rows if row]
        if len(rows) >= 2 and len(rows[0]) >= 2 and {len(row) for row in rows} == {len(rows[0])}:
            names = [inner.text[at:stop] for at, stop in rows[0]]
            if all(_NAME.fullmatch(name) and words.kind(name) == "text" for name in names):
                return _table(inner, lines, rows[1:], names, path)
    return None


def _cells(
    text: str, at: int, stop: int, mark: str, pattern: re.Pattern[str]
) -> Iterator[tuple[int, int]]:
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
    lines: list[tuple[int, int]],
    rows: list[list[tuple[int, int]]],
    names: list[str],
    path: Path,
) -> Node:
    items = []
    for number, row in enumerate(rows):
        begin, end = next((at, stop) for at, stop in lines if at <= row[0][0] < stop)
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
