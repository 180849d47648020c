"""Ollama's own chat: POST .../api/chat, plain or as a stream of JSON lines.

Wire facts (Ollama's API reference, and ollama 0.6 for Python): a request streams unless `stream` is
false; the conversation is `messages`; a call is an entry of `tool_calls`, an object `function` with
`name` and `arguments` (an object), and from some servers an `id`, which most clients drop; a result
is a message of role `tool`, with `tool_name` or `tool_call_id` or neither, and no error flag. A
stream is one JSON object a line (application/x-ndjson), each with the new part of `message`; calls
are never split; the last line has `done`, `done_reason` and the counts of tokens. An object with
`error` ends a stream early. Calls are named as in `unnamed_calls`, whatever their ids.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

import orjson

from traces.bodies import json_offsets
from traces.bodies.canonical_json import hash_json_value
from traces.bodies.content_encoding import decode_content, read_content
from traces.dialects import json_access, openai_chat
from traces.dialects.types import ChatMessage, ModelAnswer, TokenUsage, ToolCall
from traces.dialects.unnamed_calls import (
    AskedCall,
    CallItem,
    ReturnedResult,
    UnnamedCallReader,
    derive_call_id,
)
from traces.model import Chunk, Headers, Request

NAME = "ollama_chat"
MESSAGES_KEY = "messages"


def can_read_request(request: Request) -> bool:
    """Whether it is a POST with a list of messages to .../api/chat."""
    if request.method != "POST" or not urlsplit(request.url).path.endswith("/api/chat"):
        return False
    body = json_access.read_body_object(read_content(request))
    return isinstance(body.get("model"), str) and isinstance(body.get("messages"), list)


def read_model_name(body: bytes) -> str | None:
    """Return the requested model."""
    return json_access.to_optional_string(json_access.read_body_object(body).get("model"))


def _read_ollama_message(text: bytes) -> CallItem | None:
    value = json_access.parse_json_text(text)
    if not isinstance(value, dict):
        return None
    content = json_access.to_optional_string(value.get("content")) or ""
    role = str(value.get("role"))
    is_result = role == "tool" and isinstance(value.get("content"), str)
    return CallItem(
        message=ChatMessage(
            role=role,
            content=content,
            address=hash_json_value(value),
            media=_list_images(value),
        ),
        calls=tuple(_find_asked_calls(value)) if role == "assistant" else (),
        returned=(_to_result(value, content, len(text)),) if is_result else (),
    )


def _find_asked_calls(message: dict[str, object]) -> Iterator[AskedCall]:
    for call in json_access.to_json_objects(message.get("tool_calls")):
        function = json_access.to_json_object(call.get("function"))
        name = json_access.to_optional_string(function.get("name")) or ""
        yield AskedCall(
            id=json_access.to_optional_string(call.get("id")) or None,
            name=name,
            known_by=derive_call_id(name, function.get("arguments")),
        )


def _to_result(message: dict[str, object], text: str, size: int) -> ReturnedResult:
    names = (json_access.to_optional_string(message.get(key)) for key in ("tool_name", "name"))
    return ReturnedResult(
        id=json_access.to_optional_string(message.get("tool_call_id")) or None,
        name=next(filter(None, names), ""),
        text=text,
        is_error=None,
        start=0,
        stop=size,
    )


def make_dialect_reader() -> UnnamedCallReader:
    """Return a reader of full conversations."""
    return UnnamedCallReader(MESSAGES_KEY, _read_ollama_message, lambda _: ())


replace_result = openai_chat.replace_result
mark_result_failed = openai_chat.mark_result_failed


def parse_model_answer(headers: Headers, body: bytes) -> ModelAnswer | None:
    """Parse the model's response, plain or streamed; None if it is not one (an error)."""
    return parse_answer_lines(headers, body, "message", _get_message)


def _get_message(line: dict[str, object]) -> dict[str, object]:
    return json_access.to_json_object(line.get("message"))


def parse_answer_lines(
    headers: Headers,
    body: bytes,
    key: str,
    get_message: Callable[[dict[str, object]], dict[str, object]],
) -> ModelAnswer | None:
    """Parse the lines of a response that have a member `key`; None if there is none.

    `get_message` returns the object with `content`, `thinking` and `tool_calls` of a line.
    """
    text = decode_content(headers, body)
    if text is None:
        return None
    objects = [(line, each) for line in text.splitlines() if (each := _load_line(line))]
    lines = [(line, each) for line, each in objects if key in each]
    if not lines:
        return None
    messages = [get_message(each) for _, each in lines]
    last = lines[-1][1]
    is_whole = last.get("done") is True and len(lines) == len(objects)
    reason = json_access.to_optional_string(last.get("done_reason")) or "stop"
    return ModelAnswer(
        message=_join_members(messages, "content"),
        calls=tuple(call for line, _ in lines for call in _read_calls(line)),
        model=json_access.to_optional_string(last.get("model")),
        finish=reason if is_whole else None,
        usage=_to_ollama_usage(last),
        reasoning=_join_members(messages, "thinking"),
        media=tuple(kind for each in messages for kind in _list_images(each)),
    )


