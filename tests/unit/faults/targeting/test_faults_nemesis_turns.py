"""A result that the agent says once, over a WebSocket, is struck there and wherever it says it."""

from dataclasses import replace

import pytest

from faults.armed import Armed
from faults.binding import bind
from faults.consumption import consumption
from faults.nemesis import Nemesis
from faults.site import select
from tests.turns import ORDER, RATE, Play, result, user
from traces.conversation import Watch
from traces.dialects import openai_responses
from traces.model import Exchange, Fault, Injection
from traces.step import Answer
from traces.story import story
from traces.taps import Taps

TOTAL = '{"total": 1250.4}'


def job(*, again: bool = False) -> list[Exchange]:
    """Two calls; `again`: after the first the connection is lost, and all is sent once more."""
    play = Play(socket=True, whole=False)
    play.ask(user("refund 7314"), say=Answer(calls=(ORDER,)))
    play.ask(result("c1", TOTAL), say=Answer(calls=(RATE,)))
    if again:
        play.whole = True
    play.ask(result("c2", "1.1"), say=Answer(message="done"))
    return play.exchanges


def through(taps: Taps, exchanges: list[Exchange]) -> list[Exchange]:
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
    watch = Watch()
    armed = [Armed(fault=fault, site=select(story(job()), fault, bind(fault)))]
    nemesis = Nemesis(armed, watch, injections.append, run="r", trace="t")
    out = through(Taps([watch, nemesis]), job(again=again))

    (injection,) = injections
    said = [
        each.text.encode()
        for exchange in out
        for each in openai_responses.results(exchange.forwarded.body)
        if each.call_id == "c1"
    ]
    assert said == [injection.mutated] * (2 if again else 1)
    assert injection.mutated != TOTAL.encode()
    assert [bool(exchange.edits) for exchange in out] == [False, False, True, again]
    for exchange in out[2:]:
        assert exchange.request.body == job(again=again)[exchange.seq].request.body
    found = consumption(injection, story(out), tuple(out))
    assert (found.consumed, found.seq) == (True, 2)
