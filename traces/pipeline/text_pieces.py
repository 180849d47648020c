"""Pieces of text by which what a model wrote is found again in the files of its program.

A piece is a line, or 128 characters of a longer one, without white space and marks of a patch
around it; short lines that follow one another are one piece, so that a text of many short lines is
more than the few lines that it repeats.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b

LONGEST, SHORTEST = 128, 16
_LINES = re.compile(r"\r?\n|\\n")
"""Also an escaped newline: files are written by scripts and by JSON within JSON, too."""
_AROUND = " \t\r\f\v+-<>|\"'`,"


def iter_text_pieces(text: str) -> Iterator[str]:
    """Yield the pieces of a text. A short rest of 1 to 5 characters occurs everywhere: left out."""
    short = ""
    for line in _LINES.split(text):
        kept = line.strip(_AROUND)
        if len(kept) < SHORTEST:
            short += kept
        if len(short) >= SHORTEST or (len(kept) >= SHORTEST and len(short) > 5):
            yield short
        if max(len(short), len(kept)) >= SHORTEST:
            short = ""
        if len(kept) >= SHORTEST:
            yield from (kept[at : at + LONGEST] for at in range(0, len(kept), LONGEST))
    if len(short) > 5:
        yield short


def digest_piece(piece: str) -> str:
    """Return 8 hexadecimal digits for a piece."""
    return blake2b(piece.encode("utf-8", "replace"), digest_size=4).hexdigest()


def measure_pieces(text: str) -> dict[str, int]:
    """Return the size of each piece of a text by its digest: its length times its occurrences."""
    sizes: dict[str, int] = {}
    for piece in iter_text_pieces(text):
        digest = digest_piece(piece)
        sizes[digest] = sizes.get(digest, 0) + len(piece)
    return sizes
