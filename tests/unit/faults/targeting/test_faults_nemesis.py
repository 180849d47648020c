"""The nemesis strikes the call it was told to, once, and writes down what it did."""

import json
from copy import replace
from itertools import count

import pytest

from faults.injector.injector import FaultInjector, RunSeeds
from faults.judging.consumption import decide_consumption
from faults.specs.spec_check import bind_operator
from faults.targeting.bound_fault import BoundFault, bind_without_recording
from faults.targeting.site import InjectionSite, select_site
from tests.support.request_readings import read_tool_results
from traces.conversation.derived_steps import derive_steps
from traces.conversation.tracker import ConversationTap
from traces.dialects import anthropic_messages, openai_chat
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import Chunk, Exchange, Fault, Injection, Request, Response
from traces.taps import TapChain

GO: list[dict[str, object]] = [{"role": "user", "content": "refund ord-7314"}]
ORDER = ToolCall(id="c1", name="get_order", arguments='{"id": "ord-7314"}')
REFUND = ToolCall(id="c2", name="issue_refund", arguments='{"id": "ord-7314", "amount": 1250.4}')
RESULT = '{"id": "ord-7314", "total": 1250.4}'


class Agent:
    """Drives taps by hand with the traffic of one small run; tools and model always answer."""

    def __init__(self, taps: TapChain) -> None:
        self.taps, self.seqs, self.now = taps, count(), count(1)
        self.seen: list[Exchange] = []

    def exchange(self, url: str, body: object, answer: Response) -> Exchange:
        request = Request(method="POST", url=url, body=json.dumps(body).encode())
        at = float(next(self.now))
        x = self.taps.request(Exchange(seq=next(self.seqs), request=request, started=at))
        if x.response is None:
            chunks = tuple(Chunk(at=at, data=chunk.data) for chunk in answer.chunks)
            answer = Response(status=200, headers=answer.headers, chunks=chunks, at=at, ended=at)
            whole = Exchange(
                **{n: getattr(x, n) for n in x.__struct_fields__} | {"response": answer}
            )
            x = self.taps.response(whole) if self.taps.holds(x) else whole
        self.taps.done(x)
        self.seen.append(x)
        return x

    def model(self, messages: list[dict[str, object]], *calls: ToolCall) -> Exchange:
        answer = ModelAnswer(message="" if calls else "done", calls=calls, model="m")
        headers, chunks = openai_chat.write_model_answer(answer, stream=False, id="x", created=0)
        body = {"model": "m", "messages": messages}
        url = "http://m/v1/chat/completions"
        return self.exchange(url, body, Response(status=200, headers=headers, chunks=chunks))

    def tool(self, path: str, said: str) -> Exchange:
        chunks = (Chunk(at=0.0, data=said.encode()),)
        return self.exchange(f"http://shop/{path}", {}, Response(status=200, chunks=chunks))

    def run(self, *, local: bool = False) -> "Agent":
        told: list[dict[str, object]] = list(GO)
        for call in (ORDER, REFUND):
            self.model(told, call)
            said = RESULT if local else body(self.tool(call.name, RESULT)).decode()
            function = {"name": call.name, "arguments": call.arguments}
            told += [
                {"role": "assistant", "tool_calls": [{"id": call.id, "function": function}]},
                {"role": "tool", "tool_call_id": call.id, "content": said},
            ]
        self.model(told)
        return self


def body(exchange: Exchange) -> bytes:
    assert exchange.response is not None
    return exchange.response.body


def recorded(*, local: bool = False) -> list[Exchange]:
    return Agent(TapChain([ConversationTap()])).run(local=local).seen


def struck(
    fault: Fault, *, local: bool = False, seed: int = 0, background: frozenset[str] = frozenset()
) -> tuple[Agent, list[Injection], FaultInjector]:
    derived_steps = derive_steps(recorded(local=local))
    injections: list[Injection] = []
    watch = ConversationTap()
    nemesis = FaultInjector(
        [BoundFault(fault=fault, site=select_site(derived_steps, fault, bind_operator(fault)))],
        watch,
        injections.append,
        seeds=RunSeeds(run="r", trace="t", seed=seed),
        background=background,
    )
    agent = Agent(TapChain([watch, nemesis])).run(local=local)
    return agent, injections, nemesis


def fault(name: str, tool: str = "get_order", **rest) -> Fault:
    return Fault(name=name, where={"tool": tool}, **rest)


