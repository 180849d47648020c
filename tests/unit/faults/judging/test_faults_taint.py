"""Where a wrong value went: the hand cases of the method, and how often chance looks like one."""

import json
import random
from copy import replace
from decimal import Decimal
from typing import Literal

import pytest

from faults.judging.injected_change import to_injected_change
from faults.judging.judge import RunEvidence, judge_injection
from faults.judging.taint.similarity import (
    find_number_changes,
    find_rounded_tokens,
    is_derived_number,
)
from tests.support.stores.scripted_runs import (
    BENT,
    FAILED,
    ORDER,
    Telling,
    struck,
)
from traces.model import Outcome

DONE = '{"ok": true}'
LIE = struck("V", BENT)


def run(
    result: str, amount: object = 1250.4, final: str = "DONE", *, passed: bool = True
) -> RunEvidence:
    """Read the order, refund an amount, answer."""
    told = Telling().asks("get_order", result, id="ord-7314")
    return (
        told.asks("issue_refund", DONE, id="ord-7314", amount=amount)
        .says(final)
        .over(passed=passed)
    )


def twins(
    amount: object = 1250.4, final: str = "DONE", result: str = ORDER
) -> tuple[RunEvidence, ...]:
    return tuple(run(result, amount, final) for _ in range(3))


def test_copied() -> None:
    found = judge_injection(LIE, run(BENT, 1259.4, passed=False), twins())
    assert (found.used_in_write, found.used_in_final, found.level) == (True, False, "exact")
    assert (found.blast_radius, found.first_use_step, found.control_only) == (1, 3, False)
    assert found.outcome == "silent_wrong"


@pytest.mark.parametrize(
    ("amount", "level"), [("1,259.40", "format"), (1259, "rounded"), (1260, "rounded")]
)
def test_said_otherwise(amount: object, level: str) -> None:
    found = judge_injection(LIE, run(BENT, amount, passed=False), twins())
    assert (found.used_in_write, found.level) == (True, level)


def test_what_also_rounds_the_true_value_is_no_use() -> None:
    near = struck("V", '{"id": "ord-7314", "total": 1250.9}')
    found = judge_injection(near, run('{"id": "ord-7314", "total": 1250.9}', "1.25e3"), twins())
    assert found.used_in_write is False


def test_retried() -> None:
    again = Telling().asks("get_order", BENT, id="ord-7314").asks("get_order", ORDER, id="ord-7314")
    told = again.asks("issue_refund", DONE, id="ord-7314", amount=1250.4).says("DONE").over()
    found = judge_injection(LIE, told, twins())
    assert (found.truth_reobserved, found.used_in_write, found.corrected) == (3, False, False)
    assert (found.outcome, found.control_only) == ("recovered", False)


def test_reported() -> None:
    words = "NOT DONE: the total of the order is 1259.4, which is wrong."
    told = Telling().asks("get_order", BENT, id="ord-7314").says(words).over(passed=False)
    found = judge_injection(LIE, told, twins())
    assert (found.reported, found.used_in_final, found.control_only) == (True, False, False)
    assert found.outcome == "honest_fail"


def test_both_values_together_are_a_report_and_a_hard_sign() -> None:
    final = "The order says 1259.4 where it said 1250.4."
    found = judge_injection(LIE, run(BENT, 1250.4, final), twins())
    assert [(s.code, s.hard) for s in found.signals if s.code == "N6"] == [("N6", True)]
    assert (found.reported, found.used_in_final) == (True, False)


@pytest.mark.parametrize(
    ("used", "right"),
    [(1266.4, 1257.4), (2518.8, 2500.8), (1385.34, 1375.44)],
    ids=["plus 7.0", "times 2", "with a tenth more"],
)
def test_derived_as_the_twins_derived_it(used: float, right: float) -> None:
    found = judge_injection(LIE, run(BENT, used, passed=False), twins(right))
    assert (found.used_in_write, found.level) == (True, "derived")


def test_without_the_same_derivation_in_the_twins_there_is_none() -> None:
    found = judge_injection(LIE, run(BENT, 2518.8, passed=False), twins(1250.4))
    assert found.level is None


def test_what_a_tool_made_of_it_is_as_wrong() -> None:
    def priced(result: str, rate: str, paid: str) -> Telling:
        told = Telling().asks("get_order", result, id="ord-7314")
        total = json.loads(result)["total"]
        told = told.asks("convert_currency", f'{{"eur": {rate}}}', amount=total)
        return told.asks("issue_refund", DONE, amount=paid).says("DONE")

    lied = priced(BENT, "1371.11", "1371.11").over(passed=False)
    clean = tuple(priced(ORDER, "1361.31", "1361.31").over() for _ in range(3))
    found = judge_injection(LIE, lied, clean)
    assert found.uses == (
        "step 3, convert_currency: 1259.4 (exact)",
        "step 4, issue_refund: 1371.11 (derived)",
    )
    assert found.blast_radius == 1


def test_a_truth_value_is_followed_by_the_way_of_the_run() -> None:
    was, now = '{"id": "ord-7314", "paid": true}', '{"id": "ord-7314", "paid": false}'
    flip = struck("V", now, op="bool_flip", original=was)
    told = Telling().asks("get_order", now, id="ord-7314")
    lied = told.asks("cancel_order", DONE, id="ord-7314").says("DONE").over(passed=False)
    found = judge_injection(flip, lied, twins(result=was))
    assert (found.control_only, found.used_in_write, found.level) == (True, False, None)
    assert found.first_use_step == 3


