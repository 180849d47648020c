"""Texts with marks on what differs: a struck result and the true one, and what came of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from os.path import commonprefix
from typing import Literal

type Mark = Literal["", "lie", "truth", "differs"]

_TOKEN = re.compile(r"[\w.\-]+|\s+|[^\w\s]")
_UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
"""Controls, and what turns the direction of writing: a page must show what is there."""
LONGEST = 320
"""Characters of a stretch that are shown, marked or not."""
LARGE = 4000
"""Texts longer than this are compared by their two ends only."""
TELLING = range(3, 81)
"""How long a value is that is looked for in other steps too."""
ALIKE = 0.4
"""Texts less alike than this (difflib's ratio) have nothing in common: all of them is marked."""
CUT = "[cut here]"

type Stretch = tuple[bool, str, str]
"""Whether it is the same in both texts, and what it is in each."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some characters, and whether they are the lie, the truth in its place, or only differ."""

    text: str
    mark: Mark = ""


def shown(text: str) -> str:
    """The text without what a page cannot show, or should not obey."""
    return _UNSHOWN.sub("\ufffd", text)


def stretches(one: str, two: str) -> tuple[Stretch, ...]:
    """Two texts cut, at whole words and numbers, where they begin and end to differ."""
    if one == two:
        return ((True, one, two),)
    if one.startswith(two):
        return (True, two, two), (False, one[len(two) :], "")
    if max(len(one), len(two)) > LARGE:
        return _ends(one, two)
    tokens = _TOKEN.findall(one), _TOKEN.findall(two)
    matcher = SequenceMatcher(None, *tokens, autojunk=False)
    if matcher.ratio() < ALIKE:
        return ((False, one, two),)
    return tuple(
        (tag == "equal", "".join(tokens[0][a:b]), "".join(tokens[1][c:d]))
        for tag, a, b, c, d in matcher.get_opcodes()
    )


def _ends(one: str, two: str) -> tuple[Stretch, ...]:
    begin = len(commonprefix([one, two]))
    end = len(commonprefix([one[begin:][::-1], two[begin:][::-1]]))
    middle = one[begin : len(one) - end], two[begin : len(two) - end]
    last = one[len(one) - end :]
    return (True, one[:begin], one[:begin]), (False, *middle), (True, last, last)


def words(true: str, lie: str) -> dict[str, Mark]:
    """Values that stand for one another in a struck result: what to look for in other steps."""
    found: dict[str, Mark] = {}
    for same, was, now in stretches(true, lie):
        if not same and len(now) in TELLING and now not in true:
            found[now] = "lie"
        if not same and len(was) in TELLING and was not in lie:
            found[was] = "truth"
    return found


def compared(
    one: str, two: str, marks: tuple[Mark, Mark]
) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Both texts with a mark on what is not in the other."""
    found = stretches(one, two)
    left = [Piece(was, "" if same else marks[0]) for same, was, _ in found]
    right = [Piece(now, "" if same else marks[1]) for same, _, now in found]
    if one.startswith(two) and one != two:
        right.append(Piece(CUT, marks[1]))
    return _shown(left), _shown(right)


def marked(text: str, known: Mapping[str, Mark]) -> tuple[Piece, ...]:
    """The text with each occurrence of a known value marked."""
    if not known:
        return _shown([Piece(text)])
    either = "|".join(re.escape(word) for word in sorted(known, key=len, reverse=True))
    pieces, at = list[Piece](), 0
    for found in re.finditer(f"(?<![\\w.])(?:{either})(?!\\w)", text):
        pieces += [Piece(text[at : found.start()]), Piece(found[0], known[found[0]])]
        at = found.end()
    return _shown([*pieces, Piece(text[at:])])


def _shown(pieces: list[Piece]) -> tuple[Piece, ...]:
    return tuple(Piece(_short(shown(piece.text)), piece.mark) for piece in pieces if piece.text)


def _short(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]} [\u2026 {len(text) - 2 * half:,} characters \u2026] {text[-half:]}"
