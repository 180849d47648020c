"""Rules for volatile values, learnt from a diverged replay, a second recording, or a fork."""

from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path

from msgspec import Struct

from replay.matching.answer_equality import RunDays
from replay.matching.answer_learning import find_answer_differences, pair_answers
from replay.matching.diff import cut_to_difference, find_nearest_exchange
from replay.matching.index import RecordingIndex
from replay.matching.request_comparison import RequestComparison
from replay.matching.rule_learning import (
    DEFAULT_RULES,
    GivenCheck,
    RequestDifference,
    collect_learnt_rules,
    find_learnable_differences,
    generalize_rules,
    learn_from_twins,
    make_given_check,
)
from replay.matching.rules import MatchRule, MatchRules, parse_match_rule
from replay.matching.typed_values import list_days_on_earth
from replay.player import find_tape_redactions, select_playable_exchanges
from stumble.runs.prefix_uses import RecordedUses
from traces.conversation.derived_steps import derive_tape_steps
from traces.model import Exchange
from traces.tape.reader import Tape, read_tape

_MAX_LATEST_TAPES = 50
"""Newest tapes of a store that are searched for the latest replay of a recording."""


class LearnedRules(Struct, frozen=True, kw_only=True):
    """The learnt rules, and the differences that are no volatile values."""

    rules: tuple[MatchRule, ...] = ()
    left: tuple[RequestDifference, ...] = ()

    def __add__(self, other: "LearnedRules") -> "LearnedRules":
        rules = tuple(dict.fromkeys((*self.rules, *other.rules)))
        return LearnedRules(rules=rules, left=(*self.left, *other.left))

    def to_lines(self) -> Iterator[str]:
        """Yield a line for each rule, and three for each difference that is left."""
        yield from (f"accepted {rule}" for rule in self.rules)
        for each in self.left:
            yield f"not accepted: {each.where} {each.why}"
            was, now = cut_to_difference(each.was, each.now)
            yield f"  - {was}"
            yield f"  + {now}"


def learn_volatile_rules(recording: Tape, run: Tape) -> LearnedRules:
    """Learn from a replay of a recording, or from another recording of the same agent."""
    if run.trajectory.parent == recording.trajectory.id:
        return _learn_from_replay(recording, run)
    rules = learn_from_twins(recording.exchanges, run.exchanges, _bind_recording_rules(recording))
    return LearnedRules(rules=rules)


def learn_answer_rules(recording: Tape, run: Tape) -> LearnedRules:
    """Learn from live answers of another run: a fork before its fault, or another recording.

    What differs in an answer gets its rules together, or none.
    """
    rules, steps = _bind_recording_rules(recording), derive_tape_steps(recording)
    uses = RecordedUses(recording, steps)
    tools = [x for x in recording.exchanges if steps.contexts[x.seq].kind == "tool"]
    index = RecordingIndex(tools, rules, redactions=find_tape_redactions(recording))
    first_fault = min((each.seq for each in run.injections), default=inf)
    live = [x for x in run.exchanges if x.seq < first_fault]
    days = RunDays(*(list_days_on_earth(t.trajectory.recorded_at or 0.0) for t in (recording, run)))
    learnt, left = dict[MatchRule, None](), list[RequestDifference]()
    for pair in pair_answers(tools, live, lambda x: index.get_matching_key(x.request)):
        now = MatchRules((*rules.all, *learnt), recording.trajectory.volatile)
        found = list(find_answer_differences(pair, now, days, uses.is_used))
        learnt |= dict.fromkeys(collect_learnt_rules(found))
        left += [each for each in found if not each.rules]
    return LearnedRules(rules=tuple(learnt), left=tuple(left))


def learn_beside_background(
    recording: Tape, refused: Tape, answered: tuple[Tape, Tape], background: Iterable[str]
) -> LearnedRules:
    """Learn from a replay that refused the requests of `background` rules, and two that did not.

    What differs may come of the answers to these requests. It does not if it differs in all of
    them, and also between the two whose answers were the same.
    """
    rules = MatchRules(map(parse_match_rule, background))
    one, two = answered
    lessons = [_learn_from_replay(recording, run, rules) for run in (refused, one, two)]
    own = _learn_from_replay(one, two, rules)
    alike = lessons[0] == lessons[1] == lessons[2]
    return lessons[0] if alike and set(lessons[0].rules) <= set(own.rules) else LearnedRules()


def _learn_from_replay(
    recording: Tape, run: Tape, background: MatchRules = DEFAULT_RULES
) -> LearnedRules:
    """Compare the refused requests with the nearest recorded ones, without `background` requests.

    Only the first, and those that were on their way before it was refused: what the agent sends
    later may come of the refusal, as a count of failures does. The next replay shows more.
    """
    recorded, rules = (
        tuple(select_playable_exchanges(recording.exchanges)),
        _bind_recording_rules(recording),
    )
    learnt, unexplained = dict[MatchRule, None](), list[RequestDifference]()
    compared = (each for each in run.exchanges if not background.is_background(each.request))
    for refused in _select_first_refusals(compared):
        now = MatchRules((*rules.all, *learnt), recording.trajectory.volatile)
        comparison = RequestComparison(recorded, now, find_tape_redactions(recording))
        nearest = find_nearest_exchange(refused.request, recorded, now, comparison)
        if nearest is None:
            continue
        differences = find_learnable_differences(
            nearest.request, refused.request, comparison, now, _find_given_values(recorded, nearest)
        )
        learnt |= dict.fromkeys(collect_learnt_rules(differences))
        unexplained = [each for each in differences if not each.rules]
        if unexplained:
            break
    if learnt:
        learnt |= dict.fromkeys(generalize_rules((*rules.all, *learnt)))
    new = tuple(each for each in learnt if each not in rules.all)
    return LearnedRules(rules=new, left=tuple(unexplained))


def _select_first_refusals(exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
    """Yield the requests that were refused before the agent could know that any was."""
    known_at = inf
    refusals = (each for each in exchanges if each.answered_by == "refused")
    for refused in sorted(refusals, key=lambda each: each.started):
        if refused.started > known_at:
            return
        answer = refused.response
        first_byte = answer.chunks[0].at if answer and answer.chunks else refused.started
        known_at = min(known_at, first_byte)
        yield refused


def _find_given_values(recorded: tuple[Exchange, ...], near: Exchange) -> GivenCheck:
    return make_given_check([each for each in recorded if each.started < near.started])


def _bind_recording_rules(recording: Tape) -> MatchRules:
    return MatchRules(
        map(parse_match_rule, recording.trajectory.rules), recording.trajectory.volatile
    )


def find_latest_replay(tapes: Path, recording: Tape, *, is_live: bool = False) -> Tape | None:
    """Return the latest replay of a recording in a folder of tapes, or None.

    With `is_live`, one that has live answers: a fork.
    """
    paths = sorted(tapes.glob("*.tape"), key=_read_modified_time, reverse=True)
    for path in paths[:_MAX_LATEST_TAPES]:
        try:
            tape = read_tape(path)
        except (OSError, ValueError):
            continue
        has_answers = not is_live or any(x.answered_by == "live" for x in tape.exchanges)
        if tape.trajectory.parent == recording.trajectory.id and has_answers:
            return tape
    return None


def _read_modified_time(path: Path) -> float:
    return path.stat().st_mtime


def shorten_value(text: str, most: int = 100) -> str:
    """Return a text cut to `most` characters."""
    return text if len(text) <= most else f"{text[:most]}…"
