"""Cohere's chat, version 2: POST .../v2/chat, plain or streamed.

Wire facts (Cohere API reference, "Chat with streaming"; cohere 7 for Python): messages are those of
chat completions; the content of a result may also be a list of documents; what the model says
before its calls is `tool_plan`, not `content`. The answer is `message`, in a stream pieces of it
under `delta.message` of events `content-delta`, `tool-plan-delta`, `tool-call-start` and
`tool-call-delta`, joined by `index`; `message-end` has `finish_reason`, usage, and perhaps `error`.
An answer names no model.
"""

from collections.abc import Iterator
from copy import replace as changed
from urllib.parse import urlsplit

import orjson

from traces.bodies import json_offsets, sse
from traces.bodies.content_encoding import decode_content, read_content
from traces.dialects import json_access, openai_chat
from traces.dialects.incomplete_calls import mark_incomplete_calls
from traces.dialects.request_reader import (
    ItemResult,
    RequestItem,
    RequestReader,
)
from traces.dialects.types import ModelAnswer, TokenUsage, ToolCall, ToolResult
from traces.model import BodyEdit, Chunk, Headers, Request

NAME = "cohere_chat"
MESSAGES_KEY = "messages"

type JsonObject = dict[str, object]

_FAILURES = ("ERROR", "TIMEOUT")
"""Reasons to finish that mean that the answer is not whole."""


def can_read_request(request: Request) -> bool:
    """Whether it is a POST with a list of messages to .../v2/chat."""
    if request.method != "POST" or not urlsplit(request.url).path.endswith("/v2/chat"):
        return False
    body = json_access.read_body_object(read_content(request))
    return isinstance(body.get("messages"), list)


read_model_name = openai_chat.read_model_name


def _read_cohere_item(value: JsonObject) -> RequestItem:
    message = openai_chat.read_chat_message(value)
    text = message.content or json_access.to_optional_string(value.get("tool_plan")) or ""
    if message.role != "tool" or "tool_call_id" not in value or "content" not in value:
        return RequestItem(message=changed(message, content=text))
    text = _read_result_text(value["content"])
    return RequestItem(
        message=changed(message, role="tool", content=text),
        results=(ItemResult(str(value["tool_call_id"]), text),),
    )


def _read_result_text(content: object) -> str:
    """Return the joined texts of a result; the data of a document as it is, or as JSON."""
    if isinstance(content, str):
        return content
    return "".join(map(_read_block_text, json_access.to_json_objects(content)))


def _read_block_text(block: JsonObject) -> str:
    if "document" not in block:
        return json_access.to_optional_string(block.get("text")) or ""
    data = json_access.to_json_object(block["document"]).get("data", "")
    return data if isinstance(data, str) else orjson.dumps(data).decode()


def make_dialect_reader() -> RequestReader:
    """Return a reader of full conversations."""
    return RequestReader(MESSAGES_KEY, _read_cohere_item)


def replace_result(body: bytes, result: ToolResult, text: str) -> tuple[BodyEdit, ...]:
    """Return the edits that replace a result by `text`; none if it is already that text.

    Documents become one text.
    """
    content = json_offsets.find_json_members(body, result.start).get(b"content")
    if content is None or result.text == text:
        return ()
    if any(b"document" in block for block in json_offsets.iter_json_objects(body, content)):
        start, stop = content
        return (BodyEdit(start=start, stop=stop, data=json_access.dump_json_string(body, text)),)
    return openai_chat.replace_result(body, result, text)


mark_result_failed = openai_chat.mark_result_failed


def parse_model_answer(headers: Headers, body: bytes) -> ModelAnswer | None:
    """Parse the model's response, plain or streamed; None if it is not one (an error)."""
    text = decode_content(headers, body)
    if text is None:
        return None
    if text.lstrip()[:1] == b"{":
        return _read_cohere_body(json_access.load_json_object(text))
    return _read_cohere_stream(text)


def _read_cohere_body(value: JsonObject) -> ModelAnswer | None:
    message = value.get("message")
    if not isinstance(message, dict):
        return None
    blocks = json_access.to_json_objects(message.get("content"))
    plan = json_access.to_optional_string(message.get("tool_plan")) or ""
    finish = json_access.to_optional_string(value.get("finish_reason"))
    finish = None if finish in _FAILURES else finish
    calls = map(_to_call, json_access.to_json_objects(message.get("tool_calls")))
    return ModelAnswer(
        message=json_access.join_content_text(blocks) or plan,
        calls=mark_incomplete_calls(calls, finish),
        finish=finish,
        usage=_to_cohere_usage(value.get("usage")),
        reasoning="".join(map(_read_thinking, blocks)),
    )


def _read_thinking(block: JsonObject) -> str:
    return json_access.to_optional_string(block.get("thinking")) or ""


def _to_call(call: JsonObject) -> ToolCall:
    function = json_access.to_json_object(call.get("function"))
    return ToolCall(
        id=json_access.to_optional_string(call.get("id")) or "",
        name=json_access.to_optional_string(function.get("name")) or "",
        arguments=json_access.to_optional_string(function.get("arguments")) or "",
    )


