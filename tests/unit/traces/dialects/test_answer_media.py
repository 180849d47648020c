"""Images, audio and documents in answers of models are named, streamed or not."""

import json
from copy import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.traces.dialects.test_hosted_calls import as_events, parse
from traces.conversation.derived_steps import derive_tape_steps
from traces.dialects import bedrock_converse, gemini, ollama_chat, openai_chat, openai_responses
from traces.dialects.types import DialectLens
from traces.model import Chunk, Exchange, Request, Response
from traces.store.rows import build_tape_rows
from traces.store.schema import SCHEMAS
from traces.tape.reader import read_tape

PNG = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
WAV = {"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "AA=="}}
IMAGE_URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
GENERATED = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AA=="}


def in_gemini(*parts: object) -> dict[str, object]:
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}


def in_chat(key: str, **said: object) -> dict[str, object]:
    return {"model": "m", "choices": [{"index": 0, key: {"role": "assistant", **said}}]}


@pytest.mark.parametrize(
    ("lens", "body", "wanted"),
    [
        (gemini, in_gemini({"text": "look"}, PNG, PNG), ("image", "image")),
        (gemini, as_events(in_gemini(WAV), in_gemini(WAV), in_gemini(PNG)), ("audio", "image")),
        (openai_chat, in_chat("message", content=None, audio={"id": "a"}), ("audio",)),
        (openai_chat, in_chat("message", content="", images=[IMAGE_URL]), ("image",)),
        (
            openai_chat,
            as_events(
                in_chat("delta", audio={"data": "AA=="}),
                in_chat("delta", audio={"transcript": "hi"}),
                in_chat("delta", images=[IMAGE_URL]),
            ),
            ("audio", "image"),
        ),
        (openai_responses, {"status": "completed", "output": [GENERATED]}, ("image",)),
        (openai_responses, {"status": "completed", "output": [GENERATED | {"result": None}]}, ()),
        (
            bedrock_converse,
            {"output": {"message": {"content": [{"text": "a"}, {"image": {"format": "png"}}]}}},
            ("image",),
        ),
        (
            ollama_chat,
            {"message": {"role": "assistant", "content": "", "images": ["AA=="]}, "done": True},
            ("image",),
        ),
        (openai_chat, in_chat("message", content="words"), ()),
        (gemini, in_gemini({"text": "words"}), ()),
    ],
)
def test_what_is_no_text_in_an_answer_is_named(
    lens: DialectLens, body: Any, wanted: tuple[str, ...]
) -> None:
    assert parse(lens, body).media == wanted


def test_a_step_and_its_row_have_what_the_answer_has() -> None:
    tape = read_tape(Path(__file__).parents[3] / "data" / "golden" / "http.tape")
    url = "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent"
    asked = b'{"contents": [{"role": "user", "parts": [{"text": "draw"}]}]}'
    answer = Chunk(at=1.0, data=json.dumps(in_gemini(PNG)).encode())
    exchange = Exchange(
        seq=0,
        request=Request(method="POST", url=url, body=asked),
        response=Response(status=200, chunks=(answer,), ended=1.0),
    )
    drawn = replace(tape, exchanges=(exchange,))
    steps = derive_tape_steps(drawn).steps
    assert [step.media for step in steps if step.source == "agent"] == [("image",)]
    rows = build_tape_rows(drawn)["steps"]
    place, source = (SCHEMAS["steps"].get_field_index(name) for name in ("media", "source"))
    assert [row[place] for row in rows if row[source] == "agent"] == [["image"]]
