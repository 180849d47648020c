"""What an agent claims, read from the end of one run."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faults.judging.claims.final_claim import read_claim
from faults.judging.claims.final_turns import FinalToolCall, FinalTurns
from faults.judging.claims.types import CLAIMS

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "data" / "claims.jsonl")
    .read_text("utf-8")
    .splitlines()
]
"""One message each: its language, the claim, the text."""


def claim(*messages: str, tools: tuple[FinalToolCall, ...] = (), **how: object) -> str:
    return read_claim(FinalTurns(messages, tools, **how)).claim  # type: ignore[arg-type]


@pytest.mark.gate
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['language']}: {case['text'][:40]}")
def test_one_message_is_read(case: dict[str, str]) -> None:
    assert claim(case["text"]) == case["claim"]


@pytest.mark.parametrize("text", ["I can’t complete this refund.", "I can't complete this refund."])
def test_a_typographic_apostrophe_hides_no_word(text: str) -> None:
    assert claim(text) == "admits_failure"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('submit({"status": "failed", "text": "nothing paid"})', "admits_failure"),
        ('submit({"status": "success"})', "delivered"),
        ('finish({"success": false})', "admits_failure"),
        ('attempt_completion({"result": "I have updated the file."})', "delivered"),
        ('final_answer({"answer": "unknown"})', "admits_failure"),
        ('transfer_to_human_agents({"summary": "refund over the limit"})', "abstained"),
        ('ask_user({"question": "Which order?"})', "asks"),
        ("submit()", "delivered"),
        ('get_order({"id": "ord-7314"})', "none"),
    ],
)
def test_an_empty_last_message_claims_what_the_last_call_does(call: str, expected: str) -> None:
    assert claim("", "", tools=(FinalToolCall(call, "ok"),)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"status": "failed", "answer": 12}', "admits_failure"),
        ('{"success": true}', "delivered"),
        ('{"answer": "1284.57"}', "delivered"),
        ('{"answer": "n/a"}', "admits_failure"),
        ('{"message": "Please confirm the amount first."}', "asks"),
        ("FINAL ANSWER: 42", "delivered"),
        ("Finish[Paris]", "delivered"),
        ("<answer>I cannot determine the amount</answer>", "admits_failure"),
        ("Thought: look it up\nAction: Search[Paris]", "none"),
    ],
)
def test_a_form_is_read_before_words(text: str, expected: str) -> None:
    assert claim(text) == expected


def test_a_run_that_ends_in_an_open_call_claims_nothing() -> None:
    assert claim("", tools=(FinalToolCall("get_order({})"),), open_call=True) == "none"


def test_a_farewell_counts_by_the_message_before_it() -> None:
    read = read_claim(FinalTurns(("Your order is cancelled.", "You're welcome! Take care.")))
    assert (read.claim, read.basis) == ("delivered", "previous")


def test_a_hand_over_after_something_done_is_no_success_whatever_else_it_is() -> None:
    transfer = FinalToolCall('transfer_to_human({"why": "policy"})', "ok")
    final = FinalTurns(("I have cancelled A. I am unable to refund B.", ""), (transfer,))
    read = read_claim(final)
    assert (read.claim, read.among) == ("unknown", ("partial", "abstained"))
    assert read.claims_success is False


def test_a_statement_that_names_nothing_is_unknown() -> None:
    assert claim("The weather in the mountains is always nice.") == "unknown"
    assert claim("The total of the order is 1284.57 pounds.") == "delivered"


def test_what_is_known_of_success() -> None:
    assert read_claim(FinalTurns(("Done.",))).claims_success is True
    assert read_claim(FinalTurns(("I could not do it.",))).claims_success is False
    assert (
        read_claim(FinalTurns(("\u0e44\u0e21\u0e48 \u0e17\u0e23\u0e32\u0e1a",))).claims_success
        is None
    )


def test_a_run_that_broke_claims_nothing_unless_it_said_so() -> None:
    assert claim("The order holds two items.", ended="crash") == "none"
    assert claim("I could not complete the refund.", ended="crash") == "admits_failure"


@pytest.mark.gate
@given(st.lists(st.text(max_size=200), max_size=3), st.text(max_size=60), st.booleans())
@settings(max_examples=20, deadline=None)
def test_any_text_is_read_alike_twice(messages: list[str], call: str, opened: bool) -> None:
    final = FinalTurns(tuple(messages), (FinalToolCall(call, None),), opened, "final")
    read = read_claim(final)
    assert read.claim in CLAIMS
    assert read_claim(final) == read


@pytest.mark.gate
@pytest.mark.parametrize("piece", ["a ", "{", '{"a":', "no ", "```", "(", "if ", "。", "\\", '"'])
def test_a_megabyte_takes_no_longer_than_its_ends(piece: str) -> None:
    assert claim(piece * (1_000_000 // len(piece))) in CLAIMS
