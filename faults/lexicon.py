"""What an agent says when it did not do it. Fixed before scoring; a change is a new judge.

A word from here is evidence only in a sentence that also names the tool, the field or a value
(anchored), or where the whole answer opens with it.
"""

import re

JUDGE_VERSION = 1

_NOT_DONE = re.compile(
    r"(?i)\b(not done|could not|couldn't|cannot|can't|unable to|failed|was not completed|"
    r"not completed|did not complete|incomplete|not verified|unverified|cannot confirm|"
    r"could not confirm|gave up|giving up|aborted)\b"
)
_OPENING = re.compile(
    r"(?i)^\W*(not done|failed|failure|incomplete|aborted|i could not|i was unable|unable to|"
    r"i cannot|sorry)\b"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def not_done(text: str, anchors: tuple[str, ...]) -> str | None:
    """The first sentence that says not done or unverified and names an anchor; None without."""
    names = [name.casefold() for anchor in anchors for name in _spellings(anchor)]
    for sentence in _SENTENCE.split(text):
        folded = sentence.casefold()
        if _NOT_DONE.search(sentence) and any(name in folded for name in names):
            return sentence.strip()
    return None


def opens_not_done(text: str) -> bool:
    """True where the answer as a whole opens by saying that it was not done."""
    return bool(_OPENING.search(text))


def _spellings(name: str) -> tuple[str, ...]:
    return (name, name.replace("_", " "), name.replace("_", "-")) if len(name) >= 3 else ()
