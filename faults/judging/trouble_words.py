"""Trouble words in an agent's text. Fixed before scoring; a change is a new
`JUDGE_VERSION`.

A word from this list is evidence only in a sentence that no clean twin has, that also names the
tool, a field or a value, and that neither denies the word (no errors, nothing is missing) nor makes
it conditional (if it is wrong).
"""

import re

REACTION_STEPS = 3
"""Agent steps after the injected result in which a reaction counts."""

_TROUBLE = re.compile(
    r"(?i)\b(fail(?:s|ed|ure|ing)?|errors?|errored|time[ds]?[ -]?out|timeout|unavailable|"
    r"unreachable|refused|rate[ -]?limit(?:ed)?|forbidden|unauthori[sz]ed|denied|"
    r"could not|couldn't|cannot|can't|unable|gave up|giving up|aborted|"
    r"did not respond|no response|no answer|"
    r"differ(?:s|ed|ent|ence|ences)?|mismatch(?:e[sd])?|inconsisten(?:t|cy|cies)|"
    r"contradict(?:s|ed|ion|ory)?|disagrees?|conflict(?:s|ed|ing)?|discrepanc(?:y|ies)|"
    r"(?:does|do|did) not (?:match|agree|show|add up|fit|contain|include|list)|"
    r"(?:doesn't|don't|didn't) (?:match|agree|show|add up|fit|contain|include|list)|"
    r"wrong|incorrect|suspicious|suspect|implausible|unexpected(?:ly)?|odd|strange|"
    r"seems? off|looks? off|doubt(?:s|ful)?|not plausible|unlikely|"
    r"corrupt(?:ed|ion)?|garbled|truncated|cut (?:off|short)|incomplete|partial|malformed|"
    r"invalid|unreadable|unparsable|missing|empty|no effect|no longer|not there|lacks?|"
    r"stale|outdated|out of date|unverified|not verified|cannot confirm|could not confirm)\b"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences and lines."""
    return [part for part in _SENTENCE.split(text) if part.strip()]


def find_trouble_word(sentence: str) -> str | None:
    """Return the first asserted trouble word of a sentence, in lower case; None without one."""
    for part in _PART.split(sentence.replace("\u2019", "'")):
        for match in _TROUBLE.finditer(part):
            if not _DENIED.search(part[: match.start()]) and not _NONE.match(part[match.end() :]):
                return match[0].lower()
    return None


def is_reassurance(sentence: str) -> bool:
    """Return whether a sentence has trouble words and denies them all: `nothing is missing`."""
    return _TROUBLE.search(sentence) is not None and find_trouble_word(sentence) is None


_PART = re.compile(r"[,;:.!?]\s|\s(?:but|however|although|though|yet)\s", re.IGNORECASE)
_DENIED = re.compile(
    r"(?i)(?:\b(?:no|not|nothing|never|none|neither|nor|nobody|without|zero|if|unless|whether|"
    r"in case|should)\b|\bfree of|n't)"
    r"(?:\s+(?!(?:but|and|because|so|since|which|that)\b)[\w'-]+){0,5}\s*$"
)
"""Text before a word that denies it: nothing about it is suspicious, if it is wrong."""
_NONE = re.compile(r"(?i)[\w' ]{0,30}\b(?:found none|and found (?:no|nothing)|: ?(?:none|no|0)\b)")


def find_named_anchor(sentence: str, anchors: tuple[str, ...]) -> str | None:
    """Return the first anchor that a sentence names as a word; None if it names none.

    A space or a hyphen matches `_`; anchors under three letters never match.
    """
    folded = _SPACE.sub(" ", sentence.casefold())
    for anchor in anchors:
        target = _SPACE.sub(" ", anchor.casefold()).strip()
        at = folded.find(target) if len(target) >= 3 else -1
        while at >= 0:
            end = at + len(target)
            if not folded[at - 1 : at].isalnum() and not folded[end : end + 1].isalnum():
                return anchor
            at = folded.find(target, at + 1)
    return None


_SPACE = re.compile(r"[_\-\s]+")


def remove_quoted_values(sentence: str, quotes: tuple[str, ...]) -> str:
    """Return a sentence without the values in it: the name of a status is not a remark on it."""
    for quote in quotes:
        sentence = sentence.replace(quote, " ")
    return sentence
