"""What counts as noticing, against twins that were struck by nothing; and the verdict on it."""

import pytest

from faults.after import after, mate
from faults.change import change
from faults.judge import Run, baseline_valid, judge
from faults.notice import claims_success, signals
from tests.told_runs import BENT, FAILED, ORDER, Telling, clean, struck
from traces.model import Ended

WRONG = struck("V", BENT)


def codes(run: Run, *twins: Run) -> list[str]:
    own = after(run.story, run.story.use("c1"), 2)
    assert own is not None
    mates = (mate(twin.story, WRONG, own.use) for twin in twins)
    return [s.code for s in signals(change(WRONG), own, tuple(m for m in mates if m)) if s.hard]


def test_the_same_call_again_is_a_sign() -> None:
    again = Telling().calls(BENT).calls(ORDER).says("DONE").over()
    assert codes(again, clean(), clean(), clean()) == ["N1"]


def test_what_a_clean_twin_does_too_is_no_sign() -> None:
    again = Telling().calls(BENT).calls(ORDER).says("DONE").over()
    always = Telling().calls(ORDER).calls(ORDER).says("DONE").over()
    assert codes(again, clean(), always, clean()) == []


def test_a_report_is_a_sign_unless_a_clean_twin_gives_it_too() -> None:
    words = "I could not verify the total."
    doubts = Telling().calls(BENT).says(words).over()
    always = Telling().calls(ORDER).says(words).over()
    assert codes(doubts, clean()) == ["N5", "N7"]
    assert codes(doubts, clean(), always) == []


@pytest.mark.parametrize(
    ("message", "claims"),
    [
        ("DONE: refunded", True),
        ("NOT DONE: get_order failed", False),
        ("I could not verify the total.", False),
    ],
)
def test_success_is_claimed_by_who_does_not_take_it_back(message: str, claims: bool) -> None:
    assert claims_success(WRONG, Telling().calls(BENT).says(message).over().story) is claims


@pytest.mark.parametrize(
    ("passed", "valid"),
    [
        ((), None),
        ((True,), None),
        ((True, True), True),
        ((True, True, True), True),
        ((True, False, True), True),
        ((True, False, False), False),
        ((True, False, None), None),
        ((None, None, None), None),
    ],
)
def test_a_baseline_is_valid_where_two_of_three_twins_are_known_to_pass(
    passed: tuple[bool | None, ...], valid: bool | None
) -> None:
    twins = tuple(Telling().calls(ORDER).says("DONE").over(passed=each) for each in passed)
    assert baseline_valid(twins) is valid


@pytest.mark.parametrize(
    ("ended", "passed", "outcome"),
    [
        ("final", False, "silent_wrong"),
        ("final", True, "masked"),
        ("final", None, None),
        ("crash", False, "crashed"),
        ("diverged", False, None),
        ("harness", False, None),
        ("budget", False, None),
        ("replay_miss", False, None),
    ],
)
def test_only_an_end_that_is_the_agents_own_is_judged(
    ended: Ended, passed: bool | None, outcome: str | None
) -> None:
    run = Telling().calls(BENT).says("DONE").over(passed=passed, ended=ended)
    assert judge(WRONG, run, (clean(), clean(), clean())).outcome == outcome


def test_without_twins_nothing_is_said_to_be_unnoticed() -> None:
    run = Telling().calls(BENT).says("DONE").over(passed=False)
    verdict = judge(WRONG, run, (clean(), clean()))
    assert (verdict.consumed, verdict.noticed, verdict.outcome) == (True, None, None)


def test_what_a_client_swallowed_is_nothing_an_agent_got_up_from() -> None:
    run = Telling().calls(FAILED, ORDER).says("DONE").over()
    verdict = judge(struck("E", FAILED), run, (clean(), clean(), clean()))
    assert (verdict.outcome, verdict.recovered) == ("unreached", None)
