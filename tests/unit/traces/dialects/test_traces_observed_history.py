"""smolagents tells its calls and their results as text: they are read by their ids, to the byte."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.support.request_readings import read_messages, read_tool_results, replace_call_results
from traces.dialects import find_dialect, openai_chat, smolagents
from traces.model import Request, apply_body_edits

texts = st.text(st.characters(codec="utf-8"), max_size=80)


def body_of(*calls: str, observed: str) -> bytes:
    listed = [{"id": c, "type": "function", "function": {"name": "bash"}} for c in calls]
    said = f"I will look.\nCalling tools:\n{listed}"
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [{"type": "text", "text": said}]},
        {"role": "user", "content": [{"type": "text", "text": f"Observation:\n{observed}"}]},
    ]
    return json.dumps({"model": "m", "messages": messages, "n": 10**22}).encode()


def request(body: bytes) -> Request:
    return Request(method="POST", url="http://h/v1/chat/completions", body=body)


def test_until_something_is_observed_it_is_any_chat() -> None:
    first = json.dumps({"messages": [{"role": "user", "content": "go"}]}).encode()
    assert find_dialect(request(first)) is openai_chat
    assert find_dialect(request(body_of("c1", observed="x"))) is smolagents


def test_a_result_has_the_id_that_the_model_gave_its_call() -> None:
    (result,) = read_tool_results(smolagents, body_of("c1", observed="a\nb"))
    assert (result.call_id, result.text) == ("c1", "a\nb")
    roles = [message.role for message in read_messages(smolagents, body_of("c1", observed="a"))]
    assert roles == ["user", "assistant", "tool"]


def test_of_calls_made_together_nobodys_result_is_known() -> None:
    assert read_tool_results(smolagents, body_of("c1", "c2", observed="a\nb")) == ()


@given(texts, texts)
def test_a_replaced_result_touches_no_other_byte(was: str, now: str) -> None:
    body = body_of("c1", observed=was)
    assert apply_body_edits(body, replace_call_results(smolagents, body, "c1", was)) == body
    mutated = apply_body_edits(body, replace_call_results(smolagents, body, "c1", now))
    assert read_tool_results(smolagents, mutated)[0].text == now
    assert apply_body_edits(mutated, replace_call_results(smolagents, mutated, "c1", was)) == body
