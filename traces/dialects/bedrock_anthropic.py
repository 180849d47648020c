"""Anthropic messages through AWS Bedrock: POST .../model/NAME/invoke[-with-response-stream].

Wire facts (Bedrock API reference, "InvokeModel"): the body is that of Anthropic messages with
`anthropic_version` and without a model and `stream`, which the path has; a plain response is
Anthropic's, a stream has each of Anthropic's events in an event `chunk` of
`traces/bodies/aws_event_stream.py`.
"""

from urllib.parse import urlsplit

from traces.bodies import sse
from traces.bodies.aws_event_stream import (
    CONTENT_TYPE,
    is_aws_event_stream,
    make_chunk_event,
    show_as_sse,
)
from traces.bodies.content_encoding import decode_content, read_content
from traces.dialects import anthropic_messages
from traces.dialects.types import ModelAnswer
from traces.model import Chunk, Headers, Request

NAME = "bedrock_anthropic"
MESSAGES_KEY = anthropic_messages.MESSAGES_KEY


def can_read_request(request: Request) -> bool:
    """Whether it is a POST with messages and Anthropic's version to one of the two paths."""
    path = urlsplit(request.url).path
    if request.method != "POST" or not path.endswith(("/invoke", "/invoke-with-response-stream")):
        return False
    body = read_content(request)
    return b'"messages"' in body and b'"anthropic_version"' in body


read_model_name = anthropic_messages.read_model_name
make_dialect_reader = anthropic_messages.make_dialect_reader
replace_result = anthropic_messages.replace_result
mark_result_failed = anthropic_messages.mark_result_failed


def parse_model_answer(headers: Headers, body: bytes) -> ModelAnswer | None:
    """Parse the model's response, plain or streamed; None if it is not one (an error)."""
    text = decode_content(headers, body)
    if text is None:
        return None
    is_binary = is_aws_event_stream(headers) or text[:1] == b"\0"
    return anthropic_messages.parse_model_answer((), show_as_sse(text) if is_binary else text)


def write_model_answer(
    answer: ModelAnswer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and chunks of this response as Bedrock sends it; all chunks at time 0."""
    headers, chunks = anthropic_messages.write_model_answer(
        answer, stream=stream, id=id, created=created
    )
    if not stream:
        return headers, chunks
    events = (event for chunk in chunks for event in sse.parse_sse_events(chunk.data))
    return (("content-type", CONTENT_TYPE),), tuple(
        Chunk(at=0.0, data=make_chunk_event(event.data.encode())) for event in events
    )
