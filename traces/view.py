"""A text made of pieces of another one, which remembers where each of its bytes stood there."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class View:
    """A text made of pieces of another one: where each begins here, and where it stood there.

    A piece that is as long there as here is itself; any other is one spelling, kept whole.
    """

    text: bytes
    here: tuple[int, ...]
    there: tuple[int, ...]
    ends: tuple[int, ...]

    def ranges(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Where text[start:stop] stood in the original: one range, or one per frame it is in."""
        out: list[tuple[int, int]] = []
        for piece in range(bisect_right(self.here, start) - 1, len(self.here)):
            begin = self.here[piece]
            if begin >= stop:
                break
            end = self.here[piece + 1] if piece + 1 < len(self.here) else len(self.text)
            low, high = self.there[piece], self.ends[piece]
            if end == begin:
                continue
            if high - low == end - begin:
                low, high = low + max(start - begin, 0), low + min(stop, end) - begin
            if out and out[-1][1] == low:
                low = out.pop()[0]
            out.append((low, high))
        return out


class Viewing:
    """Collects the pieces of a view."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._there: list[tuple[int, int]] = []

    def add(self, data: bytes, start: int, stop: int, escapes: Iterable[re.Match[bytes]]) -> None:
        """Take in data[start:stop], with these escapes undone."""
        for match in escapes:
            self._piece(data[start : match.start()], start, match.start())
            self._piece(_said(match), match.start(), match.end())
            start = match.end()
        self._piece(data[start:stop], start, stop)

    def _piece(self, text: bytes, start: int, stop: int) -> None:
        if text:
            self._pieces.append(text)
            self._there.append((start, stop))

    def view(self) -> View:
        here = tuple(accumulate((len(piece) for piece in self._pieces[:-1]), initial=0))
        there = tuple(start for start, _ in self._there)
        return View(b"".join(self._pieces), here, there, tuple(stop for _, stop in self._there))


def _said(match: re.Match[bytes]) -> bytes:
    """What an escape stands for; its last group says the digits or, after a backslash, itself."""
    said = match[match.lastindex or 0]
    if match[0].startswith(b"%"):
        return bytes((int(said, 16),))
    if len(said) == 1:
        return said
    return chr(int(said, 16)).encode("utf-8", "surrogatepass")