def _read_cohere_stream(text: bytes) -> ModelAnswer | None:
    said, plan, thinking, started = list[str](), list[str](), list[str](), False
    calls = dict[int, list[ToolCall]]()
    finish = usage = None
    for event in sse.parse_sse_events(text):
        value = json_access.load_json_object(event.data.encode("utf-8", "surrogatepass"))
        delta = json_access.to_json_object(value.get("delta"))
        message = json_access.to_json_object(delta.get("message"))
        content = json_access.to_json_object(message.get("content"))
        match value.get("type"):
            case "message-start":
                started = True
            case "content-start" | "content-delta":
                said.append(json_access.to_optional_string(content.get("text")) or "")
                thinking.append(_read_thinking(content))
            case "tool-plan-delta":
                plan.append(json_access.to_optional_string(message.get("tool_plan")) or "")
            case "tool-call-start" | "tool-call-delta":
                index = json_access.get_integer(value, "index") or 0
                piece = _to_call(json_access.to_json_object(message.get("tool_calls")))
                calls.setdefault(index, []).append(piece)
            case "message-end":
                finish = json_access.to_optional_string(delta.get("finish_reason"))
                usage = _to_cohere_usage(delta.get("usage"))
    if not started:
        return None
    finish = None if finish in _FAILURES else finish
    joined = (_join_pieces(pieces) for _, pieces in sorted(calls.items()))
    return ModelAnswer(
        message="".join(said) or "".join(plan),
        calls=mark_incomplete_calls(joined, finish),
        finish=finish,
        usage=usage,
        reasoning="".join(thinking),
    )


def _join_pieces(pieces: list[ToolCall]) -> ToolCall:
    return ToolCall(
        id=pieces[0].id,
        name=pieces[0].name,
        arguments="".join(piece.arguments for piece in pieces),
    )


def _to_cohere_usage(value: object) -> TokenUsage | None:
    """Convert usage; `billed_units` leaves out what Cohere adds to a prompt."""
    usage = json_access.to_json_object(value)
    tokens = json_access.to_json_object(usage.get("tokens", usage.get("billed_units")))
    if not tokens:
        return None
    return TokenUsage(
        prompt_tokens=_to_count(tokens.get("input_tokens")),
        cached_tokens=_to_count(usage.get("cached_tokens")),
        completion_tokens=_to_count(tokens.get("output_tokens")),
    )


def _to_count(value: object) -> int | None:
    """Return a count, which may be written as 12.0."""
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole and isinstance(value, int | float) else None


def write_model_answer(
    answer: ModelAnswer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and chunks of this response as Cohere sends it; all chunks at time 0.

    The dialect has no field for `created` and the model.
    """
    if stream:
        return (("content-type", "text/event-stream"),), tuple(
            Chunk(at=0.0, data=data) for data in _write_cohere_events(answer, id)
        )
    message: JsonObject = {"role": "assistant"}
    if answer.calls:
        message |= {"tool_plan": answer.message, "tool_calls": list(map(_dump_call, answer.calls))}
    else:
        message["content"] = [{"type": "text", "text": answer.message}]
    value = {"id": id, "message": message, **_make_end(answer)}
    body = orjson.dumps(value)
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    return headers, (Chunk(at=0.0, data=body),)


def _dump_call(call: ToolCall) -> JsonObject:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _make_end(answer: ModelAnswer) -> JsonObject:
    usage = answer.usage or TokenUsage()
    counts = {
        "input_tokens": usage.prompt_tokens or 0,
        "output_tokens": usage.completion_tokens or 0,
    }
    finish = answer.finish or ("TOOL_CALL" if answer.calls else "COMPLETE")
    return {"finish_reason": finish, "usage": {"billed_units": counts, "tokens": counts}}


def _write_cohere_events(answer: ModelAnswer, id: str) -> Iterator[bytes]:
    start = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": []}
    yield _write_event("message-start", {"id": id}, {"message": start})
    if answer.calls:
        for piece in json_access.split_into_deltas(answer.message):
            yield _write_event("tool-plan-delta", {}, {"message": {"tool_plan": piece}})
    else:
        place: JsonObject = {"index": 0}
        opened = {"content": {"type": "text", "text": ""}}
        yield _write_event("content-start", place, {"message": opened})
        for piece in json_access.split_into_deltas(answer.message):
            yield _write_event("content-delta", place, {"message": {"content": {"text": piece}}})
        yield _write_event("content-end", place, None)
    for index, call in enumerate(answer.calls):
        opened_call = _dump_call(ToolCall(id=call.id, name=call.name, arguments=""))
        place = {"index": index}
        yield _write_event("tool-call-start", place, {"message": {"tool_calls": opened_call}})
        for piece in json_access.split_into_deltas(call.arguments):
            given = {"tool_calls": {"function": {"arguments": piece}}}
            yield _write_event("tool-call-delta", place, {"message": given})
        yield _write_event("tool-call-end", place, None)
    yield _write_event("message-end", {"id": id}, _make_end(answer))


def _write_event(kind: str, head: JsonObject, delta: JsonObject | None) -> bytes:
    value = head | {"type": kind} | ({} if delta is None else {"delta": delta})
    return b"event: " + kind.encode() + b"\ndata: " + orjson.dumps(value) + b"\n\n"
