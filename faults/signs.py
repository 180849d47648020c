"""Signs in one run that an agent noticed, before any is held against clean twins.

What an agent did (N1 to N4: it asked again, otherwise, elsewhere, or looked; N9: it coped) and what
it said or thought (N5 to N7). Each is a sighting with a key: the same key in a clean twin is what
the agent does anyway.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from faults.after import After, spoken
from faults.atoms import atoms, mask_values
from faults.change import Change
from faults.entity import entities, specific
from faults.judging.claim_fact import ClaimFact
from faults.judging.claim_words import languages_of
from faults.judging.sentences import clauses
from faults.lexicon import names, sentences, trouble, without
from faults.side import side
from faults.sinks import key
from traces.story import Step, ToolUse

type Code = Literal["N1", "N2", "N3", "N4", "N5", "N6", "N7", "N8", "N9"]
type Equivalent = Mapping[str, tuple[str, ...]]
"""Which tools can say what a tool says, as the user declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One sign, as far as one run tells."""

    code: Code
    key: object
    step: int
    quote: str
    hard: bool = True


def acts(
    change: Change, after: After, calls: Iterable[ToolUse], equivalent: Equivalent
) -> Iterator[Sighting]:
    """N1 to N4 among these calls."""
    if after.use is not None:
        for other in calls:
            if sighting := _act(change, after, after.use, other, equivalent):
                yield sighting


def _act(
    change: Change, after: After, use: ToolUse, other: ToolUse, equivalent: Equivalent
) -> Sighting | None:
    """What a later call says about the struck one, if anything."""
    quote = f"{other.tool}({other.arguments})"
    if key(other) == key(use):
        return Sighting(code="N1", key="", step=other.step, quote=quote)
    # Who asks with what the lie says follows it.
    if change.introduced & atoms(other.arguments):
        return None
    shared = entities(use.arguments) & entities(other.arguments)
    if other.tool == use.tool:
        hard = change.injection.family != "V"
        sighting = Sighting(code="N2", key="", step=other.step, quote=quote, hard=hard)
        return sighting if shared else None
    if side(other.tool) == "write":
        return None
    if (shared and other.tool in equivalent.get(use.tool, ())) or _shows_truth(
        change, after, other
    ):
        return Sighting(code="N3", key=key(other), step=other.step, quote=quote)
    if not shared or side(other.tool) is None:
        return None
    hard = side(use.tool) != "read"
    return Sighting(code="N4", key=key(other), step=other.step, quote=quote, hard=hard)


def _shows_truth(change: Change, after: After, other: ToolUse) -> bool:
    """Whether another tool said of the same thing what the struck result no longer says."""
    use = after.use
    if use is None or other.result is None or not change.replaced:
        return False
    said = atoms(other.result)
    again = {atom for atom in change.replaced & said if specific(atom)}
    about = entities(use.arguments)
    return bool(again - after.known) and bool(about & (said | entities(other.arguments)))


def remarks(change: Change, after: After, twins: Sequence[After]) -> Iterator[Sighting]:
    """N5 and N6 in the window and the last answer: hard where they are tied to the injection.

    Thoughts count as words do. A sentence that a twin says too, whatever its values, is none.
    """
    usual = frozenset(form for twin in twins for form in twin.forms)
    steady = len(twins) > 1 and len({frozenset(twin.forms) for twin in twins}) == 1
    for turn in dict.fromkeys((*after.window, *after.finals)):
        yield from _troubles(change, after, turn, usual, steady=steady)
        yield from _both(change, after, turn)


def _troubles(
    change: Change, after: After, turn: Step, usual: frozenset[str], *, steady: bool
) -> Iterator[Sighting]:
    for clause in clauses(spoken(turn)):
        sentence = clause.text
        word = trouble(without(sentence, change.quotes))
        anchor = anchored(change, after, sentence)
        if word is None and steady and anchor and is_foreign(clause.folded):
            # No list has the words of every language, but the twins never say this.
            word = "another sentence"
        if word is not None and mask_values(sentence) not in usual:
            yield Sighting(code="N5", key=word, step=turn.number, quote=sentence, hard=anchor)


def is_foreign(sentence: str) -> bool:
    """Whether a sentence is in a language of whose words of trouble nothing is known."""
    known = [language.code for language in languages_of(sentence)]
    return "en" not in known if known else not sentence.isascii()


def anchored(change: Change, after: After, sentence: str) -> bool:
    """Whether a sentence names the tool, a field, or a value that only the strike is about."""
    if names(sentence, change.anchors):
        return True
    values = change.values & atoms(sentence)
    return bool(values) and bool(values - after.known)


def _both(change: Change, after: After, turn: Step) -> Iterator[Sighting]:
    """What was there and what was put there, named together."""
    if not change.introduced or change.injection.family not in ("S", "V"):
        return
    said = atoms(spoken(turn))
    for was, now in change.swapped:
        old, new = atoms(was.said) - atoms(now.said), atoms(now.said) - atoms(was.said)
        wanted = {atom for atom in new & said if specific(atom)} - after.known
        if wanted and any(specific(atom) for atom in old & said):
            told = sentences(spoken(turn))
            quote = next((s for s in told if wanted & atoms(s)), turn.message)
            yield Sighting(code="N6", key=was.path, step=turn.number, quote=quote.strip())
            return


def report(change: Change, after: After, claim: ClaimFact) -> Iterator[Sighting]:
    """N7: the last answer says not done, refuses or asks, and no twin's does.

    Hard if what it says names the tool, a field or a value.
    """
    if claim.success is not False or not claim.differs or not after.finals:
        return
    hard = any(anchored(change, after, said) for said in claim.said)
    step = after.finals[-1].number
    yield Sighting(code="N7", key="", step=step, quote=claim.evidence, hard=hard)


def adapted(change: Change, after: After, twins: Sequence[After]) -> Iterator[Sighting]:
    """N9: a value that had moved to another name or form was used as all twins use it.

    Who uses it has seen that it moved, or can do with either; both are what is wanted.
    """
    if change.injection.op != "schema_drift" or not twins:
        return
    moved = frozenset(filter(specific, change.moved)) - after.known
    used = frozenset.intersection(
        *(frozenset().union(*(sink.atoms for sink in twin.sinks)) for twin in twins)
    )
    for sink in after.sinks:
        if found := sorted(moved & used & sink.atoms):
            quote = f"{sink.where[0]} uses {found[0][2:]}, which had moved"
            yield Sighting(code="N9", key="", step=sink.step, quote=quote)
            return
