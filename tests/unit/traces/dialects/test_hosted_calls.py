"""Tools that a provider runs, parts that are no text, and calls that are cut off with an answer."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.request_readings import read_messages, read_tool_results
from tests.unit.traces.dialects.test_traces_dialects import each_lens
from traces.bodies.aws_event_stream import make_event
from traces.dialects import (
    LENSES,
    anthropic_messages,
    bedrock_converse,
    gemini,
    ollama_chat,
    openai_chat,
    openai_responses,
)
from traces.dialects.types import DialectLens, HostedCall, ModelAnswer, ToolCall


def parse(lens: DialectLens, body: object) -> ModelAnswer:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = lens.parse_model_answer((), text)
    assert answer is not None
    return answer


def as_events(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in events)


SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "rain"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "s1",
    "content": [{"type": "web_search_result", "url": "http://a", "title": "A"}],
}
REMOTE = {"type": "mcp_tool_use", "id": "m1", "name": "ask", "server_name": "wiki", "input": {}}
REFUSED = {
    "type": "mcp_tool_result",
    "tool_use_id": "m1",
    "is_error": True,
    "content": [{"type": "text", "text": "no such page"}],
}
UNAVAILABLE = {
    "type": "web_search_tool_result",
    "tool_use_id": "s1",
    "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"},
}


def test_anthropic_server_tools_are_hosted_and_no_calls_of_the_agent() -> None:
    own = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
    content = [SEARCH, FOUND, REMOTE, REFUSED, {"type": "text", "text": "so"}, own]
    answer = parse(anthropic_messages, {"content": content, "stop_reason": "tool_use"})
    assert [call.name for call in answer.calls] == ["read"]
    assert answer.hosted == (
        HostedCall(
            tool="web_search",
            arguments='{"query":"rain"}',
            result=json.dumps(FOUND["content"], separators=(",", ":")),
            is_error=False,
        ),
        HostedCall(tool="wiki.ask", arguments="{}", result="no such page", is_error=True),
    )


def test_an_error_of_a_hosted_search_is_one() -> None:
    answer = parse(anthropic_messages, {"content": [SEARCH, UNAVAILABLE]})
    assert [call.is_error for call in answer.hosted] == [True]


def test_a_hosted_call_without_its_result_has_none() -> None:
    answer = parse(anthropic_messages, {"content": [SEARCH], "stop_reason": "pause_turn"})
    assert [(call.result, call.is_error) for call in answer.hosted] == [(None, None)]


def test_a_streamed_hosted_call_is_that_of_the_plain_answer() -> None:
    plain = parse(anthropic_messages, {"content": [SEARCH, FOUND], "stop_reason": "end_turn"})
    asked = {"type": "input_json_delta", "partial_json": '{"query": "rain"}'}
    stream = as_events(
        {"type": "message_start", "message": {"model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": SEARCH | {"input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": asked},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": FOUND},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    )
    assert parse(anthropic_messages, stream).hosted == plain.hosted


WEB = {
    "type": "web_search_call",
    "id": "ws1",
    "status": "completed",
    "action": {"type": "search", "query": "rain"},
}
MCP = {
    "type": "mcp_call",
    "id": "mc1",
    "server_label": "wiki",
    "name": "ask",
    "arguments": '{"q": 1}',
    "output": "a page",
    "error": None,
}
OWN = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "read", "arguments": "{}"}
SHELL = {"type": "shell_call", "id": "sh1", "call_id": "c2", "action": {"commands": ["ls"]}}
RAN = {"type": "shell_call_output", "call_id": "c2", "output": [{"stdout": "a.txt"}]}


def test_items_of_the_responses_api_without_a_call_id_are_hosted() -> None:
    answer = parse(openai_responses, {"status": "completed", "output": [WEB, MCP, OWN, SHELL, RAN]})
    assert [call.name for call in answer.calls] == ["read"]
    assert answer.hosted == (
        HostedCall(tool="web_search", arguments='{"type":"search","query":"rain"}', is_error=False),
        HostedCall(tool="wiki.ask", arguments='{"q": 1}', result="a page"),
        HostedCall(tool="shell", arguments='{"commands":["ls"]}', result='[{"stdout":"a.txt"}]'),
    )


def test_a_failed_hosted_call_says_why() -> None:
    failed = MCP | {"output": None, "error": "timeout", "status": "failed"}
    answer = parse(openai_responses, {"status": "completed", "output": [failed]})
    assert [(call.result, call.is_error) for call in answer.hosted] == [("timeout", True)]


def test_what_gemini_ran_is_hosted() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1+1"}}
    done = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}
    failed = {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}}
    candidate = {
        "content": {"parts": [code, done, code, failed, {"text": "two"}]},
        "finishReason": "STOP",
        "groundingMetadata": {"webSearchQueries": ["rain"], "groundingChunks": [{"web": {}}]},
        "urlContextMetadata": {
            "urlMetadata": [
                {"retrievedUrl": "http://a", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_ERROR"}
            ]
        },
    }
    hosted = parse(gemini, {"candidates": [candidate]}).hosted
    assert [(call.tool, call.result, call.is_error) for call in hosted] == [
        ("code_execution", "2", False),
        ("code_execution", "no", True),
        ("google_search", '[{"web":{}}]', None),
        ("url_context", "URL_RETRIEVAL_STATUS_ERROR", True),
    ]


def test_bedrock_server_tools_are_hosted_plain_and_streamed() -> None:
    use = {"toolUseId": "a", "name": "nova_grounding", "type": "server_tool_use"}
    result = {"toolUseId": "a", "status": "success", "content": [{"text": "rain"}]}
    content = [{"toolUse": use | {"input": {"q": "x"}}}, {"toolResult": result}]
    plain = parse(
        bedrock_converse, {"output": {"message": {"content": content}}, "stopReason": "end_turn"}
    )
    assert plain.hosted == (
        HostedCall(tool="nova_grounding", arguments='{"q":"x"}', result="rain", is_error=False),
    )
    assert plain.calls == ()
    start = {"toolResult": {"toolUseId": "a", "status": "success"}}
    stream = (
        make_event("messageStart", {"role": "assistant"}),
        make_event("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": use}}),
        make_event(
            "contentBlockDelta",
            {"contentBlockIndex": 0, "delta": {"toolUse": {"input": '{"q": "x"}'}}},
        ),
        make_event("contentBlockStop", {"contentBlockIndex": 0}),
        make_event("contentBlockStart", {"contentBlockIndex": 1, "start": start}),
        make_event(
            "contentBlockDelta",
            {"contentBlockIndex": 1, "delta": {"toolResult": [{"text": "rain"}]}},
        ),
        make_event("messageStop", {"stopReason": "end_turn"}),
    )
    assert parse(bedrock_converse, b"".join(stream)).hosted == plain.hosted


def test_tools_that_groq_executed_are_hosted() -> None:
    ran = {"index": 0, "type": "search", "arguments": '{"query": "rain"}', "output": "wet"}
    message = {"role": "assistant", "content": "wet", "executed_tools": [ran]}
    answer = parse(openai_chat, {"choices": [{"message": message, "finish_reason": "stop"}]})
    assert answer.hosted == (
        HostedCall(tool="search", arguments='{"query": "rain"}', result="wet"),
    )


CALL = ToolCall(id="a", name="pay", arguments='{"amount": 4217, "to": "mia", "note": "for lunch"}')


@pytest.mark.parametrize("lens", LENSES, ids=lambda each: str(each.NAME))
@given(st.data())
def test_a_call_of_a_stream_that_is_cut_is_complete_or_marked(
    lens: DialectLens, data: st.DataObject
) -> None:
    """Wherever a stream is cut: what is not marked has the arguments that the model wrote."""
    headers, chunks = lens.write_model_answer(
        ModelAnswer(calls=(CALL,), model="m"), stream=True, id="x", created=1
    )
    written = b"".join(chunk.data for chunk in chunks)
    whole = lens.parse_model_answer(headers, written)
    assert whole is not None
    assert not any(call.incomplete for call in whole.calls)
    cut = lens.parse_model_answer(headers, written[: data.draw(st.integers(0, len(written)))])
    for call in cut.calls if cut else ():
        assert call.incomplete or call in whole.calls


def test_a_call_cut_by_the_limit_of_tokens_is_marked() -> None:
    half = {"id": "a", "function": {"name": "pay", "arguments": '{"amount": 42'}}
    message = {"role": "assistant", "content": None, "tool_calls": [half]}
    for finish, marked in (("length", True), ("tool_calls", False)):
        answer = parse(openai_chat, {"choices": [{"message": message, "finish_reason": finish}]})
        assert [call.incomplete for call in answer.calls] == [marked]


def test_a_call_without_arguments_is_whole() -> None:
    call = {"id": "a", "function": {"name": "now", "arguments": ""}}
    message = {"role": "assistant", "tool_calls": [call]}
    answer = parse(openai_chat, {"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    assert [call.incomplete for call in answer.calls] == [False]


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
PDF = {"type": "document", "source": {"type": "base64", "data": "AA=="}}
TEXT = {"type": "text", "text": "look"}


@pytest.mark.parametrize(
    ("lens", "message", "wanted"),
    [
        (
            anthropic_messages,
            {"role": "user", "content": [TEXT, IMAGE, PDF]},
            ("image", "document"),
        ),
        (
            anthropic_messages,
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": [IMAGE]}],
            },
            ("image",),
        ),
        (
            openai_chat,
            {
                "role": "user",
                "content": [TEXT, {"type": "image_url"}, {"type": "input_audio"}, {"type": "file"}],
            },
            ("image", "audio", "document"),
        ),
        (
            openai_responses,
            {"role": "user", "content": [{"type": "input_image"}, {"type": "input_text"}]},
            ("image",),
        ),
        (
            gemini,
            {
                "role": "user",
                "parts": [
                    {"text": "x"},
                    {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
                    {"file_data": {"mime_type": "application/pdf", "file_uri": "u"}},
                    {
                        "functionResponse": {
                            "name": "n",
                            "parts": [{"inlineData": {"mimeType": "audio/wav"}}],
                        }
                    },
                ],
            },
            ("image", "document", "audio"),
        ),
        (
            bedrock_converse,
            {"role": "user", "content": [{"text": "x"}, {"image": {"format": "png"}}]},
            ("image",),
        ),
        (ollama_chat, {"role": "user", "content": "x", "images": ["AA==", "AA=="]}, ("image",) * 2),
    ],
)
def test_parts_that_are_no_text_are_named(
    lens: DialectLens, message: object, wanted: tuple[str, ...]
) -> None:
    body = json.dumps({"model": "m", lens.MESSAGES_KEY: [message]}).encode()
    (read,) = read_messages(lens, body)
    assert read.media == wanted


@each_lens
def test_a_plain_conversation_has_no_media(dialect: DialectLens) -> None:
    message = {"role": "user", "content": "x", "parts": [{"text": "x"}]}
    body = json.dumps({"model": "m", "prompt": "x", dialect.MESSAGES_KEY: [message]}).encode()
    assert all(each.media == () for each in read_messages(dialect, body))


def test_an_image_in_a_result_is_named_there() -> None:
    result = {"type": "tool_result", "tool_use_id": "a", "content": [IMAGE]}
    body = json.dumps({"messages": [{"role": "user", "content": [result]}]}).encode()
    (read,) = read_tool_results(anthropic_messages, body)
    assert (read.text, read.media) == ("", ("image",))
