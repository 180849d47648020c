"""Texts with marked differences: a faulted and a true result, and later steps."""

import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from os.path import commonprefix
from typing import Literal

from msgspec import Struct

type DiffMark = Literal["", "lie", "truth", "differs"]

_TOKEN = re.compile(r"[\w.\-]+|\s+|[^\w\s]")
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
"""Control characters and direction marks, which would hide or reorder text on a page."""
LONGEST_STRETCH = 320
"""Most shown characters of a stretch."""
LARGE_TEXT = 4000
"""Characters above which texts are compared only by common prefix and suffix."""
DISTINCTIVE_LENGTHS = range(3, 81)
"""Lengths of values that are searched for in other steps."""
LEAST_SIMILARITY = 0.4
"""Texts with a lower difflib ratio are marked completely."""
CUT_NOTE = "[cut here]"

type Stretch = tuple[bool, str, str]
"""Whether it is equal in both texts, and its text in each."""


class TextPiece(Struct, frozen=True):
    """A piece of text, marked as the injected value, the true value, or a difference."""

    text: str
    mark: DiffMark = ""


def sanitize_text(text: str) -> str:
    """Replace unprintable and direction characters."""
    return _UNPRINTABLE.sub("\ufffd", text)


def split_differences(one: str, two: str) -> tuple[Stretch, ...]:
    """Split two texts into equal and different stretches, at words and numbers."""
    if one == two:
        return ((True, one, two),)
    if one.startswith(two):
        return (True, two, two), (False, one[len(two) :], "")
    if max(len(one), len(two)) > LARGE_TEXT:
        return _split_common_ends(one, two)
    tokens = _TOKEN.findall(one), _TOKEN.findall(two)
    matcher = SequenceMatcher(None, *tokens, autojunk=False)
    if matcher.ratio() < LEAST_SIMILARITY:
        return ((False, one, two),)
    return tuple(
        (tag == "equal", "".join(tokens[0][a:b]), "".join(tokens[1][c:d]))
        for tag, a, b, c, d in matcher.get_opcodes()
    )


def _split_common_ends(one: str, two: str) -> tuple[Stretch, ...]:
    begin = len(commonprefix([one, two]))
    end = len(commonprefix([one[begin:][::-1], two[begin:][::-1]]))
    middle = one[begin : len(one) - end], two[begin : len(two) - end]
    last = one[len(one) - end :]
    return (True, one[:begin], one[:begin]), (False, *middle), (True, last, last)


def find_replaced_words(true: str, wrong_value: str) -> dict[str, DiffMark]:
    """Return the replaced values of a faulted result, to search for in other steps."""
    words: dict[str, DiffMark] = {}
    for same, original, mutated in split_differences(true, wrong_value):
        if not same and len(mutated) in DISTINCTIVE_LENGTHS and mutated not in true:
            words[mutated] = "lie"
        if not same and len(original) in DISTINCTIVE_LENGTHS and original not in wrong_value:
            words[original] = "truth"
    return words


def mark_differences(
    one: str, two: str, marks: tuple[DiffMark, DiffMark]
) -> tuple[tuple[TextPiece, ...], tuple[TextPiece, ...]]:
    """Return both texts with their differences marked."""
    stretches = split_differences(one, two)
    first_pieces = [TextPiece(was, "" if same else marks[0]) for same, was, _ in stretches]
    second_pieces = [TextPiece(now, "" if same else marks[1]) for same, _, now in stretches]
    if one.startswith(two) and one != two:
        second_pieces.append(TextPiece(CUT_NOTE, marks[1]))
    return _sanitize_pieces(first_pieces), _sanitize_pieces(second_pieces)


def mark_known_words(text: str, known: Mapping[str, DiffMark]) -> tuple[TextPiece, ...]:
    """Return the text with each occurrence of a known value marked."""
    if not known:
        return _sanitize_pieces([TextPiece(text)])
    alternatives = "|".join(re.escape(word) for word in sorted(known, key=len, reverse=True))
    pieces, at = list[TextPiece](), 0
    for match in re.finditer(f"(?<![\\w.])(?:{alternatives})(?!\\w)", text):
        pieces += [TextPiece(text[at : match.start()]), TextPiece(match[0], known[match[0]])]
        at = match.end()
    return _sanitize_pieces([*pieces, TextPiece(text[at:])])


def _sanitize_pieces(pieces: list[TextPiece]) -> tuple[TextPiece, ...]:
    return tuple(
        TextPiece(_shorten_middle(sanitize_text(piece.text)), piece.mark)
        for piece in pieces
        if piece.text
    )


def _shorten_middle(text: str) -> str:
    if len(text) <= LONGEST_STRETCH:
        return text
    half = LONGEST_STRETCH // 2
    return f"{text[:half]} [\u2026 {len(text) - 2 * half:,} characters \u2026] {text[-half:]}"
