"""OpenAI chat completions: POST .../chat/completions, plain or streamed.

Wire facts: the conversation is `messages`; a tool result is a message of role `tool` whose
`tool_call_id` names the call and whose `content` is a string or a list of text parts, without an
error flag; a streamed call sends its id and name once and its arguments in pieces, joined by
`index`; usage comes in a last chunk with empty `choices` if requested; the stream ends with `data:
[DONE]`. Groq shows tools that it ran as `executed_tools`.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

import orjson
from msgspec import Struct

from traces.bodies import json_offsets, sse
from traces.bodies.canonical_json import hash_json_value
from traces.bodies.content_encoding import decode_content, read_content
from traces.dialects import json_access
from traces.dialects.incomplete_calls import mark_incomplete_calls
from traces.dialects.media_parts import join_streamed_media, list_media
from traces.dialects.request_reader import (
    ItemResult,
    RequestItem,
    RequestReader,
)
from traces.dialects.types import (
    ChatMessage,
    HostedCall,
    ModelAnswer,
    TokenUsage,
    ToolCall,
    ToolResult,
)
from traces.identity_cache import IdentityCache
from traces.model import BodyEdit, Chunk, Headers, Request

NAME = "openai_chat"
MESSAGES_KEY = "messages"
_REASONING = ("reasoning_content", "reasoning")
"""Members with the reasoning: the first in DeepSeek and vLLM, the second in OpenRouter."""


@IdentityCache  # two narrower dialects ask first
def can_read_request(request: Request) -> bool:
    """Whether it is a POST with messages to .../chat/completions."""
    return (
        request.method == "POST"
        and urlsplit(request.url).path.endswith("/chat/completions")
        and b'"messages"' in read_content(request)
    )


def read_model_name(body: bytes) -> str | None:
    """Return the requested model."""
    name = json_access.read_body_object(body).get("model")
    return name if isinstance(name, str) else None


def read_chat_message(value: dict[str, object]) -> ChatMessage:
    """Read one message."""
    content = value.get("content")
    normalized = json_access.normalize_content(content)
    message = value if normalized is content else value | {"content": normalized}
    return ChatMessage(
        role=str(value.get("role")),
        content=json_access.join_content_text(content),
        address=hash_json_value(message),
        media=list_media(content),
    )


def _read_chat_item(value: dict[str, object]) -> RequestItem:
    message = read_chat_message(value)
    if message.role != "tool" or "content" not in value:
        return RequestItem(message=message)
    call_id = str(value.get("tool_call_id") or "")  # some providers give none
    result = ItemResult(call_id, message.content, None, message.media)
    return RequestItem(message=message, results=(result,))


def make_dialect_reader() -> RequestReader:
    """Return a reader of full conversations."""
    return RequestReader(MESSAGES_KEY, _read_chat_item)


def replace_result(body: bytes, result: ToolResult, text: str) -> tuple[BodyEdit, ...]:
    """Return the edits that replace a result by `text`; none if it is already that text.

    In a list of parts the first text part takes the new text, and the others become empty.
    """
    content = json_offsets.find_json_members(body, result.start).get(b"content")
    if content is None or result.text == text:
        return ()
    return tuple(
        json_access.replace_string_spans(
            body, json_access.find_content_strings(body, content) or [content], text
        )
    )


def mark_result_failed(body: bytes, result: ToolResult) -> tuple[BodyEdit, ...]:
    """Return no edits: the dialect has no error flag."""
    return ()


def parse_model_answer(headers: Headers, body: bytes) -> ModelAnswer | None:
    """Parse the model's response, plain or streamed; None if it is not one (an error)."""
    text = decode_content(headers, body)
    if text is None:
        return None
    if text.lstrip()[:1] == b"{":
        return _read_chat_completion(json_access.load_json_object(text))
    return _read_chat_stream(text)


