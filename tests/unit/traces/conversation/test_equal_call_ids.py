"""Every call of an answer is a call, also if ids do not tell them apart, and gets its result."""

import json
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.request_readings import read_tool_results, replace_call_results
from traces.conversation.derived_steps import derive_steps
from traces.dialects import find_dialect, openai_chat
from traces.model import Chunk, Exchange, Request, Response

type Ids = list[str | None]
"""The ids of the calls on the wire; None for a call without one."""
type Texts = list[str]


def to_chat(ids: Ids, texts: Texts, made_up: bool) -> tuple[str, object, object, object]:
    """Return path, first request, answer and second request of OpenAI's chat completions."""
    calls = [
        {"type": "function", "function": {"name": "roll", "arguments": "{}"}}
        | ({} if id is None else {"id": id})
        for id in ids
    ]
    echoed = [call | {"id": f"new-{n}"} for n, call in enumerate(calls)] if made_up else calls
    results = [
        {"role": "tool", "content": text} | ({"tool_call_id": call["id"]} if "id" in call else {})
        for call, text in zip(echoed, texts, strict=True)
    ]
    user = {"role": "user", "content": "roll"}
    said = {"role": "assistant", "content": None, "tool_calls": calls}
    answer = {"choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}]}
    second = [user, said | {"tool_calls": echoed}, *results]
    body = {"model": "m", "messages": [user]}
    return "/v1/chat/completions", body, answer, body | {"messages": second}


def to_anthropic(ids: Ids, texts: Texts, made_up: bool) -> tuple[str, object, object, object]:
    calls = [{"type": "tool_use", "id": id or "", "name": "roll", "input": {}} for id in ids]
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": text}
        for call, text in zip(calls, texts, strict=True)
    ]
    user = {"role": "user", "content": "roll"}
    said = {"role": "assistant", "content": calls}
    answer = {"type": "message", "stop_reason": "tool_use", **said}
    body = {"model": "m", "max_tokens": 9, "messages": [user]}
    second = body | {"messages": [user, said, {"role": "user", "content": results}]}
    return "/v1/messages", body, answer, second


def to_gemini(ids: Ids, texts: Texts, made_up: bool) -> tuple[str, object, object, object]:
    calls = [
        {"functionCall": {"name": "roll", "args": {}} | ({"id": id} if id else {})} for id in ids
    ]
    results = [
        {
            "functionResponse": {"name": "roll", "response": {"value": text}}
            | ({"id": id} if id else {})
        }
        for id, text in zip(ids, texts, strict=True)
    ]
    user = {"role": "user", "parts": [{"text": "roll"}]}
    said = {"role": "model", "parts": calls}
    answer = {"candidates": [{"content": said, "finishReason": "STOP", "index": 0}]}
    second = {"contents": [user, said, {"role": "user", "parts": results}]}
    return "/v1beta/models/m:generateContent", {"contents": [user]}, answer, second


def to_ollama(ids: Ids, texts: Texts, made_up: bool) -> tuple[str, object, object, object]:
    calls = [{"function": {"name": "roll", "arguments": {}}} for _ in ids]
    user = {"role": "user", "content": "roll"}
    said = {"role": "assistant", "content": "", "tool_calls": calls}
    results = [{"role": "tool", "tool_name": "roll", "content": text} for text in texts]
    body = {"model": "m", "messages": [user]}
    answer = {"model": "m", "message": said, "done": True, "done_reason": "stop"}
    return "/api/chat", body, answer, body | {"messages": [user, said, *results]}


type Wire = Callable[[Ids, Texts, bool], tuple[str, object, object, object]]


def exchange(seq: int, path: str, body: object, answer: object) -> Exchange:
    headers = (("content-type", "application/json"),)
    data = json.dumps(answer).encode()
    return Exchange(
        seq=seq,
        started=float(seq),
        request=Request(
            method="POST",
            url=f"http://model.test{path}",
            headers=headers,
            body=json.dumps(body).encode(),
        ),
        response=Response(
            status=200,
            headers=headers,
            chunks=(Chunk(at=seq + 0.1, data=data),),
            at=seq + 0.1,
            ended=seq + 0.1,
        ),
    )


@pytest.mark.parametrize("wire", [to_chat, to_anthropic, to_gemini, to_ollama])
@given(
    ids=st.lists(st.sampled_from(["", "a", "b", None]), min_size=1, max_size=5),
    made_up=st.booleans(),
)
@example(ids=[None, None, None], made_up=False)
@example(ids=["", "", ""], made_up=True)
@example(ids=["a", "a", "b"], made_up=False)
def test_every_call_is_counted_and_has_its_result(wire: Wire, ids: Ids, made_up: bool) -> None:
    made_up = made_up and not any(ids)  # a client makes up ids for calls without
    texts = [f"result {n}" for n in range(len(ids))]
    path, first, answer, second = wire(ids, texts, made_up)
    steps = derive_steps([exchange(0, path, first, answer), exchange(1, path, second, answer)])
    told = steps.tool_uses[: len(ids)]
    # Results of different ids may come in any order; here they come in the order of the calls.
    assert [text in (use.result or "") for use, text in zip(told, texts, strict=True)] == [
        True
    ] * len(ids)
    assert len({use.call_id for use in steps.tool_uses}) == 2 * len(ids)
    assert [step.calls for step in steps.steps if step.calls][0] == tuple(u.call_id for u in told)


@pytest.mark.parametrize("wire", [to_chat, to_anthropic, to_gemini, to_ollama])
def test_a_fault_reaches_each_of_the_equal_calls(wire: Wire) -> None:
    path, first, answer, second = wire([None] * 3, ["1", "2", "3"], False)
    request = exchange(1, path, second, answer).request
    lens = find_dialect(request)
    assert lens is not None
    results = read_tool_results(lens, request.body)
    for place, result in enumerate(results):
        edits = replace_call_results(lens, request.body, result.call_id, '{"value": "changed"}')
        assert edits
        assert all(result.start <= edit.start <= edit.stop <= result.stop for edit in edits), place


def test_streamed_calls_of_one_index_are_told_apart() -> None:
    def event(delta: object) -> bytes:
        return (
            b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"
        )

    def call(arguments: str, name: str | None = "roll", id: str | None = None) -> object:
        piece = {"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}
        return {"tool_calls": [piece]}

    def calls(*deltas: object) -> list[tuple[str, str]]:
        answer = openai_chat.parse_model_answer((), b"".join(map(event, deltas)))
        assert answer is not None
        return [(each.id, each.arguments) for each in answer.calls]

    assert calls(call("{}"), call("{}"), call("{}")) == [("", "{}")] * 3
    assert calls(call("{}", id="a"), call("{}", id="b")) == [("a", "{}"), ("b", "{}")]
    assert calls(call("", id="a"), call('{"n"', None), call(":1}", None)) == [("a", '{"n":1}')]
    assert calls(call("", id="a"), call("{}", id="a"), call("", id="a")) == [("a", "{}")]
