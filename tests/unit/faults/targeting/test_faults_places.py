"""Every operator at every place that is reached: what it did is in the record, or there is no site.

The run is played by hand: an order is asked for twice with another one in between, and paid back.
"""

import json
import re
from copy import replace
from itertools import count

import pytest

from faults import OPERATORS
from faults.errors import NoInjectionSite
from faults.injector.injector import FaultInjector, RunSeeds
from faults.injector.tool_result_text import render_tool_result
from faults.judging.consumption import decide_consumption
from faults.operator_examples import EARLIER, EXAMPLE_EXCHANGE, EXAMPLE_OBSERVATIONS, ORDER, OTHER
from faults.seeded_random import make_rng
from faults.specs.spec_check import bind_operator
from faults.targeting.bound_fault import BoundFault
from faults.targeting.observations import observe_recording
from faults.targeting.site import select_site
from tests.support.request_readings import read_tool_results
from traces.conversation.derived_steps import derive_steps
from traces.conversation.tracker import ConversationTap
from traces.dialects import mcp, openai_chat
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import Chunk, Exchange, Fault, Injection, Place, Request, Response
from traces.taps import TapChain

ACK = '{"refund_id": "ref-0001", "amount": 1686.65}'
SCRIPT = (
    (ToolCall(id="c1", name="get_order", arguments='{"order_id": "ord-7314"}'), EARLIER),
    (ToolCall(id="c2", name="get_order", arguments='{"order_id": "ord-7388"}'), OTHER),
    (ToolCall(id="c3", name="get_order", arguments='{"order_id": "ord-7314"}'), ORDER),
    (ToolCall(id="c4", name="issue_refund", arguments='{"amount": 1686.65}'), ACK),
)


class Run:
    """Some taps, and the traffic that an agent makes whatever it is told."""

    def __init__(
        self, taps: TapChain, place: Place, script: tuple[tuple[ToolCall, str], ...] = SCRIPT
    ) -> None:
        self.taps, self.seqs, self.exchanges = taps, count(), list[Exchange]()
        history: list[dict[str, object]] = [{"role": "user", "content": "pay ord-7314 back"}]
        for call, result in script:
            self.model(history, call)
            said = result
            if place == "http":
                said = render_tool_result(self.tool(call.name, result))
            if place == "mcp":
                said = told(self.mcp(call, result))
            function = {"name": call.name, "arguments": call.arguments}
            history.append(
                {"role": "assistant", "tool_calls": [{"id": call.id, "function": function}]}
            )
            history.append({"role": "tool", "tool_call_id": call.id, "content": said})
        self.model(history)

    def model(self, messages: list[dict[str, object]], *calls: ToolCall) -> None:
        answer = ModelAnswer(message="" if calls else "paid back 1686.65", calls=calls, model="m")
        headers, chunks = openai_chat.write_model_answer(answer, stream=False, id="x", created=0)
        body = json.dumps({"model": "m", "messages": messages}).encode()
        answered = Response(status=200, headers=headers, chunks=chunks)
        self.exchange("http://m/v1/chat/completions", body, answered)

    def tool(self, name: str, said: str) -> Exchange:
        data = said.encode()
        answer = Response(
            status=200,
            headers=(("content-type", "application/json"), ("content-length", str(len(data)))),
            chunks=(Chunk(at=0.0, data=data),),
        )
        return self.exchange(f"http://shop/{name}", b"{}", answer)

    def mcp(self, call: ToolCall, said: str) -> Exchange:
        params = {"name": call.name, "arguments": json.loads(call.arguments)}
        asked = {"jsonrpc": "2.0", "id": len(self.exchanges), "method": "tools/call"}
        reply = mcp.McpReply(id=str(asked["id"]), text=said, structured=said, is_error=False)
        headers, chunks = mcp.write_mcp_reply(reply, stream=False)
        answer = Response(status=200, headers=headers, chunks=chunks)
        body = json.dumps(asked | {"params": params}).encode()
        return self.exchange("http://shop/mcp", body, answer)

    def exchange(self, url: str, body: bytes, answer: Response) -> Exchange:
        at = float(next(self.seqs))
        headers = (("mcp-session-id", "s1"),) if url.endswith("/mcp") else ()
        request = Request(method="POST", url=url, headers=headers, body=body)
        x = self.taps.request(Exchange(seq=int(at), request=request, started=at))
        if x.response is None and x.error is None:
            chunks = tuple(replace(chunk, at=at) for chunk in answer.chunks)
            whole = replace(x, response=replace(answer, chunks=chunks, at=at, ended=at))
            x = self.taps.response(whole) if self.taps.holds(x) else whole
        self.taps.done(x)
        self.exchanges.append(x)
        return x


