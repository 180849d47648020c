"""Errors of model responses, in the format of each dialect.

A lens reads and writes successful responses. These modules cover the others: the body of an error,
the event that breaks off a stream, and the spans in a response whose text can be truncated or
removed.
"""

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

from traces.bodies.content_encoding import read_content
from traces.dialects import (
    anthropic_messages,
    bedrock_anthropic,
    bedrock_converse,
    cohere_chat,
    gemini,
    json_access,
    mini_swe_agent,
    ollama_chat,
    ollama_generate,
    openai_chat,
    openai_responses,
    react_text,
    smolagents,
)
from traces.dialects.errors import (
    anthropic_messages_errors,
    bedrock_anthropic_errors,
    bedrock_errors,
    cohere_errors,
    gemini_errors,
    ollama_errors,
    openai_chat_errors,
    openai_responses_errors,
)
from traces.dialects.errors.text_spans import TextSpans
from traces.dialects.types import DialectLens
from traces.model import BodyEdit, Request

__all__ = [
    "DialectErrors",
    "TextSpans",
    "find_dialect_errors",
    "read_answer_text",
    "is_streaming_request",
]


class DialectErrors(Protocol):
    """The module-level functions of an error module."""

    @property
    def ID_PREFIX(self) -> str:  # noqa: N802
        """The prefix of response ids."""
        ...

    def make_model_error_body(self, status: int, message: str | None = None) -> bytes:
        """Return the body of a response with this status; by default with a provider's message."""
        ...

    def make_stream_error(self) -> bytes:
        """Return the event that ends a stream with an error."""
        ...

    def find_text_spans(self, body: bytes) -> TextSpans | None:
        """Return the spans of the last call's arguments, or of the text of a response without
        calls.

        None if it has neither.
        """
        ...

    def empty_answer(self, body: bytes) -> tuple[BodyEdit, ...]:
        """Return the edits that remove text and calls from a response; none if it has neither."""
        ...


_ERRORS_BY_DIALECT: Mapping[str, DialectErrors] = {
    mini_swe_agent.NAME: openai_chat_errors,
    smolagents.NAME: openai_chat_errors,
    react_text.NAME: openai_chat_errors,
    openai_chat.NAME: openai_chat_errors,
    anthropic_messages.NAME: anthropic_messages_errors,
    openai_responses.NAME: openai_responses_errors,
    gemini.NAME: gemini_errors,
    ollama_chat.NAME: ollama_errors,
    ollama_generate.NAME: ollama_errors,
    bedrock_converse.NAME: bedrock_errors,
    bedrock_anthropic.NAME: bedrock_anthropic_errors,
    cohere_chat.NAME: cohere_errors,
}


_STREAM_PATHS = (
    ":streamGenerateContent",
    ":streamRawPredict",
    "/converse-stream",
    "/invoke-with-response-stream",
)
_WHOLE_PATHS = (":generateContent", ":rawPredict", "/converse", "/invoke")
_STREAM_DEFAULT_PATHS = ("/api/chat", "/api/generate")
"""Ollama streams unless `stream` is false."""


def is_streaming_request(request: Request) -> bool:
    """Whether a request asks for a streamed response, in its body or its path."""
    path = urlsplit(request.url).path
    if path.endswith(_STREAM_PATHS + _WHOLE_PATHS):
        return path.endswith(_STREAM_PATHS)
    body = json_access.read_body_object(read_content(request))
    return body.get("stream", path.endswith(_STREAM_DEFAULT_PATHS)) is True


def read_answer_text(body: bytes) -> str | None:
    """Return the last call's arguments, or the text, of a response in any dialect, or None."""
    for each in _ERRORS_BY_DIALECT.values():
        try:
            spans = each.find_text_spans(body)
        except ValueError:  # a response truncated inside a value
            return None
        if spans is not None:
            return spans.read_text(body)
    return None


def find_dialect_errors(dialect: DialectLens) -> DialectErrors | None:
    """Return the error module of a dialect; None if it has none yet."""
    return _ERRORS_BY_DIALECT.get(dialect.NAME)
