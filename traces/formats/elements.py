"""One list of a JSON document, element by element, out of a file of any size."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedIOBase

AT_ONCE = 1 << 20
_TOKEN = re.compile(rb'["{}\[\]]')
_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)


@dataclass(slots=True)
class _Scan:
    """Where in a document one is; `element` is the text of the one that is under way."""

    key: bytes
    depth: int
    """Levels at which the list stands, its own included."""
    limit: int
    level: int = 0
    quoted: bool = False
    inside: bool = False
    named: bool = False
    over: bool = False
    text: bytearray = field(default_factory=bytearray)
    size: int = 0

    def feed(self, data: bytes) -> Iterator[bytes | int]:
        """What is whole after this much more: an element, or the size of one that is too large."""
        at = begun = 0
        while at < len(data) and not self.over:
            if self.quoted:
                start, at = at, _STRING.match(data, at).end()  # type: ignore[union-attr]
                if not self.inside and len(self.text) <= len(self.key):
                    self.text += data[start:at]
                if at < len(data):  # what stops a string before the end is its quote
                    at, self.quoted = at + 1, False
                    self.named = self.level == self.depth - 1 and self.text == self.key
                continue
            found = _TOKEN.search(data, at)
            if found is None:
                break
            at = found.end()
            match found[0]:
                case b'"':
                    self.quoted = True
                    if not self.inside:
                        self.text.clear()
                case b"{" | b"[":
                    self.level += 1
                    if self.level == self.depth and self.named and found[0] == b"[":
                        self.inside = True
                    elif self.inside and self.level == self.depth + 1:
                        begun = found.start()
                        self.text.clear()
                        self.size = 0
                case _:
                    self.level -= 1
                    if self.inside and self.level == self.depth:
                        self._keep(data[begun:at])
                        yield bytes(self.text) if self.size <= self.limit else self.size
                    elif self.inside and self.level < self.depth:
                        self.over = True
        if self.inside and self.level > self.depth:
            self._keep(data[begun:])

    def _keep(self, data: bytes) -> None:
        self.size += len(data)
        if self.size <= self.limit:
            self.text += data
        else:
            self.text.clear()


def elements(file: BufferedIOBase, key: str, depth: int, limit: int) -> Iterator[bytes | int]:
    """The objects of the list called `key`, which is `depth` levels deep, as they stand.

    In place of one of more than `limit` bytes comes its size. EOFError where the document ends
    before the list does; ValueError where there is no such list.
    """
    scan, rest = _Scan(key.encode(), depth, limit), b""
    while not scan.over and (data := file.read1(AT_ONCE)):
        data = rest + data
        # A backslash at the end belongs to what comes.
        cut = len(data) - (len(data) - len(data.rstrip(b"\\"))) % 2
        rest = data[cut:]
        yield from scan.feed(data[:cut])
    if not scan.inside:
        raise ValueError(f"it has no list of {key}")
    if not scan.over:
        raise EOFError("it ends in the middle")
