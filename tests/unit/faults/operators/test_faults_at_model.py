"""A model's own answer is struck, in each dialect, whole and as a stream.

The run is played by hand: a model asks for an order twice, is told of it, and says that it is done.
"""

import json
from collections.abc import Callable
from copy import replace
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from itertools import count

import orjson
import pytest

from faults.errors import NoInjectionSite
from faults.injector.inject_websocket import to_message_exchange, to_stream_exchange
from faults.injector.injector import FaultInjector, RunSeeds
from faults.judging.consumption import decide_consumption
from faults.seeded_random import make_rng
from faults.specs.spec_check import bind_operator
from faults.targeting.bound_fault import BoundFault, bind_without_recording
from faults.targeting.site import select_site
from traces.conversation.derived_steps import DerivedSteps, derive_steps
from traces.conversation.tracker import ConversationTap
from traces.dialects import (
    anthropic_messages,
    bedrock_anthropic,
    bedrock_converse,
    cohere_chat,
    gemini,
    ollama_chat,
    openai_chat,
    openai_responses,
)
from traces.dialects.types import DialectLens, ModelAnswer, ToolCall
from traces.model import Chunk, Exchange, Fault, Injection, Request, Response, Scalar, find_header
from traces.taps import TapChain

ARGUMENTS = '{"order_id": "ord-7314", "fields": ["total", "lines"]}'
CALLS = (
    ToolCall(id="c1", name="list_orders", arguments='{"customer_id": "cus-0093"}'),
    ToolCall(id="c2", name="get_order", arguments=ARGUMENTS),
    ToolCall(id="c3", name="add_note", arguments='{"text": "ok"}'),
)
RESULT = '{"total": 1250.4}'
TOOLS = [{"type": "function", "name": "get_order"}]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a client speaks one."""

    lens: DialectLens
    path: str
    body: Callable[[tuple[ToolCall, ...]], dict[str, object]]


def chat(done: tuple[ToolCall, ...]) -> dict[str, object]:
    told: list[object] = [{"role": "user", "content": "refund ord-7314"}]
    for call in done:
        function = {"name": call.name, "arguments": call.arguments}
        asked = {"id": call.id, "type": "function", "function": function}
        told.append({"role": "assistant", "tool_calls": [asked]})
        told.append({"role": "tool", "tool_call_id": call.id, "content": RESULT})
    return {"messages": told}


def messages(done: tuple[ToolCall, ...]) -> dict[str, object]:
    told: list[object] = [{"role": "user", "content": "refund ord-7314"}]
    for call in done:
        use = {"type": "tool_use", "id": call.id, "name": call.name}
        told.append({"role": "assistant", "content": [use | {"input": json.loads(call.arguments)}]})
        result = {"type": "tool_result", "tool_use_id": call.id, "content": RESULT}
        told.append({"role": "user", "content": [result]})
    return {"messages": told, "max_tokens": 99}


def responses(done: tuple[ToolCall, ...]) -> dict[str, object]:
    told: list[object] = [{"role": "user", "content": "refund ord-7314"}]
    for call in done:
        asked = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        told.append({"type": "function_call", **asked})
        told.append({"type": "function_call_output", "call_id": call.id, "output": RESULT})
    return {"input": told}


def contents(done: tuple[ToolCall, ...]) -> dict[str, object]:
    told: list[object] = [{"role": "user", "parts": [{"text": "refund ord-7314"}]}]
    for call in done:
        named = {"id": call.id, "name": call.name}
        asked = {"functionCall": named | {"args": json.loads(call.arguments)}}
        told.append({"role": "model", "parts": [asked]})
        result = {"functionResponse": named | {"response": {"output": RESULT}}}
        told.append({"role": "user", "parts": [result]})
    return {"contents": told}


def ollama(done: tuple[ToolCall, ...]) -> dict[str, object]:
    told: list[object] = [{"role": "user", "content": "refund ord-7314"}]
    for call in done:
        function = {"name": call.name, "arguments": json.loads(call.arguments)}
        told.append({"role": "assistant", "tool_calls": [{"function": function}]})
        told.append({"role": "tool", "tool_name": call.name, "content": RESULT})
    return {"messages": told}


def converse(done: tuple[ToolCall, ...]) -> dict[str, object]:
    told: list[object] = [{"role": "user", "content": [{"text": "refund ord-7314"}]}]
    for call in done:
        use = {"toolUseId": call.id, "name": call.name, "input": json.loads(call.arguments)}
        told.append({"role": "assistant", "content": [{"toolUse": use}]})
        result = {"toolUseId": call.id, "content": [{"text": RESULT}]}
        told.append({"role": "user", "content": [{"toolResult": result}]})
    return {"messages": told}


DIALECTS = {
    "chat": Dialect(openai_chat, "/v1/chat/completions", chat),
    "messages": Dialect(anthropic_messages, "/v1/messages", messages),
    "responses": Dialect(openai_responses, "/v1/responses", responses),
    "gemini": Dialect(gemini, "/v1beta/models/m:generateContent", contents),
    "ollama": Dialect(ollama_chat, "/api/chat", ollama),
    "cohere": Dialect(cohere_chat, "/v2/chat", chat),
    "converse": Dialect(bedrock_converse, "/model/m/converse", converse),
    "invoke": Dialect(
        bedrock_anthropic,
        "/model/m/invoke",
        lambda done: {"anthropic_version": "bedrock-2023-05-31", **messages(done)},
    ),
}
BEDROCK = ("converse", "invoke")
OBJECTS = ("gemini", "ollama")
"""The dialects in which a call's arguments are an object, also in a stream."""
NO_REFUSAL = ("ollama", "cohere")
"""The dialects in which a refusal is a text like any other."""


