"""The Anthropic lens reads and writes, and touches no byte it was not asked to touch."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.request_readings import read_messages, read_tool_results, replace_call_results
from tests.support.stores.third_party_recordings import (
    cassettes,
    flows,
)
from traces.conversation.classify import classify_request
from traces.conversation.derived_steps import derive_steps
from traces.dialects import anthropic_messages, find_dialect
from traces.dialects.types import ModelAnswer, TokenUsage, ToolCall
from traces.model import Request, apply_body_edits

texts = st.text(st.characters(codec="utf-8"), max_size=80)
PROMPT = '{"model": "m", "max_tokens": 5, "messages": []}'
CLOUD = '{"anthropic_version": "v", "max_tokens": 5, "messages": []}'


def request(body: str | bytes, url: str = "http://h/v1/messages") -> Request:
    return Request(method="POST", url=url, body=body.encode() if isinstance(body, str) else body)


def result(key: str, content: object, **more: object) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": key, "content": content, **more}


def body_with(*results: dict[str, object], ascii: bool = True, indent: int | None = None) -> bytes:
    messages = [{"role": "user", "content": "go"}, {"role": "user", "content": list(results)}]
    value = {"model": "m", "messages": messages, "n": 12345678901234567890123, "x": 0.10}
    return json.dumps(value, ensure_ascii=ascii, indent=indent).encode()


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("https://api.example/v1/messages?beta=true", PROMPT),
        ("http://127.0.0.1:9/anthropic/messages", PROMPT),
        ("https://cloud.example/v1/projects/p/models/m:rawPredict", CLOUD),
        ("https://cloud.example/v1/publishers/anthropic/models/m:streamRawPredict", CLOUD),
    ],
)
def test_the_path_and_the_body_decide(url: str, body: str) -> None:
    assert find_dialect(request(body, url)) is anthropic_messages


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("http://h/v1/messages", '{"text": "hello"}'),
        ("http://h/chat/messages", '{"messages": ["hello"]}'),
        ("http://h/model/m/invoke", '{"messages": []}'),
        ("http://h/v1/messages/count_tokens", PROMPT),
    ],
)
def test_what_only_looks_alike_is_no_model_traffic(url: str, body: str) -> None:
    assert find_dialect(request(body, url)) is None


def test_counting_tokens_beforehand_is_no_tool_of_the_agent() -> None:
    assert classify_request(request(PROMPT, "http://h/v1/messages/count_tokens")) == "other"


type Part = dict[str, str]

image: Part = {"type": "image", "source": "u"}
text_parts: st.SearchStrategy[Part] = texts.map(lambda text: {"type": "text", "text": text})
parts: st.SearchStrategy[list[Part]] = st.lists(text_parts | st.just(image), max_size=3)


@given(st.lists(texts | parts, max_size=4), st.booleans())
def test_law_a_result_replaced_by_its_own_text_changes_no_byte(
    contents: list[object], ascii: bool
) -> None:
    results = [result(f"t{number}", content) for number, content in enumerate(contents)]
    body = body_with(*results, ascii=ascii, indent=None if ascii else 1)
    for found in read_tool_results(anthropic_messages, body):
        assert replace_call_results(anthropic_messages, body, found.call_id, found.text) == ()


@given(texts | parts, texts, st.booleans())
def test_a_replaced_result_reads_back_and_the_rest_stands_as_it_stood(
    was: str | list[Part], now: str, ascii: bool
) -> None:
    body = body_with(result("a", was), result("b", "keep"), ascii=ascii)
    after = apply_body_edits(body, replace_call_results(anthropic_messages, body, "a", now))

    assert [found.text for found in read_tool_results(anthropic_messages, after)] == [now, "keep"]
    at = body.index(b'"tool_use_id": "a"')
    assert after[:at] == body[:at]
    assert after.endswith(body[body.index(b'"tool_use_id": "b"') :])
    content = json.loads(after)["messages"][1]["content"][0]["content"]
    assert isinstance(content, type(was))
    if isinstance(was, list):
        assert [part for part in content if "text" not in part] == [
            part for part in was if "text" not in part
        ]
        assert content == was or {"type": "text", "text": ""} not in content


def test_a_result_without_content_can_be_given_one() -> None:
    silent: dict[str, object] = {"type": "tool_result", "tool_use_id": "a", "is_error": True}
    body = body_with(silent)
    (found,) = read_tool_results(anthropic_messages, body)
    assert (found.text, found.is_error) == ("", True)

    (now,) = read_tool_results(
        anthropic_messages,
        apply_body_edits(body, replace_call_results(anthropic_messages, body, "a", "x")),
    )
    assert (now.text, now.is_error) == ("x", True)


def test_a_list_of_blocks_keeps_its_shape_without_empty_blocks() -> None:
    blocks = [{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]
    body = body_with(result("a", blocks))
    after = json.loads(
        apply_body_edits(body, replace_call_results(anthropic_messages, body, "a", "three"))
    )
    assert after["messages"][1]["content"][0]["content"] == [
        {"type": "text", "text": "three"},
        {"type": "image"},
    ]


@pytest.mark.parametrize(("more", "flag"), [({"is_error": True}, True), ({}, None)])
def test_the_flag_is_what_the_client_said(more: dict[str, object], flag: bool | None) -> None:
    (found,) = read_tool_results(anthropic_messages, body_with(result("a", "no such file", **more)))
    assert found.is_error is flag


def test_a_message_says_the_same_wherever_the_cache_is_marked() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    marked = [
        {"role": "user", "content": [{"type": "text", "text": "go", **mark}]},
        {"role": "user", "content": [result("a", [{"type": "text", "text": "x", **mark}], **mark)]},
    ]
    plain = [
        {"role": "user", "content": "go"},
        {"role": "user", "content": [result("a", "x")]},
    ]
    one, two = (
        read_messages(anthropic_messages, json.dumps({"system": "s", "messages": each}).encode())
        for each in (marked, plain)
    )
    assert [message.role for message in one] == ["system", "user", "tool"]
    assert one == two


def test_thoughts_are_no_text_and_make_a_message_another() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    said = {"type": "text", "text": "yes"}
    bodies = (
        json.dumps({"messages": [{"role": "assistant", "content": blocks}]}).encode()
        for blocks in ([thought, said], [said])
    )
    (with_thought,), (without,) = (read_messages(anthropic_messages, body) for body in bodies)
    assert with_thought.content == without.content == "yes"
    assert with_thought.address != without.address


objects = st.dictionaries(texts, texts | st.integers() | st.booleans(), max_size=3)
calls = st.lists(
    st.builds(
        ToolCall,
        id=st.text("abc123", min_size=1, max_size=6),
        name=st.text("abc_", min_size=1, max_size=8),
        arguments=objects.map(json.dumps),
    ),
    max_size=3,
).map(tuple)


@given(texts, calls, st.booleans())
def test_what_is_written_reads_back_streamed_or_whole(
    message: str, calls: tuple[ToolCall, ...], stream: bool
) -> None:
    usage = TokenUsage(prompt_tokens=9, cached_tokens=4, completion_tokens=3)
    answer = ModelAnswer(message=message, calls=calls, model="m", finish="end_turn", usage=usage)
    headers, chunks = anthropic_messages.write_model_answer(
        answer, stream=stream, id="msg_1", created=1
    )
    assert (
        anthropic_messages.parse_model_answer(headers, b"".join(chunk.data for chunk in chunks))
        == answer
    )


def test_a_cut_or_failed_stream_gives_what_came_and_no_finish() -> None:
    call = ToolCall(id="t", name="look", arguments='{"where": "everywhere and nowhere"}')
    answer = ModelAnswer(message="I look.", calls=(call,), model="m")
    headers, chunks = anthropic_messages.write_model_answer(answer, stream=True, id="x", created=1)
    came = b"".join(chunk.data for chunk in chunks[:6])
    error = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'

    whole = b"".join(chunk.data for chunk in chunks)
    for stream in (came, came + error, whole + error):
        read = anthropic_messages.parse_model_answer(headers, stream)
        assert read is not None
        assert (read.message, read.finish) == ("I look.", None)
    assert anthropic_messages.parse_model_answer(headers, error) is None


def test_the_prompt_is_what_was_fresh_and_what_the_cache_gave_and_took() -> None:
    counted = {"input_tokens": 3, "cache_read_input_tokens": 100, "output_tokens": 7}
    said = {"type": "message", "content": [], "usage": counted}
    for written, prompt in ((None, 103), (20, 123)):
        counted["cache_creation_input_tokens"] = written  # type: ignore[assignment]
        answer = anthropic_messages.parse_model_answer((), json.dumps(said).encode())
        assert answer is not None
        assert answer.usage == TokenUsage(
            prompt_tokens=prompt, cached_tokens=100, completion_tokens=7
        )


def test_tools_that_the_provider_runs_are_no_calls() -> None:
    blocks = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "mcp_tool_use", "id": "m", "name": "x", "server_name": "y", "input": {}},
        {"type": "tool_use", "id": "t", "name": "look", "input": {"n": 12345678901234567890123}},
    ]
    answer = anthropic_messages.parse_model_answer((), json.dumps({"content": blocks}).encode())
    assert answer is not None
    (call,) = answer.calls
    assert (call.id, call.arguments) == ("t", '{"n": 12345678901234567890123}')


@pytest.mark.gate
def test_real_recordings_are_read(shared: Path) -> None:
    """Every answer that other projects recorded is understood, streamed or whole."""
    seen = streamed = calls = results = 0
    groups = ("*/anthropic_*/*.yaml", "*/openai_*/*.yaml", "langchain/*anthropic*")
    for path, exchange in cassettes(shared, *groups):
        answer = exchange.response
        if find_dialect(exchange.request) is not anthropic_messages or answer is None:
            continue
        said = anthropic_messages.parse_model_answer(answer.headers, answer.body)
        assert said is not None, path.name
        assert None not in (said.model, said.finish, said.usage), path.name
        assert said.message or said.calls or said.finish == "compaction", path.name
        seen, calls = seen + 1, calls + len(said.calls)
        streamed += answer.body.startswith(b"event:")
        for found in read_tool_results(anthropic_messages, exchange.request.body):
            assert (
                replace_call_results(
                    anthropic_messages, exchange.request.body, found.call_id, found.text
                )
                == ()
            )
            results += 1
    assert (seen, streamed, calls, results) == (135, 41, 55, 83)


@pytest.mark.parametrize("name", ["claude-code.fwd.rest", "opencode-anthropic.fwd.rest"])
def test_what_real_agents_did_is_told(shared: Path, name: str) -> None:
    """Their cache marks move, their `system` changes, and yet it is one conversation."""
    derived_steps = derive_steps(flows(shared, name))
    title, first, second, final = derived_steps.agent_steps
    assert [turn.lane for turn in derived_steps.agent_steps] == [0, 1, 1, 1]
    assert (title.message, final.message) == ("short title", "FINAL saw SECOND_REAL_42")
    assert [use.call_id for use in derived_steps.tool_uses] == [*first.calls, *second.calls]
    assert [str(use.result).rpartition(" ")[2].strip() for use in derived_steps.tool_uses] == [
        "MARK_REAL_42",
        "685\nSECOND_REAL_42",
    ]
    assert [use.place for use in derived_steps.tool_uses] == ["local", "local"]
    assert all(use.is_error in (False, None) for use in derived_steps.tool_uses)