def test_a_status_is_answered_before_the_tool_sees_the_request() -> None:
    agent, (injection,), _ = struck(fault("http_status", "issue_refund"))

    assert [x.answered_by for x in agent.seen] == ["live", "live", "live", "fault", "live"]
    assert (injection.tool, injection.call_id, injection.seq) == ("issue_refund", "c2", 3)
    assert (injection.place, injection.error_channel) == ("http", "http")
    assert injection.original == RESULT.encode()


def test_a_wrong_digit_is_in_the_answer_and_in_the_record() -> None:
    agent, (injection,), _ = struck(fault("digit"))

    assert agent.seen[1].response is not None
    assert agent.seen[1].response.body == injection.mutated != injection.original
    assert agent.seen[3].response is not None
    assert agent.seen[3].response.body == RESULT.encode()


def test_the_same_seed_strikes_the_same_value_and_another_seed_another() -> None:
    lies = {seed: struck(fault("digit"), seed=seed)[1][0].mutated for seed in range(8)}
    assert lies == {seed: struck(fault("digit"), seed=seed)[1][0].mutated for seed in range(8)}
    assert len(set(lies.values())) > 2


def test_a_local_result_is_rewritten_in_every_later_request_with_the_same_bytes() -> None:
    agent, (injection,), nemesis = struck(fault("digit"), local=True)
    asked = [x for x in agent.seen if b"c1" in x.request.body]

    assert (injection.place, injection.side) == ("model-boundary", "request")
    assert len(asked) == 2
    for x in asked:
        (result, *_) = read_tool_results(openai_chat, x.forwarded.body)
        assert result.text.encode() == injection.mutated
        assert read_tool_results(openai_chat, x.request.body)[0].text == RESULT
    assert nemesis.fired == 1


def asks_twice(text: str, call: Fault) -> tuple[list[list[str]], list[Injection]]:
    """A local tool is called twice, under one id and with one result; what the model is told."""
    injections: list[Injection] = []
    watch = ConversationTap()
    nemesis = FaultInjector(
        [bind_without_recording(call)], watch, injections.append, seeds=RunSeeds(run="r", trace="t")
    )
    agent, told = Agent(TapChain([watch, nemesis])), list(GO)
    function = {"name": ORDER.name, "arguments": ORDER.arguments}
    for _ in range(2):
        agent.model(told, ORDER)
        told += [
            {"role": "assistant", "tool_calls": [{"id": ORDER.id, "function": function}]},
            {"role": "tool", "tool_call_id": ORDER.id, "content": text},
        ]
    agent.model(told)
    bodies = [x.forwarded.body for x in agent.seen]
    return [
        [each.text for each in read_tool_results(openai_chat, body)] for body in bodies
    ], injections


@pytest.mark.parametrize(("persist", "lies"), [("once", 1), ("same_args", 2)])
def test_who_asks_again_under_the_same_id_is_told_the_truth_but_where_it_persists(
    persist: str, lies: int
) -> None:
    at = fault("tool_error", at="model-boundary", persist=persist)
    (_, first, second), injections = asks_twice(RESULT, at)
    (wrong_value,) = first
    assert wrong_value.startswith("Error: ")
    assert second == [wrong_value, wrong_value if lies == 2 else RESULT]
    assert len(injections) == lies


def test_half_a_character_at_the_end_of_a_result_is_no_reason_to_break_down() -> None:
    cut = "total \ud83d"
    (_, (first,), _), (injection,) = asks_twice(cut, fault("tool_error", at="model-boundary"))
    assert first.startswith("Error: ")
    assert injection.original == cut.encode("utf-8", "surrogatepass")


def test_a_status_at_the_model_boundary_is_the_text_a_client_would_show() -> None:
    agent, (injection,), _ = struck(fault("http_status", at="model-boundary", params={"code": 500}))

    (result, *_) = read_tool_results(openai_chat, agent.seen[2].forwarded.body)
    assert result.text.startswith("HTTP 500: {")
    assert injection.rendered
    assert injection.error_channel == "text"


@pytest.mark.parametrize(("persist", "times"), [("once", 1), ("permanent", 2)])
def test_persistence_says_which_later_calls_are_struck(persist, times: int) -> None:
    _, injections, _ = struck(Fault(name="http_status", persist=persist))
    assert len(injections) == times
    assert [i.repeat_of for i in injections[1:]] == [injections[0].id] * (times - 1)


def test_a_sham_is_held_back_like_a_fault_and_changes_no_byte() -> None:
    agent, (injection,), _ = struck(fault("sham"))
    clean = recorded()

    assert [x.response for x in agent.seen] == [x.response for x in clean]
    assert [x.edits for x in agent.seen] == [x.edits for x in clean]
    assert injection.sham
    assert injection.original == injection.mutated


