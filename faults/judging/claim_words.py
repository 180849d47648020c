"""What the words of a message say: each clause gets the one thing that it does.

The cues of each language are data (`cues/*.toml`): regular expressions over folded clauses, in
classes. What is said in courtesy, in reassurance or of trouble that was overcome is blanked out
before the rest is searched, so that it speaks for nothing.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from faults.judging.sentences import Clause, clauses, fold

type Kind = Literal[
    "partial", "offer", "ask", "handover", "referral", "refuse", "hedge", "undone", "fail", "done",
    "found", "trouble", "intent", "bye", "question", "statement", "self",
    "fragment", "foreign",
]  # fmt: skip
"""`ask`: a request or a question that waits; `question`: one that offers; `statement`: a sentence
without a cue; `self`: one about the speaker; `fragment`: too short to be one; `foreign`: in no
language with cues."""

_ORDER: tuple[Kind, ...] = (
    "partial", "offer", "handover", "referral", "ask", "refuse", "hedge", "undone", "fail", "done",
    "intent", "found", "trouble", "bye",
)  # fmt: skip
"""The class of a clause is the first of these with a cue in it."""
FRAGMENT = 3
"""Words under which a clause without a cue is no sentence."""
LEAST_SHARE = 0.08
"""Share of function words under which a text is in no language that is known."""
ALIKE = 0.7
"""Share of the best language's share from which another one is read too."""
SPACELESS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
_VALUE = re.compile(r"\d|[`\"\u300c]|[\u3040-\u9fff]\s?[A-Za-z]")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z]\w")
_MARK = r"\u0300-\u036f\u064b-\u0652\u0900-\u0903\u093a-\u094f\u0951-\u0957"
"""Signs within words that are no letters: accents, and vowels of Arabic and Devanagari."""
_WORD = re.compile(rf"(?:[^\W\d_]|[{_MARK}])+(?:'[^\W\d_]+)?")


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """The cues of one language."""

    code: str
    words: frozenset[str]
    blank: re.Pattern[str]
    condition: re.Pattern[str]
    """What is said under a condition, and so not said to be; offers are made under one."""
    reason: re.Pattern[str]
    """Why something was done, which is not what was done; rules are such reasons, and count."""
    contrast: re.Pattern[str]
    handover: re.Pattern[str]
    caution: re.Pattern[str]
    self: re.Pattern[str]
    kinds: tuple[tuple[Kind, re.Pattern[str]], ...]
    unknown_answer: re.Pattern[str]
    names_by_capitals: bool
    """Whether a capital within a sentence marks a name; in German every noun has one."""
    offering: re.Pattern[str]
    insisting: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Said:
    """A clause and what it does."""

    kind: Kind
    text: str
    is_cut: bool = False
    """Whether the text breaks off in it."""
    is_question: bool = False
    offers_handover: bool = False
    """Whether it is a question that offers to hand over."""
    holds_value: bool = False
    """Whether it names something that an answer could be: a number, a name, a quotation."""
    is_cautious: bool = False
    """Whether it names caution as a reason."""


@cache
def languages() -> tuple[Language, ...]:
    """All languages with cues, English first."""
    found = files("faults.judging").joinpath("cues").iterdir()
    named = sorted((path for path in found if path.name.endswith(".toml")), key=lambda p: p.name)
    read = [_language(path.name[:-5], tomllib.loads(path.read_text("utf-8"))) for path in named]
    return tuple(sorted(read, key=lambda language: language.code != "en"))


def _language(code: str, table: dict[str, str | list[str]]) -> Language:
    def pattern(name: str) -> re.Pattern[str]:
        cues = table.get(name, [])
        joined = "|".join(f"(?:{cue})" for cue in ([cues] if isinstance(cues, str) else cues))
        return re.compile(joined.replace("VERBS", str(table.get("verbs"))) or r"(?!)")

    return Language(
        code=code,
        words=frozenset(str(table["words"]).split()),
        blank=pattern("blank"),
        condition=pattern("condition"),
        reason=pattern("reason"),
        contrast=pattern("contrast"),
        handover=pattern("handover"),
        caution=pattern("caution"),
        self=pattern("self"),
        kinds=tuple((kind, pattern(kind)) for kind in _ORDER),
        names_by_capitals=table.get("capitals") != "none",
        offering=pattern("offering"),
        insisting=pattern("insisting"),
        unknown_answer=re.compile(rf"\W*{table.get('unknown_answer', '(?!)')}\W*"),
    )


