"""The pieces of a text that tell who wrote it.

A piece is a line, or up to LONGEST characters of a longer one, without white space and marks of a
patch around it; short lines that follow one another are one piece, so that a text of many short
lines is more than the few lines that it repeats. All that is in no piece is the rest of a text. It
can hold a program as well, in blanks or in plus and minus signs, so its information is measured, by
compression.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from hashlib import blake2b

LONGEST, SHORTEST = 128, 16
REST = "00000000"
"""Stands for the rest of a text among the digests of its pieces."""
_LEAST_REST = 12
"""Bytes that compression makes of a text of one character."""
_LINES = re.compile(r"\r?\n|\\n")
"""Also an escaped newline: files are written by scripts and by JSON within JSON, too."""
_AROUND = " \t\r\f\v+-<>|\"'`,"
_MOST_LINE = 1 << 20
"""Characters after which a line that is read in parts is taken for ended."""


class TextMeter:
    """Measures a text that comes in parts."""

    def __init__(self) -> None:
        self._short, self._begun = "", ""
        self._compressor, self._rest = zlib.compressobj(), 0

    def iter_pieces(self, parts: Iterable[str]) -> Iterator[str]:
        """Yield the pieces of a text, without its rest."""
        for part in parts:
            *lines, self._begun = _LINES.split(self._begun + part)
            if len(self._begun) > _MOST_LINE:
                lines, self._begun = [*lines, self._begun], ""
            for line in lines:
                yield from self._add_line(line)
        yield from self._add_line(self._begun)
        if len(self._short) > 5:
            yield self._short
        else:
            self._add_rest(self._short)

    def measure_rest(self) -> int:
        """Return the bytes of information in all that was in no piece."""
        return max(0, self._rest + len(self._compressor.flush()) - _LEAST_REST)

    def _add_line(self, line: str) -> Iterator[str]:
        kept = line.strip(_AROUND)
        self._add_rest(line.replace(kept, "", 1) + "\n")
        if len(kept) < SHORTEST:
            self._short += kept
        if len(self._short) >= SHORTEST or (len(kept) >= SHORTEST and len(self._short) > 5):
            yield self._short
        elif len(kept) >= SHORTEST:
            self._add_rest(self._short)
        if max(len(self._short), len(kept)) >= SHORTEST:
            self._short = ""
        if len(kept) >= SHORTEST:
            yield from (kept[at : at + LONGEST] for at in range(0, len(kept), LONGEST))

    def _add_rest(self, text: str) -> None:
        self._rest += len(self._compressor.compress(text.encode("utf-8", "replace")))


def digest_piece(piece: str) -> str:
    """Return 8 hexadecimal digits for a piece."""
    return blake2b(piece.encode("utf-8", "replace"), digest_size=4).hexdigest()


def measure_pieces(text: str) -> dict[str, int]:
    """Return the size of each piece of a text by its digest: its length times its occurrences; that
    of the rest, if it has information, by REST.
    """
    sizes: dict[str, int] = {}
    meter = TextMeter()
    for piece in meter.iter_pieces([text]):
        digest = digest_piece(piece)
        sizes[digest] = sizes.get(digest, 0) + len(piece)
    rest = meter.measure_rest()
    return sizes | {REST: rest} if rest else sizes
