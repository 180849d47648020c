"""What an agent says of trouble. Fixed before scoring; a change is a new judge.

A word from here is evidence only in a sentence that also names the tool, the field or a value
(anchored), or where the whole answer opens with it. The words are of two kinds: `not done` is what
a report says of the task, `trouble` is what a remark says of a result.
"""

import re

JUDGE_VERSION = 2
"""1: N1, N2 and N7. 2: all signals, taint, what a right end state is owed to."""
WINDOW = 3
"""Agent steps after the struck result in which a reaction counts."""

_NOT_DONE = re.compile(
    r"(?i)\b(not done|could not|couldn't|cannot|can't|unable to|failed|was not completed|"
    r"not completed|did not complete|incomplete|not verified|unverified|cannot confirm|"
    r"could not confirm|gave up|giving up|aborted)\b"
)
_OPENING = re.compile(
    r"(?i)^\W*(not done|failed|failure|incomplete|aborted|i could not|i was unable|unable to|"
    r"i cannot|sorry)\b"
)
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
    """The first word of trouble in a sentence, in small letters; None where there is none."""
    found = _TROUBLE.search(sentence)
    return found[0].lower() if found else None


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


def not_done(
    text: str, anchors: tuple[str, ...] | None, quotes: tuple[str, ...] = ()
) -> str | None:
    """The first sentence that says not done or unverified and names an anchor; None without.

    Where no anchors are asked for, any such sentence. A word in one of the quotes does not count.
    """
    for sentence in sentences(text) if _NOT_DONE.search(text) else ():
        said = _NOT_DONE.search(without(sentence, quotes))
        if said and (anchors is None or names(sentence, anchors)):
            return sentence.strip()
    return None


def opens_not_done(text: str) -> bool:
    """True where the answer as a whole opens by saying that it was not done."""
    return bool(_OPENING.search(text))