class Agent:
    """Drives taps with the traffic of one run; it tries a failed request once more."""

    def __init__(self, taps: TapChain, dialect: Dialect, *, stream: bool) -> None:
        self.taps, self.dialect, self.stream = taps, dialect, stream
        self.seqs, self.seen = count(), list[Exchange]()
        self.upstream = 0
        for turn in range(len(CALLS) + 1):
            if self.ask(turn).error is not None or self.status >= 400:
                self.ask(turn)

    @property
    def path(self) -> str:
        """Gemini's and Bedrock's paths say whether the answer is to be a stream."""
        path = self.dialect.path
        if not self.stream:
            return path
        path = path.replace(":gen", ":streamGen").replace("/converse", "/converse-stream")
        return path.replace("/invoke", "/invoke-with-response-stream")

    @property
    def status(self) -> int:
        answer = self.seen[-1].response
        return answer.status if answer else 0

    def ask(self, turn: int, *, tools: bool = True) -> Exchange:
        said = {"model": "m", "stream": self.stream, **self.dialect.body(CALLS[:turn])}
        said |= {"tools": TOOLS} if tools else {}
        request = Request(method="POST", url=f"http://m{self.path}", body=json.dumps(said).encode())
        seq = next(self.seqs)
        x = self.taps.request(Exchange(seq=seq, request=request, started=float(seq)))
        if x.response is None and x.error is None:
            self.upstream += 1
            whole = x.with_response(self.answer(turn, float(seq)), None)
            x = self.taps.response(whole) if self.taps.holds(x) else whole
        self.taps.done(x)
        self.seen.append(x)
        return x

    def answer(self, turn: int, at: float) -> Response:
        calls = CALLS[turn : turn + 1]
        said = ModelAnswer(message="" if calls else "It is done, and paid.", calls=calls, model="m")
        headers, chunks = self.dialect.lens.write_model_answer(
            said, stream=self.stream, id="x_1", created=0
        )
        timed = tuple(replace(c, at=at + n / 100) for n, c in enumerate(chunks))
        return Response(status=200, headers=headers, chunks=timed, at=at, ended=timed[-1].at)


