"""Signs in one run that an agent noticed, before any is held against clean twins.

What an agent did (N1 to N4: it asked again, otherwise, elsewhere, or looked) and what it said (N5
to N7). Each is a sighting with a key: the same key in a clean twin is what the agent does anyway.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from faults.after import After
from faults.atoms import atoms
from faults.change import Change
from faults.entity import entities, specific
from faults.lexicon import names, not_done, opens_not_done, sentences, trouble, without
from faults.side import side
from faults.sinks import key
from traces.story import Step, ToolUse

type Code = Literal["N1", "N2", "N3", "N4", "N5", "N6", "N7", "N8"]
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
    if use is None or other.result is None or not change.gone:
        return False
    said = atoms(other.result)
    again = {atom for atom in change.gone & said if specific(atom)}
    about = entities(use.arguments)
    return bool(again - after.known) and bool(about & (said | entities(other.arguments)))


def remarks(change: Change, after: After) -> Iterator[Sighting]:
    """N5 and N6 in the window and the final answer: hard where they are tied to the injection."""
    spoken = dict.fromkeys((*after.window, *(() if after.final is None else (after.final,))))
    for turn in spoken:
        yield from _troubles(change, after, turn)
        yield from _both(change, after, turn)


def _troubles(change: Change, after: After, turn: Step) -> Iterator[Sighting]:
    if trouble(turn.message) is None:
        return
    for sentence in sentences(turn.message):
        word = trouble(without(sentence, change.quotes))
        if word is not None:
            yield Sighting(
                code="N5",
                key=word,
                step=turn.number,
                quote=sentence.strip(),
                hard=anchored(change, after, sentence),
            )


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
    said = atoms(turn.message)
    for was, now in change.swapped:
        old, new = atoms(was.said) - atoms(now.said), atoms(now.said) - atoms(was.said)
        wanted = {atom for atom in new & said if specific(atom)} - after.known
        if wanted and any(specific(atom) for atom in old & said):
            quote = next((s for s in sentences(turn.message) if wanted & atoms(s)), turn.message)
            yield Sighting(code="N6", key=was.path, step=turn.number, quote=quote.strip())
            return


def report(change: Change, after: After) -> Iterator[Sighting]:
    """N7: the final answer says not done or unverified; hard where it names tool or field."""
    if after.final is None:
        return
    message, step = after.final.message, after.final.number
    quotes = change.quotes
    if (quote := not_done(message, change.anchors, quotes)) is not None:
        yield Sighting(code="N7", key="", step=step, quote=quote)
    elif (quote := not_done(message, None, quotes)) or opens_not_done(message):
        first = quote or sentences(message)[0].strip()
        yield Sighting(code="N7", key="", step=step, quote=first, hard=False)