def test_a_dropped_row_is_missed_where_the_twins_used_it() -> None:
    was = '{"rows": [{"id": "a-11", "sum": 450.5}, {"id": "b-22", "sum": 120.25}]}'
    now = '{"rows": [{"id": "a-11", "sum": 450.5}]}'
    drop = struck("S", now, op="drop_rows", original=was)
    found = judge_injection(
        drop,
        run(now, 1.0, "a-11 only", passed=False),
        twins(1.0, "a-11 and b-22", result=was),
    )
    assert (found.control_only, found.used_in_final) == (True, False)


def test_a_sum_over_fewer_rows_is_derived() -> None:
    was = '{"rows": [{"id": "a-11", "sum": 450.5}, {"id": "b-22", "sum": 120.25}]}'
    now = '{"rows": [{"id": "a-11", "sum": 450.5}]}'
    drop = struck("S", now, op="drop_rows", original=was)
    found = judge_injection(drop, run(now, 450.5, passed=False), twins(570.75, result=was))
    assert (found.used_in_write, found.level) == (True, "derived")


def test_unused() -> None:
    final = "DONE"
    found = judge_injection(LIE, run(BENT, 12.0, final), twins(12.0, final))
    assert (found.used_in_write, found.used_in_final, found.control_only) == (False,) * 3
    assert (found.dead_in_twins, found.outcome, found.masked_as) == (True, "masked", "dead")


def test_a_wrong_write_stays_one_though_the_truth_was_seen_later() -> None:
    told = Telling().asks("get_order", BENT, id="ord-7314")
    told = told.asks("issue_refund", DONE, id="ord-7314", amount=1259.4)
    told = told.asks("get_order", ORDER, id="ord-7314").says("DONE")
    found = judge_injection(LIE, told.over(passed=False), twins())
    assert (found.corrected, found.used_in_write, found.blast_radius) == (True, True, 1)


def test_the_final_state_of_the_verifier_is_a_place_too() -> None:
    lied = run(BENT, 1250.4, passed=False)
    assert lied.tape.ending is not None
    ending = replace(lied.tape.ending, detail="refunds: amount 1259.4, not 1250.4")
    lied = RunEvidence(replace(lied.tape, ending=ending), lied.story)
    found = judge_injection(LIE, lied, twins())
    assert (found.used_in_write, found.uses) == (True, ("step 4, the final state: 1259.4 (exact)",))


def test_what_the_twins_say_too_is_never_followed() -> None:
    noisy = twins(final="ticket 1259.4")
    found = judge_injection(LIE, run(BENT, 1259.4, passed=False), noisy)
    assert found.level is None


def test_too_few_twins_leave_it_unknown_and_say_so() -> None:
    found = judge_injection(LIE, run(BENT, 1259.4, passed=False), twins()[:2])
    assert found.used_in_write is found.control_only is found.dead_in_twins is found.noticed is None
    assert found.reasons["used_in_write"] == "too few clean twins"
    assert found.reasons["noticed"] == "2 of 3 clean twins made this call"


def test_of_an_error_nothing_is_taken_over() -> None:
    broken = struck("E", FAILED)
    told = Telling().calls(FAILED).asks("issue_refund", DONE, id="ord-7314", amount=1.0)
    found = judge_injection(broken, told.says("DONE").over(passed=False), twins())
    assert (found.level, found.control_only) == (None, True)


@pytest.mark.parametrize("detect", ["D3", "D4"])
def test_what_nobody_could_know_is_judged_as_if_it_were_true_as_well(
    detect: Literal["D3", "D4"],
) -> None:
    wrong_value = replace(LIE, detect=detect)
    found = judge_injection(wrong_value, run(BENT, 1259.4, passed=False), twins())
    assert found.passed_given_wrong_value is (True if detect == "D4" else None)


# Chance.


@pytest.mark.parametrize("digits", [3, 4, 5])
def test_chance_derives_nothing_where_a_twin_is_asked(digits: int) -> None:
    """30 numbers to reckon with and 20 places, all of which are other than the twin's: without the
    twin plus, minus, times and by alone give .55, .08 and .01 of the values a derivation."""
    chance, low, high, hits = random.Random(digits), 10 ** (digits - 1), 10**digits, 0
    trials = 300
    for _ in range(trials):
        context = sorted(Decimal(chance.randrange(low, high)) for _ in range(30))
        was, now = (Decimal(chance.randrange(low, high)) for _ in range(2))
        places = [[Decimal(chance.randrange(low, high)) for _ in range(2)] for _ in range(20)]
        hits += was != now and any(
            is_derived_number([(was, now)], a, b, context) for a, b in places
        )
    assert hits / trials < {3: 0.04, 4: 0.04, 5: 0.02}[digits]


def test_roundings_of_the_wrong_value_are_not_those_of_the_true_one() -> None:
    [(was, now)] = find_number_changes(to_injected_change(LIE).changed_leaves)
    assert find_rounded_tokens([(was, now)]) == {"n:1259", "n:1260"}
    assert find_rounded_tokens([(Decimal("1250.42"), Decimal("1250.43"))]) == set()


def test_a_verdict_says_why_what_is_unknown_is_unknown() -> None:
    found: Outcome = judge_injection(LIE, run(BENT, 1259.4), ())
    unknown = {"noticed", "used_in_write", "control_only", "dead_in_twins", "blast_radius"}
    assert unknown <= set(found.reasons)
