"""The call that is struck is the one that was meant, and no other."""

from copy import replace
from itertools import chain

import pytest

from faults.injector.injector import FaultInjector, RunSeeds
from faults.specs.spec_check import bind_operator
from faults.targeting.bound_fault import BoundFault
from faults.targeting.site import select_site
from tests.support.stores.scripted_runs import (
    ORDER,
    Telling,
)
from traces.conversation.derived_steps import derive_steps
from traces.conversation.tracker import ConversationTap
from traces.model import Exchange, Fault, Injection
from traces.taps import TapChain

CALLS = tuple(Telling().calls(ORDER).calls(ORDER).calls(ORDER).says("DONE").exchanges)


def through(
    fault: Fault, recorded: tuple[Exchange, ...], exchanges: tuple[Exchange, ...]
) -> tuple[list[int], list[Injection]]:
    """Which requests of a run taps answer; no answer changes what is asked."""
    injections: list[Injection] = []
    watch, site = (
        ConversationTap(),
        select_site(derive_steps(recorded), fault, bind_operator(fault)),
    )
    armed = [BoundFault(fault=fault, site=site)]
    taps = TapChain(
        [watch, FaultInjector(armed, watch, injections.append, seeds=RunSeeds(run="r", trace="t"))]
    )
    struck = []
    for exchange in exchanges:
        request = Exchange(seq=exchange.seq, request=exchange.request, started=exchange.started)
        if taps.request(request).response is not None:
            struck.append(exchange.seq)
        taps.done(exchange)
    return struck, injections


def talks(*prompts: str) -> tuple[Exchange, ...]:
    """A call in each of some conversations, whose client counts its ids anew in each."""
    told = [Telling(prompt).calls(ORDER).says("DONE").exchanges for prompt in prompts]
    return tuple(
        replace(x, seq=seq, started=x.started + 10 * (seq // 3))
        for seq, x in enumerate(chain.from_iterable(told))
    )


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_the_nth_of_three_calls_alike_is_struck_and_never_reaches_the_tool(nth: int) -> None:
    struck, injections = through(Fault(name="http_status", nth=nth), CALLS, CALLS)
    assert struck == [2 * nth - 1]
    (injection,) = injections
    assert (injection.seq, injection.call_id) == (2 * nth - 1, f"c{nth}")


def test_what_stands_for_a_key_in_the_prompt_does_not_hide_the_call() -> None:
    recorded, asked = talks("my key is REDACTED"), talks("my key is sk-0123")
    assert through(Fault(name="http_status"), recorded, asked)[0] == [1]


@pytest.mark.parametrize("nth", [1, 2])
def test_ids_that_are_counted_anew_in_each_conversation_are_aliases(nth: int) -> None:
    run = talks("refund the first", "refund the second")
    assert through(Fault(name="http_status", nth=nth), run, run)[0] == [3 * nth - 2]
