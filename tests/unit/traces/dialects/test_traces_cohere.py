"""Cohere's chat: what its API reference shows, and what its Python client sends (7.3)."""

import json

import pytest

from tests.support.request_readings import read_tool_results, replace_call_results
from traces.dialects import cohere_chat
from traces.dialects.errors.cohere_errors import make_stream_error
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import apply_body_edits

CALLS = tuple(ToolCall(id=f"get_{n}", name="get", arguments=f'{{"day": "{n}"}}') for n in (1, 2))
USAGE = {
    "billed_units": {"input_tokens": 5.0, "output_tokens": 42},
    "tokens": {"input_tokens": 71.0, "output_tokens": 418},
    "cached_tokens": 64,
}


def events(*values: dict[str, object]) -> bytes:
    return b"".join(
        f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode() for value in values
    )


def test_a_streamed_answer_with_citations_and_thinking_is_put_together() -> None:
    def delta(kind: str, **message: object) -> dict[str, object]:
        return {"type": kind, "index": 0, "delta": {"message": message}}

    answer = cohere_chat.parse_model_answer(
        (),
        events(
            {"id": "x", "type": "message-start", "delta": {"message": {"role": "assistant"}}},
            delta("content-start", content={"type": "thinking", "thinking": "hm"}),
            delta("content-delta", content={"thinking": ", yes"}),
            delta("content-delta", content={"text": "LL"}),
            delta("citation-start", citations={"start": 0, "end": 2, "text": "LL"}),
            delta("content-delta", content={"text": "Ms"}),
            {
                "id": "x",
                "type": "message-end",
                "delta": {"finish_reason": "COMPLETE", "usage": USAGE},
            },
        ),
    )
    assert answer is not None
    assert (answer.message, answer.reasoning, answer.finish) == ("LLMs", "hm, yes", "COMPLETE")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (71, 418)
    assert answer.usage.cached_tokens == 64


@pytest.mark.parametrize("stream", [False, True])
def test_a_plan_and_its_parallel_calls_read_back(stream: bool) -> None:
    answer = ModelAnswer(message="I look up both days.", calls=CALLS, finish="TOOL_CALL")
    headers, chunks = cohere_chat.write_model_answer(answer, stream=stream, id="x", created=0)
    body = b"".join(chunk.data for chunk in chunks)
    read = cohere_chat.parse_model_answer(headers, body)
    assert read is not None
    assert (read.message, read.calls, read.finish) == (answer.message, CALLS, "TOOL_CALL")
    assert b"tool_plan" in body


def test_a_stream_that_ends_with_an_error_has_no_finish() -> None:
    _, chunks = cohere_chat.write_model_answer(
        ModelAnswer(message="a text"), stream=True, id="x", created=0
    )
    body = b"".join(chunk.data for chunk in chunks[:-1]) + make_stream_error()
    answer = cohere_chat.parse_model_answer((), body)
    assert answer is not None
    assert (answer.message, answer.finish) == ("a text", None)
    assert cohere_chat.parse_model_answer((), b'{"message": "invalid api token"}') is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("15 C", "15 C"),
        ([{"type": "text", "text": "15"}, {"type": "text", "text": " C"}], "15 C"),
        ([{"type": "document", "document": {"id": "0", "data": "15 C"}}], "15 C"),
        ([{"type": "document", "document": {"data": {"t": 15}}}], '{"t":15}'),
    ],
)
def test_a_result_in_each_form_is_read_and_replaced(content: object, text: str) -> None:
    told = {"role": "tool", "tool_call_id": "get_1", "content": content}
    body = json.dumps({"model": "command-a", "messages": [told, {**told, "tool_call_id": "z"}]})
    first, second = read_tool_results(cohere_chat, body.encode())
    assert (first.call_id, first.text, second.text) == ("get_1", text, text)
    assert replace_call_results(cohere_chat, body.encode(), "get_1", text) == ()
    edits = replace_call_results(cohere_chat, body.encode(), "get_1", "-3 °C")
    changed = apply_body_edits(body.encode(), edits)
    assert [each.text for each in read_tool_results(cohere_chat, changed)] == ["-3 °C", text]
