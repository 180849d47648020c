"""Notice signals: evidence in the agent's actions and words, never in the fault plan.

    N1  the same call again                             hard
    N2  the call again, with other arguments for the    hard, but soft after a wrong value
        same thing
        a write of the wrong value, made again with     hard
        another value
    N3  another tool with the same information:         hard
        declared equivalent, or it returned the
        replaced value
    N4  a reading tool called for the same thing        hard after a write, after a result that
                                                        is no JSON any more, or in a turn with N5;
                                                        soft after a read
    N5  a trouble word, in a message or in reasoning,   hard, and soft if it names none; open
        in a sentence that names tool, field or value   for a statement without one, added to
                                                        an end that all twins share
    N6  the wrong value and the true one together       hard
    N7  the last answer refuses, asks or says not done  hard if it names tool, field or value
    N8  the wrong value was not used where the clean    soft
        twins used the true one
    N9  a value that moved to another name or form was  hard
        used all the same

A signal counts only in comparison with the clean twins, and by rate. A signal that no twin shows is
attributed to the injection; one that all twins of a steady agent show is ignored; one that some
twins show, or all of an agent whose twins differ, is a habit, which `likelihood` weighs.
`NoticeSignal.error` is the probability of the signals under no difference (Fisher's exact test).

Repeats are counted, in the window and in the rest of the run: a careless agent, which skips calls,
makes later ones earlier. The same holds for N4: a second read-back that no twin makes is absent
from the twins, the first is not. Another source (N3) is counted once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import replace
from dataclasses import dataclass
from functools import cache, cached_property

from faults.judging.claims.claim_verdict import ClaimVerdict
from faults.judging.claims.clause_kinds import is_courtesy
from faults.judging.identifiers import is_specific_token
from faults.judging.injected_change import InjectedChange
from faults.judging.notice.exact_test import fisher_greater
from faults.judging.notice.sightings import (
    EquivalentTools,
    NoticeSighting,
    find_act_sightings,
    find_adaptation,
    find_failure_report,
    find_remark_sightings,
)
from faults.judging.post_injection import RunContinuation, render_turn_text
from faults.judging.taint.sinks import make_call_key
from faults.judging.trouble_words import is_reassurance
from faults.judging.value_tokens import extract_tokens
from faults.targeting.read_or_write import classify_tool_side
from traces.model import NoticeSignal

MAX_CHANCE_ERROR = 0.05
"""Largest error at which a signal that some twins also show still counts."""


@dataclass(frozen=True, kw_only=True)
class PeerRun:
    """Another run with the same fault at the same place."""

    change: InjectedChange
    after: RunContinuation


def find_notice_signals(
    change: InjectedChange,
    after: RunContinuation,
    twins: tuple[RunContinuation, ...],
    *,
    claim: ClaimVerdict,
    enough: bool = True,
    equivalent: EquivalentTools | None = None,
    peers: Callable[[], Sequence[PeerRun]] = lambda: (),
) -> tuple[NoticeSignal, ...]:
    """Return the signals N1 to N7 and N9; with too few twins their hardness is None."""
    declared = equivalent or {}
    own = _NoticeSigns(change, after, twins, declared)
    controls = [_NoticeSigns(change, twin, twins, declared) for twin in twins]

    @cache
    def others() -> Sequence[_NoticeSigns]:
        return [_NoticeSigns(peer.change, peer.after, twins, declared) for peer in peers()]

    never = _compute_chance_error(0, 0, twins)
    signals = [
        *_compare_sightings(own.find_acts(), controls, others, steady=are_steady(twins)),
        *_compare_sightings(own.find_remarks(), controls, others, steady=True),
        *(
            NoticeSignal(
                code=s.code, step=s.step, quote=s.quote, hard=s.hard, error=never, of=len(twins)
            )
            for s in (
                *find_failure_report(change, after, claim),
                *find_adaptation(change, after, twins),
            )
        ),
    ]
    opened = list(_find_open_remark(after, twins, claim, signals))
    quotes = {each.quote for each in opened}
    signals = _harden_explained_acts([s for s in signals if s.quote not in quotes] + opened)
    signals = _harden_sources(signals, after, twins)
    return tuple(signals if enough else (_to_open_signal(each) for each in signals))


def _find_open_remark(
    after: RunContinuation,
    twins: Sequence[RunContinuation],
    claim: ClaimVerdict,
    signals: Sequence[NoticeSignal],
) -> Iterator[NoticeSignal]:
    """Yield a statement added to an end that all twins share, if no cue reads it.

    It may be a remark on the fault in any words; three twins cannot exclude chance.
    """
    if not claim.added or not after.final_turns or any(each.hard for each in signals):
        return
    if is_courtesy(claim.added) or is_reassurance(claim.added):
        return
    yield NoticeSignal(
        code="N5",
        step=after.final_turns[-1].number,
        quote=claim.added,
        hard=None,
        error=_compute_chance_error(0, 0, twins),
        of=len(twins),
    )


def _harden_explained_acts(signals: Sequence[NoticeSignal]) -> list[NoticeSignal]:
    """Make a soft act hard if a remark in its turn gives trouble as its reason; no twin has either.

    Each alone may be chance: a call that the agent makes now and then, a word that fits anything.
    """
    reasons = {each.step for each in signals if each.code == "N5" and not each.twins}
    return [
        replace(each, hard=True)
        if each.code == "N4" and each.hard is False and not each.twins and each.step in reasons
        else each
        for each in signals
    ]


def _harden_sources(
    signals: Sequence[NoticeSignal], after: RunContinuation, twins: Sequence[RunContinuation]
) -> list[NoticeSignal]:
    """Make a soft look hard if the run's end has its value, with which all twins end.

    No twin makes that call: its own way to the value was the changed result, and it left it.
    """
    ends = [_extract_end_tokens(run) for run in (after, *twins)]
    right = frozenset.intersection(*ends) - after.prior_tokens if twins else frozenset()
    looks = {
        use.step
        for use in after.reaction_calls
        if any(map(is_specific_token, right & extract_tokens(use.result or "")))
    }
    return [
        replace(each, hard=True)
        if each.code == "N4" and each.hard is False and not each.twins and each.step in looks
        else each
        for each in signals
    ]


def _extract_end_tokens(run: RunContinuation) -> frozenset[str]:
    """Return the tokens of the last answer and of all writes."""
    texts = [render_turn_text(turn) for turn in run.final_turns]
    texts += [use.arguments for use in run.calls if classify_tool_side(use.tool) == "write"]
    return frozenset().union(*map(extract_tokens, texts))


def _to_open_signal(signal: NoticeSignal) -> NoticeSignal:
    return NoticeSignal(code=signal.code, step=signal.step, quote=signal.quote, hard=None)


def _compute_chance_error(shown: int, more: int, twins: Sequence[object], peers: int = 0) -> float:
    return fisher_greater(1 + more, 1 + peers, shown, len(twins))


def are_steady(twins: Sequence[RunContinuation]) -> bool:
    """Return whether all twins call the same tools as often."""
    return len({frozenset(Counter(use.tool for use in twin.calls).items()) for twin in twins}) < 2


type SightingCheck = Callable[["_NoticeSigns"], bool]
"""Whether a run shows a signal at least as often as the judged run."""


def _compare_sightings(
    found: Iterable[tuple[NoticeSighting, SightingCheck]],
    controls: Sequence["_NoticeSigns"],
    others: Callable[[], Sequence["_NoticeSigns"]],
    *,
    steady: bool,
) -> Iterator[NoticeSignal]:
    """Yield the signals that exceed the twins'; hardness is None if chance may explain them.

    Other runs are examined only for a signal that some twins show. One that all twins of a steady
    agent show is ignored; if they differ among themselves it may be chance that all show it.
    """
    for sign, shows in found:
        shown = sum(map(shows, controls))
        if controls and shown == len(controls) and steady:
            continue
        peers = others() if shown else ()
        error = _compute_chance_error(shown, sum(map(shows, peers)), controls, len(peers))
        hard = sign.hard if not shown or error <= MAX_CHANCE_ERROR else None if sign.hard else False
        yield NoticeSignal(
            code=sign.code,
            step=sign.step,
            quote=sign.quote,
            hard=hard,
            error=error,
            twins=shown,
            of=len(controls),
            peers_shown=sum(map(shows, peers)),
            peers=len(peers),
        )


class _NoticeSigns:
    """All sightings of one run, with their counts."""

    def __init__(
        self,
        change: InjectedChange,
        after: RunContinuation,
        twins: tuple[RunContinuation, ...],
        declared: EquivalentTools,
    ) -> None:
        self._change, self._after = change, after
        self._twins, self._declared = twins, declared

    def find_acts(self) -> Iterator[tuple[NoticeSighting, SightingCheck]]:
        """Yield the calls in the window, each with the check for another run."""
        seen: Counter[tuple[str, object]] = Counter()
        for each in find_act_sightings(
            self._change, self._after, self._after.reaction_calls, self._declared
        ):
            name = each.code, each.key
            seen[name] += 1
            if each.code == "N3":
                if seen[name] == 1:
                    yield each, _make_call_check(each.key)
            elif each.code == "N2" and each.key:
                yield each, _make_rewrite_check(str(each.key), self.tool_counts[str(each.key)])
            elif each.code == "N4":
                yield each, _make_look_check(each.key, seen[name], self.call_counts[each.key])
            else:
                yield each, _make_repeat_check(name, seen[name], self.run_counts[name])

    def find_remarks(self) -> Iterator[tuple[NoticeSighting, SightingCheck]]:
        """Yield the remarks, each with the check for another run."""
        seen: Counter[tuple[str, object]] = Counter()
        for each in find_remark_sightings(self._change, self._after, self._twins):
            name = each.code, each.key
            seen[name] += 1
            yield each, _make_remark_check(name, seen[name])

    @cached_property
    def window_counts(self) -> Counter[tuple[str, object]]:
        after = self._after
        return _count_sightings(
            find_act_sightings(self._change, after, after.reaction_calls, self._declared)
        )

    @cached_property
    def run_counts(self) -> Counter[tuple[str, object]]:
        after = self._after
        return _count_sightings(
            find_act_sightings(self._change, after, after.calls, self._declared)
        )

    @cached_property
    def call_counts(self) -> Counter[object]:
        """How often each call is made in the run, whether or not it is a signal there."""
        return Counter(self._after.call_keys)

    @cached_property
    def tool_counts(self) -> Counter[str]:
        """How often each tool is called in the run."""
        return Counter(use.tool for use in self._after.calls)

    @cached_property
    def window_call_counts(self) -> Counter[object]:
        return Counter(map(make_call_key, self._after.reaction_calls))

    @cached_property
    def remark_counts(self) -> Counter[tuple[str, object]]:
        """Counts that ignore the twins' sentences, since a twin's own are among them."""
        return _count_sightings(find_remark_sightings(self._change, self._after, ()))


def _make_call_check(call: object) -> SightingCheck:
    return lambda run: run.call_counts[call] > 0


def _make_look_check(call: object, nth: int, total: int) -> SightingCheck:
    return lambda run: run.call_counts[call] >= total or run.window_call_counts[call] >= nth


def _make_rewrite_check(tool: str, total: int) -> SightingCheck:
    return lambda run: run.tool_counts[tool] >= total


def _make_repeat_check(name: tuple[str, object], nth: int, total: int) -> SightingCheck:
    return lambda run: run.run_counts[name] >= total or run.window_counts[name] >= nth


def _make_remark_check(name: tuple[str, object], nth: int) -> SightingCheck:
    return lambda run: run.remark_counts[name] >= nth


def _count_sightings(found: Iterable[NoticeSighting]) -> Counter[tuple[str, object]]:
    return Counter((each.code, each.key) for each in found)
