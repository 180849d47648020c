"""What every lens keeps to, whatever the bytes are."""

import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.request_readings import read_messages, read_tool_results, replace_call_results
from traces.bodies.aws_event_stream import edit_shown_stream, show_as_sse
from traces.dialects import (
    LENSES,
    anthropic_messages,
    bedrock_anthropic,
    bedrock_converse,
    cohere_chat,
    find_dialect,
    gemini,
    mini_swe_agent,
    ollama_chat,
    ollama_generate,
    openai_chat,
    openai_responses,
    smolagents,
)
from traces.dialects.types import DialectLens, ModelAnswer, TokenUsage, ToolCall
from traces.model import BodyEdit, Request, apply_body_edits

type Path = tuple[str | int, ...]

OBSERVED = '{"messages":[{"content":"Calling tools:\\n[]"},{"content":"Observation:\\n"}]}'
ODD: tuple[object, ...] = (None, True, 3, -0.5, "a", [], [None, "a", [{}], {"a": []}], {"text": 1})
SHOWN = "```bash\nls\n```"
BODIES: dict[str, object] = {
    "observed_history": {
        "model": "m",
        "messages": [
            {"role": "user", "content": "x"},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "Calling tools:\n[{'id': 'a'}]"}],
            },
            {"role": "user", "content": [{"type": "text", "text": "Observation:\nx"}]},
        ],
    },
    "react_text": {
        "messages": [
            {"role": "system", "content": "Action: tool[input]\nObservation: result"},
            {"role": "assistant", "content": [{"type": "text", "text": "Action: n[a]"}]},
            {"role": "user", "content": [{"type": "text", "text": "Observation: x"}]},
        ]
    },
    "text_history": {
        "messages": [
            {"role": "system", "content": SHOWN},
            {"role": "assistant", "content": [{"type": "text", "text": SHOWN}]},
            {"role": "user", "content": "<returncode>0</returncode>"},
        ]
    },
    "openai_chat": {
        "model": "m",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]},
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "n"}}]},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "x"}]},
        ],
    },
    "anthropic_messages": {
        "model": "m",
        "system": [{"type": "text", "text": "x", "cache_control": {}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "a",
                        "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}],
                    },
                    {"type": "text", "text": "x"},
                ],
            }
        ],
    },
    "openai_responses": {
        "model": "m",
        "instructions": "x",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
            {"type": "function_call", "call_id": "a", "name": "n", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": [{"text": "x"}]},
            {"type": "shell_call_output", "call_id": "b", "output": [{"stdout": "x"}]},
        ],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "x"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "x"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "n", "args": {"a": 1}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "n", "response": {"output": "x"}}}],
            },
        ],
    },
    "ollama_chat": {
        "model": "m",
        "messages": [
            {"role": "user", "content": "x", "images": ["eA=="]},
            {"role": "assistant", "tool_calls": [{"function": {"name": "n", "arguments": {}}}]},
            {"role": "tool", "content": "x", "tool_name": "n"},
        ],
    },
    "bedrock_converse": {
        "system": [{"text": "x"}, {"cachePoint": {"type": "default"}}],
        "messages": [
            {"role": "user", "content": [{"text": "x"}]},
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "a", "name": "n", "input": {"a": 1}}}],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "a",
                            "status": "success",
                            "content": [{"text": "x"}],
                        }
                    },
                    {"toolResult": {"toolUseId": "b", "content": [{"json": {"a": 1}}]}},
                ],
            },
        ],
    },
    "ollama_generate": {"model": "m", "system": "x", "prompt": "x", "context": [1, 2]},
}
BODIES["cohere_chat"] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "x"}]},
        {"role": "assistant", "tool_plan": "x", "tool_calls": [{"id": "a", "type": "function"}]},
        {"role": "tool", "tool_call_id": "a", "content": [{"document": {"data": {"a": 1}}}]},
        {"role": "tool", "tool_call_id": "b", "content": "x"},
    ],
}
BODIES["bedrock_anthropic"] = BODIES["anthropic_messages"]
ANSWER = ModelAnswer(
    message="x",
    calls=(ToolCall(id="a", name="n", arguments='{"a": 1}'),),
    model="m",
    usage=TokenUsage(prompt_tokens=3, cached_tokens=1, completion_tokens=2),
)


def paths(value: object, here: Path = ()) -> Iterator[Path]:
    """Every place in a JSON value."""
    yield here
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*here, key))
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*here, index))


