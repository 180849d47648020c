"""Why a stage failed: seven causes in their order, each with what proves it."""

import json
from copy import replace

import pytest

from traces.pipeline.failure_causes import (
    FAILURE_CAUSES,
    PASSING_SCORE,
    FailureCause,
    ModelCallOutcome,
    StageAttempt,
    ToolCallOutcome,
    classify_provider_error,
    find_failure_causes,
)

FINE = ModelCallOutcome(seq=3, status=200)
TOO_LONG = ModelCallOutcome(seq=9, status=400, text="Range of input length should be [1, 131072]")
DOWN = ModelCallOutcome(seq=9, status=529, text="Overloaded")
REFUSED = ModelCallOutcome(seq=9, status=402, text="the budget of calls is used up", refused=True)
BUILT = ToolCallOutcome(seq=4, tool="bash", arguments="make", result="all built")
UNBUILT = ToolCallOutcome(
    seq=5, tool="bash", arguments="make", result="lexer.py: error: no such rule\nmake: *** 2"
)
HEADER = ToolCallOutcome(
    seq=6, tool="bash", result="fatal error: RISCVGenRegisterInfo.inc: No such file"
)
WRONG = StageAttempt(
    stage="T2", score=40.0, outcome="fail", exit=0, model_calls=(FINE,), tool_calls=(BUILT,)
)


def cause(attempt: StageAttempt) -> tuple[str, int | None]:
    failure = find_failure_causes([attempt], PASSING_SCORE)["T2"]
    return failure.cause, failure.seq


@pytest.mark.parametrize(
    ("attempt", "found"),
    [
        (replace(WRONG, score=None), ("infrastructure", None)),
        (replace(WRONG, outcome="infrastructure_error"), ("infrastructure", None)),
        (replace(WRONG, model_calls=(), tool_calls=(), exit=127), ("infrastructure", None)),
        (replace(WRONG, tool_calls=(HEADER,)), ("infrastructure", 6)),
        (replace(WRONG, model_calls=(FINE, TOO_LONG)), ("context", 9)),
        (replace(WRONG, model_calls=(FINE, DOWN)), ("provider", 9)),
        (
            replace(WRONG, model_calls=(FINE, ModelCallOutcome(seq=8, error="reset"))),
            ("provider", 8),
        ),
        (replace(WRONG, model_calls=(FINE, REFUSED)), ("budget", 9)),
        (replace(WRONG, budget="tokens"), ("budget", None)),
        (replace(WRONG, exit=124), ("budget", None)),
        (replace(WRONG, tool_calls=(BUILT, UNBUILT)), ("tooling", 5)),
        (replace(WRONG, tool_calls=(replace(BUILT, is_error=True),)), ("tooling", 4)),
        (replace(WRONG, outcome="agent_error"), ("tooling", None)),
        (
            replace(WRONG, tool_calls=(), last_message="All done.", last_message_seq=3),
            ("planning", 3),
        ),
        (
            replace(WRONG, last_message="The rest is left undone; I skip it.", last_message_seq=3),
            ("planning", 3),
        ),
        (WRONG, ("reasoning", None)),
    ],
)
def test_each_cause_has_its_signs(
    attempt: StageAttempt, found: tuple[FailureCause, int | None]
) -> None:
    assert cause(attempt) == found


@pytest.mark.parametrize(
    ("attempt", "is_outage"),
    [
        (replace(WRONG, model_calls=(FINE, DOWN), is_builtin=True), True),
        (replace(WRONG, model_calls=(DOWN,)), True),
        (replace(WRONG, model_calls=(FINE, DOWN)), False),
        (replace(WRONG, model_calls=(FINE, ModelCallOutcome(seq=8, error="cancelled"))), False),
        (replace(WRONG, model_calls=(ModelCallOutcome(seq=8, error="reset"),)), True),
        (replace(WRONG, model_calls=(), tool_calls=(), exit=5, is_builtin=True), True),
        (replace(WRONG, model_calls=(), tool_calls=(), exit=5, outcome="agent_error"), False),
        (replace(WRONG, model_calls=(ModelCallOutcome(seq=8, status=422, text="what?"),)), False),
        (replace(WRONG, model_calls=(FINE, REFUSED)), False),
        (WRONG, False),
    ],
)
def test_a_request_that_the_agent_made_wrong_is_no_outage(
    attempt: StageAttempt, is_outage: bool
) -> None:
    silent = StageAttempt(stage="T3", score=0.0, outcome="fail", is_builtin=attempt.is_builtin)
    found = find_failure_causes([attempt, silent], PASSING_SCORE)
    assert [failure.outage for failure in found.values()] == [is_outage] * len(found)


