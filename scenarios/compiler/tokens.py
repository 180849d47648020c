"""How right a list of tokens is: T1."""

import json
from dataclasses import dataclass

from scenarios.compiler.alignment import pairs
from scenarios.compiler.judged import Judged, scored, unreadable

KEYS = ("kind", "text", "line", "column", "start", "space")
MANY = 4
"""More than so many times as many tokens as there are is not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token in the three parts that are graded."""

    name: tuple[object, object]
    place: tuple[object, object]
    flags: tuple[object, object]

    def __str__(self) -> str:
        kind, text = self.name
        line, column = self.place
        marks = [mark for mark, on in zip(("start", "space"), self.flags, strict=True) if on]
        return " ".join([f"{kind} {text!r} at {line}:{column}", *marks])


def judge(golden: bytes, got: bytes) -> Judged:
    """0.6 for kind and text, 0.3 for the place, 0.1 for the flags of each token.

    RAMP compares the tokens number by number and gives 0 where there are more or fewer than
    there should be; that figure is the fact `strict`. Here one token too many or too few does
    not spoil all that come after it: the lists are aligned first, what has no counterpart counts
    as wrong, and the score is never less than `strict`.
    """
    try:
        found = _read(got)
    except ValueError as error:
        return unreadable(f"no tokens: {error}")
    wanted = _read(golden)
    if len(found) > MANY * len(wanted) + 64:
        return scored(0.0, f"{len(found)} tokens instead of {len(wanted)}", {"strict": 0.0})
    strict = 0.0
    if len(found) == len(wanted):
        strict = _share(list(zip(wanted, found, strict=True)))
    aligned = [
        (None if n is None else wanted[n], None if m is None else found[m])
        for n, m in pairs([each.name for each in wanted], [each.name for each in found])
    ]
    score = max(strict, _share(aligned))
    return scored(score, _difference(aligned, wanted, found), {"strict": strict})


def _share(both: list[tuple[Token, Token]] | list[tuple[Token | None, Token | None]]) -> float:
    parts = 0
    for wanted, got in both:
        if wanted is not None and got is not None:
            parts += 6 * (wanted.name == got.name)
            parts += 3 * (wanted.place == got.place) + (wanted.flags == got.flags)
    return 100 * parts / (10 * len(both)) if both else 100.0


def _difference(
    aligned: list[tuple[Token | None, Token | None]], wanted: list[Token], got: list[Token]
) -> str:
    """The first token that differs."""
    count = "" if len(wanted) == len(got) else f" ({len(got)} tokens instead of {len(wanted)})"
    for number, (expected, found) in enumerate(aligned, 1):
        if expected != found:
            return f"token {number}: expected {expected or 'none'}, got {found or 'none'}{count}"
    return ""


def _read(text: bytes) -> list[Token]:
    tokens = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            said = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number}: {error}") from None
        if not isinstance(said, dict):
            raise ValueError(f"line {number} is no object")
        each = {key: _plain(said.get(key)) for key in KEYS}
        tokens.append(
            Token(
                name=(each["kind"], each["text"]),
                place=(each["line"], each["column"]),
                flags=(each["start"], each["space"]),
            )
        )
    return tokens


def _plain(value: object) -> object:
    """A value that can be compared; a list or an object is none."""
    return value if isinstance(value, str | int) else None