def changed(value: Any, path: Path, new: object) -> Any:
    """The value with another one at this place."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def oddities(value: object) -> Iterator[object]:
    """The value with each of its places in turn holding each odd thing."""
    return (changed(value, path, new) for path in paths(value) for new in ODD)


each_lens = pytest.mark.parametrize("dialect", LENSES, ids=lambda each: str(each.NAME))


@pytest.mark.gate
@each_lens
def test_no_lens_raises_on_an_odd_request(dialect: DialectLens) -> None:
    bodies = [json.dumps(value).encode() for value in oddities(BODIES[dialect.NAME])]
    whole = json.dumps(BODIES[dialect.NAME]).encode()
    for body in (*bodies, *(whole[:cut] for cut in range(len(whole)))):
        dialect.read_model_name(body)
        read_messages(dialect, body)
        for found in read_tool_results(dialect, body):
            replace_call_results(dialect, body, found.call_id, found.text)
            replace_call_results(dialect, body, found.call_id, "another")


@pytest.mark.gate
@each_lens
def test_a_request_says_the_same_however_large_it_is(dialect: DialectLens) -> None:
    bodies = [json.dumps(value).encode() for value in oddities(BODIES[dialect.NAME])]
    whole = json.dumps(BODIES[dialect.NAME]).encode()
    for body in (*bodies, *(whole[:cut] for cut in range(len(whole)))):
        assert dialect.make_dialect_reader()(body) == dialect.make_dialect_reader()(
            body.ljust(1 << 14)
        ), body


@pytest.mark.gate
@each_lens
def test_a_request_says_the_same_whatever_was_read_before(dialect: DialectLens) -> None:
    known = dialect.make_dialect_reader()
    for value in oddities(BODIES[dialect.NAME]):
        body = json.dumps(value).encode().ljust(1 << 14)
        assert known(body) == dialect.make_dialect_reader()(body), body


@each_lens
def test_no_lens_raises_on_an_odd_answer(dialect: DialectLens) -> None:
    headers, (chunk,) = dialect.write_model_answer(ANSWER, stream=False, id="x", created=1)
    for value in oddities(json.loads(chunk.data)):
        dialect.parse_model_answer(headers, json.dumps(value).encode())
    for cut in range(len(chunk.data)):
        dialect.parse_model_answer(headers, chunk.data[:cut])
    for coding in ("gzip", "br", "zstd", "deflate", "unknown"):
        assert dialect.parse_model_answer((("content-encoding", coding),), b"{no") is None


@pytest.mark.gate
@each_lens
def test_no_lens_raises_on_an_odd_stream(dialect: DialectLens) -> None:
    headers, chunks = dialect.write_model_answer(ANSWER, stream=True, id="x", created=1)
    events = [chunk.data for chunk in chunks]
    for number, event in enumerate(events):
        shown = show_as_sse(event) or event
        name, mark, data = shown.rpartition(b"data: ")
        if data.startswith(b"{"):
            for value in oddities(json.loads(data)):
                odd = name + mark + json.dumps(value).encode() + b"\n\n"
                edit = BodyEdit(start=0, stop=len(shown), data=odd)
                if shown is not event:
                    odd = apply_body_edits(event, edit_shown_stream(event, (edit,)))
                dialect.parse_model_answer(
                    headers, b"".join([*events[:number], odd, *events[number + 1 :]])
                )


@each_lens
@given(st.text(max_size=60), st.booleans())
def test_the_texts_of_what_a_lens_writes_read_back(
    dialect: DialectLens, text: str, stream: bool
) -> None:
    assert read(dialect, ModelAnswer(message=text, model="m"), stream).message == text


def read(dialect: DialectLens, answer: ModelAnswer, stream: bool) -> ModelAnswer:
    headers, chunks = dialect.write_model_answer(answer, stream=stream, id="x", created=1)
    found = dialect.parse_model_answer(headers, b"".join(chunk.data for chunk in chunks))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("path", "body", "wanted"),
    [
        ("/v1/chat/completions", '{"messages": []}', openai_chat),
        ("/v1/messages", '{"messages": []}', anthropic_messages),
        ("/v1/chat/completions", OBSERVED, smolagents),
        ("/v1/responses", '{"input": []}', openai_responses),
        ("/v1beta/models/m:generateContent", '{"contents": []}', gemini),
        ("/model/m/converse-stream", '{"messages": []}', bedrock_converse),
        (
            "/model/m/invoke-with-response-stream",
            '{"messages": [], "anthropic_version": "x"}',
            bedrock_anthropic,
        ),
        ("/v2/chat", '{"messages": []}', cohere_chat),
        ("/api/chat", '{"model": "m", "messages": []}', ollama_chat),
        ("/api/generate", '{"model": "m", "prompt": "x"}', ollama_generate),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", '{"contents": []}', gemini),
        ("/v1/chat/completions", '{"messages":[{"role":"system","content":"%s"}]}', mini_swe_agent),
    ],
)
def test_each_request_has_one_dialect(path: str, body: str, wanted: ModuleType) -> None:
    body = body.replace("%s", "```bash\\nls\\n```")
    request = Request(method="POST", url=f"http://h{path}", body=body.encode())
    assert find_dialect(request) is wanted
    narrow = [each for each in LENSES if each.can_read_request(request)]
    assert narrow in ([wanted], [mini_swe_agent, openai_chat], [smolagents, openai_chat])
