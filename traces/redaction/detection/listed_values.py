"""Secrets in lists of values: variables of a program, cookies, columns of a table."""

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from traces.redaction.detection.openings import find_near_openings
from traces.redaction.detection.secret_place import QUOTE, SPACE
from traces.redaction.detection.value_forms import is_plausible_password, is_random_token

type Span = tuple[int, int]

_ENVIRONMENT = rb"\"env(?:ironment|_vars|Vars)?\\{0,15}\"" + SPACE + rb"{0,4}:" + SPACE
_ENVIRONMENT_BLOCK = re.compile(_ENVIRONMENT + rb"{0,4}\{([^{}]{1,16384})")
"""The variables of a program, as in the settings of MCP servers."""
_ENVIRONMENT_START = re.compile(_ENVIRONMENT + rb"{0,4}\{")
_VALUE = re.compile(rb"\"([\w.~+/=-]{16,4096}+)\\{0,15}\"")
_VARIABLE_NAME = re.compile(
    rb"\"(?![\w-]*(?i:sha|id|hash|digest|version|commit|path|url|uri|host|ref|rev|name|dir|home)"
    rb"\\{0,15}\")[A-Za-z_]\w{0,64}\\{0,15}\"" + SPACE + rb"{0,4}:" + SPACE
    + rb"{0,4}\\{0,15}\Z"
)  # fmt: skip
_LONGEST_NAME = 180
_OPEN_VARIABLE = re.compile(
    rb"[{,]" + SPACE + rb"{0,16}\\{0,15}\"[A-Za-z_]\w{0,64}\\{0,15}\"" + SPACE + rb"{0,4}:"
    + SPACE + rb"{0,4}\\{0,15}\"([\w.~+/=-]{0,4096}+)\Z"
)  # fmt: skip

_CONTAINER = (
    rb"(?i)\"(?:[\w.-]{0,40}?(?:passwords|passwd|secrets?|tokens|credentials?|api_?keys|access_?keys)"
    rb"|stringData)\\{0,15}\"" + SPACE + rb"{0,4}:" + SPACE
)  # fmt: skip
_CONTAINER_BLOCK = re.compile(_CONTAINER + rb"{0,16}(?:\{([^{}]{1,16384})|\[([^\[\]]{1,16384}))")
_CONTAINER_START = re.compile(_CONTAINER + rb"{0,16}[{\[]")
_STRING = re.compile(rb"\"([^\s\"'`\\]{6,4096}+)\\{0,15}\"(?!" + SPACE + rb"{0,4}:)")
"""No key of a mapping."""
_OPEN_STRING = re.compile(rb"[{,:\[]" + SPACE + rb"{0,16}\\{0,15}\"([^\s\"'`\\]{0,4096}+)\Z")

_COOKIES = (
    rb"(?i:(?:^|[^\w-])(?:set-)?cookie)" + rb"(?:" + QUOTE + rb")?[:,]" + SPACE + rb"{0,4}(?:"
    + QUOTE + rb")?"
)  # fmt: skip
_COOKIE_LINE = re.compile(_COOKIES + rb"((?:[\w.-]{1,64}=[^\s\"'`\\;,]{0,4096}+;? {0,2}){1,64})")
_COOKIE_START = re.compile(_COOKIES)
_COOKIE = re.compile(rb"([\w.-]{1,64})=([^\s\"'`\\;,]{16,4096}+)")
_OPEN_COOKIE = re.compile(
    _COOKIES + rb"(?:[\w.-]{1,64}=[^\s\"'`\\;,]{0,4096}+; {0,2}){0,64}[\w.-]{1,64}="
    rb"([^\s\"'`\\;,]{0,4096}+)\Z"
)

_SECRET_COLUMN = rb"(?:password|passwd|secret|api_?key|access_?token|auth_?token)"
_COLUMN_NAME = re.compile(rb"(?i)[ \"*`]{0,4}[\w.-]{0,24}" + _SECRET_COLUMN + rb"[ \"*`]{0,4}")
_COLUMN = re.compile(
    rb"[PpSsAa](?i:(?<=p)assw(?:or)?d|(?<=s)ecret|(?<=a)(?:pi_?key|(?:ccess|uth)_?token))"
    rb"(?=[ \"*`]{0,4}(?:[,;\t|\r\n\\]|\Z))"
)
_LINE_END = re.compile(rb"\r?\n|\\{1,15}r\\{1,15}n|\\{1,15}n|\\{0,15}\"\Z|\Z")
_HEADER_CELL = re.compile(rb"[ \"*`]{0,4}[A-Za-z_][\w ./@-]{0,40}[ \"*`]{0,4}")
_MOST_ROWS, _LONGEST_HEADER = 10_000, 2_000
_SEPARATORS = (b",", b";", b"\t", b"|")
_CELL_VALUE = re.compile(rb"[ \"*`]*([^\s\"*`]{6,4096})[ \"*`]*\Z")


class _Header(Struct, frozen=True, kw_only=True):
    """The first line of a table."""

    end: int
    """The offset of the first row."""
    separator: bytes
    columns: int
    secret: tuple[int, ...]
    """Indexes of the columns that are named like secrets."""


