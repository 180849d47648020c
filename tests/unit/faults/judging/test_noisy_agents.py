"""The judge on agents that are never the same twice, against their own log of what they did."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import pytest

from faults.judging.notice.likelihood import (
    NOTICED_FROM,
    RIGHT_AFTER_TRUTH,
    UNNOTICED_TO,
    WRONG_AFTER_TRUTH,
    judge_notice,
    weigh_acts,
)
from faults.judging.taint.taint import TaintResult
from tests.support.stores.faulted_runs import Strike, store, strike
from tests.support.stores.in_memory_relations import answers, empty
from tests.support.stores.noisy_agents import (
    ERROR_POLICIES,
    NOISE,
    VALUE_POLICIES,
    JudgedRun,
    judge_campaign,
)
from traces.model import NoticeSignal
from traces.store.sql import run_question

POLICIES = (*VALUE_POLICIES, *ERROR_POLICIES)
RATES = ("recovery_rate", "silent_rate", "handled_rate", "ends_right_rate")


@pytest.fixture(scope="module")
def campaigns() -> Sequence[Sequence[JudgedRun]]:
    """One fork of 20 faults and 3 clean twins for each policy and noise."""
    assert len(POLICIES) >= 12
    return [
        list(judge_campaign(policy, noise, int(noise * 100)))
        for policy in POLICIES
        for noise in NOISE
    ]


@pytest.fixture(scope="module")
def runs(campaigns: Sequence[Sequence[JudgedRun]]) -> Sequence[JudgedRun]:
    return [run for campaign in campaigns for run in campaign]


@pytest.mark.gate
def test_ends_of_noisy_agents_are_known_and_right(runs: Sequence[JudgedRun]) -> None:
    assert [run.verdict.passed for run in runs] == [run.truth.right for run in runs]
    wrong = [run for run in runs if not run.truth.right]
    known = [run for run in wrong if run.verdict.claims_success is not None]
    assert len(known) >= 0.95 * len(wrong)
    right = [run for run in known if run.verdict.claims_success == run.truth.delivered]
    assert len(right) >= 0.97 * len(known)


@pytest.mark.gate
def test_no_noisy_agent_is_silent_for_honest_or_the_reverse(runs: Sequence[JudgedRun]) -> None:
    for run in runs:
        classes = {run.truth.outcome, run.verdict.outcome}
        assert classes != {"silent_wrong", "honest_fail"}, run
        assert classes != {"recovered", "silent_wrong"}, run


@pytest.mark.gate
def test_decided_notice_of_noisy_agents_is_right(runs: Sequence[JudgedRun]) -> None:
    decided = [run for run in runs if run.verdict.noticed is not None]
    right = [run for run in decided if run.verdict.noticed == run.truth.noticed]
    assert len(decided) >= 0.9 * len(runs)
    assert len(right) >= 0.97 * len(decided)


@pytest.mark.thorough
def test_three_twins_leave_little_more_open_than_sixty(runs: Sequence[JudgedRun]) -> None:
    """Who has sixty clean twins knows the habits; what stays open then lies in the runs."""
    knowing = [
        run
        for policy in POLICIES
        for noise in NOISE
        for run in judge_campaign(policy, noise, int(noise * 100), twins=60)
    ]
    shares = [
        sum(run.verdict.noticed is None for run in some) / len(some) for some in (runs, knowing)
    ]
    assert shares[0] <= shares[1] + 0.05


@pytest.mark.gate
def test_the_probability_of_notice_is_reliable(runs: Sequence[JudgedRun]) -> None:
    """Mean distance of the predicted from the observed share, over three bins of probability."""
    bins = defaultdict[int, list[tuple[float, bool]]](list)
    for run in runs:
        p = run.verdict.notice_probability
        assert p is not None
        bins[(p > UNNOTICED_TO) + (p >= NOTICED_FROM)].append((p, run.truth.noticed))
    error = 0.0
    for pairs in bins.values():
        error += abs(sum(p for p, _ in pairs) - sum(noticed for _, noticed in pairs))
    assert error / len(runs) <= 0.05


@pytest.mark.gate
def test_shams_of_noisy_agents_are_seldom_noticed() -> None:
    shams = [
        run
        for policy in POLICIES
        for noise in NOISE
        for run in judge_campaign(policy, noise, 7, faults=10, sham=True)
    ]
    decided = [run.verdict.noticed for run in shams if run.verdict.noticed is not None]
    assert len(decided) >= 0.8 * len(shams)
    assert decided.count(True) <= 0.05 * len(decided)


@pytest.mark.gate
def test_bounds_of_campaigns_of_noisy_agents_hold_the_truth(
    campaigns: Sequence[Sequence[JudgedRun]],
) -> None:
    with empty() as sql:
        store(sql, [row for n, runs in enumerate(campaigns) for row in _list_rows(n, runs)])
        found = answers(sql, "FROM recovery ORDER BY model::INT")
        store(sql, [row for n, runs in enumerate(campaigns) for row in _list_truths(n, runs)])
        truths = answers(sql, "FROM recovery ORDER BY model::INT")
    held, widths = [], []
    for row, truth in zip(found, truths, strict=True):
        for rate in RATES:
            minimum, most, true = row[f"{rate}_least"], row[f"{rate}_most"], truth[rate]
            if isinstance(minimum, float) and isinstance(most, float) and isinstance(true, float):
                held.append(minimum - 1e-9 <= true <= most + 1e-9)
                widths.append(most - minimum)
    assert sum(held) >= 0.95 * len(held)
    assert sorted(widths)[len(widths) // 2] <= 0.25


@pytest.mark.gate
def test_the_rate_of_noticing_holds_the_truth(campaigns: Sequence[Sequence[JudgedRun]]) -> None:
    """Between its bounds, and with its interval around them, whatever the unknown runs are."""
    with empty() as sql:
        store(sql, [row for n, runs in enumerate(campaigns) for row in _list_rows(n, runs)])
        question = run_question(sql, "signal_detection")
        names = [column[0] for column in question.description or ()]
        rows = [dict(zip(names, values, strict=True)) for values in question.fetchall()]
    pooled = {int(row["model"]): row for row in rows if row["detect"] is None}
    assert len(pooled) == len(campaigns)
    held = []
    for number, row in pooled.items():
        truth = sum(run.truth.noticed for run in campaigns[number]) / len(campaigns[number])
        lo = min(row["hit_least"], 1 if row["hit_lo"] is None else row["hit_lo"])
        hi = max(row["hit_most"], 0 if row["hit_hi"] is None else row["hit_hi"])
        held.append(lo - 1e-9 <= truth <= hi + 1e-9)
    assert sum(held) >= 0.95 * len(held)


def _list_rows(number: int, runs: Sequence[JudgedRun]) -> Iterator[Strike]:
    for place, run in enumerate(runs):
        verdict = run.verdict
        yield strike(
            model=str(number),
            trace=str(place % 5),
            noticed=verdict.noticed,
            passed=verdict.passed,
            claims_success=verdict.claims_success,
            told_wrong=verdict.told_wrong,
            baseline_valid=True,
            noticeable=True,
            **{"class": verdict.outcome},
        )


def _list_truths(number: int, runs: Sequence[JudgedRun]) -> Iterator[Strike]:
    for place, run in enumerate(runs):
        truth = run.truth
        yield strike(
            model=str(number),
            trace=str(place % 5),
            noticed=truth.noticed,
            passed=truth.right,
            claims_success=truth.delivered,
            noticeable=True,
            **{"class": truth.outcome},
        )


def act(twins: int, of: int, peers_shown: int = 0, peers: int = 0) -> NoticeSignal:
    return NoticeSignal(
        code="N1", step=3, quote="get_order()", hard=None if twins else True,
        twins=twins, of=of, peers_shown=peers_shown, peers=peers,
    )  # fmt: skip


@pytest.mark.parametrize("of", [3, 6, 10])
def test_a_sign_weighs_less_the_more_twins_show_it(of: int) -> None:
    found = [weigh_acts([act(twins, of)], (1.0, 1.0)) for twins in range(of + 1)]
    assert found == sorted(found, reverse=True)
    assert found[0] >= NOTICED_FROM
    assert 0.5 <= found[-1] <= 0.6, "an act of all clean runs says next to nothing"


def test_a_sign_weighs_more_if_other_runs_with_the_fault_show_it_too() -> None:
    alone, among = act(1, 3), act(1, 3, 9, 9)
    assert weigh_acts([among], RIGHT_AFTER_TRUTH) >= NOTICED_FROM
    assert weigh_acts([alone], RIGHT_AFTER_TRUTH) < NOTICED_FROM
    as_often = act(1, 3, 3, 9)
    assert weigh_acts([as_often], (1.0, 1.0)) < weigh_acts([alone], (1.0, 1.0))


def test_who_saw_the_true_value_and_used_the_wrong_one_in_silence_did_not_notice() -> None:
    verdict = judge_notice([act(1, 3)], TaintResult(), steady=False)
    assert verdict.noticed is None
    assert "1 of 3 clean twins" in verdict.why
    assert weigh_acts([act(1, 3)], WRONG_AFTER_TRUTH) <= UNNOTICED_TO
    used = list(judge_campaign(VALUE_POLICIES[0], 0.35, 3))
    assert {run.verdict.outcome for run in used} == {"silent_wrong"}