@dataclass(frozen=True, slots=True)
class Struck:
    agent: Agent
    injections: tuple[Injection, ...]
    nemesis: FaultInjector
    clean: Agent

    @property
    def told(self) -> DerivedSteps:
        return derive_steps(self.agent.seen)

    @property
    def injection(self) -> Injection:
        (first, *_) = self.injections
        return first

    @property
    def got(self) -> Exchange:
        return next(x for x in self.agent.seen if x.seq == self.injection.seq)

    @property
    def answer(self) -> ModelAnswer:
        response = self.got.response
        assert response is not None
        read = self.agent.dialect.lens.parse_model_answer(response.headers, response.body)
        assert read is not None
        return read


def strike(fault: Fault, name: str = "chat", *, stream: bool = False, began: float = 0.0) -> Struck:
    dialect = DIALECTS[name]
    clean = Agent(TapChain([ConversationTap()]), dialect, stream=stream)
    site = select_site(derive_steps(clean.seen), fault, bind_operator(fault))
    watch, injections = ConversationTap(), list[Injection]()
    nemesis = FaultInjector(
        [BoundFault(fault=fault, site=site)],
        watch,
        injections.append,
        seeds=RunSeeds(run="r", trace="t", began=began),
    )
    agent = Agent(TapChain([watch, nemesis]), dialect, stream=stream)
    return Struck(agent, tuple(injections), nemesis, clean)


def at_model(name: str, nth: int = 2, **rest) -> Fault:
    return Fault(name=name, at="model", nth=nth, **rest)


every_form = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
every_dialect = pytest.mark.parametrize("name", DIALECTS)


@every_dialect
@every_form
def test_a_sham_at_the_model_changes_no_byte_and_no_time(name: str, stream: bool) -> None:
    injected = strike(at_model("sham"), name, stream=stream)

    assert [x.response for x in injected.agent.seen] == [x.response for x in injected.clean.seen]
    assert [x.edits for x in injected.agent.seen] == [x.edits for x in injected.clean.seen]
    assert [x.answered_by for x in injected.agent.seen] == ["live"] * 4
    assert (injected.injection.place, injected.injection.sham) == ("model", True)
    assert (
        decide_consumption(injected.injection, injected.told, injected.agent.seen).consumed is True
    )


@every_dialect
def test_a_used_up_limit_is_stated_as_its_provider_does(name: str) -> None:
    params: dict[str, Scalar] = {"code": 429, "retry_after": 75, "retry_as": "date"}
    injected = strike(at_model("http_status", params=params), name, began=4_102_444_800.0)
    answer, at = injected.got.response, 4_102_444_800.0 + injected.got.started + 75
    assert answer is not None
    read = parsedate_to_datetime(find_header(answer.headers, "retry-after") or "")
    assert read.timestamp() == int(at), "a date of the run's own clock"
    headers = {k: v for k, v in answer.headers if "ratelimit" in k}
    if name in ("chat", "responses"):
        assert headers["x-ratelimit-reset-requests"] == "1m15s"
        assert headers["x-ratelimit-remaining-tokens"] == "0"
    elif name == "messages":
        reset = datetime.fromisoformat(headers["anthropic-ratelimit-tokens-reset"])
        assert reset.timestamp() == int(at)
    else:
        assert headers == {}
    details = json.loads(answer.body)["error"]["details"] if name == "gemini" else []
    assert [each["retryDelay"] for each in details] == ["75s"] * (name == "gemini")


@every_dialect
@pytest.mark.parametrize(("code", "kind"), [(429, "rate_limit"), (529, "overloaded")])
def test_a_status_is_the_providers_own_and_the_model_is_not_asked(
    name: str, code: int, kind: str
) -> None:
    injected = strike(at_model("http_status", params={"code": code, "retry_after": 7}), name)

    answer = injected.got.response
    assert answer is not None
    assert (answer.status, find_header(answer.headers, "retry-after")) == (code, "7")
    body = json.loads(answer.body)
    error = body.get("error")
    if name in BEDROCK:
        assert body["__type"] == {429: "ThrottlingException", 529: "InternalServerException"}[code]
    elif name == "messages":
        assert error["type"] == f"{kind}_error"
    elif name == "gemini":
        assert error["code"] == code
    elif name == "ollama":
        assert isinstance(error, str)
    elif name == "cohere":
        assert body.keys() == {"message"}
    else:
        assert error.keys() == {"message", "type", "param", "code"}
    assert injected.agent.upstream == 4, "the struck attempt went nowhere, its retry did"
    assert injected.injection.error_channel == "http"
    assert injected.injection.detect == "D0"
    assert injected.injection.tool == "get_order"


