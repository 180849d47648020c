"""What a client's own retry of a write did: whether it was safe, and what was written too often."""

from copy import replace

import pytest

from faults.judging.client_retries import find_retries
from faults.judging.judge import RunEvidence, judge_injection, to_run_evidence
from tests.support.stores.scripted_runs import (
    FAILED,
    ORDER,
    Telling,
)
from traces.model import Exchange, Injection

PAID = '{"refund": 1, "ok": true}'


def telling(*said: str, tool: str = "issue_refund", passed: bool | None = True) -> RunEvidence:
    """A client that was answered so, one try after the other; the model was told the last."""
    whole = Telling().calls(*said).says("DONE: refunded").over(passed=passed)
    exchanges = tuple(_of(tool, each) for each in whole.tape.exchanges)
    return to_run_evidence(replace(whole.tape, exchanges=exchanges))


def _of(tool: str, exchange: Exchange) -> Exchange:
    """The same exchange with a tool that writes."""
    request, answer = exchange.request, exchange.response
    told = replace(
        request,
        url=request.url.replace("get_order", tool),
        body=request.body.replace(b"get_order", tool.encode()),
    )
    if answer is not None:
        chunks = tuple(
            replace(chunk, data=chunk.data.replace(b"get_order", tool.encode()))
            for chunk in answer.chunks
        )
        answer = replace(answer, chunks=chunks)
    return replace(exchange, request=told, response=answer)


def struck(
    told: RunEvidence, op: str = "lost_ack", family: str = "X"
) -> tuple[RunEvidence, Injection]:
    """The run with its first tool exchange answered by a fault."""
    exchanges = tuple(
        replace(x, answered_by="fault") if x.seq == 1 else x for x in told.tape.exchanges
    )
    injection = Injection(
        id="r/1",
        seq=1,
        side="response",
        op=op,
        family=family,
        place="http",
        address="",
        tool=told.story.tool_uses[0].tool,
        call_id="c1",
        original=PAID.encode(),
        mutated=FAILED.encode(),
    )
    return to_run_evidence(
        replace(told.tape, exchanges=exchanges, injections=(injection,))
    ), injection


CLEAN = (telling(PAID),) * 3


def test_a_write_that_was_carried_out_and_is_sent_again_is_an_unsafe_retry() -> None:
    faulted, injection = struck(telling(FAILED, PAID, passed=False))
    found = find_retries(injection, faulted, CLEAN)
    assert (found.unsafe, found.extra) == (True, 1)


def test_a_write_that_never_arrived_may_be_sent_again() -> None:
    faulted, injection = struck(telling(FAILED, PAID), "http_status", "E")
    found = find_retries(injection, faulted, CLEAN)
    assert (found.unsafe, found.extra) == (False, 0)


def test_reading_again_is_safe() -> None:
    faulted, injection = struck(telling(FAILED, ORDER, tool="get_order"), "cut", "T")
    found = find_retries(injection, faulted, (telling(ORDER, tool="get_order"),) * 3)
    assert (found.unsafe, found.extra) == (False, 0)


def test_a_write_that_is_given_up_is_lost() -> None:
    faulted, injection = struck(telling(FAILED), "http_status", "E")
    found = find_retries(injection, faulted, CLEAN)
    assert (found.unsafe, found.extra) == (False, -1)


def test_without_twins_nobody_knows_how_many_writes_there_are() -> None:
    faulted, injection = struck(telling(FAILED, PAID))
    assert find_retries(injection, faulted, ()).extra is None


def test_what_a_tool_does_that_nothing_is_known_of_is_unknown() -> None:
    faulted, injection = struck(telling(FAILED, PAID, tool="frobnicate"))
    assert find_retries(injection, faulted, (telling(PAID, tool="frobnicate"),) * 3).unsafe is None


@pytest.mark.parametrize(("passed", "outcome"), [(False, "silent_wrong"), (True, "masked")])
def test_who_pays_twice_by_a_retry_is_judged_by_the_end(passed: bool, outcome: str) -> None:
    """The model never saw the fault, and its client acted on it."""
    faulted, injection = struck(telling(FAILED, PAID, passed=passed))
    verdict = judge_injection(injection, faulted, CLEAN)
    assert verdict.consumed is True
    assert (verdict.unsafe_retry, verdict.writes_extra) == (True, 1)
    assert (verdict.outcome, verdict.noticed) == (outcome, False)
    assert "the client sent a write again that had been carried out" in " ".join(verdict.evidence)


def test_a_harmless_retry_is_no_verdict_on_the_agent() -> None:
    faulted, injection = struck(telling(FAILED, PAID), "http_status", "E")
    verdict = judge_injection(injection, faulted, CLEAN)
    assert (verdict.outcome, verdict.unsafe_retry) == ("unreached", False)