LIST_SIGNS = (
    _ENVIRONMENT + rb"*\{",
    _CONTAINER + rb"*[\[{]",
    rb"(?i)cookie[\\\"'`]*[:,][\\\"'`\srnt]*[\w.-]+=",
    rb"(?i)(?:[,;\t|][ \"*`]*[\w.-]*"
    + _SECRET_COLUMN
    + rb"[ \"*`]*[,;\t|\r\n\\]|"
    + _SECRET_COLUMN
    + rb"[ \"*`]*[,;\t|][ \"*`]*[A-Za-z_])",
)
"""What the prefilter searches for each kind of list."""


def find_variables(data: bytes, ends: Sequence[int] | None = None) -> Iterator[Span]:
    """Yield the values of a program's variables that look random.

    `ends` are those of the signs in the data, here and below; None if they are unknown.
    """
    for block in find_near_openings(_ENVIRONMENT_BLOCK, _ENVIRONMENT_START, data, ends):
        begin, stop = block.span(1)
        for match in _VALUE.finditer(data, begin, stop):
            name = data[max(begin, match.start() - _LONGEST_NAME) : match.start()]
            if is_random_token(match[1]) and _VARIABLE_NAME.search(name):
                yield match.span(1)


def find_contained_values(data: bytes, ends: Sequence[int] | None = None) -> Iterator[Span]:
    """Yield the values in a list or mapping that is named like secrets."""
    for block in find_near_openings(_CONTAINER_BLOCK, _CONTAINER_START, data, ends):
        for match in _STRING.finditer(data, *block.span(block.lastindex or 0)):
            if is_plausible_password(match[1]):
                yield match.span(1)


def find_cookies(data: bytes, ends: Sequence[int] | None = None) -> Iterator[Span]:
    """Yield the values of cookies that look random."""
    for line in find_near_openings(_COOKIE_LINE, _COOKIE_START, data, ends):
        for match in _COOKIE.finditer(data, *line.span(1)):
            if is_random_token(match[2]):
                yield match.span(2)


def find_table_secrets(data: bytes, ends: Sequence[int] | None = None) -> Iterator[Span]:
    """Yield the plausible values of columns named like secrets, in CSV and Markdown."""
    done = 0
    for name in find_near_openings(_COLUMN, _COLUMN, data, ends):
        if name.start() < done or (head := _read_header(data, name.start())) is None:
            continue
        for start, row in _iter_rows(data, head):
            yield from _find_row_secrets(row, start, head)
            done = start + len(row)


def _read_header(data: bytes, inside: int) -> _Header | None:
    """Return the header of a table around `inside`; None if the line is none."""
    end = _LINE_END.search(data, inside)
    low = max(0, inside - _LONGEST_HEADER)  # a line that begins before is no header
    escaped = data.rfind(b"\\n", low, inside)
    begin = max(data.rfind(b"\n", low, inside) + 1, escaped + 2 if escaped >= 0 else 0)
    if end is None or end.start() - begin > _LONGEST_HEADER:
        return None
    line = data[begin : end.start()]
    line = line[line.rfind(b': "') + 3 :] if b': "' in line else line
    separator = max(_SEPARATORS, key=line.count)
    cells = line.split(separator)
    named = [cell for cell in cells if cell.strip()]
    is_framed = separator == b"|" and line.strip().startswith(b"|")
    if len(named) < 2 or (len(named) < len(cells) and not is_framed):
        return None
    if not all(map(_HEADER_CELL.fullmatch, named)):
        return None
    secret = tuple(number for number, cell in enumerate(cells) if _COLUMN_NAME.fullmatch(cell))
    return _Header(end=end.end(), separator=separator, columns=len(cells), secret=secret)


def _iter_rows(data: bytes, head: _Header) -> Iterator[tuple[int, bytes]]:
    """Yield the rows with their offsets; the last one may be cut by the end of the text."""
    at = head.end
    for _ in range(_MOST_ROWS):
        end = _LINE_END.search(data, at)
        if end is None or end.start() == at:
            return
        row = data[at : end.start()]
        missing = head.columns - 1 - row.count(head.separator)
        if missing < 0 or (missing and end.start() < len(data)):
            return
        yield at, row
        at = end.end()


def _find_row_secrets(row: bytes, at: int, head: _Header) -> Iterator[Span]:
    cells = row.split(head.separator)
    for column in head.secret:
        if column >= len(cells):
            return
        start = at + sum(len(cell) + 1 for cell in cells[:column])
        match = _CELL_VALUE.match(cells[column])
        if match and is_plausible_password(match[1]):
            yield start + match.start(1), start + match.end(1)


LISTS: tuple[Callable[[bytes, Sequence[int] | None], Iterator[Span]], ...] = (
    find_variables,
    find_contained_values,
    find_cookies,
    find_table_secrets,
)


def find_open_list(tail: bytes) -> int:
    """Return the offset of an incomplete value at the end of a list; len(tail) if there is none."""
    if _ENVIRONMENT_BLOCK.search(tail) and (match := _OPEN_VARIABLE.search(tail)):
        return match.start(1)
    if _CONTAINER_BLOCK.search(tail) and (match := _OPEN_STRING.search(tail)):
        return match.start(1)
    if match := _OPEN_COOKIE.search(tail):
        return match.start(1)
    return _find_open_row(tail)


def _find_open_row(tail: bytes) -> int:
    """Return the offset of an incomplete row at the end of a table with secrets."""
    done = 0
    for name in _COLUMN.finditer(tail):
        if name.start() < done or (head := _read_header(tail, name.start())) is None:
            continue
        for start, row in _iter_rows(tail, head):
            done = start + len(row)
            if done == len(tail):
                return start
    return len(tail)