def test_what_the_client_tried_again_is_absorbed_with_its_attempts_for_evidence() -> None:
    injected = strike(at_model("http_status", params={"code": 429}))

    found = decide_consumption(injected.injection, injected.told, injected.agent.seen)
    assert (found.consumed, found.why) == (False, "absorbed")
    assert found.attempts == "attempts 1: 429, 2: 200"


@pytest.mark.parametrize(
    ("error", "pieces", "consumed", "why"),
    [
        ("cancelled: eof by the agent", None, False, "absorbed"),
        ("cancelled: eof by the agent", 2, None, "undecidable"),
        ("reset", None, None, "undecidable"),
    ],
)
def test_a_client_may_leave_once_it_has_read_the_finish_of_an_answer(
    error: str, pieces: int | None, consumed: bool | None, why: str
) -> None:
    injected = strike(at_model("http_status", params={"code": 500}), "responses", stream=True)
    first, again, *later = [x for x in injected.agent.seen if x.seq >= injected.injection.seq]
    assert again.response is not None
    given = replace(again.response, chunks=again.response.chunks[:pieces], ended=None)
    seen = [x for x in injected.agent.seen if x.seq < first.seq]
    seen += [first, replace(again, response=given, error=error), *later]
    found = decide_consumption(injected.injection, derive_steps(seen), seen)
    assert (found.consumed, found.why) == (consumed, why)


@pytest.mark.parametrize(
    ("persist", "times", "consumed"),
    [("once", 1, False), ("burst:n=1", 2, True), ("same_args", 2, True), ("burst:n=2", 4, True)],
)
def test_persistence_says_whether_a_retry_is_struck_too(
    persist: str, times: int, consumed: bool
) -> None:
    injected = strike(at_model("http_status", persist=persist))

    assert len(injected.injections) == times
    found = decide_consumption(injected.injection, injected.told, injected.agent.seen)
    assert found.consumed is consumed


@every_dialect
def test_a_stream_breaks_off_with_the_providers_error_event(name: str) -> None:
    after = {"gemini": 0, "ollama": 1}.get(name, 3)  # there a call is one event
    fault = at_model("cut", params={"how": "sse_error", "after_events": after})
    injected = strike(fault, name, stream=True)

    clean, got = injected.clean.seen[1].response, injected.got.response
    assert clean is not None
    assert got is not None
    assert got.chunks[:after] == clean.chunks[:after], "what passes keeps its bytes and times"
    said = {
        "chat": "server_error",
        "messages": "overloaded_error",
        "responses": "server_error",
        "gemini": "UNAVAILABLE",
        "ollama": "llama runner",
        "cohere": "internal server error",
        "converse": "modelStreamErrorException",
        "invoke": "modelStreamErrorException",
    }
    assert len(got.chunks) == after + 1
    assert said[name].encode() in got.chunks[after].data
    assert name == "gemini" or injected.answer.finish is None
    assert injected.injection.detect == "D0"


@every_dialect
def test_a_stream_ends_as_it_should_without_its_finish(name: str) -> None:
    after = {"gemini": 0, "ollama": 1}.get(name, 3)
    fault = at_model("cut", params={"how": "end", "after_events": after})
    injected = strike(fault, name, stream=True)

    clean, got = injected.clean.seen[1].response, injected.got.response
    assert clean is not None
    assert got is not None
    assert injected.got.error is None
    assert got.chunks == clean.chunks[:after]
    assert got.ended is not None, "no client sees a connection break"
    assert name == "gemini" or injected.answer.finish is None