def _list_images(message: dict[str, object]) -> tuple[str, ...]:
    images = message.get("images")
    return ("image",) * len(images) if isinstance(images, list) else ()


def _load_line(line: bytes) -> dict[str, object]:
    return json_access.load_json_object(line) if line.strip() else {}


def _join_members(messages: list[dict[str, object]], key: str) -> str:
    return "".join(json_access.to_optional_string(each.get(key)) or "" for each in messages)


def _read_calls(line: bytes) -> Iterator[ToolCall]:
    """Yield the calls in one object of a response, with their arguments as written."""
    if b'"tool_calls"' not in line:
        return
    root = json_offsets.find_json_members(line, json_offsets.find_json_root(line))
    message = _find_members(line, root, b"message")
    for call in json_offsets.iter_json_objects(line, message.get(b"tool_calls")):
        function = _find_members(line, call, b"function")
        name = json_access.read_member_value(line, function, b"name")
        span = function.get(b"arguments")
        arguments = b"{}" if span is None else line[slice(*span)]
        yield ToolCall(
            id=derive_call_id(
                json_access.to_optional_string(name) or "", json_access.parse_json_text(arguments)
            ),
            name=json_access.to_optional_string(name) or "",
            arguments=arguments.decode("utf-8", "surrogatepass"),
        )


def _find_members(
    text: bytes, members: dict[bytes, json_access.Span], name: bytes
) -> dict[bytes, json_access.Span]:
    start, _ = members.get(name, (0, 0))
    is_object = start and text[start : start + 1] == b"{"
    return json_offsets.find_json_members(text, start) if is_object else {}


def _to_ollama_usage(line: dict[str, object]) -> TokenUsage | None:
    """Convert the counts of the last line; a prompt that was cached may have no count."""
    prompt = json_access.get_integer(line, "prompt_eval_count")
    completion = json_access.get_integer(line, "eval_count")
    if prompt is None and completion is None:
        return None
    return TokenUsage(prompt_tokens=prompt, completion_tokens=completion)


def write_model_answer(
    answer: ModelAnswer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and chunks of this response as Ollama sends it; all chunks at time 0.

    The dialect has no field for `id`.
    """
    calls = [_dump_call(call) for call in answer.calls]
    messages: list[dict[str, object]] = [{"content": answer.message}]
    if stream:
        messages = [{"content": piece} for piece in json_access.split_into_deltas(answer.message)]
        messages += [{"content": "", "tool_calls": [call]} for call in calls]
        messages.append({"content": ""})
    elif calls:
        messages[0]["tool_calls"] = calls
    parts: list[dict[str, object]] = [
        {"message": {"role": "assistant"} | each} for each in messages
    ]
    return write_answer_lines(answer, parts, stream=stream, created=created)


def write_answer_lines(
    answer: ModelAnswer, parts: list[dict[str, object]], *, stream: bool, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and chunks of a response in these parts, the last of which ends it."""
    moment = datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    head = {"model": answer.model or "unknown", "created_at": moment}
    end = {"done": True, "done_reason": answer.finish or "stop", **_dump_counts(answer.usage)}
    *early, last = parts
    lines = [orjson.dumps(head | part | {"done": False}) for part in early]
    lines.append(orjson.dumps(head | last | end))
    if stream:
        return (("content-type", "application/x-ndjson"),), tuple(
            Chunk(at=0.0, data=line + b"\n") for line in lines
        )
    kind = ("content-type", "application/json; charset=utf-8")
    return (kind, ("content-length", str(len(lines[0])))), (Chunk(at=0.0, data=lines[0]),)


def _dump_call(call: ToolCall) -> dict[str, object]:
    is_object = call.arguments.lstrip()[:1] == "{"
    arguments: object = orjson.Fragment(call.arguments) if is_object else {}
    return {"function": {"name": call.name, "arguments": arguments}}


def _dump_counts(usage: TokenUsage | None) -> dict[str, object]:
    """Return counts and durations, in tokens and nanoseconds; a duration is 0, as none was
    measured."""
    durations: dict[str, object] = {"total_duration": 0, "load_duration": 0}
    if usage is None:
        return durations
    return durations | {
        "prompt_eval_count": usage.prompt_tokens or 0,
        "prompt_eval_duration": 0,
        "eval_count": usage.completion_tokens or 0,
        "eval_duration": 0,
    }
