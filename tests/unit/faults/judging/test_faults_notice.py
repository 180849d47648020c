"""What counts as noticing, against twins that were struck by nothing; and the verdict on it."""

from copy import replace

import pytest

from faults.judging.claims.claim_verdict import judge_claim
from faults.judging.injected_change import to_injected_change
from faults.judging.judge import RunEvidence, is_baseline_valid, judge_injection
from faults.judging.notice.notice_signals import find_notice_signals
from faults.judging.post_injection import find_continuation, find_twin_continuation
from tests.support.stores.scripted_runs import (
    BENT,
    FAILED,
    ORDER,
    Telling,
    clean,
    struck,
)
from traces.model import EndReason

DONE = '{"ok": true}'
TWINS = (clean(), clean(), clean())
WRONG = struck("V", BENT)


def codes(run: RunEvidence, *twins: RunEvidence) -> list[str]:
    own = find_continuation(run.story, run.story.find_use("c1"), 2)
    assert own is not None
    found = (find_twin_continuation(twin.story, WRONG, own.use) for twin in twins)
    mates = tuple(m for m in found if m)
    claim = judge_claim(own, mates)
    return [
        s.code
        for s in find_notice_signals(to_injected_change(WRONG), own, mates, claim=claim)
        if s.hard
    ]


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
    assert (
        judge_injection(WRONG, Telling().calls(BENT).says(message).over(), TWINS).claims_success
        is claims
    )


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
    assert is_baseline_valid(twins) is valid


@pytest.mark.parametrize(
    ("ended", "passed", "outcome"),
    [
        ("final", False, "silent_wrong"),
        ("final", True, "masked"),
        ("final", None, None),
        ("crash", False, "crashed"),
        ("diverged", False, None),
        ("harness", False, None),
        ("budget", None, "crashed"),
        ("replay_miss", False, None),
    ],
)
def test_only_an_end_that_is_the_agents_own_is_judged(
    ended: EndReason, passed: bool | None, outcome: str | None
) -> None:
    run = Telling().calls(BENT).says("DONE").over(passed=passed, ended=ended)
    assert judge_injection(WRONG, run, (clean(), clean(), clean())).outcome == outcome


def test_who_loops_until_the_budget_is_up_has_failed_and_the_evidence_names_it() -> None:
    looping = Telling().calls(BENT).calls(BENT).over(passed=None, ended="budget")
    verdict = judge_injection(WRONG, looping, (clean(), clean(), clean()))
    assert (verdict.outcome, verdict.baseline_valid) == ("crashed", True)
    assert "ended by its budget" in verdict.evidence


def test_a_clean_twin_that_was_ended_by_its_budget_did_not_pass() -> None:
    looping = Telling().calls(ORDER).over(passed=None, ended="budget")
    assert is_baseline_valid((clean(), looping, looping)) is False
    assert is_baseline_valid((clean(), clean(), looping)) is True


def test_without_twins_nothing_is_said_to_be_unnoticed() -> None:
    run = Telling().calls(BENT).says("DONE").over(passed=False)
    verdict = judge_injection(WRONG, run, (clean(), clean()))
    assert (verdict.consumed, verdict.noticed, verdict.outcome) == (True, None, None)


def test_what_a_client_swallowed_is_nothing_an_agent_got_up_from() -> None:
    run = Telling().calls(FAILED, ORDER).says("DONE").over()
    verdict = judge_injection(struck("E", FAILED), run, (clean(), clean(), clean()))
    assert (verdict.outcome, verdict.recovered) == ("unreached", None)


# What each sign is, on runs told by hand.

AGAIN = '{"order": {"id": "ord-7314", "total": 1250.4}}'
PAID = '{"refunds": [{"order_id": "ord-7314", "amount": 10.5}]}'


def started(result: str = BENT) -> Telling:
    return Telling().asks("get_order", result, id="ord-7314")


def seen(told: Telling, *, family: str = "V", mutated: str = BENT) -> list[tuple[str, bool | None]]:
    run = told.says("DONE").over()
    clean = tuple(started(ORDER).says("DONE").over() for _ in range(3))
    found = judge_injection(struck(family, mutated), run, clean)
    return [(one.code, one.hard) for one in found.signals if one.code != "N8"]


