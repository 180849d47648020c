"""The chat lens reads and writes, and touches no byte it was not asked to touch."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.support.request_readings import read_tool_results, replace_call_results
from traces.dialects import find_dialect, openai_chat
from traces.dialects.types import ModelAnswer, TokenUsage, ToolCall
from traces.model import Headers, Request, apply_body_edits

texts = st.text(st.characters(codec="utf-8"), max_size=80)


def request(body: bytes, url: str = "http://h/v1/chat/completions") -> Request:
    return Request(method="POST", url=url, body=body)


def body_with(
    results: list[tuple[str, object]], *, ascii: bool = True, indent: int | None = None
) -> bytes:
    messages: list[dict[str, object]] = [{"role": "user", "content": "go"}]
    messages += [{"role": "tool", "tool_call_id": key, "content": said} for key, said in results]
    value = {"model": "m", "messages": messages, "n": 12345678901234567890123, "x": 0.10}
    return json.dumps(value, ensure_ascii=ascii, indent=indent).encode()


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example/v1/chat/completions",
        "http://127.0.0.1:9/openai/deployments/x/chat/completions?api-version=2026",
    ],
)
def test_the_path_and_the_body_decide_never_the_host(url: str) -> None:
    assert find_dialect(request(b'{"messages":[]}', url)) is openai_chat
    assert find_dialect(request(b'{"other":1}', url)) is None
    assert find_dialect(Request(method="GET", url=url)) is None


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), texts), max_size=4), st.booleans())
def test_law_a_result_replaced_by_its_own_text_changes_no_byte(
    results: list[tuple[str, object]], ascii: bool
) -> None:
    body = body_with(results, ascii=ascii, indent=None if ascii else 1)
    for found in read_tool_results(openai_chat, body):
        same = [r.text for r in read_tool_results(openai_chat, body) if r.call_id == found.call_id]
        if len(set(same)) == 1:
            assert replace_call_results(openai_chat, body, found.call_id, found.text) == ()


@given(texts, texts, st.booleans())
def test_a_replaced_result_reads_back_and_the_rest_stands_as_it_stood(
    was: str, now: str, ascii: bool
) -> None:
    body = body_with([("a", was), ("b", "keep")], ascii=ascii)
    after = apply_body_edits(body, replace_call_results(openai_chat, body, "a", now))

    assert [r.text for r in read_tool_results(openai_chat, after)] == [now, "keep"]
    assert b"12345678901234567890123" in after
    assert b"0.1" in after
    at = body.index(b'"tool_call_id": "a"')
    assert after[:at] == body[:at]
    assert after.endswith(body[body.index(b'"tool_call_id": "b"') :])


def test_a_list_of_parts_keeps_its_shape() -> None:
    body = body_with([("a", [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])])
    after = apply_body_edits(body, replace_call_results(openai_chat, body, "a", "three"))

    assert json.loads(after)["messages"][1]["content"] == [
        {"type": "text", "text": "three"},
        {"type": "text", "text": ""},
    ]


def test_offsets_point_at_the_message() -> None:
    body = body_with([("a", 'say "hi"')])
    (found,) = read_tool_results(openai_chat, body)
    assert json.loads(body[found.start : found.stop])["content"] == 'say "hi"'


calls = st.lists(
    st.builds(
        ToolCall,
        id=st.text("abc123", min_size=1, max_size=6),
        name=st.text("abc_", min_size=1, max_size=8),
        arguments=texts,
    ),
    max_size=3,
).map(tuple)


@given(texts, calls, st.booleans())
def test_what_is_written_reads_back_streamed_or_whole(
    message: str, calls: tuple[ToolCall, ...], stream: bool
) -> None:
    usage = TokenUsage(prompt_tokens=9, cached_tokens=4, completion_tokens=3, reasoning_tokens=1)
    answer = ModelAnswer(message=message, calls=calls, model="m", finish="stop", usage=usage)
    headers, chunks = openai_chat.write_model_answer(answer, stream=stream, id="x", created=1)

    assert (
        openai_chat.parse_model_answer(headers, b"".join(chunk.data for chunk in chunks)) == answer
    )


def test_a_cut_stream_gives_what_came_and_no_finish() -> None:
    answer = ModelAnswer(message="a long answer in several pieces " * 4, model="m", finish="stop")
    headers, chunks = openai_chat.write_model_answer(answer, stream=True, id="x", created=1)
    cut = openai_chat.parse_model_answer(headers, b"".join(chunk.data for chunk in chunks[:3]))

    assert cut is not None
    assert cut.finish is None
    assert answer.message.startswith(cut.message)


def test_a_gzipped_answer_is_read_and_an_error_is_no_answer() -> None:
    headers, (chunk,) = openai_chat.write_model_answer(
        ModelAnswer(message="hi"), stream=False, id="x", created=1
    )
    packed = (*headers, ("Content-Encoding", "gzip"))

    read = openai_chat.parse_model_answer(packed, gzip.compress(chunk.data))
    assert read is not None
    assert read.message == "hi"
    assert openai_chat.parse_model_answer(headers, b'{"error":{"message":"overloaded"}}') is None
    assert openai_chat.parse_model_answer(headers, b"<html>") is None


@pytest.mark.gate
def test_real_recordings_of_chat_completions_are_read(shared: Path) -> None:
    """Every answer that other projects recorded is understood, streamed or whole."""
    seen = streamed = calls = 0
    for path in sorted((shared / "cassettes").glob("*/openai_*/*.yaml")):
        for each in yaml.safe_load(path.read_text())["interactions"]:
            asked, said = each["request"], each["response"]
            if "/chat/completions" not in asked["uri"] or said["status"]["code"] != 200:
                continue
            headers, body = _recorded(said)
            answer = openai_chat.parse_model_answer(headers, body)
            assert answer is not None, path.name
            assert answer.finish is not None, path.name
            assert answer.model, path.name
            seen, calls = seen + 1, calls + len(answer.calls)
            streamed += body.startswith(b"data:")
    assert seen >= 90
    assert streamed > 20
    assert calls > 20


def _recorded(table: dict[str, Any]) -> tuple[Headers, bytes]:
    if "parsed_body" in table:
        return (), json.dumps(table["parsed_body"]).encode()
    body = table["body"]["string"]
    body = body.encode() if isinstance(body, str) else body
    # Some recorders inflated the body and kept the header.
    encoding = table["headers"].get("Content-Encoding", table["headers"].get("content-encoding"))
    gzipped = bool(encoding) and body[:2] == b"\x1f\x8b"
    return ((("content-encoding", "gzip"),) if gzipped else ()), body
