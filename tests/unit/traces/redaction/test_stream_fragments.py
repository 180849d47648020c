"""A secret that its name gives away is found in any split of a model's text into events."""

import json
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.model import Chunk
from traces.redaction.redactor import Redactor

VALUE = "q7Rt5zX9wB3mK1v"
TEXTS = (
    f"DB_PASSWORD={VALUE}\n",
    json.dumps({"password": VALUE}),
    f"export API_KEY={VALUE}X8z\n",
    f"curl -u joe:{VALUE} http://x ",
    f"https://joe:{VALUE}@host/x ",
    f'api_key: "{VALUE}" ',
    f"--password {VALUE} ",
    json.dumps({"name": "DB_PASSWORD", "value": VALUE}),
    f"<password>{VALUE}</password>",
    f"machine x login joe password {VALUE}\n",
    f"Authorization: Bearer {VALUE}{VALUE}\n",
    f"echo {VALUE} | sudo -S ls\n",
)
FRAME = {"id": "chatcmpl-1234567890", "object": "chat.completion.chunk", "created": 1}
EVENTS: dict[str, Callable[[str], dict[str, object]]] = {
    "content": lambda text: {**FRAME, "choices": [{"index": 0, "delta": {"content": text}}]},
    "arguments": lambda text: {
        **FRAME,
        "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}}],
    },
    "text": lambda text: {"type": "content_block_delta", "delta": {"text": text}},
    "partial_json": lambda text: {"type": "content_block_delta", "delta": {"partial_json": text}},
}
"""An event that delivers a part of a text in this field."""


def redact_stream(chunks: list[bytes]) -> bytes:
    stream = Redactor().open_stream((("content-type", "text/event-stream"),))
    out = [each for data in chunks for each in stream.chunk(Chunk(at=0.0, data=data))]
    return b"".join(each.data for each in (*out, *stream.done()))


def find_texts(value: object, field: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name == field:
                yield str(each)
            else:
                yield from find_texts(each, field)
    elif isinstance(value, list):
        for each in value:
            yield from find_texts(each, field)


def join_texts(body: bytes, field: str) -> str:
    lines = [line for line in body.decode().splitlines() if line.startswith("data: ")]
    values = [json.loads(line.removeprefix("data: ")) for line in lines]
    return "".join(text for value in values for text in find_texts(value, field))


def write_event(field: str, text: str, end: str) -> bytes:
    return f"event: x{end}data: {json.dumps(EVENTS[field](text))}{end}{end}".encode()


@pytest.mark.parametrize("field", EVENTS)
@given(
    st.sampled_from(TEXTS),
    st.lists(st.integers(1, 12), min_size=1, max_size=12),
    st.sampled_from(("\n", "\r\n")),
    st.booleans(),
)
def test_a_named_secret_in_fragments_is_on_no_tape(
    field: str, text: str, sizes: list[int], end: str, cut: bool
) -> None:
    events, at = [write_event(field, "Let me see. ", end)], 0
    while at < len(text):
        size = sizes[len(events) % len(sizes)]
        events.append(write_event(field, text[at : at + size], end))
        at += size
    chunks = [*events, write_event(field, " done", end)]
    if cut:  # chunks of a connection need not be events
        body = b"".join(chunks)
        chunks = [body[i : i + 150] for i in range(0, len(body), 150)]
    redacted = redact_stream(chunks)
    assert len(redacted) == sum(map(len, chunks))
    assert VALUE not in join_texts(redacted, field)
    assert join_texts(redacted, field).startswith("Let me see. ")


@pytest.mark.parametrize("field", EVENTS)
def test_a_text_without_secrets_is_not_changed(field: str) -> None:
    words = "The password is not the token of this story, said the key to the secret door.\n" * 9
    chunks = [write_event(field, words[i : i + 3], "\n") for i in range(0, len(words), 3)]
    assert redact_stream(chunks) == b"".join(chunks)
