"""Ollama's own completion of a prompt: POST .../api/generate, plain or as a stream of JSON lines.

Wire facts (Ollama's API reference): the request has `prompt`, and perhaps `system`, `suffix` and
the `context` of an earlier answer, as numbers of tokens; each line of the response has its text in
`response` and reasoning in `thinking`. There are no tool calls. A request without a prompt loads a
model, or unloads it. Everything else is as in `ollama_chat`.
"""

from urllib.parse import urlsplit

from traces.bodies.canonical_json import hash_json_value
from traces.bodies.content_encoding import read_content
from traces.dialects import json_access, ollama_chat
from traces.dialects.request_reader import RequestContext, RequestItem, RequestReader
from traces.dialects.types import ChatMessage, ModelAnswer, ToolResult
from traces.model import BodyEdit, Chunk, Headers, Request

NAME = "ollama_generate"
MESSAGES_KEY = "messages"
_TEXTS = (("system", "system"), ("prompt", "user"))
"""The members of a request that are messages, and their roles."""


def can_read_request(request: Request) -> bool:
    """Whether it is a POST with a model and a prompt to .../api/generate."""
    if request.method != "POST" or not urlsplit(request.url).path.endswith("/api/generate"):
        return False
    body = json_access.read_body_object(read_content(request))
    return all(isinstance(body.get(key), str) for key in ("model", "prompt"))


read_model_name = ollama_chat.read_model_name


def _read_texts(body: dict[str, object]) -> RequestContext:
    messages = tuple(
        ChatMessage(role=role, content=text, address=hash_json_value([role, text]))
        for key, role in _TEXTS
        if isinstance(text := body.get(key), str) and text
    )
    return RequestContext(messages=messages)


def _read_no_item(value: dict[str, object]) -> RequestItem:
    """Read an entry of `messages`, which this request does not have by its reference."""
    return RequestItem(
        message=ChatMessage(role="unknown", content="", address=hash_json_value(value))
    )


def make_dialect_reader() -> RequestReader:
    """Return a reader of prompts."""
    return RequestReader(MESSAGES_KEY, _read_no_item, _read_texts)


def replace_result(body: bytes, result: ToolResult, text: str) -> tuple[BodyEdit, ...]:
    """Return no edits: there are no results."""
    return ()


mark_result_failed = ollama_chat.mark_result_failed


def parse_model_answer(headers: Headers, body: bytes) -> ModelAnswer | None:
    """Parse the model's response, plain or streamed; None if it is not one (an error)."""
    return ollama_chat.parse_answer_lines(
        headers, body, "response", lambda line: line | {"content": line.get("response")}
    )


def write_model_answer(
    answer: ModelAnswer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and chunks of this response as Ollama sends it; all chunks at time 0.

    The dialect has neither calls nor a field for `id`.
    """
    pieces = [*json_access.split_into_deltas(answer.message), ""] if stream else [answer.message]
    parts: list[dict[str, object]] = [{"response": piece} for piece in pieces]
    return ollama_chat.write_answer_lines(answer, parts, stream=stream, created=created)