def told(exchange: Exchange) -> str:
    """What an MCP client makes of an answer."""
    answer = exchange.response
    reply = (
        mcp.parse_mcp_reply(answer.headers, answer.body) if answer and not exchange.error else None
    )
    if reply is None:
        return render_tool_result(exchange)
    return f"MCP error {reply.code}: {reply.text}" if reply.code is not None else reply.text


PLACES: tuple[Place, ...] = ("http", "mcp", "model-boundary")
CLEAN = {place: Run(TapChain([ConversationTap()]), place).exchanges for place in PLACES}
CELLS = [(name, place) for name, each in OPERATORS.items() for place in each.places
         if place != "model"]  # fmt: skip
"""The model's own answers are another run: see test_faults_at_model.py."""
WRITES = {name for name, each in OPERATORS.items() if "write" in each.needs}


def struck(name: str, place: Place) -> tuple[Run, tuple[Injection, ...], FaultInjector]:
    where, nth = ("issue_refund", 1) if name in WRITES else ("get_order", 3)
    fault = Fault(name=OPERATORS[name].code, where={"tool": where}, nth=nth, at=place)
    clean, injections, watch = derive_steps(CLEAN[place]), list[Injection](), ConversationTap()
    nemesis = FaultInjector(
        [BoundFault(fault=fault, site=select_site(clean, fault, bind_operator(fault)))],
        watch,
        injections.append,
        seeds=RunSeeds(run="r", trace="t", seed=7),
        seen=replace(observe_recording(clean, CLEAN[place]), world=True),
    )
    return Run(TapChain([watch, nemesis]), place), tuple(injections), nemesis


@pytest.mark.gate
@pytest.mark.parametrize(("name", "place"), CELLS)
def test_a_strike_is_what_the_model_is_told_and_what_the_record_says(
    name: str, place: Place
) -> None:
    run, injections, nemesis = struck(name, place)
    (injection,) = injections
    operator = OPERATORS[name]
    assert (nemesis.fired, nemesis.no_site, injection.op, injection.place) == (1, [], name, place)
    channel = operator.shows[place].channel
    if place == "model-boundary" and channel == "flag":  # which this dialect has not
        channel = "text"
    assert injection.error_channel == channel

    last = read_tool_results(openai_chat, run.exchanges[-1].forwarded.body)
    clean = read_tool_results(openai_chat, CLEAN[place][-1].request.body)
    differing = [
        told.call_id for told, was in zip(last, clean, strict=True) if told.text != was.text
    ]
    silent = name in ("sham", "delay", "silent_noop")
    later = ["c4"] if operator.ends_session else []
    assert differing == ([] if silent else [injection.call_id, *later])
    if place == "model-boundary" and not silent:
        told = next(each.text for each in last if each.call_id == injection.call_id)
        assert told.encode() == injection.mutated

    found = decide_consumption(injection, derive_steps(run.exchanges), tuple(run.exchanges))
    assert found.consumed is True, found.why
    assert injection.detect is not None or name in ("sham", "delay")


@pytest.mark.gate
@pytest.mark.parametrize(("name", "place"), CELLS)
def test_nothing_that_an_agent_sees_names_the_injector(name: str, place: Place) -> None:
    run, _, _ = struck(name, place)
    words = r"stumble|inject|fault|chaos|nemesis|sham|mutat"
    for exchange in run.exchanges:
        seen = exchange.forwarded.body + (exchange.response.body if exchange.response else b"")
        fields = exchange.response.headers if exchange.response else ()
        assert not re.search(words, f"{seen.decode()}{fields}".casefold())


@pytest.mark.parametrize("name", sorted(WRITES))
@pytest.mark.parametrize(
    ("lack", "says"),
    [({"world": False}, "needs a world that can be set back"), ({"writes": False}, "that writes")],
)
def test_an_effect_needs_a_write_and_a_world(name: str, lack: dict[str, bool], says: str) -> None:
    operator = OPERATORS[name]
    assert operator(EXAMPLE_EXCHANGE, make_rng("a"), {}, EXAMPLE_OBSERVATIONS) != EXAMPLE_EXCHANGE
    with pytest.raises(NoInjectionSite, match=says):
        operator(EXAMPLE_EXCHANGE, make_rng("a"), {}, replace(EXAMPLE_OBSERVATIONS, **lack))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_a_place_where_it_makes_no_sense_is_refused_before_anything_starts(name: str) -> None:
    operator = OPERATORS[name]
    for place in ("http", "mcp", "model-boundary", "model"):
        if place not in operator.places:
            with pytest.raises(ValueError, match=f"cannot be used at {place}, only at"):
                bind_operator(Fault(name=name, at=place))
