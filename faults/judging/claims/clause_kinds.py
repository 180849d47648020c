"""Classify the clauses of a message: each clause gets one kind.

The cues of each language are data (`cues/*.toml`): regular expressions over folded clauses, in
classes. Courtesy, reassurance and mentions of solved trouble are blanked out before the other cues
are searched.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from copy import replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Literal

from msgspec import Struct

from faults.judging.claims.sentences import TextClause, fold_text, split_clauses

type ClauseKind = Literal[
    "partial", "offer", "ask", "handover", "referral", "refuse", "hedge", "undone", "fail", "done",
    "found", "trouble", "intent", "bye", "question", "statement", "self",
    "fragment", "foreign",
]  # fmt: skip
"""`ask`: a request or an open question; `question`: one that offers; `statement`: a sentence
without a cue; `self`: one about the speaker; `fragment`: too short for a sentence; `foreign`: in
no language with cues."""

_ORDER: tuple[ClauseKind, ...] = (
    "partial", "offer", "handover", "referral", "ask", "refuse", "hedge", "undone", "fail", "done",
    "intent", "found", "trouble", "bye",
)  # fmt: skip
"""The kind of a clause is the first of these with a matching cue."""
MIN_CLAUSE_WORDS = 3
"""Minimum words of a sentence without a cue."""
MIN_LANGUAGE_SHARE = 0.08
"""Minimum share of function words by which a language is detected."""
MIN_SHARE_OF_BEST = 0.7
"""Share of the best language's share from which another language is used too."""
SPACELESS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
_VALUE = re.compile(r"\d|[`\"\u300c]|[\u3040-\u9fff]\s?[A-Za-z]")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z]\w")
_MARK = r"\u0300-\u036f\u064b-\u0652\u0900-\u0903\u093a-\u094f\u0951-\u0957"
"""Combining marks within words: accents, and vowels of Arabic and Devanagari."""
_WORD = re.compile(rf"(?:[^\W\d_]|[{_MARK}])+(?:'[^\W\d_]+)?")


