"""Normalize a text for the search of cues: clauses in one spelling, without quotations."""

import json
import re
import unicodedata

from msgspec import Struct

MAX_CHARS_PER_END = 6000
"""Characters read from each end of a text; claims are not made in the middle of a megabyte."""
MIN_UNQUOTED_LETTERS = 4
"""Minimum letters outside of quotation marks; with fewer the quotation is the sentence."""

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
_MENTIONED = re.compile(r"\?(?=[\"'])|(?m:^\s*#+[^\n]*\?\W*$)")
"""Questions that are quoted or head a section: nobody is asked."""
_END = re.compile(r"(?<=[.!?。;…])[\s)*\"']+|(?<=。)(?=\w)|\n+")
_SPACES = re.compile(r"[ \t]+")


CUT_MARK = "\n[... cut ...]\n"
"""Marks where a text was shortened."""
_LEFT_OUT = re.compile(r"\s*\[\.\.\.[^\]\n]{0,40}\]\s*")
_SPEAKER = re.compile(r"^\s*\[[\w .()>-]{1,60}\]\s+(?=\S)")
_NOTICE = re.compile(r"\s*\[[^\n]*[^\W\d_]{2}[^\n]*\]\s*")
_LIMIT = re.compile(
    r"(?i)\W*(?:agent )?(?:stopped|terminated|ended|finished|exit(?:ed)?|aborted|halted)? ?"
    r"(?:due to|because of|on|:)? ?"
    r"(?:the )?(?:max(?:imum)?(?: number of)? \w+|\w+) ?(?:iterations?|limit|budget)"
    r"(?: or \w+ limit)?(?: (?:was |has been )?(?:reached|exceeded|exhausted|hit))?\W*"
)
_STOP = re.compile(
    r"(?im)^(?:[^\w\n]|_)*+(?:terminate|stop|end|eof|eos|exit|over|end_turn)(?:[^\w\n]|_)*+$"
)
_REASONED = re.compile(r"(?is)<(think|thinking)>.*?(?:</\1>|\Z)")
_CUT = re.compile(r"[^\W\d_A-Z]|[,(\[{+\-]")


class TextClause(Struct, frozen=True):
    """One sentence or line: as written, and folded for the search of cues."""

    text: str
    folded: str
    is_question: bool
    is_cut: bool = False
    """Whether the complete text breaks off in it."""


def clip_long_text(text: str) -> str:
    """Return the start and the end of a text, with a mark if the middle is left out."""
    if len(text) <= 2 * MAX_CHARS_PER_END:
        return text
    return f"{text[:MAX_CHARS_PER_END]}{CUT_MARK}{text[-MAX_CHARS_PER_END:]}"


def split_clipped_parts(text: str) -> list[str]:
    """Split a text at the marks of omitted parts."""
    return _LEFT_OUT.split(clip_long_text(text))


def strip_program_text(text: str) -> str:
    """Return the agent's own words: without reasoning, a leading name, stop words and notices.

    A message that is entirely in square brackets and not JSON was written by the surrounding
    program, as was one that only reports a reached limit.
    """
    text = clip_long_text(text)
    if _LIMIT.fullmatch(text[:200]) or _NOTICE.fullmatch(text) and not _is_json_text(text):
        return ""
    return _STOP.sub("", _SPEAKER.sub("", _REASONED.sub("", text))).strip()


def _is_json_text(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def fold_text(text: str) -> str:
    """Return a text in lower case, with plain punctuation, no contractions and no quotations."""
    folded = unicodedata.normalize("NFKC", text.translate(_SPELLING)).casefold()
    for pattern, replacement in _CONTRACTIONS:
        folded = pattern.sub(replacement, folded)
    unquoted = _QUOTED.sub('"…"', folded)
    result = unquoted if sum(map(str.isalnum, unquoted)) >= MIN_UNQUOTED_LETTERS else folded
    return _SPACES.sub(" ", result).strip()


def split_clauses(text: str) -> tuple[TextClause, ...]:
    """Split a text into sentences and lines, without code blocks."""
    text = "\n".join(strip_code_blocks(part) for part in split_clipped_parts(text)).translate(
        _SPELLING
    )
    text = _MENTIONED.sub(lambda match: match[0].replace("?", "."), text)
    text = _MARKUP.sub(" ", text).strip()
    parts = [part.strip() for part in _END.split(text)]
    parts = [part for part in parts if any(map(str.isalnum, part))]
    return tuple(
        _make_text_clause(part, is_cut=part is parts[-1] and is_cut_short(text, part))
        for part in parts
    )


def strip_code_blocks(part: str) -> str:
    """Remove the code blocks of a part of a text; a part that begins in a block starts after it."""
    if part.count("```") % 2:
        head, _, tail = part.partition("```")
        part = tail if _FENCE_CLOSES.match(tail) else f"{head}\n```{tail}"
    return _FENCE.sub("\n", part)


def _make_text_clause(written: str, *, is_cut: bool) -> TextClause:
    folded = fold_text(written)
    asks = folded.rstrip(" )\"'*").endswith(("?", "\u061f"))
    return TextClause(written, folded, asks, is_cut)


def is_cut_short(text: str, last: str) -> bool:
    """Return whether a text breaks off: an open bracket, or no end mark after other sentences."""
    if not text.endswith(last):
        return False
    if last.count("(") > last.count(")") or _CUT.fullmatch(last[-1]) and not last[-1].isalpha():
        return True
    if last.endswith(("...", "\u2026")):
        return True
    line = text.rpartition("\n")[2]
    return bool(_CUT.fullmatch(last[-1])) and len(line) > len(last) and len(last.split()) > 2
