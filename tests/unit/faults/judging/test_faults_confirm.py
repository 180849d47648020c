"""Forks that settle what rules cannot: what moves with the value alone depends on it."""

from copy import replace

from faults.judging.counterfactual import confirm_by_forks
from faults.judging.judge import RunEvidence
from tests.support.stores.scripted_runs import (
    BENT,
    ORDER,
    Telling,
    struck,
)

OTHER = '{"id": "ord-7314", "total": 2250.4}'


def run(result: str, amount: object, final: str = "DONE") -> RunEvidence:
    told = Telling().asks("get_order", result, id="ord-7314")
    made = told.asks("issue_refund", "{}", amount=amount).says(final).over()
    injections = () if result == ORDER else (struck("V", result),)
    return RunEvidence(replace(made.tape, injections=injections), made.story)


def three(result: str, *amounts: object, final: str = "DONE") -> tuple[RunEvidence, ...]:
    return tuple(run(result, amounts[n % len(amounts)], final) for n in range(3))


def test_what_moves_with_the_value_and_with_nothing_else_is_tainted() -> None:
    found = confirm_by_forks(
        three(ORDER, "a lot"), three(BENT, "plenty"), three(OTHER, "a fortune")
    )
    assert found.tainted is True
    [slot] = found.slots
    assert (slot.where, slot.moved_again) == (("issue_refund", 1), True)
    assert slot.wrong == ('{"amount":"plenty"}',) * 3


def test_a_paraphrase_of_the_answer_is_no_difference_and_its_numbers_are() -> None:
    true = three(ORDER, 1, final="It is 1250.4 euros.")
    assert confirm_by_forks(true, three(BENT, 1, final="1250.4 euros it is!")).tainted is False
    assert confirm_by_forks(true, three(BENT, 1, final="It is 1259.4 euros.")).tainted is True


def test_what_never_moves_is_clean() -> None:
    assert confirm_by_forks(three(ORDER, 5), three(BENT, 5)).tainted is False


def test_runs_that_were_told_the_same_and_differ_prove_nothing() -> None:
    found = confirm_by_forks(three(ORDER, 5, 6), three(BENT, 7))
    assert (found.tainted, found.reason) == (None, "runs that were told the same differ")
    assert confirm_by_forks(three(ORDER, 5), three(BENT, 5, 7)).tainted is None


def test_too_few_runs_prove_nothing() -> None:
    found = confirm_by_forks(three(ORDER, 5)[:2], three(BENT, 7))
    assert (found.tainted, found.reason) == (None, "2 true and 3 wrong runs came there; it takes 3")
    assert confirm_by_forks((), ()).reason == "nothing was struck"