def test_an_error_event_never_stands_in_the_middle_of_another() -> None:
    by_events = strike(at_model("cut", params={"how": "sse_error", "after_events": 2}), stream=True)
    assert by_events.got.response is not None
    two = sum(len(chunk.data) for chunk in by_events.got.response.chunks[:2])
    params: dict[str, Scalar] = {"how": "sse_error", "after_bytes": two + 9}
    by_bytes = strike(at_model("cut", params=params), stream=True)
    assert by_bytes.got.response == by_events.got.response


def test_a_hang_is_what_the_client_got_however_many_signs_of_life_it_waited_for() -> None:
    persists = at_model("hang", params={"progress": True, "cap_ms": 9000}, persist="same_args")
    injected = strike(persists)
    (*_, last) = [x for x in injected.agent.seen if x.error is not None]
    assert last.response is not None
    gave_up = replace(last, response=replace(last.response, chunks=last.response.chunks[:2]))
    seen = [x for x in injected.agent.seen if x.seq < last.seq]
    seen.append(replace(gave_up, error="cancelled"))
    found = decide_consumption(injected.injections[-1], derive_steps(seen), seen)
    assert (found.consumed, found.seq) == (True, last.seq)


@every_dialect
@every_form
def test_a_connection_breaks_in_the_middle_of_an_answer(name: str, stream: bool) -> None:
    injected = strike(at_model("cut", params={"how": "reset"}), name, stream=stream)

    whole, got = injected.clean.seen[1].response, injected.got.response
    assert whole is not None
    assert got is not None
    assert whole.body.startswith(got.body)
    assert len(got.body) == len(whole.body) // 2
    assert injected.got.error == "reset"
    found = decide_consumption(injected.injection, injected.told, injected.agent.seen)
    assert (found.why, found.attempts) == ("absorbed", "attempts 1: 200 cut, 2: 200")


