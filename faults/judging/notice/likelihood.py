"""The probability that an agent noticed, from acts that its clean runs also show now and then.

A clean run shows an act with probability h, the agent's habit; one that noticed with h + (1 - h) q.
Of the runs with the fault a share s noticed. The clean twins are draws of h, other runs with the
same fault of both. h has a Beta prior that expects few habits, s a uniform one; both are summed out
over a grid. Clean runs of other experiments are no draws of h: who forks a recording again must not
move a verdict, and three twins leave at most 5 % of runs more open than sixty do. Acts of different
kinds count as independent, of one kind the rarest alone counts. What the agent then did with the
true value that such an act showed it counts as well.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from msgspec import Struct

from faults.judging.taint.taint import TaintResult
from traces.model import NoticeSignal

NOTICED_FROM = 0.9
UNNOTICED_TO = 0.1
"""Thresholds of the probability; between them it is unknown whether the agent noticed."""
NO_SIGN = 0.05
"""Probability that an agent noticed without any sign of it."""
ACT_IF_NOTICED = 0.9
"""q: probability that who notices shows an act, where it is no habit."""
HABIT_PRIOR = (0.1, 0.9)
"""Beta prior of h: most acts are habits of few agents, and these of most of their runs."""
WRONG_AFTER_TRUTH = (0.002, 0.8)
"""Probability to use the wrong value after the true one was seen: noticed, not noticed."""
RIGHT_AFTER_TRUTH = (0.9, 0.5)
"""Probability to use only the true value after it was seen again: noticed, not noticed."""
_GRID = tuple((point + 0.5) / 40 for point in range(40))
_HABITS = tuple((point**3, 3 * point**2) for point in _GRID)
"""Values of h and the width of each: close to 0, where most of the prior is."""
_ACTS = ("N1", "N2", "N3", "N4")


class NoticeVerdict(Struct, frozen=True, kw_only=True):
    """Whether the agent noticed, None if that is not known, with the probability and why."""

    noticed: bool | None
    probability: float
    why: str = ""


def judge_notice(
    signals: Sequence[NoticeSignal], taint: TaintResult, *, steady: bool
) -> NoticeVerdict:
    """Return whether an agent noticed, by its signals and what it did with the true value.

    If its twins are `steady`, as they call the same tools as often, an act that none shows has no
    other cause than the fault, whatever was done then. A refusal that no twin makes and that names
    nothing of the fault is no sign, nor is it a sign of the contrary.
    """
    verdict = _judge_counted([each for each in signals if each.hard is not False], taint, steady)
    declined = next((each for each in signals if each.code == "N7"), None)
    if verdict.noticed or declined is None:
        return verdict
    why = f"it did not deliver, and nothing shows if by the fault: {declined.quote}"
    return NoticeVerdict(noticed=None, probability=0.5, why=why)


def _judge_counted(
    counted: Sequence[NoticeSignal], taint: TaintResult, steady: bool
) -> NoticeVerdict:
    remark = next((each for each in counted if each.code not in _ACTS and each.hard), None)
    if remark is not None:
        return NoticeVerdict(noticed=True, probability=weigh_acts([remark], (1.0, 1.0)))
    acts = _select_rarest_acts(counted)
    remarks = [each for each in counted if each.code not in _ACTS]
    if not acts and not remarks:
        return NoticeVerdict(noticed=False, probability=NO_SIGN)
    caused = steady and not any(each.twins for each in acts.values())
    after_truth = (1.0, 1.0) if caused else _find_use_of_truth(taint)
    probability = weigh_acts([*acts.values(), *remarks], after_truth)
    if any(not each.twins for each in remarks):
        why = f"the end adds what no clean twin says: {remarks[0].quote}"
        return NoticeVerdict(noticed=None, probability=0.5, why=why)
    noticed = (
        True if probability >= NOTICED_FROM else False if probability <= UNNOTICED_TO else None
    )
    why = "" if noticed is not None else _explain_open(tuple(acts.values()), probability)
    return NoticeVerdict(noticed=noticed, probability=probability, why=why)


def weigh_acts(acts: Iterable[NoticeSignal], after_truth: tuple[float, float]) -> float:
    """Return the probability of notice; `after_truth` has the likelihoods of what followed.

    0 to 1, with a uniform prior on the share of runs that notice.
    """
    acts, noticed, all_runs = tuple(acts), 0.0, 0.0
    for share in _GRID:
        likely = [_weigh_act(act, share) for act in acts]
        if_noticed = share * after_truth[0] * prod(one for one, _ in likely)
        noticed += if_noticed
        all_runs += if_noticed + (1 - share) * after_truth[1] * prod(two for _, two in likely)
    return noticed / all_runs


def _weigh_act(act: NoticeSignal, share: float) -> tuple[float, float]:
    """Return the likelihood of an act in a run that noticed and in one that did not."""
    alpha, beta = HABIT_PRIOR
    if_noticed = if_not = 0.0
    for habit, width in _HABITS:
        by_notice = habit + (1 - habit) * ACT_IF_NOTICED
        in_peers = share * by_notice + (1 - share) * habit
        weight = (
            width
            * habit ** (alpha - 1 + act.twins)
            * (1 - habit) ** (beta - 1 + act.of - act.twins)
            * in_peers**act.peers_shown
            * (1 - in_peers) ** (act.peers - act.peers_shown)
        )
        if_noticed += weight * by_notice
        if_not += weight * habit
    return if_noticed, if_not


def _select_rarest_acts(signals: Iterable[NoticeSignal]) -> Mapping[str, NoticeSignal]:
    """Return the act of each kind that the fewest clean twins show."""
    rarest: dict[str, NoticeSignal] = {}
    for each in signals:
        if each.code in _ACTS and (each.code not in rarest or each.twins < rarest[each.code].twins):
            rarest[each.code] = each
    return rarest


def _find_use_of_truth(taint: TaintResult) -> tuple[float, float]:
    seen = taint.truth_reobserved
    if seen is None or taint.reported:
        return 1.0, 1.0
    if any(use.step > seen for use in taint.uses):
        return WRONG_AFTER_TRUTH
    return RIGHT_AFTER_TRUTH


def _explain_open(acts: tuple[NoticeSignal, ...], probability: float) -> str:
    habits = ", ".join(f"{act.code} is in {act.twins} of {act.of} clean twins" for act in acts)
    return (
        f"{habits}: it noticed with a probability of {probability:.2f}, and is open from "
        f"{UNNOTICED_TO:g} to {NOTICED_FROM:g}"
    )
