"""Texts of the prompt in live requests, and no other byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.prompt_edit import (
    PromptEdit,
    PromptSubstitution,
    find_prompt_texts,
    name_prompt_edits,
)
from traces.model import BodyEdit, Exchange, Request, Response

TOOL = [{"name": "say", "description": "old", "input_schema": {"type": "object"}}]
CASES = {
    "/v1/chat/completions": {
        "model": "old",
        "messages": [
            {"role": "system", "content": "old rules"},
            {"role": "user", "content": [{"type": "text", "text": "an old task"}]},
            {"role": "assistant", "content": "old answer", "tool_calls": []},
            {"role": "tool", "tool_call_id": "c", "content": "old result"},
        ],
    },
    "/v1/responses": {
        "model": "old",
        "instructions": "old rules",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "an old task"}]},
            {"type": "function_call", "call_id": "c", "name": "say", "arguments": '{"a": "old"}'},
            {"type": "function_call_output", "call_id": "c", "output": "old result"},
        ],
    },
    "/v1/messages": {
        "model": "old",
        "max_tokens": 9,
        "tools": TOOL,
        "system": [{"type": "text", "text": "old rules", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "an old task"},
            {"role": "assistant", "content": [{"type": "text", "text": "old answer"}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": "old result"},
                    {"type": "tool_result", "tool_use_id": "d",
                     "content": [{"type": "text", "text": "old result"}]},
                ],
            },
        ],
    },
    "/v1beta/models/gemini-2.5-pro:generateContent": {
        "systemInstruction": {"parts": [{"text": "old rules"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "an old task"}]},
            {"role": "model", "parts": [{"text": "old answer"}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "say", "response": {"text": "old result"}}}
            ]},
        ],
    },
}  # fmt: skip
EDIT = (PromptEdit(old="old", new="new"),)


def ask(path: str, body: bytes, *headers: tuple[str, str]) -> Exchange:
    url = f"https://api.example.org{path}"
    return Exchange(seq=0, request=Request(method="POST", url=url, headers=headers, body=body))


@pytest.mark.parametrize("path", CASES)
def test_system_and_user_messages_change_and_nothing_else(path: str) -> None:
    exchange = ask(path, json.dumps(CASES[path]).encode())
    tap = PromptSubstitution(EDIT)
    sent = tap.request(exchange).forwarded.body.decode()
    assert sent.replace("new rules", "old rules").replace("a new task", "an old task").replace(
        "an new task", "an old task"
    ) == json.dumps(CASES[path])
    assert (sent.count("new"), tap.edited) == (2, 1)


@given(text=st.text(), new=st.text(), ascii_only=st.booleans(), indent=st.sampled_from([None, 1]))
def test_any_text_is_found_as_it_is_written(
    text: str, new: str, ascii_only: bool, indent: int | None
) -> None:
    messages = [{"role": "user", "content": f"{text}#here#{text}"}]
    given = {"messages": messages, "model": "m"}
    body = json.dumps(given, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "replace")
    edit = PromptEdit(old="#here#", new=new)
    sent = PromptSubstitution((edit,)).request(ask("/v1/chat/completions", body)).forwarded.body
    [was], [now] = json.loads(body)["messages"], json.loads(sent)["messages"]
    assert now["content"] == was["content"].replace("#here#", new)


def test_edits_of_others_stay() -> None:
    body = json.dumps(CASES["/v1/chat/completions"]).encode()
    at = body.index(b'"old result"')
    edit = BodyEdit(start=at, stop=at + 12, data=b'"wrong"')
    exchange = Exchange(seq=0, request=ask("/v1/chat/completions", body).request, edits=(edit,))
    sent = json.loads(PromptSubstitution(EDIT).request(exchange).forwarded.body)
    assert [each["content"] for each in sent["messages"]][0::3] == ["new rules", "wrong"]


def test_an_answer_of_the_recording_stays() -> None:
    body = json.dumps(CASES["/v1/messages"]).encode()
    answered = Exchange(
        seq=0, request=ask("/v1/messages", body).request, response=Response(status=200)
    )
    assert PromptSubstitution(EDIT).request(answered) is answered


@pytest.mark.parametrize(
    "exchange",
    [
        ask("/orders", b'{"messages": [{"role": "user", "content": "old"}]}'),
        ask("/v1/chat/completions", b"\x1f\x8b", ("content-encoding", "gzip")),
        ask("/v1/chat/completions", b"not json"),
        ask("/v1/chat/completions", b'{"messages": [{"role": "user", "content": null}]}'),
        ask("/v1/chat/completions", b'{"messages": "", "model": 7}'),
    ],
)
def test_what_has_no_prompt_is_left_alone(exchange: Exchange) -> None:
    assert PromptSubstitution(EDIT).request(exchange) is exchange
    assert all("old" not in each.text for each in find_prompt_texts(exchange.request))


def test_edits_have_a_name_of_their_own() -> None:
    other = (PromptEdit(old="old", new="other"),)
    assert name_prompt_edits(EDIT) == name_prompt_edits(tuple(EDIT)) != name_prompt_edits(other)
