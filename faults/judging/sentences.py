"""A text in the form in which cues are looked for: clauses in one spelling, without quotations."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

MOST_EACH = 6000
"""Characters read from each end of a text; nobody states a claim in the middle of a megabyte."""
LEAST = 4
"""Letters outside of quotation marks without which the quotation is the sentence."""

_SPELLING = str.maketrans(
    {
        "\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u2032": "'", "\u0060": "'", "\u00b4": "'",
        "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"',
        "\u2010": "-", "\u2011": "-", "\u2013": " - ", "\u2014": " - ", "\u00a0": " ",
        "\u3002": "\u3002 ", "\uff01": "! ", "\uff1f": "? ", "\uff1b": "; ",
    }
)  # fmt: skip
_CONTRACTIONS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\bcan't\b", "cannot"),
        (r"\bcan not\b", "cannot"),
        (r"\bwon't\b", "will not"),
        (r"\bshan't\b", "shall not"),
        (r"(\w)n't\b", r"\1 not"),
        (r"\bi'm\b", "i am"),
        (r"\b(\w+)'re\b", r"\1 are"),
        (r"\b(\w+)'ve\b", r"\1 have"),
        (r"\b(\w+)'ll\b", r"\1 will"),
        (r"\b(\w+)'d\b", r"\1 would"),
        (r"\blet's\b", "let us"),
        (r"\b(it|that|there|what|here|he|she)'s\b", r"\1 is"),
    )
)
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MARKUP = re.compile(r"\*\*|__|<[a-z/][^<>\n]{0,80}>|(?m:^\s*(?:[#>]+|[-*+•]|\d{1,2}[.)])\s+)")
_QUOTED = re.compile(r'"[^"\n]{1,300}"|「[^」\n]{1,300}」|『[^』\n]{1,300}』')
_END = re.compile(r"(?<=[.!?。;…])[\s)*\"']+|(?<=[。!?])(?=\w)|\n+")
_SPACES = re.compile(r"[ \t]+")


@dataclass(frozen=True, slots=True)
class Clause:
    """One sentence or line: as it was written, and folded for the search of cues."""

    text: str
    folded: str
    is_question: bool


def clip(text: str) -> str:
    """The start and the end of a text."""
    if len(text) <= 2 * MOST_EACH:
        return text
    return f"{text[:MOST_EACH]}\n{text[-MOST_EACH:]}"


def fold(text: str) -> str:
    """A text in small letters, with plain punctuation and without contractions or quotations."""
    folded = unicodedata.normalize("NFKC", text.translate(_SPELLING)).casefold()
    for pattern, replacement in _CONTRACTIONS:
        folded = pattern.sub(replacement, folded)
    unquoted = _QUOTED.sub('"…"', folded)
    told = unquoted if sum(map(str.isalnum, unquoted)) >= LEAST else folded
    return _SPACES.sub(" ", told).strip()


def clauses(text: str) -> tuple[Clause, ...]:
    """The sentences and lines of a text, code blocks left out."""
    return tuple(_clauses(_MARKUP.sub(" ", _FENCE.sub("\n", clip(text)).translate(_SPELLING))))


def _clauses(text: str) -> Iterator[Clause]:
    for part in _END.split(text):
        written = part.strip()
        if any(letter.isalnum() for letter in written):
            folded = fold(written)
            yield Clause(written, folded, folded.rstrip(" )\"'*").endswith(("?", "？", "؟")))
