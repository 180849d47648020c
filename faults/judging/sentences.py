"""A text in the form in which cues are looked for: clauses in one spelling, without quotations."""

import json
import re
import unicodedata
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
_FENCE_CLOSES = re.compile(r"[ \t]*(?:\n|\Z)(?!.*```)", re.DOTALL)
_MARKUP = re.compile(r"\*\*|__|<[a-z/][^<>\n]{0,80}>|(?m:^\s*(?:[#>]+|[-*+•]|\d{1,2}[.)])\s+)")
_QUOTED = re.compile(r'"[^"\n]{1,300}"|「[^」\n]{1,300}」|『[^』\n]{1,300}』')
_END = re.compile(r"(?<=[.!?。;…])[\s)*\"']+|(?<=。)(?=\w)|\n+")
_SPACES = re.compile(r"[ \t]+")


LEFT_OUT = "\n[... cut ...]\n"
"""Where a text was shortened."""
_LEFT_OUT = re.compile(r"\s*\[\.\.\.[^\]\n]{0,40}\]\s*")
_SPEAKER = re.compile(r"^\s*\[[\w .()>-]{1,60}\]\s+(?=\S)")
_NOTICE = re.compile(r"\s*\[[^\n]*[^\W\d_]{2}[^\n]*\]\s*")
_LIMIT = re.compile(
    r"(?i)\W*(?:agent )?(?:stopped|terminated|ended|finished)? ?(?:due to|because of|:)? ?"
    r"(?:the )?(?:max(?:imum)?(?: number of)? \w+|\w+) ?(?:iterations?|limit|budget)"
    r"(?: or \w+ limit)?(?: (?:was |has been )?(?:reached|exceeded|exhausted|hit))?\W*"
)
_STOP = re.compile(
    r"(?im)^(?:[^\w\n]|_)*+(?:terminate|stop|end|eof|eos|exit|over|end_turn)(?:[^\w\n]|_)*+$"
)
_CUT = re.compile(r"[^\W\d_A-Z]|[,(\[{+\-]")


@dataclass(frozen=True, slots=True)
class Clause:
    """One sentence or line: as it was written, and folded for the search of cues."""

    text: str
    folded: str
    is_question: bool
    is_cut: bool = False
    """Whether the whole text breaks off in it."""


def clip(text: str) -> str:
    """The start and the end of a text, with a mark between them if something is left out."""
    if len(text) <= 2 * MOST_EACH:
        return text
    return f"{text[:MOST_EACH]}{LEFT_OUT}{text[-MOST_EACH:]}"


def parts(text: str) -> list[str]:
    """A text in the parts between the marks of what was left out of it."""
    return _LEFT_OUT.split(clip(text))


def spoken(text: str) -> str:
    """What the agent itself said: without its name before it, stop words and a program's notice.

    A whole message in square brackets that is no list was written by the program around it, as
    was one that says nothing but that a limit was reached.
    """
    text = clip(text)
    if _LIMIT.fullmatch(text[:200]) or _NOTICE.fullmatch(text) and not _is_list(text):
        return ""
    return _STOP.sub("", _SPEAKER.sub("", text)).strip()


def _is_list(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


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
    text = "\n".join(without_code(part) for part in parts(text)).translate(_SPELLING)
    text = _MARKUP.sub(" ", text).strip()
    said = [part.strip() for part in _END.split(text)]
    said = [part for part in said if any(map(str.isalnum, part))]
    return tuple(_clause(part, is_cut=part is said[-1] and breaks_off(text, part)) for part in said)


def without_code(part: str) -> str:
    """A part of a text without code blocks; one that begins within a block begins after it."""
    if part.count("```") % 2:
        head, _, tail = part.partition("```")
        part = tail if _FENCE_CLOSES.match(tail) else f"{head}\n```{tail}"
    return _FENCE.sub("\n", part)


def _clause(written: str, *, is_cut: bool) -> Clause:
    folded = fold(written)
    asks = folded.rstrip(" )\"'*").endswith(("?", "\u061f"))
    return Clause(written, folded, asks, is_cut)


def breaks_off(text: str, last: str) -> bool:
    """Whether a text stops within its last sentence: an open bracket, or no end after others."""
    if not text.endswith(last):
        return False
    if last.count("(") > last.count(")") or _CUT.fullmatch(last[-1]) and not last[-1].isalpha():
        return True
    if last.endswith(("...", "\u2026")):
        return True
    line = text.rpartition("\n")[2]
    return bool(_CUT.fullmatch(last[-1])) and len(line) > len(last) and len(last.split()) > 2
