"""What is struck in a run: by several faults, again and again, and in whatever order calls come."""

import json
from collections.abc import Callable, Sequence
from copy import replace
from itertools import count, permutations

import pytest

from faults.injector.injector import FaultInjector, RunSeeds
from faults.specs.spec_check import bind_operator
from faults.targeting.bound_fault import BoundFault, bind_without_recording
from faults.targeting.site import is_call_followed, resolve_position, select_site, select_third
from tests.support.stores.scripted_runs import (
    ORDER,
    Telling,
)
from traces.conversation.derived_steps import DerivedSteps, derive_steps
from traces.conversation.tracker import ConversationTap
from traces.dialects import openai_chat
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import Chunk, Exchange, Fault, Injection, Request, Response
from traces.taps import TapChain

MODEL = "http://m/v1/chat/completions"
RESULT = '{"id": "ord-7314", "total": 1250.4, "note": "fragile"}'


def asks(*pages: int) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(id=f"c{page}", name="search", arguments=json.dumps({"page": page}))
        for page in pages
    )


class Run:
    """A run of which each answer asks for some calls at once, which may arrive in any order."""

    def __init__(self, *faults: Fault, seed: int = 0) -> None:
        self.injections: list[Injection] = []
        self.watch = ConversationTap({"search": "POST /search"})
        armed = [bind_without_recording(fault) for fault in faults]
        self.nemesis = FaultInjector(
            armed, self.watch, self.injections.append, seeds=RunSeeds(run="r", trace="t", seed=seed)
        )
        self.taps, self.seqs, self.now = TapChain([self.watch, self.nemesis]), count(), count(1)
        self.told: list[dict[str, object]] = [{"role": "user", "content": "go"}]
        self.seen: list[Exchange] = []

    def exchange(self, request: Request, answer: Response) -> Exchange:
        at = float(next(self.now))
        x = self.taps.request(Exchange(seq=next(self.seqs), request=request, started=at))
        if x.response is None:
            chunks = tuple(replace(chunk, at=at) for chunk in answer.chunks)
            x = replace(x, response=replace(answer, chunks=chunks, at=at, ended=at))
            if self.taps.holds(x):
                x = self.taps.response(x)
        self.taps.done(x)
        self.seen.append(x)
        return x

    def says(self, *calls: ToolCall) -> Exchange:
        answer = ModelAnswer(message="" if calls else "done", calls=calls, model="m")
        headers, chunks = openai_chat.write_model_answer(answer, stream=False, id="x", created=0)
        body = json.dumps({"model": "m", "messages": self.told}).encode()
        request = Request(method="POST", url=MODEL, body=body)
        return self.exchange(request, Response(status=200, headers=headers, chunks=chunks))

    def asked(self, call: ToolCall) -> Exchange:
        headers = (("x-tool-call-id", call.id),)
        request = Request(
            method="POST", url="http://shop/search", headers=headers, body=call.arguments.encode()
        )
        chunks = (Chunk(at=0.0, data=RESULT.encode()),)
        return self.exchange(request, Response(status=200, chunks=chunks))

    def turn(self, calls: Sequence[ToolCall], order: Sequence[int] | None = None) -> "Run":
        """The model asks for these calls, and they arrive in this order, each once."""
        self.says(*calls)
        said = {n: self.asked(calls[n]) for n in order or range(len(calls))}
        functions = [
            {"id": c.id, "function": {"name": c.name, "arguments": c.arguments}} for c in calls
        ]
        self.told.append({"role": "assistant", "tool_calls": functions})
        for n, call in enumerate(calls):
            content = body(said[n]).decode()
            self.told.append({"role": "tool", "tool_call_id": call.id, "content": content})
        return self

    @property
    def struck(self) -> list[str]:
        return sorted({injection.call_id or "" for injection in self.injections})


def body(exchange: Exchange) -> bytes:
    assert exchange.response is not None
    return exchange.response.body


def test_parallel_calls_are_counted_as_they_were_asked_for() -> None:
    for order in permutations(range(3)):
        run = Run(Fault(name="digit", nth=2)).turn(asks(1, 2, 3), order)
        assert run.struck == ["c2"]


def test_parallel_calls_are_struck_with_the_same_values_in_whatever_order() -> None:
    fault = Fault(name="digit", when={"probability": 0.5})
    lies = set()
    for order in permutations(range(4)):
        run = Run(fault, seed=5).turn(asks(1, 2, 3, 4), order)
        lies.add(frozenset((i.call_id, i.address, i.mutated) for i in run.injections))
    (wrong_value,) = lies
    assert 0 < len(wrong_value) < 4


