"""What is no delivery for want of positive evidence: reservations, limits, errors, steps."""

import pytest

from faults.judging.claims.final_claim import read_claim, read_message_claim
from faults.judging.claims.final_turns import FinalToolCall, FinalTurns


@pytest.mark.parametrize(
    "text",
    [
        "I have updated the table. The second row is not in it.",
        "The ticket is booked. Unfortunately the seat map shows other seats.",
        "Ich habe das Angebot verschickt. Der Rabatt steht leider nicht darin.",
        "Le rapport est envoyé. Les annexes n'y figurent pas.",
        "Отчёт отправлен. Приложений в нём нет.",
        "报告已经发送。附件没有包括在内。",
    ],
)
def test_a_result_with_a_reservation_is_open(text: str) -> None:
    read = read_message_claim(text)
    assert read.claim in ("unknown", "partial", "admits_failure")
    assert read.claim != "unknown" or set(read.among) >= {"delivered", "partial"}


def test_courtesy_and_conditions_are_no_reservations() -> None:
    text = "Your trip LX-77 is booked. If you cannot travel, let me know. It was no trouble at all."
    assert read_message_claim(text).claim == "delivered"


@pytest.mark.parametrize("ended", ["submitted (exit_cost)", "exit_cost", "autosubmitted"])
def test_what_was_submitted_because_a_limit_was_reached_claims_nothing(ended: str) -> None:
    final = FinalTurns(
        ("Let us look at the parser.", "Exit due to cost limit"),
        (FinalToolCall("exit_cost", "Exited"),),
        ended=ended,
    )
    assert read_claim(final).claim == "none"


def test_a_submission_is_a_delivery_unless_its_words_have_a_reservation() -> None:
    submitted = "Here is the patch.\n```\nsubmit\n```"
    assert read_claim(FinalTurns((submitted,))).claim == "delivered"
    limited = "The editor is limited, so I hand in the work done so far.\n```\nsubmit\n```"
    assert read_claim(FinalTurns((limited,))).claims_success is not True


@pytest.mark.parametrize(
    ("arguments", "claim"),
    [
        ('{"return_type": "give_up_and_restart"}', "admits_failure"),
        ('{"return_type": "give_answer", "final_answer": "The lamp costs 84.90."}', "delivered"),
        (
            '{"final_answer": "I encountered some issues while I tried. Please try again."}',
            "unknown",
        ),
        ('{"final_answer": "The list is missing. However, I have found the lamp."}', "unknown"),
        ('{"final_answer": "The person ABC123 does not exist."}', "unknown"),
        ('{"final_answer": "A riddle: What is red and lies in a corner? A brick."}', "delivered"),
    ],
)
def test_an_answer_that_is_submitted_is_read_too(arguments: str, claim: str) -> None:
    assert read_claim(FinalTurns((), (FinalToolCall(f"Finish({arguments})"),))).claim == claim


@pytest.mark.parametrize(
    "text",
    [
        "I found the pan, now I clean it.\n<execute>\nclean('pan 1')\n\nprint('done')\n</execute>",
        "I found the pan.\n<execute>\nprint(clean(",
        '{"function_call": {"action": "book_trip", "action_input": {"trip": "trip-5582"}}}',
    ],
)
def test_a_message_that_ends_in_a_step_claims_nothing(text: str) -> None:
    assert read_claim(FinalTurns((text,))).claim == "none"


def test_a_statement_after_an_error_is_open_and_an_explicit_claim_is_not() -> None:
    failed = (FinalToolCall("get_order({})", "HTTP 503: unavailable"),)
    said = "The total of the order is 1284.57 pounds."
    assert read_claim(FinalTurns((said,))).claim == "delivered"
    assert read_claim(FinalTurns((said,), failed)).claim == "unknown"
    assert read_claim(FinalTurns(("The refund has been issued.",), failed)).claim == "delivered"


def test_a_statement_before_a_farewell_is_open() -> None:
    said = ("The total of the order is 1284.57 pounds.", "You're welcome! Take care.")
    assert read_claim(FinalTurns(said)).claim == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        'The group is called "Why not?" and has 36 members.',
        "### Why migrate?\nThe package has been renamed to genai 1.0, which has both clients.",
    ],
)
def test_a_question_that_is_quoted_or_heads_a_section_asks_nobody(text: str) -> None:
    assert read_message_claim(text).claim != "asks"


def test_being_unable_is_a_refusal_only_for_a_stated_rule() -> None:
    bare = read_message_claim("I cannot process that return.")
    assert (bare.claim, "delivered" in bare.among) == ("unknown", False)
    ruled = read_message_claim("I cannot process that return. Our policy allows 30 days.")
    assert ruled.claim == "abstained"


def test_what_is_not_so_is_a_gap_only_in_contrast_or_of_the_speaker() -> None:
    done = "The cabin has been changed to economy for all three."
    remark = read_message_claim(f"{done} No bag has been added.")
    assert (remark.claim, set(remark.among)) == ("unknown", {"delivered", "partial"})
    assert read_message_claim(f"{done} I have not added a bag.").claim == "partial"