def test_an_agent_that_was_answered_before_cannot_choose_to_have_no_score() -> None:
    """It needs one request that fails, in the stage that goes badly: here without its key."""
    unauthorized = ModelCallOutcome(seq=9, status=401, text="no key")
    good = replace(WRONG, stage="T1", score=100.0)
    found = find_failure_causes([good, replace(WRONG, model_calls=(unauthorized,))], PASSING_SCORE)
    assert (found["T2"].cause, found["T2"].outage) == ("provider", False)


def test_a_header_that_the_agent_named_itself_is_its_own_affair() -> None:
    written = replace(BUILT, arguments="cat > a.c <<E\n#include <RISCVGenRegisterInfo.inc>\nE")
    assert cause(replace(WRONG, tool_calls=(written, HEADER)))[0] == "tooling"


def test_what_was_got_over_is_no_cause() -> None:
    assert cause(replace(WRONG, model_calls=(TOO_LONG, DOWN, FINE))) == ("reasoning", None)
    assert cause(replace(WRONG, tool_calls=(UNBUILT, HEADER, BUILT, BUILT))) == ("reasoning", None)


def test_the_first_cause_of_the_order_is_told() -> None:
    asked = (FINE, replace(TOO_LONG, seq=10))
    everything = replace(
        WRONG, model_calls=asked, tool_calls=(UNBUILT,), budget="calls", last_message="skip it"
    )
    told: list[FailureCause] = [find_failure_causes([everything], PASSING_SCORE)["T2"].cause]
    for change in (
        {"model_calls": (FINE, DOWN)},
        {"model_calls": (FINE,)},
        {"budget": None},
        {"tool_calls": (BUILT,)},
        {"last_message": "done"},
    ):
        everything = replace(everything, **change)
        told.append(find_failure_causes([everything], PASSING_SCORE)["T2"].cause)
    assert tuple(told) == FAILURE_CAUSES[1:]


def test_a_stage_nobody_could_begin_fails_of_what_ended_the_one_before() -> None:
    full = replace(WRONG, stage="T1", model_calls=(FINE, TOO_LONG))
    after = replace(WRONG, stage="T2", model_calls=(), tool_calls=())
    again = replace(after, stage="T3")
    found = find_failure_causes([full, after, again], PASSING_SCORE)
    assert [each.cause for each in found.values()] == ["context"] * 3
    assert [each.since_stage for each in found.values()] == [None, "T1", "T1"]
    assert json.loads(found["T3"].evidence) == {
        "seq": 9,
        "text": "Range of input length should be [1, 131072]",
        "since": "T1",
    }


def test_a_stage_that_was_worked_at_again_fails_of_its_own() -> None:
    full = replace(WRONG, stage="T1", model_calls=(FINE, TOO_LONG))
    assert find_failure_causes([full, WRONG], PASSING_SCORE)["T2"].cause == "reasoning"


def test_what_nobody_saw_has_no_cause() -> None:
    assert find_failure_causes([replace(WRONG, model_calls=(), tool_calls=())], PASSING_SCORE) == {}


def test_what_is_passed_has_no_cause() -> None:
    assert find_failure_causes([replace(WRONG, score=PASSING_SCORE)], PASSING_SCORE) == {}


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
    assert classify_provider_error(text).cause == "context"


def test_another_refusal_is_the_provider() -> None:
    assert classify_provider_error("Connection timed out after 300 seconds").cause == "provider"
