"""Agents that write `Action:` in the text: their histories are calls and results."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.request_readings import read_tool_results
from traces.conversation.derived_steps import derive_steps
from traces.dialects import find_dialect, openai_chat, react_text
from traces.dialects.types import ModelAnswer
from traces.model import Chunk, Exchange, Request, Response, apply_body_edits

type Message = dict[str, object]

PROMPT: Message = {
    "role": "system",
    "content": "Use this form:\nThought: ...\nAction: tool[input]\nObservation: its result",
}
texts = st.text(st.characters(codec="utf-8"), max_size=60)


def make_request(messages: Sequence[Message], **more: object) -> Request:
    body = json.dumps({"model": "m", "messages": list(messages), **more}).encode()
    return Request(method="POST", url="http://h/v1/chat/completions", body=body)


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("Thought: look\nAction: get_order[ord-7314]", "get_order", {"input": "ord-7314"}),
        ('Action: get_order({"id": "x"})', "get_order", {"id": "x"}),
        ('Action: get_order(id="ord-7314", full=True)', "get_order",
         {"id": "ord-7314", "full": True}),
        ('Action: get_order\nAction Input: {"id": "ord-7314"}', "get_order", {"id": "ord-7314"}),
        ("Action: search\nAction Input: blue shoes", "search", {"input": "blue shoes"}),
        ('Action: {"name": "pay", "arguments": {"amount": 3.5}}', "pay", {"amount": 3.5}),
        ("**Action:** lookup[Ann Lee]", "lookup", {"input": "Ann Lee"}),
        ('Action: get_order[{"id": "a"}]\nObservation: made up', "get_order", {"id": "a"}),
    ],
)  # fmt: skip
def test_an_action_is_a_call(text: str, name: str, arguments: dict[str, object]) -> None:
    call = react_text.parse_action(text)
    assert call is not None
    found = json.loads(call.arguments)
    assert (call.name, found) == (name, arguments)


@pytest.mark.parametrize(
    "text",
    [
        "DONE: refunded.",
        "Action: Finish[1250.4]",
        "Final Answer: 1250.4",
        "Action: a[1]\nAction: b[2]",
        "The next Action: is unclear",
        "Action: wait and see what happens",
    ],
)
def test_what_calls_nothing_is_no_call(text: str) -> None:
    assert react_text.parse_action(text) is None


def test_a_chat_with_tools_or_without_the_form_is_another_dialect() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert find_dialect(make_request([PROMPT])) is react_text
    assert find_dialect(make_request([PROMPT], tools=tools)) is openai_chat
    assert find_dialect(make_request([PROMPT], tools=[])) is react_text
    assert find_dialect(make_request([{"role": "user", "content": "Action: now"}])) is openai_chat


@given(texts, texts)
def test_only_a_result_is_replaced_and_its_prefix_stays(observed: str, text: str) -> None:
    call: Message = {"role": "assistant", "content": "Action: get[a]"}
    result: Message = {"role": "user", "content": f"Observation: {observed}"}
    request = make_request([PROMPT, call, result])
    [found] = read_tool_results(react_text, request.body)
    assert found.text == observed.lstrip()
    assert react_text.replace_result(request.body, found, found.text) == ()
    edits = react_text.replace_result(request.body, found, text)
    changed = json.loads(apply_body_edits(request.body, edits))["messages"]
    space = f"Observation: {observed}"[: len(f"Observation: {observed}") - len(found.text)]
    assert changed[:2] == [PROMPT, call]
    assert changed[2]["content"] == space + text


def test_calls_over_http_are_joined_to_the_actions() -> None:
    """The text asks, plain HTTP answers, and the observation repeats it."""
    messages: list[Message] = [PROMPT, {"role": "user", "content": "refund ord-7314"}]
    exchanges: list[Exchange] = []

    def ask_model(answer: str) -> None:
        _, (chunk,) = openai_chat.write_model_answer(
            ModelAnswer(message=answer, model="m", finish="stop"), stream=False, id="x", created=0
        )
        _add(exchanges, make_request(messages), chunk.data)
        messages.append({"role": "assistant", "content": answer})

    ask_model('Thought: read it\nAction: get_order\nAction Input: {"id": "ord-7314"}')
    order = '{"id": "ord-7314", "total": 1250.4}'
    request = Request(method="POST", url="http://shop/tools/get_order", body=b'{"id": "ord-7314"}')
    _add(exchanges, request, order.encode())
    messages.append({"role": "user", "content": f"Observation: {order}"})
    ask_model("Final Answer: refunded 1250.4")
    steps = derive_steps(tuple(exchanges))
    [use] = steps.tool_uses
    assert (use.tool, use.result, json.loads(use.arguments)) == (
        "get_order", order, {"id": "ord-7314"},
    )  # fmt: skip
    assert use.seqs == (1,)


def _add(exchanges: list[Exchange], request: Request, data: bytes) -> None:
    seq = len(exchanges)
    response = Response(
        status=200, headers=(("content-type", "application/json"),),
        chunks=(Chunk(at=seq + 0.5, data=data),), at=seq + 0.5, ended=seq + 0.5,
    )  # fmt: skip
    exchanges.append(Exchange(seq=seq, request=request, response=response, started=float(seq)))
