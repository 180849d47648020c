"""The call that is struck is the one that was meant, and no other."""

import pytest

from faults.nemesis import Nemesis
from faults.operator import bind
from faults.site import select
from tests.told_runs import ORDER, Telling
from traces.conversation import Watch
from traces.model import Exchange, Fault, Injection
from traces.taps import Taps

RUN = Telling().calls(ORDER).calls(ORDER).calls(ORDER).says("DONE").over()


def through(fault: Fault) -> tuple[list[Exchange], list[Injection]]:
    """What taps do with the requests of the run; no answer changes what is asked."""
    injections: list[Injection] = []
    watch, site = Watch(), select(RUN.story, fault, bind(fault))
    taps = Taps([watch, Nemesis(fault, site, watch, injections.append, run="r", trace="t")])
    asked = []
    for exchange in RUN.tape.exchanges:
        request = Exchange(seq=exchange.seq, request=exchange.request, started=exchange.started)
        asked.append(taps.request(request))
        taps.done(exchange)
    return asked, injections


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_the_nth_of_three_calls_alike_is_struck_and_never_reaches_the_tool(nth: int) -> None:
    asked, injections = through(Fault(name="http_status", nth=nth))
    struck = [x.seq for x in asked if x.response is not None]
    assert struck == [2 * nth - 1]
    (injection,) = injections
    assert (injection.seq, injection.call_id) == (2 * nth - 1, f"c{nth}")
