"""What a model thought is read apart from what it said, in every dialect and in streams."""

import json

import pytest

from traces.dialects import (
    anthropic_messages,
    bedrock_converse,
    cohere_chat,
    gemini,
    ollama_chat,
    openai_chat,
    openai_responses,
)
from traces.dialects.types import DialectLens
from traces.model import Headers

JSON: Headers = (("content-type", "application/json"),)
SSE: Headers = (("content-type", "text/event-stream"),)


def events(*values: object) -> bytes:
    return b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values)


def delta(**said: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": None}]}


def block(kind: str, **said: object) -> dict[str, object]:
    return {"type": f"content_block_{kind}", "index": 0, **said}


THOUGHT = {"parts": [{"text": "odd", "thought": True}, {"text": "paid"}]}
REASONED = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "odd"}]}
MISTRAL = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "odd"}]},
    {"type": "text", "text": "paid"},
]
PAID = {"type": "message", "content": [{"type": "output_text", "text": "paid"}]}


@pytest.mark.parametrize(
    ("lens", "headers", "body"),
    [
        (
            openai_chat,
            JSON,
            {"choices": [{"message": {"content": "paid", "reasoning_content": "odd"}}]},
        ),
        (openai_chat, JSON, {"choices": [{"message": {"content": "paid", "reasoning": "odd"}}]}),
        (
            openai_chat,
            SSE,
            events(
                delta(reasoning_content="o"), delta(reasoning_content="dd"), delta(content="paid")
            ),
        ),
        (
            anthropic_messages,
            JSON,
            {
                "type": "message",
                "content": [
                    {"type": "thinking", "thinking": "odd", "signature": "x"},
                    {"type": "text", "text": "paid"},
                ],
            },
        ),
        (
            anthropic_messages,
            SSE,
            events(
                {"type": "message_start", "message": {"model": "m"}},
                block("start", content_block={"type": "thinking", "thinking": ""}),
                block("delta", delta={"type": "thinking_delta", "thinking": "odd"}),
                block("start", content_block={"type": "text", "text": ""}) | {"index": 1},
                block("delta", delta={"type": "text_delta", "text": "paid"}) | {"index": 1},
            ),
        ),
        (openai_chat, JSON, {"choices": [{"message": {"content": MISTRAL}}]}),
        (openai_chat, SSE, events(delta(content=MISTRAL[:1]), delta(content="paid"))),
        (
            bedrock_converse,
            JSON,
            {
                "output": {
                    "message": {
                        "content": [
                            {"reasoningContent": {"reasoningText": {"text": "odd"}}},
                            {"text": "paid"},
                        ]
                    }
                }
            },
        ),
        (
            cohere_chat,
            JSON,
            {"message": {"content": [{"type": "thinking", "thinking": "odd"}, {"text": "paid"}]}},
        ),
        (ollama_chat, JSON, {"message": {"thinking": "odd", "content": "paid"}, "done": True}),
        (openai_responses, JSON, {"status": "completed", "output": [REASONED, PAID]}),
        (gemini, JSON, {"candidates": [{"content": THOUGHT, "finishReason": "STOP"}]}),
    ],
)
def test_reasoning_is_read_and_is_no_part_of_the_message(
    lens: DialectLens, headers: Headers, body: object
) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = lens.parse_model_answer(headers, data)
    assert answer is not None
    assert (answer.reasoning, answer.message) == ("odd", "paid")
