"""A claim needs two readers: the rules, and one that was trained on labelled finals."""

from collections.abc import Mapping
from copy import replace

import pytest

from faults.judging.claims.agreed_claim import agree_on_claim, read_agreed_claim
from faults.judging.claims.calibration import LabelledFinal
from faults.judging.claims.end_features import extract_end_features
from faults.judging.claims.final_claim import read_claim
from faults.judging.claims.final_turns import FinalToolCall, FinalTurns
from faults.judging.claims.trained_reader import TRAINED_CLAIMS, read_claim_probabilities
from faults.judging.claims.training import TrainingRow, read_left_out_sources, train_weights
from faults.judging.claims.types import Claim, ClaimReading

RULES = ClaimReading("delivered", "last", "It is done.", "says that it is done")
OPEN = replace(RULES, claim="unknown", reason="done, with a reservation")


def shares(**given: float) -> Mapping[Claim, float]:
    """Probabilities: those given, the rest spread over the other claims."""
    others = (1 - sum(given.values())) / (len(TRAINED_CLAIMS) - len(given))
    return {claim: given.get(claim, others) for claim in TRAINED_CLAIMS}


def test_a_claim_of_the_rules_stands_if_the_trained_reader_holds_it_possible() -> None:
    assert agree_on_claim(RULES, shares(delivered=0.55)).claim == "delivered"


def test_a_claim_that_the_trained_reader_contradicts_is_open_and_names_both() -> None:
    found = agree_on_claim(RULES, shares(delivered=0.1, none=0.8))
    assert (found.claim, found.among) == ("unknown", ("delivered", "none"))
    assert found.reason == "says that it is done; trained reader: none 80%"
    assert found.claims_success is None


def test_what_the_rules_leave_open_is_decided_only_by_certainty() -> None:
    assert agree_on_claim(OPEN, shares(delivered=0.95)).claim == "delivered"
    assert agree_on_claim(OPEN, shares(delivered=0.7)).claim == "unknown"


def test_what_the_rules_exclude_is_not_decided() -> None:
    excluded = replace(OPEN, among=("partial", "admits_failure"))
    assert agree_on_claim(excluded, shares(delivered=0.95)).claim == "unknown"


def test_a_stated_failure_stands_whatever_the_words_look_like() -> None:
    stated = replace(RULES, claim="admits_failure", basis="tool", reason="a status")
    assert agree_on_claim(stated, shares(delivered=0.99)).claim == "admits_failure"


@pytest.mark.parametrize("claim", ["partial", "asks", "admits_failure"])
def test_a_claim_other_than_success_that_the_rules_name_needs_less_certainty(claim: Claim) -> None:
    named = replace(OPEN, among=("delivered", claim))
    likely: dict[str, float] = {claim: 0.72}
    assert agree_on_claim(named, shares(**likely)).claim == claim
    assert agree_on_claim(OPEN, shares(**likely)).claim == "unknown"


def test_whether_it_refuses_or_fails_is_not_told_by_the_rules_that_name_both() -> None:
    either = replace(OPEN, among=("abstained", "admits_failure"))
    assert agree_on_claim(either, shares(admits_failure=0.75)).claim == "unknown"


def test_a_stack_trace_in_place_of_an_answer_is_no_success() -> None:
    trace = 'Traceback (most recent call last):\n  File "run.py", line 7, in step\nNoRoomError: 3'
    log = "Log:\n- the page is loaded\n- done waiting\n- the room is booked"
    read = read_claim(FinalTurns((f"Error in step 7: {trace}\n{log}",)))
    assert agree_on_claim(read, shares(delivered=0.95)).claims_success is False
    told = FinalTurns((f"I have fixed the error and the booking works again. It was:\n{trace}",))
    assert read_claim(told).claims_success is not False


def test_success_that_the_rules_name_needs_all_the_certainty() -> None:
    named = replace(OPEN, among=("delivered", "partial"))
    assert agree_on_claim(named, shares(delivered=0.75)).claim == "unknown"