@pytest.mark.parametrize(
    ("persist", "struck"),
    [
        ("once", [1, 0, 0, 0]),
        ("burst:n=2", [2, 2, 0, 0]),
        ("flapping:on=1,off=1", [2, 0, 2, 0]),
        ("permanent", [2, 2, 2, 2]),
        ("quota:n=3", [0, 0, 0, 2]),
    ],
)
def test_what_persists_strikes_each_attempt_and_once_strikes_one(
    persist: str, struck: list[int]
) -> None:
    run = Run(Fault(name="http_status", persist=persist))
    for page in range(1, 5):
        (call,) = asks(page)
        run.says(call)
        run.asked(call)
        said = body(run.asked(call)).decode()
        function = {"name": call.name, "arguments": call.arguments}
        run.told += [
            {"role": "assistant", "tool_calls": [{"id": call.id, "function": function}]},
            {"role": "tool", "tool_call_id": call.id, "content": said},
        ]
    assert [sum(i.call_id == f"c{n}" for i in run.injections) for n in range(1, 5)] == struck
    first = run.injections[0].id
    assert {i.repeat_of for i in run.injections[1:]} <= {first}


def test_no_more_is_struck_than_may_be() -> None:
    run = Run(Fault(name="http_status", persist="permanent", max_injections=3))
    for page in range(5):
        run.turn(asks(page))
    assert len(run.injections) == 3


ORDERS: Sequence[tuple[str, Callable[[Fault, Fault], tuple[Fault, ...]]]] = [
    ("as given", lambda one, two: (one, two)),
    ("the other way round", lambda one, two: (two, one)),
]


@pytest.mark.parametrize(("name", "order"), ORDERS, ids=[name for name, _ in ORDERS])
def test_several_faults_bend_one_answer_in_a_fixed_order(name: str, order) -> None:
    """The value, then the structure, then the time; each is written down with what it found."""
    late, cut = Fault(name="delay", params={"ms": 500}), Fault(name="truncate")
    wrong = Fault(name="digit")
    run = Run(*order(late, cut), wrong).turn(asks(1))
    assert [i.op for i in run.injections] == ["digit", "truncate", "delay"]
    first, second, third = run.injections
    assert first.original == RESULT.encode() != first.mutated
    assert second.original == first.mutated
    assert third.original == third.mutated == second.mutated
    answer = run.seen[1].response
    assert answer is not None
    assert (answer.body, answer.chunks[-1].at) == (second.mutated, 2.5)
    assert len({i.address for i in run.injections}) == 3


def test_what_keeps_the_request_from_the_tool_leaves_nothing_to_bend() -> None:
    run = Run(Fault(name="digit"), Fault(name="http_status")).turn(asks(1))
    assert [i.op for i in run.injections] == ["http_status"]
    assert len(run.nemesis.no_site) == 1
    assert run.seen[1].answered_by == "fault"


def test_a_part_of_the_result_is_bent_and_no_other_byte() -> None:
    fault = Fault(name="truncate", params={"keep": 0.5, "path": "$.note"})
    run = Run(fault).turn(asks(1))
    assert body(run.seen[1]).decode() == RESULT.replace("fragile", "fra")
    assert run.injections[0].params["path"] == "$.note"
    run = Run(Fault(name="truncate", params={"path": "$.none"})).turn(asks(1))
    assert run.injections == []
    assert run.nemesis.no_site == ["$.none leads nowhere in the result"]


@pytest.mark.parametrize(
    ("where", "struck"),
    [
        ({"transport": "http", "server": "shop"}, ["c1", "c2"]),
        ({"transport": "mcp"}, []),
        ({"server": "files"}, []),
        ({"args": "@.page == 2"}, ["c2"]),
    ],
)
def test_calls_are_chosen_by_where_they_go_once_they_go_there(
    where: dict[str, str], struck: list[str]
) -> None:
    run = Run(Fault(name="digit", where=where, persist="permanent"))
    assert run.turn(asks(1, 2)).struck == struck


def test_steps_are_counted_as_a_story_counts_them() -> None:
    run = Run(Fault(name="digit", when={"step_range": 3}))
    for page in (1, 2, 3):
        run.turn(asks(page))
    derived_steps = derive_steps(run.seen, {"search": "POST /search"})
    assert [(use.call_id, use.step) for use in derived_steps.tool_uses] == [
        ("c1", 2),
        ("c2", 3),
        ("c3", 4),
    ]
    assert run.struck == ["c2"]


