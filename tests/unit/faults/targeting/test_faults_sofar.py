"""What a live run has shown so far is what its faults may take from."""

import json
from collections.abc import Iterator

import pytest

from faults.injector.injector import FaultInjector, RunSeeds
from faults.operator_examples import EARLIER, ORDER, OTHER
from faults.targeting.bound_fault import bind_without_recording
from faults.targeting.live_observations import MAX_RESULTS, LiveObservations
from tests.unit.faults.targeting.test_faults_places import ACK, SCRIPT, Run
from traces.conversation.tracker import ConversationTap
from traces.dialects.types import ToolCall
from traces.model import Fault, Injection, Place
from traces.taps import TapChain

AGAIN = (
    *SCRIPT,
    (ToolCall(id="c5", name="issue_refund", arguments='{"amount": 12.5}'), ACK.replace("1", "2")),
)

PLACES: dict[bool, Place] = {False: "http", True: "model-boundary"}


def struck(fault: Fault, *, local: bool) -> tuple[tuple[Injection, ...], FaultInjector]:
    injections, watch = list[Injection](), ConversationTap()
    seen = LiveObservations(watch, world=True)
    nemesis = FaultInjector(
        [bind_without_recording(fault)],
        watch,
        injections.append,
        seeds=RunSeeds(run="r", trace=""),
        seen=seen,
    )
    Run(TapChain([watch, seen, nemesis]), PLACES[local], script=AGAIN)
    return tuple(injections), nemesis


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize(
    ("name", "nth", "takes", "why"),
    [
        ("stale", 3, ("open", "1711.9"), "nothing else was said of it before"),
        ("enum_swap", 2, ("open", "shipped"), "no other member of an enum"),
        ("wrong_entity", 2, ("1711.9", "1686.65"), "no other record with the same fields"),
    ],
)
def test_a_lie_is_what_was_said_before_and_nothing_before_that(
    name: str, nth: int, takes: tuple[str, ...], why: str, local: bool
) -> None:
    where = {"tool": "get_order"}
    of = {"path": "$.total"} if name == "wrong_entity" else {}
    ((injection,), _) = struck(Fault(name=name, where=where, nth=nth, params=of), local=local)
    mutated = json.loads(injection.mutated or b"")
    original = json.loads(injection.original or b"")
    differing = {str(value) for key, value in mutated.items() if value != original[key]}
    assert differing & set(takes)
    known = {str(v) for said in (EARLIER, OTHER, ORDER) for v in json.loads(said).values()}
    assert differing <= known
    none, nemesis = struck(Fault(name=name, where={"tool": "issue_refund"}), local=local)
    assert none == ()
    assert why in nemesis.no_site[0]


def test_a_false_acknowledgement_is_that_of_an_earlier_write() -> None:
    (injection,), _ = struck(
        Fault(name="silent_noop", where={"tool": "issue_refund"}, nth=2), local=False
    )
    assert injection.mutated == ACK.encode()
    assert injection.detect == "D3"
    none, nemesis = struck(Fault(name="silent_noop", where={"tool": "issue_refund"}), local=False)
    assert none == ()
    assert nemesis.no_site == ["no acknowledgement of this tool was seen"]


def test_a_lie_is_no_observation() -> None:
    """The first answer is bent; what the third says of the same order can be held against none."""
    digit = Fault(name="digit", where={"tool": "get_order"}, params={"path": "$.total"})
    stale = Fault(name="stale", where={"tool": "get_order"}, nth=3)
    for local in (False, True):
        injections, watch = list[Injection](), ConversationTap()
        seen = LiveObservations(watch, world=True)
        armed = [bind_without_recording(digit), bind_without_recording(stale)]
        nemesis = FaultInjector(
            armed, watch, injections.append, seeds=RunSeeds(run="r", trace=""), seen=seen
        )
        Run(TapChain([watch, seen, nemesis]), PLACES[local])
        wrong_value, *later = injections
        document = json.loads(wrong_value.mutated or b"")["total"]
        assert document != json.loads(EARLIER)["total"]
        for injection in later:
            assert json.loads(injection.mutated or b"")["total"] == json.loads(EARLIER)["total"]
        assert [i.op for i in later] == (["stale"] if local else [])


@pytest.mark.gate
def test_only_the_latest_is_kept() -> None:
    watch = ConversationTap()
    seen = LiveObservations(watch, world=False)
    Run(TapChain([watch, seen]), "http", script=tuple(_many(MAX_RESULTS + 9)))
    (call,) = watch.conversations.calls[:1]
    assert len(seen.for_call(call).observations) == MAX_RESULTS


def _many(count: int) -> Iterator[tuple[ToolCall, str]]:
    for n in range(count):
        yield ToolCall(id=f"c{n}", name="get_order", arguments=json.dumps({"n": n})), ORDER
