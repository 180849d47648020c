"""A result that the agent says once, over a WebSocket, is struck there and wherever it says it."""

from copy import replace

import pytest

from faults.injector.injector import FaultInjector, RunSeeds
from faults.judging.consumption import decide_consumption
from faults.specs.spec_check import bind_operator
from faults.targeting.bound_fault import BoundFault
from faults.targeting.site import select_site
from tests.support.request_readings import read_tool_results
from tests.support.stores.conversation_turns import (
    ORDER,
    RATE,
    Play,
    result,
    user,
)
from traces.conversation.derived_steps import derive_steps
from traces.conversation.tracker import ConversationTap
from traces.dialects import openai_responses
from traces.dialects.types import ModelAnswer
from traces.model import Exchange, Fault, Injection
from traces.taps import TapChain

TOTAL = '{"total": 1250.4}'


def job(*, again: bool = False) -> list[Exchange]:
    """Two calls; `again`: after the first the connection is lost, and all is sent once more."""
    play = Play(socket=True, whole=False)
    play.ask(user("refund 7314"), say=ModelAnswer(calls=(ORDER,)))
    play.ask(result("c1", TOTAL), say=ModelAnswer(calls=(RATE,)))
    if again:
        play.whole = True
    play.ask(result("c2", "1.1"), say=ModelAnswer(message="done"))
    return play.exchanges


def through(taps: TapChain, exchanges: list[Exchange]) -> list[Exchange]:
    """What comes out where an agent does this."""
    out = []
    for exchange in exchanges:
        asked = taps.request(replace(exchange, response=None))
        out.append(replace(asked, response=exchange.response))
        taps.done(out[-1])
    return out


@pytest.mark.parametrize("again", [False, True])
def test_a_struck_result_is_struck_in_every_turn_that_says_it(again: bool) -> None:
    fault = Fault(name="digit", where={"tool": "get_order"}, at="model-boundary")
    injections: list[Injection] = []
    watch = ConversationTap()
    armed = [
        BoundFault(fault=fault, site=select_site(derive_steps(job()), fault, bind_operator(fault)))
    ]
    nemesis = FaultInjector(armed, watch, injections.append, seeds=RunSeeds(run="r", trace="t"))
    out = through(TapChain([watch, nemesis]), job(again=again))

    (injection,) = injections
    said = [
        each.text.encode()
        for exchange in out
        for each in read_tool_results(openai_responses, exchange.forwarded.body)
        if each.call_id == "c1"
    ]
    assert said == [injection.mutated] * (2 if again else 1)
    assert injection.mutated != TOTAL.encode()
    assert [bool(exchange.edits) for exchange in out] == [False, False, True, again]
    for exchange in out[2:]:
        assert exchange.request.body == job(again=again)[exchange.seq].request.body
    found = decide_consumption(injection, derive_steps(out), tuple(out))
    assert (found.consumed, found.seq) == (True, 2)
