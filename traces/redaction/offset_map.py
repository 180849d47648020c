"""A text made of pieces of an original, with the original offset of each of its bytes."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from msgspec import Struct


class OffsetMap(Struct, frozen=True):
    """A text made of pieces of an original: the offset of each piece here and there.

    A piece of the same length in both is identical; any other is one escape, mapped as a unit.
    """

    text: bytes
    piece_starts: tuple[int, ...]
    original_starts: tuple[int, ...]
    original_ends: tuple[int, ...]

    def original_ranges(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Map text[start:stop] to the original: one range, or one per frame that it spans."""
        out: list[tuple[int, int]] = []
        for piece in range(bisect_right(self.piece_starts, start) - 1, len(self.piece_starts)):
            begin = self.piece_starts[piece]
            if begin >= stop:
                break
            end = (
                self.piece_starts[piece + 1]
                if piece + 1 < len(self.piece_starts)
                else len(self.text)
            )
            low, high = self.original_starts[piece], self.original_ends[piece]
            if end == begin:
                continue
            if high - low == end - begin:
                low, high = low + max(start - begin, 0), low + min(stop, end) - begin
            if out and out[-1][1] == low:
                low = out.pop()[0]
            out.append((low, high))
        return out


class OffsetMapBuilder:
    """Collects the pieces of an offset map."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._there: list[tuple[int, int]] = []

    def add_text(
        self, data: bytes, start: int, stop: int, escapes: Iterable[re.Match[bytes]]
    ) -> None:
        """Add data[start:stop], with these escapes decoded."""
        for match in escapes:
            self._add_piece(data[start : match.start()], start, match.start())
            self._add_piece(_decode_escape_match(match), match.start(), match.end())
            start = match.end()
        self._add_piece(data[start:stop], start, stop)

    def add_earlier_text(self, text: bytes) -> None:
        """Add a text that ends where the original begins: its offsets are negative."""
        self._add_piece(text, -len(text), 0)

    def _add_piece(self, text: bytes, start: int, stop: int) -> None:
        if text:
            self._pieces.append(text)
            self._there.append((start, stop))

    def build(self) -> OffsetMap:
        starts = tuple(accumulate((len(piece) for piece in self._pieces[:-1]), initial=0))
        original_starts = tuple(start for start, _ in self._there)
        return OffsetMap(
            b"".join(self._pieces), starts, original_starts, tuple(stop for _, stop in self._there)
        )


def _decode_escape_match(match: re.Match[bytes]) -> bytes:
    """Decode an escape; its last group is the digits or, after a backslash, the character."""
    content = match[match.lastindex or 0]
    if match[0].startswith(b"%"):
        return bytes((int(content, 16),))
    if len(content) == 1:
        return content
    return chr(int(content, 16)).encode("utf-8", "surrogatepass")