@every_dialect
@every_form
def test_the_arguments_of_a_call_end_too_soon_in_an_answer_that_is_well_formed(
    name: str, stream: bool
) -> None:
    injected = strike(at_model("truncate", params={"keep": 0.5}), name, stream=stream)

    (call,) = injected.answer.calls
    (was,) = read(injected.clean.seen[1]).calls
    if name in OBJECTS or (name in ("messages", *BEDROCK) and not stream):
        assert json.loads(call.arguments) == {"order_id": "ord-7314"}
    else:
        assert call.arguments == was.arguments[: len(was.arguments) // 2]
    assert call.name == "get_order"
    assert call.id == "c2" or name == "ollama"  # ids are derived there
    assert injected.answer.finish == read(injected.clean.seen[1]).finish
    assert injected.injection.detect == "D1"
    for_each_event_json(injected.got, stream=stream)


@every_dialect
@every_form
def test_an_empty_answer_has_neither_text_nor_calls(name: str, stream: bool) -> None:
    injected = strike(at_model("empty"), name, stream=stream)

    assert (injected.answer.message, injected.answer.calls) == ("", ())
    assert injected.answer.finish in ("stop", "end_turn", "completed", "STOP", "COMPLETE")
    assert injected.injection.error_channel == "none"
    assert injected.injection.detect == "D1"
    for_each_event_json(injected.got, stream=stream)


@every_dialect
@every_form
def test_a_refusal_is_said_the_dialects_way_and_the_model_is_not_asked(
    name: str, stream: bool
) -> None:
    injected = strike(at_model("tool_error", params={"how": "refusal"}), name, stream=stream)

    assert injected.answer.refused or name in NO_REFUSAL
    assert injected.answer.calls == ()
    assert injected.answer.message.startswith("I'm sorry")
    assert injected.agent.upstream == 3
    way = {
        "chat": b'"refusal":',
        "messages": b'"stop_reason":"refusal"',
        "responses": b"refusal",
        "gemini": b'"finishReason":"SAFETY"',
        "converse": b'"stopReason":"content_filtered"',
    }
    response = injected.got.response
    assert response is not None
    assert way.get(name, b"") in response.body
    assert injected.injection.error_channel == "text"


def test_a_late_answer_is_the_same_answer() -> None:
    injected = strike(at_model("delay", params={"ms": 250}), stream=True)

    clean, got = injected.clean.seen[1].response, injected.got.response
    assert clean is not None
    assert got is not None
    assert [chunk.data for chunk in got.chunks] == [chunk.data for chunk in clean.chunks]
    late = {round(b.at - a.at, 6) for a, b in zip(clean.chunks, got.chunks, strict=True)}
    assert late == {0.25}
    assert injected.injection.detect is None
    assert (
        decide_consumption(injected.injection, injected.told, injected.agent.seen).consumed is True
    )


def test_a_turn_is_chosen_by_the_tool_that_its_answer_calls() -> None:
    fault = Fault(name="http_status", at="model", where={"tool": "add_*"})
    assert strike(fault).injection.seq == 2


def test_requests_on_the_side_that_offer_no_tools_are_no_sites() -> None:
    watch, injections = ConversationTap(), list[Injection]()
    nemesis = FaultInjector(
        [bind_without_recording(at_model("http_status", nth=1))],
        watch,
        injections.append,
        seeds=RunSeeds(run="r", trace="t"),
    )
    agent = Agent.__new__(Agent)
    agent.taps, agent.dialect, agent.stream = TapChain([watch, nemesis]), DIALECTS["chat"], False
    agent.seqs, agent.seen, agent.upstream = count(), [], 0
    title: dict[str, object] = {"role": "system", "content": "Give this conversation a title."}
    agent.dialect = replace(
        agent.dialect, body=lambda done: {"messages": [title, {"role": "user", "content": "hi"}]}
    )
    agent.ask(0, tools=False)
    assert injections == []
    agent.dialect = DIALECTS["chat"]
    agent.ask(0)
    assert [injection.seq for injection in injections] == [1]


def test_a_turn_is_drawn_for_alike_in_whatever_order_conversations_begin() -> None:
    """A request on the side comes first in this run, and so the turn's lane is the second."""
    fault, usual = at_model("http_status"), strike(at_model("http_status"))
    site, told = (
        select_site(derive_steps(usual.clean.seen), fault, bind_operator(fault)),
        list[Injection](),
    )
    watch = ConversationTap()
    nemesis = FaultInjector(
        [BoundFault(fault=fault, site=site)], watch, told.append, seeds=RunSeeds(run="r", trace="t")
    )
    taps = TapChain([watch, nemesis])
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "ping"}]}).encode()
    aside = Request(method="POST", url="http://m/v1/chat/completions", body=body)
    taps.done(taps.request(Exchange(seq=99, request=aside)))
    Agent(taps, DIALECTS["chat"], stream=False)
    assert [each.address for each in told] == [usual.injection.address]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (at_model("digit"), "digit cannot be used at model, only at .*http_status.* can"),
        (at_model("drop_rows"), "only at .*; truncate, empty can"),
        (at_model("tool_error"), "tool_error:how=refusal"),
        (at_model("empty", params={"how": "null"}), "takes no parameters"),
        (at_model("cut", where={"side": "write"}), "at=model knows tool alone"),
        (
            Fault(name="cut", at="model", when={"first_write": True}),
            "first_write asks what a call says",
        ),
        (
            at_model("cut", where={"tool": "get_order"}, persist="permanent"),
            "not known before they are answered",
        ),
    ],
)
def test_what_makes_no_sense_at_the_model_is_said_at_once(fault: Fault, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        bind_operator(fault)


def test_a_tools_turn_is_not_known_in_a_run_without_a_recording() -> None:
    with pytest.raises(ValueError, match="at=model with tool needs a recording"):
        bind_without_recording(Fault(name="cut", at="model", where={"tool": "get_order"}))


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (at_model("cut", nth=9), "has 4 model's turns: --nth 9 is too many"),
        (at_model("cut", nth=4), "took no step after turn 4"),
        (Fault(name="cut", at="model", where={"tool": "get_oder"}), "did you mean get_order"),
        (Fault(name="cut", at="model", when={"step_range": "90-99"}), "none for step_range=90-99"),
    ],
)
def test_a_turn_that_is_not_there_is_named_before_anything_runs(fault: Fault, says: str) -> None:
    with pytest.raises(LookupError, match=says):
        strike(fault)