def _read_chat_completion(value: dict[str, object]) -> ModelAnswer | None:
    choice = _get_first_choice(value.get("choices"))
    message = choice.get("message")
    if not isinstance(message, dict):
        return None
    refusal = json_access.to_optional_string(message.get("refusal"))
    finish = json_access.to_optional_string(choice.get("finish_reason"))
    calls = map(_to_chat_tool_call, json_access.to_json_objects(message.get("tool_calls")))
    return ModelAnswer(
        message=json_access.join_content_text(message.get("content")) or refusal or "",
        refused=bool(refusal),
        calls=mark_incomplete_calls(calls, finish),
        hosted=tuple(_read_executed_tools(message)),
        model=json_access.to_optional_string(value.get("model")),
        finish=finish,
        usage=_to_chat_usage(value.get("usage")),
        reasoning=_read_reasoning(message),
        media=_list_answer_media(message),
    )


def _list_answer_media(table: dict[str, object]) -> tuple[str, ...]:
    """Return the kinds of parts, of `images` (OpenRouter) and of `audio` (OpenAI)."""
    spoken = ("audio",) if table.get("audio") else ()
    return *list_media(table.get("content")), *list_media(table.get("images")), *spoken


def _read_executed_tools(message: dict[str, object]) -> Iterator[HostedCall]:
    for each in json_access.to_json_objects(message.get("executed_tools")):
        result = each.get("output") or each.get("search_results")
        yield HostedCall(
            tool=str(each.get("name") or each.get("type")),
            arguments=json_access.dump_json_text(each.get("arguments") or {}),
            result=None if result is None else json_access.dump_json_text(result),
        )


def _read_reasoning(table: dict[str, object]) -> str:
    """Return the reasoning, under either of its names, or that of a content in parts (Mistral)."""
    parts = json_access.to_json_objects(table.get("content"))
    thoughts = (json_access.join_content_text(part.get("thinking")) for part in parts)
    return next(
        (text for name in _REASONING if (text := json_access.to_optional_string(table.get(name)))),
        "".join(thoughts),
    )


def _read_chat_stream(text: bytes) -> ModelAnswer | None:
    content, calls, has_choices = [], list[_StreamedCall](), False
    reasoning, hosted, media = list[str](), list[HostedCall](), list[tuple[str, ...]]()
    refused = False
    name = finish = usage = None
    for event in sse.parse_sse_events(text):
        value = json_access.load_json_object(event.data.encode("utf-8", "surrogatepass"))
        if "choices" not in value:
            continue
        has_choices = True
        name = name or json_access.to_optional_string(value.get("model"))
        usage = _to_chat_usage(value.get("usage")) or usage
        choice = _get_first_choice(value["choices"])
        finish = json_access.to_optional_string(choice.get("finish_reason")) or finish
        delta = choice.get("delta")
        if isinstance(delta, dict):
            refusal = json_access.to_optional_string(delta.get("refusal")) or ""
            refused = refused or bool(refusal)
            content.append(json_access.join_content_text(delta.get("content")) + refusal)
            reasoning.append(_read_reasoning(delta))
            hosted += _read_executed_tools(delta)
            media.append(_list_answer_media(delta))
            for piece in json_access.to_json_objects(delta.get("tool_calls")):
                _append_call_delta(calls, piece)
    if not has_choices:
        return None
    return ModelAnswer(
        message="".join(content),
        refused=refused,
        calls=mark_incomplete_calls(
            (
                ToolCall(id=each.id, name=each.name, arguments=each.arguments)
                for each in sorted(calls, key=lambda call: call.index)
            ),
            finish,
        ),
        hosted=tuple(each for each in hosted if each.result is not None) or tuple(hosted),
        model=name,
        finish=finish,
        usage=usage,
        reasoning="".join(reasoning),
        media=join_streamed_media(media),
    )


class _StreamedCall(Struct):
    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


def _append_call_delta(calls: list[_StreamedCall], piece: dict[str, object]) -> None:
    function = json_access.to_json_object(piece.get("function"))
    id, name, arguments = (
        json_access.to_optional_string(each) or ""
        for each in (piece.get("id"), function.get("name"), function.get("arguments"))
    )
    index = json_access.get_integer(piece, "index") or 0
    call = next((each for each in reversed(calls) if each.index == index), None)
    if call is None or (name and call.name and _is_another_call(call, id, arguments)):
        calls.append(call := _StreamedCall(index))
        call.name = name
    else:
        call.name += name
    call.id = id or call.id
    call.arguments += arguments