class _CuePattern:
    """The cues of one class in a language, compiled when they are first searched.

    To compile all of thirteen languages takes a second, and a text is in one or two of them.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, language: "LanguageCues", owner: type) -> re.Pattern[str]:
        found = language.__dict__[self._name] = language.compile_cues(self._name)
        return found  # the next look-up finds it in the instance


class LanguageCues:
    """The cues of one language."""

    blank = _CuePattern()
    condition = _CuePattern()
    """Conditional clauses, which state no fact; offers are conditional too."""
    reason = _CuePattern()
    """Reasons, which are not results; rules are such reasons, and count."""
    contrast = _CuePattern()
    handover = _CuePattern()
    caution = _CuePattern()
    doubt = _CuePattern()
    """Negations and reservations of any kind, where no other cue reads them."""
    inability = _CuePattern()
    """What is not possible to the speaker: a refusal, or a failure."""
    absence = _CuePattern()
    """What is not there: a finding, unless it is an answer or data that is missing."""
    rule = _CuePattern()
    """Rules and limits of competence, as the reason of a refusal."""
    self = _CuePattern()
    offering = _CuePattern()
    insisting = _CuePattern()
    disclaimer = _CuePattern()
    """Sentences on what an answer is not (advice), or its speaker (a doctor)."""

    def __init__(self, code: str, table: Mapping[str, str | list[str]]) -> None:
        self.code = code
        self.words = frozenset(str(table["words"]).split())
        self.names_by_capitals = table.get("capitals") != "none"
        """Whether a capital within a sentence marks a name; in German every noun has one."""
        self._table = table

    def compile_cues(self, name: str) -> re.Pattern[str]:
        """Compile the cues of a class; without any, the pattern matches nothing."""
        cues = self._table.get(name, [])
        joined = "|".join(f"(?:{cue})" for cue in ([cues] if isinstance(cues, str) else cues))
        return re.compile(joined.replace("VERBS", str(self._table.get("verbs"))) or r"(?!)")

    @cached_property
    def kinds(self) -> tuple[tuple[ClauseKind, re.Pattern[str]], ...]:
        """The kinds with their cues, in the order in which they decide."""
        return tuple((kind, self.compile_cues(kind)) for kind in _ORDER)

    @cached_property
    def unknown_answer(self) -> re.Pattern[str]:
        """A whole answer that says that it is not known."""
        return re.compile(rf"\W*{self._table.get('unknown_answer', '(?!)')}\W*")


class ClassifiedClause(Struct, frozen=True):
    """A clause and its kind."""

    kind: ClauseKind
    text: str
    is_cut: bool = False
    """Whether the text breaks off in it."""
    is_question: bool = False
    offers_handover: bool = False
    """Whether it is a question that offers to hand over."""
    holds_value: bool = False
    """Whether it names a possible answer: a number, a name, a quotation."""
    is_cautious: bool = False
    """Whether it names caution as a reason."""
    has_doubt: bool = False
    """Whether it has a negation or a reservation, outside of courtesy and conditions."""
    is_unable: bool = False
    """Whether its speaker is not able to do something."""
    is_ruled: bool = False
    """Whether it names a rule, or a limit of competence."""


@cache
def load_languages() -> tuple[LanguageCues, ...]:
    """Return all languages with cues, English first."""
    entries = files("faults.judging").joinpath("cues").iterdir()
    paths = sorted((path for path in entries if path.name.endswith(".toml")), key=lambda p: p.name)
    languages = [
        LanguageCues(path.name[:-5], tomllib.loads(path.read_text("utf-8"))) for path in paths
    ]
    return tuple(sorted(languages, key=lambda language: language.code != "en"))


def detect_languages(text: str) -> tuple[LanguageCues, ...]:
    """Return the languages of a folded text by its function words, the likeliest first.

    All languages with at least MIN_SHARE_OF_BEST of the best share are returned, since related
    languages share such words; none if the best has less than MIN_LANGUAGE_SHARE.
    """
    shares = {language: _measure_language_share(text, language) for language in load_languages()}
    best = max(shares.values())
    detected = [
        each
        for each, share in shares.items()
        if MIN_LANGUAGE_SHARE <= share >= MIN_SHARE_OF_BEST * best
    ]
    return tuple(sorted(detected, key=lambda language: -shares[language]))


def _measure_language_share(text: str, language: LanguageCues) -> float:
    if any(SPACELESS.match(word) for word in language.words):
        letters = len(SPACELESS.findall(text))
        return sum(text.count(word) for word in language.words) / max(letters, 1)
    words = _WORD.findall(text)
    return sum(word in language.words for word in words) / max(len(words), 1)


def classify_clauses(text: str) -> tuple[ClassifiedClause, ...]:
    """Return the clauses of a text with their kinds, in order."""
    clauses = split_clauses(text)
    known = detect_languages(" ".join(clause.folded for clause in clauses))
    english = load_languages()[0]
    languages = known if english in known else (*known, english) if known else load_languages()
    contrast = known[0].contrast if known else re.compile(r"(?!)")
    return tuple(
        _silence_disclaimer(_classify_clause(part, languages, known=bool(known)), disclaims)
        for clause in clauses
        for disclaims in [any(each.disclaimer.search(clause.folded) for each in languages)]
        for part in _split_contrast(clause, contrast)
    )


_DISCLAIMED: frozenset[ClauseKind] = frozenset(("refuse", "fail", "hedge", "referral"))


def _silence_disclaimer(found: ClassifiedClause, disclaims: bool) -> ClassifiedClause:
    """Return a clause without a claim if its sentence is a disclaimer; other kinds stay."""
    return replace(found, kind="bye") if disclaims and found.kind in _DISCLAIMED else found


def _split_contrast(clause: TextClause, contrast: re.Pattern[str]) -> Iterator[TextClause]:
    """Split a sentence into its contrasted parts."""
    parts = [part for part in contrast.split(clause.folded) if any(map(str.isalnum, part))]
    if len(parts) < 2:
        yield clause
        return
    for part in parts:
        last = part is parts[-1]
        yield TextClause(clause.text, part, clause.is_question and last, clause.is_cut and last)


def _classify_clause(
    clause: TextClause, tried: tuple[LanguageCues, ...], *, known: bool
) -> ClassifiedClause:
    kind = next(
        (kind for each in tried if (kind := _match_clause_cue(clause, each)) is not None), None
    )
    hands_over = any(each.handover.search(clause.folded) for each in tried)
    if clause.is_question and kind not in ("offer", "ask"):
        kind = "question" if _is_offering_more(clause, tried) else "ask"
    elif kind is None:
        kind = _classify_clause_without_cue(clause, tried, known=known)
    offers_handover = hands_over and (clause.is_question or kind == "offer")
    has_name = tried[0].names_by_capitals and _NAME.search(clause.text) is not None
    holds_value = has_name or _VALUE.search(clause.text) is not None
    is_cautious = any(each.caution.search(clause.folded) for each in tried)
    has_doubt = any(_has_doubt(clause, each) for each in tried)
    return ClassifiedClause(
        kind,
        clause.text,
        clause.is_cut,
        clause.is_question,
        offers_handover,
        holds_value,
        is_cautious,
        has_doubt,
        any(each.inability.search(clause.folded) for each in tried),
        any(each.rule.search(clause.folded) for each in tried),
    )


def _has_doubt(clause: TextClause, language: LanguageCues) -> bool:
    text = language.condition.sub(" ", language.blank.sub(" ", clause.folded))
    return language.doubt.search(text) is not None


def _is_offering_more(clause: TextClause, tried: tuple[LanguageCues, ...]) -> bool:
    return any(
        each.offering.search(clause.folded) and not each.insisting.search(clause.folded)
        for each in tried
    )


def _classify_clause_without_cue(
    clause: TextClause, tried: tuple[LanguageCues, ...], *, known: bool
) -> ClauseKind:
    """Return the kind of a clause without a cue, by its length and language."""
    words = len(_WORD.findall(clause.folded))
    if words < MIN_CLAUSE_WORDS and len(SPACELESS.findall(clause.folded)) < 2 * MIN_CLAUSE_WORDS:
        return "fragment"
    if not known:
        return "foreign"
    return "self" if any(each.self.search(clause.folded) for each in tried) else "statement"


def _match_clause_cue(clause: TextClause, language: LanguageCues) -> ClauseKind | None:
    text = language.blank.sub(" ", clause.folded)
    for kind, cue in language.kinds:
        if cue.search(text):
            return kind
        if kind == "offer":
            text = language.condition.sub(" ", text)
        if kind == "refuse":
            text = language.reason.sub(" ", text)
    return None


def is_unknown_answer(text: str) -> bool:
    """Return whether an answer only says that the answer is not known."""
    folded = fold_text(text)
    return any(each.unknown_answer.fullmatch(folded) for each in load_languages())


def is_courtesy(text: str) -> bool:
    """Return whether a text only greets, thanks, offers help, reassures or regrets a delay."""
    folded, found = fold_text(text), classify_clauses(text)
    languages = detect_languages(folded) or load_languages()
    left = [each.blank.sub(" ", folded) for each in languages]
    is_blank = any(len(_WORD.findall(each)) < MIN_CLAUSE_WORDS for each in left)
    reassures = any(each != folded for each in left) and not any(each.has_doubt for each in found)
    kinds = {each.kind for each in found}
    return is_blank or kinds <= {"bye", "offer"} or reassures and kinds <= _NEUTRAL


_NEUTRAL: frozenset[ClauseKind] = frozenset(
    ("bye", "offer", "self", "statement", "done", "fragment")
)