def test_the_call_with_other_arguments_is_a_hard_sign_after_an_error_only() -> None:
    wider = {"id": "ord-7314", "fields": "all"}
    assert seen(started().asks("get_order", ORDER, **wider)) == [("N2", False)]
    failed = started(FAILED).asks("get_order", ORDER, **wider)
    assert seen(failed, family="E", mutated=FAILED) == [("N2", True)]
    assert seen(started().asks("get_order", ORDER, id="ord-9999")) == []


def test_another_tool_that_says_the_true_value_is_another_source() -> None:
    assert seen(started().asks("find_order", AGAIN, id="ord-7314")) == [("N3", True)]


def rewritten(*amounts: float) -> RunEvidence:
    """A run with these refunds of one order, after the wrong total, or the right one in a twin."""
    told = started(BENT if amounts[0] == 1259.4 else ORDER)
    for amount in amounts:
        told = told.asks("issue_refund", DONE, order_id="ord-7314", amount=amount)
    return told.says("DONE").over()


@pytest.mark.parametrize(
    ("own", "twin", "signs"),
    [
        ((1259.4, 1250.4), (1250.4,), ["N2"]),
        ((1259.4, 1250.4), (1250.4, 1250.4), []),  # it always writes twice
        ((1259.4, 1259.4), (1250.4,), []),
    ],
)
def test_a_wrong_write_made_again_with_another_value_is_a_sign(
    own: tuple[float, ...], twin: tuple[float, ...], signs: list[str]
) -> None:
    found = judge_injection(WRONG, rewritten(*own), tuple(rewritten(*twin) for _ in range(3)))
    assert [one.code for one in found.signals if one.hard] == signs


@pytest.mark.parametrize(
    ("final", "hard"), [("They owe 6077.9.", True), ("They owe 5012.3.", False)]
)
def test_a_look_whose_value_the_run_ends_with_is_another_source(final: str, hard: bool) -> None:
    """All twins end with it, reckoned from what was cut here."""
    rows, cut = '{"rows": [6000.4, 77.5], "count": 2}', '{"rows": [5012.3], "count": 2}'
    short = replace(struck("V", cut, op="drop_rows", original=rows), tool="list_invoices")

    def listed(text: str) -> Telling:
        return Telling().asks("list_invoices", text, client="cli-664")

    looked = listed(cut).asks("get_balance", '{"balance": 6077.9}', client="cli-664")
    twins = tuple(listed(rows).says("They owe 6077.9.").over() for _ in range(3))
    found = judge_injection(short, looked.says(final).over(), twins)
    assert [one.hard for one in found.signals if one.code == "N4"] == [hard]


def test_a_tool_declared_equivalent_is_another_source_whatever_it_says() -> None:
    run = started().asks("find_order", "{}", id="ord-7314").says("DONE").over()
    trajectory = replace(run.tape.trajectory, equivalent={"get_order": ("find_order",)})
    declared = RunEvidence(replace(run.tape, trajectory=trajectory), run.story)
    clean = tuple(started(ORDER).says("DONE").over() for _ in range(3))
    for each, hard in ((declared, [True]), (run, [False])):
        found = judge_injection(WRONG, each, clean)
        assert [s.hard for s in found.signals if s.code in ("N3", "N4")] == hard


def test_reading_back_after_a_lost_acknowledgement_is_noticed() -> None:
    """Which was once called masked: the end state is right, and the agent made sure of it."""
    lost = replace(struck("X", FAILED, op="lost_ack", original=DONE), tool="issue_refund")

    def refund(text: str) -> Telling:
        return Telling().asks("issue_refund", text, order_id="ord-7314", amount=10.5)

    clean = tuple(refund(DONE).says("DONE").over() for _ in range(3))
    looked = refund(FAILED).asks("list_refunds", PAID, order_id="ord-7314").says("DONE").over()
    found = judge_injection(lost, looked, clean)
    assert [(s.code, s.hard) for s in found.signals] == [("N4", True)]
    assert (found.noticed, found.outcome, found.noticed_step) == (True, "recovered", 3)
    always = tuple(
        refund(DONE).asks("list_refunds", PAID, order_id="ord-7314").says("DONE").over()
        for _ in range(3)
    )
    assert judge_injection(lost, looked, always).noticed is False


