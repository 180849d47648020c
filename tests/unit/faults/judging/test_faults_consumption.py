"""A fault was consumed only if what it did is in what the model was told."""

from copy import replace

import pytest

from faults.judging.consumption import decide_consumption
from tests.support.stores.scripted_runs import (
    BENT,
    FAILED,
    ORDER,
    Telling,
    struck,
)
from traces.dialects.openai_chat import write_model_answer
from traces.dialects.types import ModelAnswer, ToolCall

LEFT = "cancelled: eof by the agent"


@pytest.mark.parametrize(
    ("family", "mutated", "run", "consumed", "why"),
    [
        ("E", FAILED, Telling().calls(FAILED), True, "the error is the result"),
        ("E", FAILED, Telling().calls(FAILED, ORDER), False, "absorbed"),
        ("V", BENT, Telling().calls(BENT), True, "the corrupted value reached the model"),
        ("V", BENT, Telling().calls(BENT, told="It was 1259.4 in all."), True, "1259.4"),
        ("V", BENT, Telling().calls(BENT, ORDER), False, "absorbed"),
        ("V", BENT, Telling().calls(BENT, told="I have the order."), None, "undecidable"),
        ("sham", ORDER, Telling().calls(ORDER), True, "clean result is there"),
    ],
)
def test_what_the_model_was_told_decides(
    family: str, mutated: str, run: Telling, consumed: bool | None, why: str
) -> None:
    told = run.says("DONE").over()
    found = decide_consumption(struck(family, mutated), told.story, told.tape.exchanges)
    assert found.consumed is consumed
    assert why in found.why


def test_a_run_that_was_over_before_the_model_was_told_consumed_nothing() -> None:
    told = Telling().calls(FAILED).over(ended="crash")
    found = decide_consumption(struck("E", FAILED), told.story, told.tape.exchanges)
    assert (found.consumed, found.why) == (False, "ended_before")


@pytest.mark.parametrize(
    ("events", "error", "seq"),
    [
        (99, None, 1),
        (99, LEFT, 1),
        (-2, LEFT, 1),
        (1, LEFT, 2),
        (99, "cut: reset by the server", 2),
    ],
)
def test_a_client_may_leave_before_the_end_of_an_answer_that_it_follows(
    events: int, error: str | None, seq: int
) -> None:
    run = Telling().runs("cat north.txt", ORDER).runs("cat south.txt", ORDER).says("DONE")
    call = ToolCall(id="c2", name="bash", arguments='{"command": "cat south.txt"}')
    answer = ModelAnswer(message="I look.", calls=(call,), finish="tool_calls", model="m")
    headers, chunks = write_model_answer(answer, stream=True, id="x", created=0)
    full = run.exchanges[1].response
    assert full is not None
    came = replace(full, headers=headers, chunks=chunks[:events])
    run.exchanges[1] = replace(run.exchanges[1], response=came, error=error)
    told = run.over()
    injection = replace(struck("sham", ORDER), place="model-boundary", side="request")
    found = decide_consumption(injection, told.story, told.tape.exchanges)
    assert (found.consumed, found.seq) == (True, seq)


ROWS = '{"count": 2, "orders": [{"id": "ord-7314", "paid": true}, {"id": "ord-7388"}]}'
FEWER = '{"count": 2, "orders": [{"id": "ord-7314", "paid": true}]}'
SWAPPED = '{"net": 1686.65, "gross": 1599.4, "paid": true}'
STRAIGHT = '{"net": 1599.4, "gross": 1686.65, "paid": true}'
TURNED = STRAIGHT.replace("true", "false")
ACK = '{"refund_id": "ref-0017", "order": "ord-7314"}'
SPACED = '{"output": {"gross":1599.4,"net":1686.65,"paid":true}}'


@pytest.mark.parametrize(
    ("family", "op", "original", "mutated", "told", "consumed"),
    [
        ("V", "field_swap", STRAIGHT, SWAPPED, SWAPPED, True),
        ("V", "field_swap", STRAIGHT, SWAPPED, SPACED, True),
        ("V", "field_swap", STRAIGHT, SWAPPED, STRAIGHT, False),
        ("V", "field_swap", STRAIGHT, SWAPPED, "it costs 1599.4 or 1686.65", None),
        ("V", "bool_flip", STRAIGHT, TURNED, TURNED.replace(" ", ""), True),
        ("V", "bool_flip", STRAIGHT, TURNED, STRAIGHT, False),
        ("S", "drop_rows", ROWS, FEWER, FEWER, True),
        ("S", "drop_rows", ROWS, FEWER, "one order: ord-7314, paid", True),
        ("S", "drop_rows", ROWS, FEWER, ROWS, False),
        ("S", "empty", ROWS, "", "", True),
        ("S", "empty", ROWS, "[]", "nothing found", True),
        ("S", "empty", ROWS, "[]", ROWS, False),
        ("S", "truncate", ROWS, ROWS[:40], ROWS[:40], True),
        ("S", "schema_drift", ORDER, ORDER.replace("total", "sum"), '{"sum": 1250.4}', True),
        ("T", "hang", ORDER, "", "Error: timed out", True),
        ("T", "cut", ORDER, ORDER[:9], "Error: connection reset", True),
        ("T", "cut", ORDER, ORDER[:9], ORDER, False),
        ("X", "silent_noop", ORDER, ACK, f"done: {ACK}", True),
        ("X", "silent_noop", ORDER, ACK, "HTTP 500", False),
        ("X", "lost_ack", ACK, "504", "HTTP 504: <html>", True),
        ("X", "lost_ack", ACK, "504", ACK, False),
    ],
)
def test_every_operator_has_its_own_proof(
    family: str, op: str, original: str, mutated: str, told: str, consumed: bool | None
) -> None:
    run = Telling().calls(told).says("DONE").over()
    injection = struck(family, mutated, op=op, original=original)
    assert decide_consumption(injection, run.story, run.tape.exchanges).consumed is consumed
