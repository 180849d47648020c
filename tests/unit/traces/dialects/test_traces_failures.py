"""Why a stage failed: seven causes in their order, each with what proves it."""

import json
from dataclasses import replace

import pytest

from traces.failures import CAUSES, PASSED, Asked, Attempt, Cause, Used, failures, of_words

FINE = Asked(seq=3, status=200)
TOO_LONG = Asked(seq=9, status=400, text="Range of input length should be [1, 131072]")
DOWN = Asked(seq=9, status=529, text="Overloaded")
REFUSED = Asked(seq=9, status=402, text="the budget of calls is used up", refused=True)
BUILT = Used(seq=4, tool="bash", arguments="make", result="all built")
UNBUILT = Used(
    seq=5, tool="bash", arguments="make", result="lexer.py: error: no such rule\nmake: *** 2"
)
HEADER = Used(seq=6, tool="bash", result="fatal error: RISCVGenRegisterInfo.inc: No such file")
WRONG = Attempt(stage="T2", score=40.0, outcome="fail", exit=0, asked=(FINE,), used=(BUILT,))


def cause(attempt: Attempt) -> tuple[str, int | None]:
    failure = failures([attempt], PASSED)["T2"]
    return failure.cause, failure.seq


@pytest.mark.parametrize(
    ("attempt", "found"),
    [
        (replace(WRONG, score=None), ("infrastructure", None)),
        (replace(WRONG, outcome="infrastructure_error"), ("infrastructure", None)),
        (replace(WRONG, asked=(), used=(), exit=127), ("infrastructure", None)),
        (replace(WRONG, used=(HEADER,)), ("infrastructure", 6)),
        (replace(WRONG, asked=(FINE, TOO_LONG)), ("context", 9)),
        (replace(WRONG, asked=(FINE, DOWN)), ("provider", 9)),
        (replace(WRONG, asked=(FINE, Asked(seq=8, error="reset"))), ("provider", 8)),
        (replace(WRONG, asked=(FINE, REFUSED)), ("budget", 9)),
        (replace(WRONG, budget="tokens"), ("budget", None)),
        (replace(WRONG, exit=124), ("budget", None)),
        (replace(WRONG, used=(BUILT, UNBUILT)), ("tooling", 5)),
        (replace(WRONG, used=(replace(BUILT, is_error=True),)), ("tooling", 4)),
        (replace(WRONG, outcome="agent_error"), ("tooling", None)),
        (replace(WRONG, used=(), said="All done.", said_seq=3), ("planning", 3)),
        (replace(WRONG, said="The rest is left undone; I skip it.", said_seq=3), ("planning", 3)),
        (WRONG, ("reasoning", None)),
    ],
)
def test_each_cause_has_its_signs(attempt: Attempt, found: tuple[Cause, int | None]) -> None:
    assert cause(attempt) == found


def test_a_header_that_the_agent_named_itself_is_its_own_affair() -> None:
    written = replace(BUILT, arguments="cat > a.c <<E\n#include <RISCVGenRegisterInfo.inc>\nE")
    assert cause(replace(WRONG, used=(written, HEADER)))[0] == "tooling"


def test_what_was_got_over_is_no_cause() -> None:
    assert cause(replace(WRONG, asked=(TOO_LONG, DOWN, FINE))) == ("reasoning", None)
    assert cause(replace(WRONG, used=(UNBUILT, HEADER, BUILT, BUILT))) == ("reasoning", None)


def test_the_first_cause_of_the_order_is_told() -> None:
    asked = (FINE, replace(TOO_LONG, seq=10))
    everything = replace(WRONG, asked=asked, used=(UNBUILT,), budget="calls", said="skip it")
    told: list[Cause] = [failures([everything], PASSED)["T2"].cause]
    for change in (
        {"asked": (FINE, DOWN)},
        {"asked": (FINE,)},
        {"budget": None},
        {"used": (BUILT,)},
        {"said": "done"},
    ):
        everything = replace(everything, **change)
        told.append(failures([everything], PASSED)["T2"].cause)
    assert tuple(told) == CAUSES[1:]


def test_a_stage_nobody_could_begin_fails_of_what_ended_the_one_before() -> None:
    full = replace(WRONG, stage="T1", asked=(FINE, TOO_LONG))
    after = replace(WRONG, stage="T2", asked=(), used=())
    again = replace(after, stage="T3")
    found = failures([full, after, again], PASSED)
    assert [each.cause for each in found.values()] == ["context"] * 3
    assert [each.since for each in found.values()] == [None, "T1", "T1"]
    assert json.loads(found["T3"].evidence) == {
        "seq": 9,
        "text": "Range of input length should be [1, 131072]",
        "since": "T1",
    }


def test_a_stage_that_was_worked_at_again_fails_of_its_own() -> None:
    full = replace(WRONG, stage="T1", asked=(FINE, TOO_LONG))
    assert failures([full, WRONG], PASSED)["T2"].cause == "reasoning"


def test_what_nobody_saw_has_no_cause() -> None:
    assert failures([replace(WRONG, asked=(), used=())], PASSED) == {}


def test_what_is_passed_has_no_cause() -> None:
    assert failures([replace(WRONG, score=PASSED)], PASSED) == {}


@pytest.mark.parametrize(
    "text",
    [
        "<400> InvalidParameter: Range of input length should be [1, 169984]",
        "This model's maximum context length is 128000 tokens",
        "prompt is too long: 210000 tokens > 200000 maximum",
        '{"code": "context_length_exceeded"}',
        "The input token count (1100000) exceeds the maximum number of tokens allowed",
    ],
)
def test_providers_say_in_many_words_that_there_was_too_much(text: str) -> None:
    assert of_words(text).cause == "context"


def test_another_refusal_is_the_provider() -> None:
    assert of_words("Connection timed out after 300 seconds").cause == "provider"
