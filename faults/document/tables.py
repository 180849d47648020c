"""Parse text tables: cells separated by commas, semicolons, tabs or bars, one row per line.

A row is an object with the header's names, so that `$[*].total` means the same as in JSON.
"""

import re
from collections.abc import Iterator, Mapping

from faults.document import plain_values
from faults.document.nodes import DocumentNode, NestedText
from faults.jsonpath import JsonLocation

_LINE = re.compile(r"[^\r\n]+(?:\r\n|\n|\r)?")
_CELLS: Mapping[str, re.Pattern[str]] = {
    mark: re.compile(rf'\s*(?:"((?:[^"]|"")*)"|([^{re.escape(mark)}"\r\n]*?))\s*(?:$|[{mark}])')
    for mark in ("\t", ";", ",")
} | {"|": re.compile(r"[ \t]*(?:(?!)()|([^|\r\n]*?))[ \t]*(?:$|\|)")}
_NAME = re.compile(r'"?[^\W\d][\w ./%()#\-]{0,39}(?<!\.)"?')
_RULE = re.compile(r"[\s|+:\-=]+")

type _CellSpan = tuple[int, int]


def parse_text_table(
    inner: NestedText, start: int = 0, path: JsonLocation = ()
) -> DocumentNode | None:
    """Parse the table in a text from `start` on, header first; None if it is not a table."""
    lines = [
        (split_lines.start(), split_lines.end())
        for split_lines in _LINE.finditer(inner.text, start)
        if split_lines[0].strip()
    ]
    if len(lines) < 2:
        return None
    for mark, pattern in _CELLS.items():
        split_lines = [
            (line, list(_split_table_cells(inner.text, *line, mark, pattern))) for line in lines
        ]
        rows = [(line, cells) for line, cells in split_lines if cells]
        wide = {len(cells) for _, cells in rows}
        if len(rows) >= 2 and len(wide) == 1 and wide != {1}:
            names = [inner.text[at:stop] for at, stop in rows[0][1]]
            if all(
                _NAME.fullmatch(name) and plain_values.classify_plain_value(name) == "text"
                for name in names
            ):
                return _make_table_node(inner, rows[1:], names, path)
    return None


def _split_table_cells(
    text: str, at: int, stop: int, mark: str, pattern: re.Pattern[str]
) -> Iterator[_CellSpan]:
    """Yield the ranges of a line's cells; none for a ruler line."""
    line = text[at:stop].rstrip("\r\n")
    if mark == "|":
        if _RULE.fullmatch(line):
            return
        # The outer bars do not separate cells.
        lead = len(line) - len(line.lstrip().removeprefix("|"))
        at, line = at + lead, line[lead:].rstrip().removesuffix("|")
    position = 0
    while position <= len(line):
        match = pattern.match(line, position)
        if match is None:
            return
        group = 1 if match[1] is not None else 2
        yield at + match.start(group), at + match.end(group)
        if match.end() == position or line[match.end() - 1 : match.end()] != mark:
            return
        position = match.end()


def _find_cell_values(
    inner: NestedText, path: JsonLocation, at: int, stop: int
) -> tuple[DocumentNode, ...]:
    is_value = plain_values.classify_plain_value(inner.text[at:stop]) != "text"
    return () if is_value else tuple(plain_values.find_plain_values(inner, path, at, stop))


def _make_table_node(
    inner: NestedText,
    rows: list[tuple[_CellSpan, list[_CellSpan]]],
    names: list[str],
    path: JsonLocation,
) -> DocumentNode:
    items = []
    for number, ((begin, end), row) in enumerate(rows):
        cells = tuple(
            DocumentNode(
                kind=plain_values.classify_plain_value(inner.text[at:stop]),
                path=(*path, number, name),
                start=inner.to_outer_offset(at),
                stop=inner.to_outer_offset(stop),
                text=inner.text[at:stop],
                items=_find_cell_values(inner, (*path, number, name), at, stop),
                quote_depth=inner.quote_depth,
            )
            for name, (at, stop) in zip(names, row, strict=True)
        )
        items.append(
            DocumentNode(
                kind="object",
                path=(*path, number),
                start=inner.to_outer_offset(begin),
                stop=inner.to_outer_offset(end),
                items=cells,
                line=(inner.to_outer_offset(begin), inner.to_outer_offset(end)),
                quote_depth=inner.quote_depth,
            )
        )
    return DocumentNode(
        kind="array",
        path=path,
        start=items[0].start,
        stop=items[-1].stop,
        items=tuple(items),
        quote_depth=inner.quote_depth,
    )