def test_a_sham_that_no_model_answered_is_not_consumed_whoever_else_answers() -> None:
    agent, (injection,), _ = struck(fault("sham"), local=True)
    asked = next(x for x in agent.seen if x.seq == injection.seq)
    assert asked.response is not None
    refused = asked.with_response(replace(asked.response, status=500), None)
    noise = agent.tool("telemetry", "{}")
    seen = [*(x for x in agent.seen if x.seq < injection.seq), refused, noise]
    assert decide_consumption(injection, derive_steps(agent.seen), agent.seen).consumed
    assert decide_consumption(injection, derive_steps(seen), seen).why == "ended_before"


def test_a_value_that_stands_elsewhere_is_drawn_again() -> None:
    first = struck(fault("digit"))[1][0].mutated
    assert first is not None
    from faults.judging.value_tokens import extract_tokens

    taken = extract_tokens(first.decode()) - extract_tokens(RESULT)
    again = struck(fault("digit"), background=taken)[1][0].mutated
    assert again not in (first, RESULT.encode(), None)


def test_no_value_left_is_no_site_and_not_half_a_fault() -> None:
    from faults.judging.value_tokens import to_number_token

    taken = frozenset(to_number_token(f"{n / 10}") for n in range(100_000))
    agent, injections, nemesis = struck(fault("digit"), background=taken)
    assert injections == []
    assert nemesis.fired == 0
    assert "occurs nowhere else" in nemesis.no_site[0]
    assert body(agent.seen[1]) == RESULT.encode()


def site(fault: Fault, *, local: bool = False) -> InjectionSite:
    return select_site(derive_steps(recorded(local=local)), fault, bind_operator(fault))


@pytest.mark.parametrize(
    ("wanted", "local", "says"),
    [
        (fault("digit", "isue_refund"), False, "did you mean issue_refund"),
        (fault("digit", nth=3), False, "has 1 call of tool 'get_order': --nth 3 is too many"),
        (fault("digit", at="http"), True, "made no request of its own; try --at model-boundary"),
        (fault("delay"), True, "delay works at http or mcp only"),
    ],
)
def test_a_site_that_is_not_there_is_named_before_anything_runs(
    wanted: Fault, local: bool, says: str
) -> None:
    with pytest.raises(LookupError, match=says):
        site(wanted, local=local)


def test_the_place_is_where_the_recording_reaches() -> None:
    assert site(fault("digit")).place == "http"
    assert site(fault("digit"), local=True).place == "model-boundary"
    assert site(fault("digit", at="model-boundary")).place == "model-boundary"


@pytest.mark.parametrize(
    ("flag", "name"), [(None, "tool_error"), (False, "tool_error"), (None, "http_status")]
)
def test_an_error_of_a_tool_is_marked_as_one_where_the_dialect_has_a_mark(
    flag: bool | None, name: str
) -> None:
    injections, watch = list[Injection](), ConversationTap()
    nemesis = FaultInjector(
        [bind_without_recording(Fault(name=name))],
        watch,
        injections.append,
        seeds=RunSeeds(run="r", trace="t"),
    )
    agent = Agent(TapChain([watch, nemesis]))
    answer = ModelAnswer(message="", calls=(ORDER,), model="m")
    headers, chunks = anthropic_messages.write_model_answer(answer, stream=False, id="x", created=0)
    asked: list[dict[str, object]] = [{"role": "user", "content": "go"}]
    url, said = "http://m/v1/messages", Response(status=200, headers=headers, chunks=chunks)
    agent.exchange(url, {"model": "m", "max_tokens": 9, "messages": asked}, said)
    use = {"type": "tool_use", "id": "c1", "name": "get_order", "input": {"id": "ord-7314"}}
    result: dict[str, object] = {"type": "tool_result", "tool_use_id": "c1"}
    result |= {} if flag is None else {"is_error": flag}
    asked += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    for _ in range(2):  # an absent content, too, gets the same bytes in every request
        told = agent.exchange(url, {"model": "m", "max_tokens": 9, "messages": asked}, said)
    first, second = [x.forwarded.body for x in agent.seen[1:]]
    assert first == second
    (struck,) = read_tool_results(anthropic_messages, told.forwarded.body)
    assert struck.text.startswith("Error: " if name == "tool_error" else "HTTP 503: ")
    marked = name == "tool_error"
    assert struck.is_error is (True if marked else None)
    assert [i.error_channel for i in injections] == ["flag" if marked else "text"]
    assert injections[0].detect == ("D0" if marked else "D1")