ORDER = "I have ordered the two lamps and the order number is 5521."
WAIT = "Please hold on, a colleague takes over now."
PASSED_ON = FinalToolCall('transfer_to_human({"summary": "about the lamps"})', "transferred")


def test_work_done_and_then_handed_over_stays_open() -> None:
    read = read_claim(FinalTurns((ORDER, WAIT), (PASSED_ON,)))
    assert (read.claim, read.among) == ("unknown", ("partial", "abstained"))
    assert agree_on_claim(read, shares(abstained=0.95)).claim == "unknown"


def test_a_hand_over_that_may_follow_done_work_is_open_but_no_success() -> None:
    read = read_claim(FinalTurns(("What is it about?", WAIT), (PASSED_ON,)))
    assert agree_on_claim(read, shares(abstained=0.9)).claim == "abstained"
    found = agree_on_claim(read, shares(abstained=0.6, partial=0.3))
    assert (found.claim, found.claims_success) == ("unknown", False)


def test_a_message_that_is_nothing_but_the_last_call_is_a_step() -> None:
    command = "sort -u names.txt | head -n 3"
    final = FinalTurns(("wc -l names.txt", command), (FinalToolCall(command, "Ada\nBen\nCy"),))
    assert read_claim(final).claim == "none"
    told = FinalTurns(("The first three names are Ada, Ben and Cy.",), final.tools)
    assert read_claim(told).claim == "delivered"
    answer = "Two of the three are new.\n\nFINISH([2])"
    assert read_claim(FinalTurns((answer,), (FinalToolCall(answer),))).claim == "delivered"


@pytest.mark.gate
@pytest.mark.parametrize(
    "final",
    [
        FinalTurns(()),
        FinalTurns(("",)),
        FinalTurns(("\x00" * 9, '{"a": ' * 3000)),
        FinalTurns(("x " * 500_000,), (FinalToolCall("", None),)),
    ],
)
def test_any_end_has_probabilities(final: FinalTurns) -> None:
    assert sum(read_claim_probabilities(final).values()) == pytest.approx(1)
    assert read_agreed_claim(final).claim in (*TRAINED_CLAIMS, "unknown")


def test_a_message_in_the_form_of_the_step_before_it_is_marked() -> None:
    step = "Thought: I need the price.\nAction: lookup[{}]"
    final = FinalTurns((step.format("tea"), step.format("milk")))
    assert "fact:form of previous" in extract_end_features(final)
    other = FinalTurns((step.format("tea"), "The tea costs 3.50."))
    assert "fact:other form than previous" in extract_end_features(other)


def test_values_of_a_run_are_no_features() -> None:
    final = FinalTurns(("Paid 1284.37 to ord-7314.",), (FinalToolCall("pay()", "ok 1284.37"),))
    found = extract_end_features(final)
    assert "fact:value of result" in found
    assert not any("1284" in each or "7314" in each for each in found)


SAYINGS: Mapping[Claim, str] = {
    "delivered": "I have booked the room.",
    "asks": "Which room would you like?",
    "admits_failure": "I was unable to book the room.",
}


def labelled(source: str) -> list[TrainingRow]:
    """Three finals of a source, one a claim."""
    return [
        TrainingRow(source, LabelledFinal(final, claim, "en"), extract_end_features(final))
        for claim, text in SAYINGS.items()
        for final in [FinalTurns((text,))]
    ]


def test_a_source_that_is_left_out_is_read_by_what_others_taught() -> None:
    rows = [row for number in range(9) for row in labelled(f"repo{number}")]
    for row, read in read_left_out_sources(rows):
        assert max(read, key=lambda claim: read[claim]) == row.labelled.claim


def test_words_of_few_sources_are_no_evidence() -> None:
    rows = [row for number in range(4) for row in labelled(f"repo{number}")]
    names = train_weights(rows).features
    assert names
    assert not any(name.startswith(("close:", "last:")) for name in names)
