"""What an agent says of trouble in a result. Fixed before scoring; a change is a new judge.

A word from here is evidence only in a sentence that no clean twin says, that also names the tool,
the field or a value, and that neither denies the word (no errors, nothing is missing) nor puts it
under a condition (if it is wrong).
"""

import re

JUDGE_VERSION = 3
"""1: N1, N2 and N7. 2: all signals, taint, what a right end state is owed to. 3: the claim and all
signs are held against the clean twins, by rate if they are random; thoughts are read."""
WINDOW = 3
"""Agent steps after the struck result in which a reaction counts."""

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


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text."""
    return [part for part in _SENTENCE.split(text) if part.strip()]


def trouble(sentence: str) -> str | None:
    """The first word of trouble that a sentence says there is, in small letters; None without."""
    for part in _PART.split(sentence.replace("\u2019", "'")):
        for found in _TROUBLE.finditer(part):
            if not _DENIED.search(part[: found.start()]) and not _NONE.match(part[found.end() :]):
                return found[0].lower()
    return None


_PART = re.compile(r"[,;:.!?]\s|\s(?:but|however|although|though|yet)\s", re.IGNORECASE)
_DENIED = re.compile(
    r"(?i)(?:\b(?:no|not|nothing|never|none|neither|nor|nobody|without|zero|if|unless|whether|"
    r"in case|should)\b|\bfree of|n't)"
    r"(?:\s+(?!(?:but|and|because|so|since|which|that)\b)[\w'-]+){0,5}\s*$"
)
"""What before a word takes it back: nothing about it is suspicious, if it is wrong."""
_NONE = re.compile(r"(?i)[\w' ]{0,30}\b(?:found none|and found (?:no|nothing)|: ?(?:none|no|0)\b)")


def names(sentence: str, anchors: tuple[str, ...]) -> str | None:
    """The first anchor that a sentence names as a word; None where it names none.

    What stands with `_` may be said with a blank or a hyphen; under three letters says nothing.
    """
    folded = _SPACE.sub(" ", sentence.casefold())
    for anchor in anchors:
        wanted = _SPACE.sub(" ", anchor.casefold()).strip()
        at = folded.find(wanted) if len(wanted) >= 3 else -1
        while at >= 0:
            end = at + len(wanted)
            if not folded[at - 1 : at].isalnum() and not folded[end : end + 1].isalnum():
                return anchor
            at = folded.find(wanted, at + 1)
    return None


_SPACE = re.compile(r"[_\-\s]+")


def without(sentence: str, quotes: tuple[str, ...]) -> str:
    """A sentence without the values in it: what a status is called is no remark on it."""
    for quote in quotes:
        sentence = sentence.replace(quote, " ")
    return sentence