def _is_another_call(call: _StreamedCall, id: str, arguments: str) -> bool:
    """Whether a piece with a name begins another call: some providers give all of them index 0."""
    if id and call.id:
        return id != call.id
    try:
        return bool(arguments) and json_access.parse_json_text(call.arguments.encode()) is not None
    except ValueError:
        return False


def _get_first_choice(choices: object) -> dict[str, object]:
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return {}


def _to_chat_tool_call(call: dict[str, object]) -> ToolCall:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    return ToolCall(
        id=json_access.to_optional_string(call.get("id")) or "",
        name=json_access.to_optional_string(function.get("name")) or "",
        arguments=json_access.to_optional_string(function.get("arguments")) or "",
    )


def _to_chat_usage(value: object) -> TokenUsage | None:
    """Convert usage: prompt tokens include cached tokens, completion tokens reasoning tokens."""
    if not isinstance(value, dict):
        return None

    return TokenUsage(
        prompt_tokens=json_access.get_integer(value, "prompt_tokens"),
        cached_tokens=json_access.get_integer(value.get("prompt_tokens_details"), "cached_tokens"),
        completion_tokens=json_access.get_integer(value, "completion_tokens"),
        reasoning_tokens=json_access.get_integer(
            value.get("completion_tokens_details"), "reasoning_tokens"
        ),
    )


def write_model_answer(
    answer: ModelAnswer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and chunks of this response as a provider sends it; all chunks at time 0."""
    if stream:
        return (("content-type", "text/event-stream"),), tuple(
            Chunk(at=0.0, data=data) for data in _write_chat_events(answer, id, created)
        )
    text = None if answer.refused else answer.message or None
    message: dict[str, object] = {"role": "assistant", "content": text}
    if answer.refused:
        message["refusal"] = answer.message
    if answer.calls:
        message["tool_calls"] = [_dump_call(call) for call in answer.calls]
    finish = answer.finish or ("tool_calls" if answer.calls else "stop")
    choice = {"index": 0, "message": message, "finish_reason": finish}
    value = _make_chat_completion(answer, "chat.completion", id, created, [choice]) | _dump_usage(
        answer
    )
    body = orjson.dumps(value)
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    return headers, (Chunk(at=0.0, data=body),)


def _make_chat_completion(
    answer: ModelAnswer, kind: str, id: str, created: int, choices: list[dict[str, object]]
) -> dict[str, object]:
    name = answer.model or "unknown"
    return {"id": id, "object": kind, "created": created, "model": name, "choices": choices}


def _dump_call(call: ToolCall) -> dict[str, object]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _dump_usage(answer: ModelAnswer) -> dict[str, object]:
    if answer.usage is None:
        return {}
    usage = answer.usage
    total = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
    return {
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": total,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        }
    }


def _write_chat_events(answer: ModelAnswer, id: str, created: int) -> Iterator[bytes]:
    def event(delta: dict[str, object], finish: str | None = None) -> bytes:
        choice: dict[str, object] = {"index": 0, "delta": delta, "finish_reason": finish}
        value = _make_chat_completion(answer, "chat.completion.chunk", id, created, [choice])
        return b"data: " + orjson.dumps(value) + b"\n\n"

    yield event({"role": "assistant", "content": ""})
    for piece in json_access.split_into_deltas(answer.message):
        yield event({"refusal" if answer.refused else "content": piece})
    for index, call in enumerate(answer.calls):
        opened = _dump_call(ToolCall(id=call.id, name=call.name, arguments=""))
        yield event({"tool_calls": [{"index": index} | opened]})
        for piece in json_access.split_into_deltas(call.arguments):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, answer.finish or ("tool_calls" if answer.calls else "stop"))
    if answer.usage is not None:
        value = _make_chat_completion(
            answer, "chat.completion.chunk", id, created, []
        ) | _dump_usage(answer)
        yield b"data: " + orjson.dumps(value) + b"\n\n"
    yield b"data: [DONE]\n\n"
