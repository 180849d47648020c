"""Learn matching rules from answers of the live world that should have been equal.

A fork shows its agent the recorded answers before the fault, if live ones differ only in values of
the run. Whether a value is one, another run decides; a learnt rule decides at once. No rule is
learnt for a value that something later uses: an id is renamed instead, and a time is the task.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from replay.matching.answer_equality import (
    AnswerChange,
    RunDays,
    compare_texts,
    find_values,
    read_answer_texts,
)
from replay.matching.rule_learning import RequestDifference, make_typed_difference
from replay.matching.rules import MatchRules
from traces.model import Exchange

type UseCheck = Callable[[int, AnswerChange], bool]
"""Returns whether a later text of the recording uses a value of an exchange, by its seq."""


class AnswerPair(Struct, frozen=True):
    """A recorded exchange, and one of another run whose request is the same."""

    recorded: Exchange
    live: Exchange


def pair_answers(
    recorded: Sequence[Exchange], run: Sequence[Exchange], key: Callable[[Exchange], object]
) -> Iterator[AnswerPair]:
    """Yield pairs of complete answers to requests of one key, in order; a run may lack some."""
    waiting = dict[object, list[Exchange]]()
    for each in recorded:
        waiting.setdefault(key(each), []).append(each)
    for live in run:
        equals = waiting.get(key(live), [])
        if live.answered_by != "live" or not equals:
            continue
        pair = AnswerPair(equals.pop(0), live)
        if all(each.response and each.error is None for each in (pair.recorded, pair.live)):
            yield pair


def find_answer_differences(
    pair: AnswerPair, rules: MatchRules, days: RunDays, is_used: UseCheck
) -> Iterator[RequestDifference]:
    """Yield the differences of two answers; an id that is used later is none, since it is renamed.

    No difference has a rule if all of the answer differs: then it is the task.
    """
    old = read_answer_texts(pair.recorded, rules)
    changed = dict(_iter_changed_texts(pair, old, rules))
    is_task = changed.keys() == old.keys() and not any(
        find_values(text)[1].strip("\0 ") for text in old.values() if len(old) == 1
    )
    for where, (was, now) in changed.items():
        changes = compare_texts(where, was, now, days)
        used = [each for each in changes if is_used(pair.recorded.seq, each)]
        if used and all(each.kind == "id" for each in used) and not is_task:
            continue
        path = "" if where == "body" and len(old) == 1 else where
        difference = make_typed_difference("body", path, where, was, now)
        why = "is all of its answer" if is_task else "is used by a later call or end"
        if used or is_task:
            difference = RequestDifference(where, was, now, why=why)
        yield difference


def _iter_changed_texts(
    pair: AnswerPair, old: Mapping[str, str], rules: MatchRules
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each field with its recorded and its live text.

    The tape of a fork has what the agent saw, and the live values of the fields beside it.
    """
    if not pair.live.substituted:
        new = read_answer_texts(pair.live, rules)
        for where in [*old, *(where for where in new if where not in old)]:
            if old.get(where) != new.get(where):
                yield where, (old.get(where, "(absent)"), new.get(where, "(absent)"))
        return
    live = dict[str, list[str]]()
    for text in pair.live.substituted:
        where, _, value = text.partition(": ")
        live.setdefault(where, []).append(value)
    for where, values in live.items():
        known, between = find_values(old.get(where, ""))
        if len(known) == len(values):
            yield where, (old[where], _join(between.split("\0"), values))


def _join(between: Sequence[str], values: Sequence[str]) -> str:
    """Return a text of which every second piece is a value."""
    pieces = [text for pair in zip(between, values, strict=False) for text in pair]
    return "".join([*pieces, between[-1]])
