"""What the words of a message say: each clause gets the one thing that it does.

The cues of each language are data (`cues/*.toml`): regular expressions over folded clauses, in
classes. What is said in courtesy, in reassurance or of trouble that was overcome is blanked out
before the rest is searched, so that it speaks for nothing.
"""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from faults.judging.sentences import Clause, clauses, fold

type Kind = Literal[
    "done", "undone", "fail", "refuse", "handover", "ask", "offer", "intent", "bye", "partial",
    "statement", "fragment", "foreign",
]  # fmt: skip
"""`statement`: a sentence without a cue; `fragment`: too short to be one; `foreign`: no language
with cues."""

_ORDER: tuple[Kind, ...] = (
    "partial", "offer", "handover", "refuse", "ask", "undone", "fail", "done", "intent", "bye",
)  # fmt: skip
"""The class of a clause is the first of these with a cue in it."""
FRAGMENT = 3
"""Words under which a clause without a cue is no sentence."""
SPACELESS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@dataclass(frozen=True, slots=True)
class Language:
    """The cues of one language."""

    code: str
    words: frozenset[str]
    blank: re.Pattern[str]
    kinds: tuple[tuple[Kind, re.Pattern[str]], ...]
    unknown_answer: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Said:
    """A clause and what it does."""

    kind: Kind
    text: str


@cache
def languages() -> tuple[Language, ...]:
    """All languages with cues, English first."""
    found = [path for path in files("faults.judging").joinpath("cues").iterdir()]
    named = sorted((path for path in found if path.name.endswith(".toml")), key=lambda p: p.name)
    read = [_language(path.name[:-5], tomllib.loads(path.read_text("utf-8"))) for path in named]
    return tuple(sorted(read, key=lambda language: language.code != "en"))


def _language(code: str, table: dict[str, str | list[str]]) -> Language:
    def pattern(name: str) -> re.Pattern[str]:
        cues = table.get(name, [])
        return re.compile("|".join(f"(?:{cue})" for cue in cues) or r"(?!)")

    return Language(
        code=code,
        words=frozenset(str(table["words"]).split()),
        blank=pattern("blank"),
        kinds=tuple((kind, pattern(kind)) for kind in _ORDER),
        unknown_answer=re.compile(rf"\W*{table.get('unknown_answer', '(?!)')}\W*"),
    )


def language_of(text: str) -> Language | None:
    """The language with the largest share of its function words in the text; None if too few."""
    words = _WORD.findall(text)
    letters = SPACELESS.findall(text)
    best, share = None, 0.0
    for language in languages():
        if any(SPACELESS.match(word) for word in language.words):
            found = sum(text.count(word) for word in language.words) / max(len(text), 1) * 3
            found = found if letters else 0.0
        else:
            found = sum(word in language.words for word in words) / max(len(words), 1)
        if found > share:
            best, share = language, found
    return best if share >= 0.08 else None


def say(text: str) -> tuple[Said, ...]:
    """What each clause of a text does, in order."""
    found = clauses(text)
    language = language_of(" ".join(clause.folded for clause in found))
    tried = [language] if language else list(languages())
    return tuple(_said(clause, tried, known=language is not None) for clause in found)


def _said(clause: Clause, tried: Iterable[Language], *, known: bool) -> Said:
    for language in tried:
        kind = _kind(clause, language)
        if kind is not None:
            return Said(kind, clause.text)
    if clause.is_question:
        return Said("ask", clause.text)
    words = _WORD.findall(clause.folded)
    long = len(words) >= FRAGMENT or len(SPACELESS.findall(clause.folded)) >= 2 * FRAGMENT
    return Said("fragment" if not long else "statement" if known else "foreign", clause.text)


def _kind(clause: Clause, language: Language) -> Kind | None:
    told = language.blank.sub(" ", clause.folded)
    kind = next((kind for kind, cue in language.kinds if cue.search(told)), None)
    if clause.is_question and kind not in ("offer", "handover", "bye"):
        return "ask"
    return kind


def is_unknown_answer(text: str) -> bool:
    """Whether an answer is nothing but a word for not knowing one."""
    folded = fold(text)
    return any(each.unknown_answer.fullmatch(folded) for each in languages())