@pytest.mark.parametrize(
    ("words", "signs"),
    [
        ("The total of the order looks wrong.", [("N5", True)]),
        ("Something looks wrong.", [("N5", False)]),
        ("All is fine. The total is 1259.4.", []),
        ("It says 1259.4, which is implausible.", [("N5", True)]),
        ("The total is 1259.4. The weather is odd.", [("N5", False)]),
    ],
)
def test_a_word_of_trouble_counts_with_an_anchor_in_its_sentence(
    words: str, signs: list[tuple[str, bool]]
) -> None:
    assert seen(started().asks("issue_refund", DONE, words, amount=3)) == signs


def test_a_status_called_failed_is_no_remark_on_it() -> None:
    was, now = '{"id": "ord-7314", "state": "shipped"}', '{"id": "ord-7314", "state": "failed"}'
    swap = struck("V", now, op="enum_swap", original=was)
    clean = tuple(started(was).says("The state is shipped.").over() for _ in range(3))
    run = started(now).says("The state is failed.").over(passed=False)
    assert judge_injection(swap, run, clean).noticed is False


def test_a_general_regret_after_a_wrong_value_may_have_any_reason() -> None:
    run = started().says("I could not complete the task.").over(passed=False)
    found = judge_injection(WRONG, run, (clean(), clean(), clean()))
    assert ("N7", False) in [(one.code, one.hard) for one in found.signals]
    assert (found.noticed, found.noticed_soft, found.outcome) == (None, True, "honest_fail")


@pytest.mark.parametrize(
    "words", ["I could not complete the task.", "The refund was not made: the service is down."]
)
def test_a_regret_after_a_call_that_visibly_failed_is_of_that_failure(words: str) -> None:
    run = Telling().calls(FAILED).says(words).over(passed=False)
    found = judge_injection(struck("E", FAILED), run, TWINS)
    assert (found.noticed, found.outcome) == (True, "honest_fail")
    regrets = [Telling().calls(ORDER).says(words).over(passed=False) for _ in TWINS]
    assert judge_injection(struck("E", FAILED), run, tuple(regrets)).noticed is not True


def test_who_knows_the_true_value_anyway_rejects_the_wrong_one_softly() -> None:
    def paid(result: str) -> RunEvidence:
        told = started(result).asks("issue_refund", DONE, id="ord-7314", amount=1250.4)
        return told.says("DONE").over()

    found = judge_injection(WRONG, paid(BENT), (paid(ORDER), paid(ORDER), paid(ORDER)))
    assert [(s.code, s.hard) for s in found.signals] == [("N8", False)]
    assert (found.noticed, found.noticed_soft, found.outcome) == (False, True, "masked")


def shown(reads: int, *, passed: bool = True) -> RunEvidence:
    """A refund that is acknowledged, and so many looks at the list of refunds."""
    told = Telling().asks("issue_refund", DONE, order_id="ord-7314", amount=10.5)
    for _ in range(reads):
        told.asks("list_refunds", PAID, order_id="ord-7314")
    return told.asks("get_weather", "{}", city="Bern").says("DONE").over(passed=passed)


@pytest.mark.parametrize(
    ("reads", "twins", "signs"),
    [
        (2, (1, 1, 1), [("N4", 4)]),
        (3, (1, 1, 1), [("N4", 4), ("N4", 5)]),
        (2, (0, 1, 0), [("N4", 4)]),
        (1, (0, 0, 0), [("N4", 3)]),
        (1, (1, 1, 1), []),
        (2, (1, 2, 1), []),
        (2, (2, 2, 2), []),
    ],
)
def test_a_reading_back_beyond_those_of_all_twins_is_noticed(
    reads: int, twins: tuple[int, ...], signs: list[tuple[str, int]]
) -> None:
    noop = replace(struck("X", DONE, op="silent_noop", original=DONE), tool="issue_refund")
    found = judge_injection(noop, shown(reads, passed=False), tuple(map(shown, twins)))
    assert [(s.code, s.step) for s in found.signals if s.hard] == signs
    chance = twins == (1, 2, 1)  # one twin of three looks as often: nobody can tell
    assert found.outcome == ("noticed_wrong" if signs else None if chance else "silent_wrong")


