"""Double and lost actions: the committed effects of a run against those of its clean twins.

An effect counts as doubled if its key was committed more often than in any clean twin, and at least
twice: what a task does twice on purpose its twins do twice too. It is lost if it was committed less
often than in every clean twin. Ledgers are compared as multisets, so their order is irrelevant.
Absence is a fact only if keys can be compared: where keys of the run and of the twins differ from
run to run (a time or a random id is part of them), a clean result would prove nothing.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from traces.model import RunEnding

MIN_LEDGER_TWINS = 3
MAX_CHANGES_TOLD = 5


class EffectVerdict(Struct, frozen=True, kw_only=True):
    """Whether effects were doubled or lost; None if unknown, with the reason in `why` unless the
    world has no ledger."""

    double: bool | None = None
    lost: bool | None = None
    changes: tuple[str, ...] = ()
    why: str = ""


def judge_effects(ending: RunEnding | None, twins: Sequence[RunEnding]) -> EffectVerdict:
    """Compare the ledger after a run with the ledgers after its clean twins."""
    if ending is None or ending.effects_of is None:
        return EffectVerdict()
    if ending.effects_unknown is not None:
        return EffectVerdict(why=ending.effects_unknown)
    mates = [
        twin.effects
        for twin in twins
        if twin.effects_of == ending.effects_of and twin.effects_unknown is None
    ]
    if len(mates) < MIN_LEDGER_TWINS:
        broken = next((twin.effects_unknown for twin in twins if twin.effects_unknown), None)
        counted = f"{len(mates)} of {MIN_LEDGER_TWINS} clean twins have a ledger"
        return EffectVerdict(why=f"{counted}; {broken}" if broken else counted)
    own = ending.effects
    doubled = _find_doubled(own, mates)
    lost = _find_lost(own, mates)
    comparable = _has_comparable_keys(own, mates)
    names = _merge_names(ending, twins)
    return EffectVerdict(
        double=True if doubled else False if comparable else None,
        lost=True if lost else False if comparable else None,
        changes=(
            *_describe("committed", doubled, own, mates, names),
            *_describe("lost:", lost, own, mates, names),
        ),
        why="" if comparable else "the keys of the effect ledger differ from run to run",
    )


def _find_doubled(own: Mapping[str, int], twins: Sequence[Mapping[str, int]]) -> list[str]:
    return [
        key
        for key, times in own.items()
        if times >= 2 and times > max(twin.get(key, 0) for twin in twins)
    ]


def _find_lost(own: Mapping[str, int], twins: Sequence[Mapping[str, int]]) -> list[str]:
    return [key for key in twins[0] if own.get(key, 0) < min(twin.get(key, 0) for twin in twins)]


def _has_comparable_keys(own: Mapping[str, int], twins: Sequence[Mapping[str, int]]) -> bool:
    """Return whether no key is in one twin alone, or this run has none that no twin has."""
    times = [sum(key in twin for twin in twins) for key in set().union(*twins)]
    return 1 not in times or all(any(key in twin for twin in twins) for key in own)


def _merge_names(ending: RunEnding, twins: Sequence[RunEnding]) -> Mapping[str, str]:
    names: dict[str, str] = {}
    for each in (*twins, ending):
        names.update(each.effect_names)
    return names


def _describe(
    word: str,
    keys: Sequence[str],
    own: Mapping[str, int],
    twins: Sequence[Mapping[str, int]],
    names: Mapping[str, str],
) -> list[str]:
    lines = []
    for key in keys[:MAX_CHANGES_TOLD]:
        usual = sorted({twin.get(key, 0) for twin in twins})
        twin_times = " or ".join(map(str, usual))
        count = f"{own.get(key, 0)} times, in clean twins {twin_times}"
        lines.append(f"effect {word} {count}: {names.get(key, key)}")
    if len(keys) > MAX_CHANGES_TOLD:
        lines.append(f"and {len(keys) - MAX_CHANGES_TOLD} more effects {word.removesuffix(':')}")
    return lines
