"""What another provider gets of a conversation, and which model is meant."""

import json

import pytest

from stumble.llm.model_choice import ModelChoice
from stumble.llm.translated_upstream import translate_request
from traces.model import Request


def ask(url: str, body: dict[str, object]) -> Request:
    return Request(
        method="POST",
        url=url,
        headers=(("content-type", "application/json"),),
        body=json.dumps(body).encode(),
    )


@pytest.mark.gate
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("gpt-5-mini", ModelChoice("gpt-5-mini")),
        ("anthropic:claude-sonnet-4-5", ModelChoice("claude-sonnet-4-5", "anthropic")),
        ("bedrock:us.amazon.nova-lite-v1:0", ModelChoice("us.amazon.nova-lite-v1:0", "bedrock")),
        ("llama3:8b", ModelChoice("llama3:8b")),
        ("ft:gpt-4o:acme::x", ModelChoice("ft:gpt-4o:acme::x")),
        ("anthropic/claude-sonnet-4-5", ModelChoice("anthropic/claude-sonnet-4-5")),
    ],
)
def test_a_colon_names_a_provider_only_if_there_is_one(text: str, meant: ModelChoice) -> None:
    assert ModelChoice.parse(text) == meant
    assert str(meant) == text


@pytest.mark.parametrize("text", ["", " ", "anthropic:"])
def test_a_model_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="has no name"):
        ModelChoice.parse(text)


def test_reasoning_that_only_its_provider_accepts_is_left_out() -> None:
    thinking = {"type": "thinking", "thinking": "Pay.", "signature": "EqQB"}
    call = {
        "type": "tool_use", "id": "t1", "name": "sign",
        "input": {"signature": "the user's", "cache_control": "no-store"},
    }  # fmt: skip
    result = {
        "type": "tool_result", "tool_use_id": "t1",
        "content": [{"type": "text", "text": "ok", "cache_control": {"type": "ephemeral"}}],
    }  # fmt: skip
    tool = {"name": "sign", "input_schema": {"properties": {"signature": {"type": "string"}}}}
    translated = translate_request(
        ask(
            "https://api.anthropic.com/v1/messages",
            {
                "model": "claude", "max_tokens": 9, "metadata": {"user_id": "u"}, "tools": [tool],
                "messages": [
                    {"role": "user", "content": "Sign."},
                    {"role": "assistant", "content": [thinking]},
                    {"role": "assistant", "content": [thinking, call]},
                    {"role": "user", "content": [result]},
                ],
            },
        )
    )  # fmt: skip
    assert translated is not None
    assert translated.dialect == "anthropic_messages"
    assert translated.left_out == ("cache_control", "metadata", "thinking")
    assert translated.arguments["tools"] == [tool]
    assert translated.arguments["messages"] == [
        {"role": "user", "content": "Sign."},
        {"role": "assistant", "content": [call]},
        {
            "role": "user",
            "content": [result | {"content": [{"type": "text", "text": "ok"}]}],
        },
    ]


def test_reasoning_items_are_left_out_and_a_kept_history_is_named() -> None:
    translated = translate_request(
        ask(
            "https://api.openai.com/v1/responses",
            {
                "model": "gpt-5", "stream": True, "previous_response_id": "resp_1",
                "input": [
                    {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA"},
                    {"type": "function_call_output", "call_id": "c", "output": "7"},
                ],
            },
        )
    )  # fmt: skip
    assert translated is not None
    assert translated.streams
    assert translated.left_out == ("previous_response_id", "reasoning")
    assert translated.arguments["input"] == [
        {"type": "function_call_output", "call_id": "c", "output": "7"}
    ]


@pytest.mark.parametrize(
    "request_",
    [
        ask("https://shop.example/orders", {"model": "x"}),
        Request(method="GET", url="https://api.openai.com/v1/models"),
        ask("https://api.openai.com/v1/embeddings", {"model": "e", "input": "x"}),
    ],
)
def test_what_asks_no_model_goes_where_it_says(request_: Request) -> None:
    assert translate_request(request_) is None