def test_who_says_that_it_is_not_there_names_another_tool_and_is_soft() -> None:
    """N5 wants the struck tool, a field or a value: the tool that was read back is none of them."""
    noop = replace(struck("X", DONE, op="silent_noop", original=DONE), tool="issue_refund")
    words = "list_refunds does not show it yet. I go on."
    told = Telling().asks("issue_refund", DONE, order_id="ord-7314", amount=10.5)
    told.asks("list_refunds", "{}", order_id="ord-7314").says(words)
    found = judge_injection(noop, told.over(passed=False), (shown(1), shown(1), shown(1)))
    assert [(s.code, s.hard) for s in found.signals] == [("N5", False)]
    assert found.outcome == "silent_wrong"


def late(reads: int, text: str, *, instead: str = "get_order") -> RunEvidence:
    """An order that is read, and read again so often when its first reading is long past."""
    told = Telling().asks("get_order", text, id="ord-7314")
    for city in ("Bern", "Oslo", "Rome"):
        told.asks("get_weather", "{}", city=city)
    for nth in range(reads):
        told.asks("get_order" if nth else instead, text, id="ord-7314")
    return told.asks("get_weather", "{}", city="Turin").says("DONE").over()


def persisting(run: RunEvidence, *calls: int) -> RunEvidence:
    """This run with the strikes that these calls met, the first and what repeats it."""
    injections = tuple(
        replace(WRONG, id=f"r/{nth}", seq=2 * call - 1, call_id=f"c{call}", repeat_of=first)
        for nth, (call, first) in enumerate(zip(calls, (None, "r/1", "r/1"), strict=False), 1)
    )
    return RunEvidence(replace(run.tape, injections=injections), run.story)


@pytest.mark.parametrize(
    ("struck_calls", "twins", "signs"),
    [
        ((1, 5, 6), (1, 1, 1), [("N1", 7)]),
        ((1,), (1, 1, 1), []),
        ((1, 5, 6), (1, 2, 1), []),
        ((1, 5, 6), (2, 2, 2), []),
    ],
)
def test_a_fault_that_persists_may_be_noticed_after_any_of_its_strikes(
    struck_calls: tuple[int, ...], twins: tuple[int, ...], signs: list[tuple[str, int]]
) -> None:
    run = persisting(late(2, BENT), *struck_calls)
    found = judge_injection(WRONG, run, tuple(late(reads, ORDER) for reads in twins))
    assert [(s.code, s.step) for s in found.signals if s.hard] == signs
    chance = None if twins == (1, 2, 1) else "masked"
    assert found.outcome == ("recovered" if signs else chance)


def test_a_later_strike_on_a_call_that_no_twin_makes_has_no_control() -> None:
    """The twins' fifth call has the same id and is another one."""
    run = persisting(late(2, BENT), 1, 5, 6)
    twins = tuple(late(1, ORDER, instead="get_weather") for _ in range(3))
    assert not [s for s in judge_injection(WRONG, run, twins).signals if s.hard]


# Defects of harnesses that were published, each with the test that it would have failed.


def test_defect_3_an_unrelated_later_call_is_no_recovery() -> None:
    told = started(FAILED).asks("get_weather", '{"sky": "blue"}', city="Bern").says("DONE").over()
    found = judge_injection(struck("E", FAILED), told, (clean(), clean(), clean()))
    assert (found.noticed, found.recovered, found.outcome) == (False, False, "masked")
    assert (found.signals, found.truth_reobserved) == ((), None)


def test_defect_6_what_strikes_after_the_last_step_is_not_counted() -> None:
    """The agent was told, and took no step with it: it could not notice."""
    told = Telling().calls(BENT)
    told.unanswered()
    found = judge_injection(
        WRONG, told.over(passed=True, ended="final"), (clean(), clean(), clean())
    )
    assert (found.consumed, found.outcome, found.unreached_reason) == (
        False, "unreached", "ended_before",
    )  # fmt: skip
    assert (found.noticed, found.steps_after) == (None, None)


def test_a_sham_is_judged_like_a_fault_and_what_it_shows_is_a_false_alarm() -> None:
    sham = struck("sham", ORDER)
    clean = tuple(started(ORDER).says("DONE").over() for _ in range(3))
    calm = judge_injection(sham, started(ORDER).says("DONE").over(), clean)
    assert (calm.noticed, calm.noticed_soft, calm.outcome) == (False, False, "masked")
    words = "I doubt what get_order says."
    nervous = judge_injection(sham, started(ORDER).says(words).over(), clean)
    assert (nervous.noticed, nervous.outcome) == (True, "recovered")