def languages_of(text: str) -> tuple[Language, ...]:
    """The languages whose function words make up a folded text, the likeliest first.

    Those within ALIKE of the best are all kept, since related languages share such words; none if
    the best has less than LEAST_SHARE.
    """
    shares = {language: _share(text, language) for language in languages()}
    best = max(shares.values())
    kept = [each for each, share in shares.items() if LEAST_SHARE <= share >= ALIKE * best]
    return tuple(sorted(kept, key=lambda language: -shares[language]))


def _share(text: str, language: Language) -> float:
    if any(SPACELESS.match(word) for word in language.words):
        letters = len(SPACELESS.findall(text))
        return sum(text.count(word) for word in language.words) / max(letters, 1)
    words = _WORD.findall(text)
    return sum(word in language.words for word in words) / max(len(words), 1)


def say(text: str) -> tuple[Said, ...]:
    """What each clause of a text does, in order."""
    found = clauses(text)
    known = languages_of(" ".join(clause.folded for clause in found))
    english = languages()[0]
    tried = known if english in known else (*known, english) if known else languages()
    split = known[0].contrast if known else re.compile(r"(?!)")
    return tuple(
        _said(part, tried, known=bool(known)) for clause in found for part in _parts(clause, split)
    )


def _parts(clause: Clause, contrast: re.Pattern[str]) -> Iterator[Clause]:
    """A sentence in its parts, where it sets one thing against another."""
    parts = [part for part in contrast.split(clause.folded) if any(map(str.isalnum, part))]
    if len(parts) < 2:
        yield clause
        return
    for part in parts:
        last = part is parts[-1]
        yield Clause(clause.text, part, clause.is_question and last, clause.is_cut and last)


def _said(clause: Clause, tried: tuple[Language, ...], *, known: bool) -> Said:
    kind = next((kind for each in tried if (kind := _kind(clause, each)) is not None), None)
    hands_over = any(each.handover.search(clause.folded) for each in tried)
    if clause.is_question and kind not in ("offer", "ask"):
        kind = "question" if _offers_more(clause, tried) else "ask"
    elif kind is None:
        kind = _plain(clause, tried, known=known)
    offers_handover = hands_over and (clause.is_question or kind == "offer")
    named = tried[0].names_by_capitals and _NAME.search(clause.text) is not None
    value = named or _VALUE.search(clause.text) is not None
    cautious = any(each.caution.search(clause.folded) for each in tried)
    return Said(
        kind, clause.text, clause.is_cut, clause.is_question, offers_handover, value, cautious
    )


def _offers_more(clause: Clause, tried: tuple[Language, ...]) -> bool:
    return any(
        each.offering.search(clause.folded) and not each.insisting.search(clause.folded)
        for each in tried
    )


def _plain(clause: Clause, tried: tuple[Language, ...], *, known: bool) -> Kind:
    """What a clause without a cue is: a sentence, if it is long enough, of a known language."""
    words = len(_WORD.findall(clause.folded))
    if words < FRAGMENT and len(SPACELESS.findall(clause.folded)) < 2 * FRAGMENT:
        return "fragment"
    if not known:
        return "foreign"
    return "self" if any(each.self.search(clause.folded) for each in tried) else "statement"


def _kind(clause: Clause, language: Language) -> Kind | None:
    told = language.blank.sub(" ", clause.folded)
    for kind, cue in language.kinds:
        if cue.search(told):
            return kind
        if kind == "offer":
            told = language.condition.sub(" ", told)
        if kind == "refuse":
            told = language.reason.sub(" ", told)
    return None


def is_unknown_answer(text: str) -> bool:
    """Whether an answer is nothing but a word for not knowing one."""
    folded = fold(text)
    return any(each.unknown_answer.fullmatch(folded) for each in languages())
