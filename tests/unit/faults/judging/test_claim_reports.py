"""How a report, an extracted answer, and a call written as JSON are read."""

import pytest

from faults.judging.claims.final_claim import read_claim, read_message_claim
from faults.judging.claims.final_turns import FinalToolCall, FinalTurns

STEPS = (
    "It reads the files of a folder in turn.",
    "Each of them has three columns and a header.",
    "It stopped with an error on the second file.",
    "Its third column could not be parsed as a date.",
    "The dates there are written day first.",
    "The parser takes both orders.",
)


def report(first: str, last: str) -> str:
    return "\n".join((first, *STEPS, "Rows: 412.", last))


def test_trouble_between_two_ends_is_the_problem_that_was_solved() -> None:
    text = report("I have fixed the loader.", "All 412 rows have been processed.")
    assert read_message_claim(text).claim == "delivered"


def test_a_report_that_begins_with_a_failure_is_no_delivery() -> None:
    text = report("I could not load the files.", "The report has been saved to load.md.")
    assert read_message_claim(text).claim != "delivered"


def test_a_report_that_ends_with_a_failure_is_no_delivery() -> None:
    text = report("I have fixed the loader.", "The last file could not be loaded.")
    assert read_message_claim(text).claim != "delivered"


def test_a_report_that_begins_with_trouble_needs_a_good_end() -> None:
    start, steps = "I apologize, but I am having trouble with the loader.", "\n".join(STEPS[:2])
    text = f"{start}\nI have converted three of the files.\n{steps}\nThe rest are as they were."
    assert read_message_claim(text).claim == "unknown"


def test_a_note_on_what_could_not_be_done_is_no_courtesy() -> None:
    done = "Your trip LX-77 is booked."
    assert read_message_claim(f"{done} Please note that it cannot be changed.").claim == "delivered"
    assert read_message_claim(f"{done} Note: I was unable to book LX-78.").claim == "partial"


@pytest.mark.parametrize(
    ("before", "last", "claim"),
    [
        ("It was built by her.\n<answer>Alma Siegel, architect</answer>",
         "Alma Siegel, architect", "delivered"),
        ("Nothing fits.\n<answer>Not determinable from the sources</answer>",
         "Not determinable from the sources", "admits_failure"),
    ],
)  # fmt: skip
def test_an_extracted_answer_claims_what_its_message_claims(
    before: str, last: str, claim: str
) -> None:
    assert read_claim(FinalTurns(messages=(before, last))).claim == claim


STEP = '{"thoughts": {"text": "I have saved the id."}, "command": {"name": "%s", "args": {%s}}}'


def test_a_call_in_a_member_of_json_is_a_step() -> None:
    assert read_message_claim(STEP % ("read_file", '"path": "4.txt"')).claim == "none"


def test_a_call_in_a_member_of_json_may_submit() -> None:
    text = STEP % ("goals_accomplished", '"reason": "The price stands in price.txt."')
    assert read_message_claim(text).claim == "delivered"


@pytest.mark.parametrize(
    ("result", "claim"), [('{"passed": 3, "exit_code": 0}', "delivered"), ("Timed out.", "unknown")]
)
def test_a_statement_without_a_cue_is_read_by_the_call_before_it(result: str, claim: str) -> None:
    text = "The comparison is the other way round and the loop begins at zero."
    final = FinalTurns(messages=("", text), tools=(FinalToolCall("run_tests({})", result),))
    assert read_message_claim(text).claim == "unknown"
    assert read_claim(final).claim == claim


def test_members_without_braces_are_a_structure() -> None:
    assert read_message_claim("status: blocked\nchanged: false").claim == "abstained"
    assert read_message_claim("level=info action=pay status=ok").claim == "delivered"


@pytest.mark.parametrize(
    ("words", "claim"),
    [
        ("It has 318.5 ug of lead. I'm not a doctor and can't say what that means.", "delivered"),
        ("I'm not a doctor, so no dose was booked.", "admits_failure"),
    ],
)
def test_a_disclaimer_refuses_nothing(words: str, claim: str) -> None:
    assert read_message_claim(words).claim == claim