def test_a_fault_that_reached_nothing_is_named() -> None:
    run = Run(Fault(name="digit", where={"tool": "pay"}), Fault(name="delay")).turn(asks(1))
    assert run.nemesis.unfired == ("digit",)


def recording(calls: int):
    told = Telling()
    for _ in range(calls):
        told = told.calls(ORDER)
    return derive_steps(told.says("DONE").exchanges)


def test_a_position_is_drawn_evenly_from_its_third_of_the_recording() -> None:
    told = recording(9)
    for position, third in (("early", {1, 2, 3}), ("mid", {4, 5, 6}), ("late", {7, 8, 9})):
        fault = Fault(name="digit", when={"position": position})
        drawn = [resolve_position(told, fault, seed=seed).nth for seed in range(120)]
        assert set(drawn) == third
        assert min(drawn.count(n) for n in third) > 24
    uniform = Fault(name="digit", when={"position": "uniform"})
    assert {resolve_position(told, uniform, seed=seed).nth for seed in range(120)} == set(
        range(1, 10)
    )
    assert resolve_position(told, uniform, seed=7) == resolve_position(
        recording(9), uniform, seed=7
    )


def test_few_calls_have_an_early_a_mid_and_a_late_one_all_the_same() -> None:
    assert [select_third((1,), position) for position in ("early", "mid", "late")] == [(1,)] * 3
    assert [select_third((1, 2), position) for position in ("early", "mid", "late")] == [
        (1,),
        (1,),
        (2,),
    ]


def test_nothing_is_struck_after_which_the_agent_did_nothing() -> None:
    told = recording(3)
    last = derive_steps(Telling().calls(ORDER).calls(ORDER).says("DONE").exchanges[:-1])
    assert all(is_call_followed(told, use) for use in told.tool_uses)
    assert [is_call_followed(last, use) for use in last.tool_uses] == [True, False]
    with pytest.raises(LookupError, match="the agent took no step after call 2 of get_order"):
        select_site(last, Fault(name="digit", nth=2), bind_operator(Fault(name="digit")))
    late = Fault(name="digit", when={"position": "uniform"})
    assert {resolve_position(last, late, seed=seed).nth for seed in range(20)} == {1}


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            Fault(name="digit", where={"args": "@.id == 'x'"}),
            "has 3 calls of tool '\\*', but none",
        ),
        (Fault(name="digit", when={"first_write": True}), "of get_order no name says that it"),
        (Fault(name="digit", when={"step_range": "90-91"}), "none for step_range=90-91"),
        (Fault(name="digit", when={"after_calls": 9}), "none for after_calls=9"),
        (Fault(name="digit", when={"probability": 1e-9}), "of which probability selects none"),
        (Fault(name="digit", where={"tool": "pay"}), "no call of tool 'pay'"),
    ],
)
def test_a_recording_says_why_it_has_no_such_call(fault: Fault, says: str) -> None:
    with pytest.raises(LookupError, match=says):
        select_site(recording(3), fault, bind_operator(fault))


@pytest.mark.parametrize("rep", range(4))
def test_each_repetition_begins_at_the_same_site_and_persists_from_there(rep: int) -> None:
    """Whatever its own draws would have said of the calls before."""
    calls = tuple(Telling().calls(ORDER).calls(ORDER).calls(ORDER).calls(ORDER).exchanges)
    derived_steps = derive_steps(calls)
    fault = Fault(name="digit", when={"probability": 0.3}, persist="burst:n=2")
    seed = next(n for n in range(99) if _first(derived_steps, fault, n) == "c2")
    site = select_site(derived_steps, fault, bind_operator(fault), seed=seed)
    watch, injections = ConversationTap(), list[Injection]()
    armed = [BoundFault(fault=fault, site=site, trace=derived_steps.tool_uses[0].prefix)]
    nemesis = FaultInjector(
        armed, watch, injections.append, seeds=RunSeeds(run="r", trace="t", seed=seed, rep=rep)
    )
    taps = TapChain([watch, nemesis])
    for x in calls:
        asked = taps.request(Exchange(seq=x.seq, request=x.request, started=x.started))
        if taps.holds(asked):
            taps.response(replace(asked, response=x.response))
        taps.done(x)
    assert [i.call_id for i in injections][:2] == ["c2", "c3"]


def _first(derived_steps: DerivedSteps, fault: Fault, seed: int) -> str | None:
    try:
        return select_site(derived_steps, fault, bind_operator(fault), seed=seed).call_id
    except LookupError:
        return None
