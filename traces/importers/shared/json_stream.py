"""Stream the elements of one list in a JSON document of any size."""

import re
from collections.abc import Iterator
from io import BufferedIOBase

from msgspec import Struct, field

READ_SIZE = 1 << 20
_LIST = ord("[")
_MAX_DEPTH = 10_000
"""No parser here reads as deep; scanning on would take seconds for each 20 MB of brackets."""
_TOKEN = re.compile(rb'["{}\[\]]')
_UNTIL_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+[{}\[\]]', re.DOTALL)
"""All before the next bracket; no match if that is in later data, or a string ends there."""
_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)


class _JsonListScanner(Struct):
    """Position in a document; `text` is the element that is being read."""

    key: bytes
    depth: int
    """Nesting level of the list, including itself."""
    limit: int
    level: int = 0
    quoted: bool = False
    inside: bool = False
    named: bool = False
    over: bool = False
    text: bytearray = field(default_factory=bytearray)
    size: int = 0

    def feed(self, data: bytes) -> Iterator[bytes | int]:
        """Scan more data; yield each completed element, or its size if it is too large."""
        at = begin = 0
        has_bracket = True
        while at < len(data) and not self.over:
            if self.quoted:
                start, at = at, _STRING.match(data, at).end()  # type: ignore[union-attr]
                if not self.inside and len(self.text) <= len(self.key):
                    self.text += data[start:at]
                if at < len(data):  # a match that stops before the end is at the closing quote
                    at, self.quoted = at + 1, False
                    self.named = self.level == self.depth - 1 and self.text == self.key
                continue
            # The strings of an element are of no interest, so they are passed together.
            token = _UNTIL_BRACKET.match(data, at) if self.inside and has_bracket else None
            has_bracket = not self.inside or token is not None
            token = token or _TOKEN.search(data, at)
            if token is None:
                break
            at = token.end()
            match data[at - 1 : at]:
                case b'"':
                    self.quoted = True
                    if not self.inside:
                        self.text.clear()
                case b"{" | b"[":
                    self.level += 1
                    if self.level > _MAX_DEPTH:
                        raise ValueError("its values are nested too deeply")
                    if self.level == self.depth and self.named and data[at - 1] == _LIST:
                        self.inside = True
                    elif self.inside and self.level == self.depth + 1:
                        begin = at - 1
                        self.text.clear()
                        self.size = 0
                case _:
                    self.level -= 1
                    if self.inside and self.level == self.depth:
                        self._collect(data[begin:at])
                        yield bytes(self.text) if self.size <= self.limit else self.size
                    elif self.inside and self.level < self.depth:
                        self.over = True
        if self.inside and self.level > self.depth:
            self._collect(data[begin:])

    def _collect(self, data: bytes) -> None:
        self.size += len(data)
        if self.size <= self.limit:
            self.text += data
        else:
            self.text.clear()


def read_list_objects(
    file: BufferedIOBase, key: str, depth: int, limit: int
) -> Iterator[bytes | int]:
    """Yield the unparsed objects of the list `key` (empty: any), which is `depth` levels deep.

    For an object of more than `limit` bytes, yields its size instead. Raises EOFError if the
    document ends before the list, ValueError if the list is missing.
    """
    scan, rest = _JsonListScanner(key.encode(), depth, limit, named=not key), b""
    while not scan.over and (data := file.read1(READ_SIZE)):
        data = rest + data
        # A trailing backslash belongs to the next data.
        cut = len(data) - (len(data) - len(data.rstrip(b"\\"))) % 2
        rest = data[cut:]
        yield from scan.feed(data[:cut])
    if not scan.inside:
        raise ValueError(f"it has no list of {key}")
    if not scan.over:
        raise EOFError("it ends in the middle")