def turn_over_websocket() -> Exchange:
    """What Codex is told in a turn that calls a tool."""
    said = ModelAnswer(calls=CALLS[1:2], model="m")
    messages = openai_responses.write_websocket_turn(said, id="resp_1", created=0)
    chunks = tuple(replace(chunk, at=n / 10) for n, chunk in enumerate(messages))
    body = {"type": "response.create", "model": "m", "tools": TOOLS, **responses(CALLS[:1])}
    url = "wss://m/v1/responses"
    return Exchange(
        seq=1,
        transport="websocket",
        request=Request(method="TEXT", url=url, body=json.dumps(body).encode()),
        response=Response(status=101, chunks=chunks, ended=chunks[-1].at),
    )


def over_websocket(name: str, **params: Scalar) -> Exchange:
    turn = turn_over_websocket()
    operator = bind_operator(Fault(name=name, params=params, at="model"))
    if not operator.forwards:
        turn = replace(turn, response=None)
    return to_message_exchange(turn, operator(to_stream_exchange(turn), make_rng("w"), params))


def test_a_turn_over_a_websocket_is_struck_in_its_messages() -> None:
    clean = turn_over_websocket()
    assert clean.response is not None
    assert over_websocket("sham") == clean

    (said,) = chunks_of(over_websocket("http_status", code=429))
    error = json.loads(said.data)
    assert (error["type"], error["status"]) == ("error", 429)
    assert error["error"]["code"] == "rate_limit_exceeded"

    broken = over_websocket("cut", how="sse_error", after_events=3)
    *kept, last = chunks_of(broken)
    assert tuple(kept) == clean.response.chunks[:3]
    assert json.loads(last.data)["code"] == "server_error"

    reset = over_websocket("cut", how="reset")
    assert reset.error == "reset"
    assert chunks_of(reset) == clean.response.chunks[: len(chunks_of(reset))]
    assert 0 < len(chunks_of(reset)) < len(clean.response.chunks)

    (call,) = read(over_websocket("truncate", keep=0.25)).calls
    assert call.arguments == ARGUMENTS[: len(ARGUMENTS) // 4]
    empty = read(over_websocket("empty"))
    assert (empty.calls, empty.finish) == ((), "completed")
    assert read(over_websocket("tool_error", how="refusal")).refused
    with pytest.raises(NoInjectionSite, match="a WebSocket carries events"):
        over_websocket("error_in_ok")


def chunks_of(exchange: Exchange) -> tuple[Chunk, ...]:
    assert exchange.response is not None
    return exchange.response.chunks


def read(exchange: Exchange) -> ModelAnswer:
    assert exchange.response is not None
    for dialect in DIALECTS.values():
        if dialect.lens.can_read_request(exchange.request):
            found = dialect.lens.parse_model_answer(
                exchange.response.headers, exchange.response.body
            )
            assert found is not None
            return found
    raise AssertionError("no dialect")


def for_each_event_json(exchange: Exchange, *, stream: bool) -> None:
    """What is sent still parses, and its length is what its head says."""
    answer = exchange.response
    assert answer is not None
    length = find_header(answer.headers, "content-length")
    assert length is None or int(length) == len(answer.body)
    if not stream:
        orjson.loads(answer.body)
        return
    lines = [line[6:] for line in answer.body.split(b"\n") if line.startswith(b"data: ")]
    for line in lines:
        assert line == b"[DONE]" or orjson.loads(line)
    assert all(isinstance(chunk, Chunk) and chunk.data for chunk in answer.chunks)
