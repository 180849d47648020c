"""Gemini generateContent: POST .../models/NAME:generateContent or :streamGenerateContent.

Wire facts (Gemini API reference, "Generating content" and "Function calling"): the path names the
model; the conversation is `contents`, each with `role` user or model and `parts`; a call is a part
`functionCall` with `name`, `args` (an object) and an optional `id`; its result is a part
`functionResponse` in a user content, with `name` and an object `response`, in which `output` or
`error` is the tool's output, and any other object is the output itself. Calls are never split. A
stream is server-sent events with `alt=sse`, else a JSON list; each event is a response with the new
parts. `candidatesTokenCount` excludes thinking, `promptTokenCount` includes cached tokens. In a
request each name may also be in snake_case (protobuf's JSON), as litellm writes it; older clients
send results with the role `function`.

If no id is on the wire, a call is named as in `unnamed_calls`.

Requests to cloudcode-pa.googleapis.com (Gemini CLI with a Google login) wrap all this in another
object and are not read.
"""

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import orjson

from traces.bodies import json_offsets, sse
from traces.bodies.canonical_json import hash_json_value
from traces.bodies.content_encoding import decode_content, read_content
from traces.dialects import json_access
from traces.dialects.media_parts import join_streamed_media, list_media
from traces.dialects.types import (
    ChatMessage,
    HostedCall,
    ModelAnswer,
    TokenUsage,
    ToolCall,
    ToolResult,
)
from traces.dialects.unnamed_calls import (
    AskedCall,
    CallItem,
    ReturnedResult,
    UnnamedCallReader,
    derive_call_id,
)
from traces.model import BodyEdit, Chunk, Headers, Request

NAME = "gemini"
MESSAGES_KEY = "contents"

type Members = dict[bytes, json_access.Span]

_METHOD_SUFFIXES = (":generateContent", ":streamGenerateContent")
_CALL = ("functionCall", "function_call")
_RESPONSE = ("functionResponse", "function_response")
_HOSTED = {"executableCode": "codeExecutionResult", "toolCall": "toolResponse"}
"""Parts of an answer with what the provider ran, and with its result."""
_TEXT_KEYS = ("output", "error", "result", "return_value", "content")
"""Keys under which clients put a tool's text as the only member: the first two by Google's
reference, `result` by google-genai's automatic calls, `return_value` by pydantic-ai, `content` by
litellm.
"""
_REFUSALS = frozenset(
    ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY")
)


def can_read_request(request: Request) -> bool:
    """Whether it is a POST with contents to one of the two methods."""
    return (
        request.method == "POST"
        and urlsplit(request.url).path.endswith(_METHOD_SUFFIXES)
        and _has_contents_list(read_content(request))
    )


def _has_contents_list(body: bytes) -> bool:
    try:
        return json_offsets.find_json_array(body, b"contents") is not None
    except ValueError:
        return False


def read_model_name(body: bytes) -> str | None:
    """Return None: the path names the model, and the response names it."""
    return None


def _read_gemini_content(text: bytes) -> CallItem | None:
    value = json_access.parse_json_text(text)
    if not isinstance(value, dict):
        return None
    role = "assistant" if value.get("role") == "model" else str(value.get("role") or "user")
    parts, returned = (
        json_access.to_json_objects(value.get("parts")),
        tuple(_find_function_responses(text)),
    )
    text_of_parts, has_results = _join_answer_parts(parts), role != "assistant" and bool(returned)
    return CallItem(
        message=ChatMessage(
            role="tool" if has_results and not text_of_parts else role,
            content=text_of_parts or "".join(each.text for each in returned),
            address=hash_json_value(value),
            media=list_media(parts),
        ),
        calls=tuple(_find_gemini_calls(parts)) if role == "assistant" else (),
        returned=returned if has_results else (),
    )


def _join_answer_parts(parts: Iterable[dict[str, object]]) -> str:
    """Return the joined texts of parts, without thoughts."""
    texts = (
        json_access.to_optional_string(part.get("text"))
        for part in parts
        if part.get("thought") is not True
    )
    return "".join(filter(None, texts))


def _join_thought_parts(parts: Iterable[dict[str, object]]) -> str:
    """Return the joined thoughts of parts."""
    texts = (
        json_access.to_optional_string(part.get("text"))
        for part in parts
        if part.get("thought") is True
    )
    return "".join(filter(None, texts))


def _find_gemini_calls(parts: Iterable[dict[str, object]]) -> Iterator[AskedCall]:
    for part in parts:
        if call := next(
            (
                call_object
                for key in _CALL
                if (call_object := json_access.to_json_object(part.get(key)))
            ),
            None,
        ):
            id, name = (
                json_access.to_optional_string(call.get("id")) or None,
                json_access.to_optional_string(call.get("name")) or "",
            )
            yield AskedCall(
                id=id,
                name=name,
                known_by=id or derive_call_id(name, call.get("args")),
            )


def _find_function_responses(content: bytes) -> Iterator[ReturnedResult]:
    if not any(key.encode() in content for key in _RESPONSE):
        return
    parts = json_offsets.iter_json_objects(
        content,
        json_offsets.find_json_members(content, json_offsets.find_json_root(content)).get(b"parts"),
    )
    for part in parts:
        start, stop = next((part[k] for key in _RESPONSE if (k := key.encode()) in part), (0, 0))
        if content[start : start + 1] != b"{" or start == 0:
            continue
        value = json_access.to_json_object(json_access.parse_json_text(content[start:stop]))
        response = json_access.to_json_object(value.get("response"))
        yield ReturnedResult(
            id=json_access.to_optional_string(value.get("id")) or None,
            name=json_access.to_optional_string(value.get("name")) or "",
            text=_read_function_response_text(
                content, json_offsets.find_json_members(content, start).get(b"response")
            ),
            is_error=_has_response_error(response),
            start=start,
            stop=stop,
            media=list_media(value.get("parts")),
        )


def _has_response_error(told: dict[str, object]) -> bool | None:
    """Whether a response reports a failed tool; None if unknown. An empty `error` is no failure."""
    if told.get("error") not in (None, False, ""):
        return True
    return False if "error" in told else None


def _read_function_response_text(body: bytes, response: json_access.Span | None) -> str:
    """Return a tool's text, or the JSON text of all that it returned."""
    if response is None:
        return ""
    place = _find_lone_text(body, response)
    if place is not None:
        return str(json_access.parse_json_text(body[slice(*place)]))
    return body[slice(*response)].decode("utf-8", "surrogatepass")


def _find_lone_text(body: bytes, response: json_access.Span) -> json_access.Span | None:
    """Return the span of the text that is the only member of a response; None otherwise."""
    start, _ = response
    members = json_offsets.find_json_members(body, start) if body[start : start + 1] == b"{" else {}
    match list(members.items()):
        case [(name, place)] if name.decode("utf-8", "replace") in _TEXT_KEYS:
            return place if body[place[0] : place[0] + 1] == b'"' else None
    return None


def _read_system_instruction(text: bytes) -> tuple[ChatMessage, ...]:
    """Return the system instruction, which is a member next to the contents."""
    value = json_access.to_json_object(json_access.parse_json_text(text))
    system = value.get("systemInstruction") or value.get("system_instruction")
    if not isinstance(system, dict):
        return ()
    text_of_parts = _join_answer_parts(json_access.to_json_objects(system.get("parts")))
    return (ChatMessage(role="system", content=text_of_parts, address=hash_json_value(system)),)


def make_dialect_reader() -> UnnamedCallReader:
    """Return a reader of full conversations."""
    return UnnamedCallReader(MESSAGES_KEY, _read_gemini_content, _read_system_instruction)


def replace_result(body: bytes, result: ToolResult, text: str) -> tuple[BodyEdit, ...]:
    """Return the edits that replace a result by `text`; none if it is already that text.

    A response that is not a single text is replaced entirely: by `text` itself if that is an
    object, as the API requires, else by an object with the text as `output`.
    """
    if result.text == text:
        return ()
    response = json_offsets.find_json_members(body, result.start).get(b"response")
    encoded = json_access.dump_json_string(body, text)
    new_response = (
        text.encode("utf-8", "surrogatepass")
        if _is_json_object(text)
        else b'{"output": ' + encoded + b"}"
    )
    if response is None:
        return (
            BodyEdit(
                start=result.stop - 1,
                stop=result.stop - 1,
                data=_make_response_prefix(body, result) + new_response,
            ),
        )
    place = _find_lone_text(body, response)
    start, stop = place or response
    return (BodyEdit(start=start, stop=stop, data=encoded if place else new_response),)


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json_access.parse_json_text(text.encode("utf-8", "surrogatepass")), dict)
    except ValueError:
        return False


def _make_response_prefix(body: bytes, result: ToolResult) -> bytes:
    """Return the bytes before a `response` member added to this object, which may be empty."""
    return (b", " if json_offsets.find_json_members(body, result.start) else b"") + b'"response": '


def mark_result_failed(body: bytes, result: ToolResult) -> tuple[BodyEdit, ...]:
    """Return the edits that wrap the response in `error`; none if it is an error."""
    response = json_offsets.find_json_members(body, result.start).get(b"response")
    if result.is_error or response is None:
        return ()
    start, stop = response
    return (
        BodyEdit(start=start, stop=start, data=b'{"error": '),
        BodyEdit(start=stop, stop=stop, data=b"}"),
    )


def parse_model_answer(headers: Headers, body: bytes) -> ModelAnswer | None:
    """Parse the model's response, plain or streamed; None if it is not one (an error)."""
    text = decode_content(headers, body)
    if text is None:
        return None
    texts = list(_split_gemini_answer(text))
    values = [json_access.load_json_object(each) for each in texts]
    valid = [value for value in values if "error" not in value]
    blocked = [reason for each in valid if (reason := _read_block_reason(each))]
    if not blocked and not any("candidates" in each for each in valid):
        return None
    candidates = [_get_first_candidate(each.get("candidates")) for each in valid]
    finish = _find_last_string(candidates, "finishReason") or (blocked[-1] if blocked else None)
    return ModelAnswer(
        message="".join(_join_answer_parts(_get_candidate_parts(each)) for each in candidates)
        or "".join(blocked),
        calls=tuple(call for each in texts for call in _read_answer_calls(each)),
        hosted=tuple(_find_hosted_calls(candidates)),
        media=join_streamed_media(list_media(_get_candidate_parts(each)) for each in candidates),
        model=_find_last_string(valid, "modelVersion"),
        finish=None if len(valid) < len(values) else finish,
        refused=bool(blocked) or finish in _REFUSALS,
        usage=_to_gemini_usage(
            [json_access.to_json_object(each.get("usageMetadata")) for each in valid]
        ),
        reasoning="".join(_join_thought_parts(_get_candidate_parts(each)) for each in candidates),
    )


def _find_hosted_calls(candidates: list[dict[str, object]]) -> Iterator[HostedCall]:
    """Yield what the provider ran: code, searches, fetched URLs, and its other tools by name."""
    parts = [part for each in candidates for part in _get_candidate_parts(each)]
    results = _list_objects(parts, _HOSTED.values())
    for call in _list_objects(parts, _HOSTED):
        result = next((each for each in results if each.get("id") == call.get("id")), {})
        if result:
            results.remove(result)
        outcome = result.get("outcome")
        yield HostedCall(
            tool=str(call.get("toolType") or "code_execution").lower(),
            arguments=json_access.dump_json_text(call.get("args", call)),
            result=_read_hosted_result(result) if result else None,
            is_error=None if outcome is None else outcome != "OUTCOME_OK",
        )
    grounding = _find_last_object(candidates, "groundingMetadata")
    if queries := grounding.get("webSearchQueries"):
        chunks = grounding.get("groundingChunks")
        yield HostedCall(
            tool="google_search",
            arguments=json_access.dump_json_text(queries),
            result=json_access.dump_json_text(chunks) if chunks else None,
        )
    fetched = _find_last_object(candidates, "urlContextMetadata").get("urlMetadata")
    for url in json_access.to_json_objects(fetched):
        status = str(url.get("urlRetrievalStatus"))
        yield HostedCall(
            tool="url_context",
            arguments=json_access.dump_json_text(url.get("retrievedUrl") or ""),
            result=status,
            is_error=not status.endswith("SUCCESS"),
        )


def _list_objects(parts: list[dict[str, object]], keys: Iterable[str]) -> list[dict[str, object]]:
    """Return the objects that parts have under these keys, in the parts' order."""
    names = tuple(keys)
    return [json_access.to_json_object(p[name]) for p in parts for name in names if name in p]


def _read_hosted_result(result: dict[str, object]) -> str:
    shown = next((result[key] for key in ("output", "response") if key in result), result)
    return json_access.dump_json_text(shown)


def _find_last_object(candidates: list[dict[str, object]], key: str) -> dict[str, object]:
    return next(
        (value for each in reversed(candidates) if isinstance(value := each.get(key), dict)), {}
    )


def _split_gemini_answer(text: bytes) -> Iterator[bytes]:
    """Yield the objects of a response: one, a list, or the events of a stream."""
    start = text.lstrip()[:1]
    if start == b"{":
        yield text
    elif start == b"[":
        yield from _split_json_list(text)
    else:
        for event in sse.parse_sse_events(text):
            yield event.data.encode("utf-8", "surrogatepass")


def _split_json_list(text: bytes) -> Iterator[bytes]:
    """Yield the complete objects of a list, which may be truncated."""
    try:
        for start, stop in json_offsets.iter_json_items(text, json_offsets.find_json_root(text)):
            yield text[start:stop]
    except ValueError:
        return


def _get_first_candidate(candidates: object) -> dict[str, object]:
    return next(iter(json_access.to_json_objects(candidates)), {})


def _get_candidate_parts(candidate: dict[str, object]) -> list[dict[str, object]]:
    return json_access.to_json_objects(
        json_access.to_json_object(candidate.get("content")).get("parts")
    )


def _find_last_string(said: Iterable[dict[str, object]], key: str) -> str | None:
    return next(
        (
            string
            for each in reversed([*said])
            if (string := json_access.to_optional_string(each.get(key)))
        ),
        None,
    )


def _read_block_reason(value: dict[str, object]) -> str | None:
    """Return why a prompt was blocked; None if it was not."""
    return json_access.to_optional_string(
        json_access.to_json_object(value.get("promptFeedback")).get("blockReason")
    )


def _read_answer_calls(text: bytes) -> Iterator[ToolCall]:
    """Yield the calls in one object of a response, with their arguments as written."""
    if b'"functionCall"' not in text or not json_access.load_json_object(text):
        return
    candidates = json_offsets.find_json_members(text, json_offsets.find_json_root(text)).get(
        b"candidates"
    )
    first: Members = next(json_offsets.iter_json_objects(text, candidates), {})
    for part in json_offsets.iter_json_objects(
        text, _find_member_object(text, first, b"content").get(b"parts")
    ):
        call = _find_member_object(text, part, b"functionCall")
        if b"name" not in call:
            continue
        name = (
            json_access.to_optional_string(json_access.read_member_value(text, call, b"name")) or ""
        )
        arguments = text[slice(*call[b"args"])] if b"args" in call else b"{}"
        id = json_access.to_optional_string(json_access.read_member_value(text, call, b"id"))
        yield ToolCall(
            id=id or derive_call_id(name, json_access.parse_json_text(arguments)),
            name=name,
            arguments=arguments.decode("utf-8", "surrogatepass"),
        )


def _find_member_object(text: bytes, members: Members, name: bytes) -> Members:
    start, _ = members.get(name, (0, 0))
    return (
        json_offsets.find_json_members(text, start)
        if start and text[start : start + 1] == b"{"
        else {}
    )


def _to_gemini_usage(told: list[dict[str, object]]) -> TokenUsage | None:
    """Convert usage; counts are cumulative, so the last ones hold.

    Thinking is part of the completion, and input from the provider's own tools is part of the
    prompt.
    """
    counts = {
        key: number
        for each in told
        for key in each
        if (number := json_access.get_integer(each, key))
    }
    if not any(told):
        return None
    thinking = counts.get("thoughtsTokenCount")
    prompt = counts.get("promptTokenCount")
    return TokenUsage(
        prompt_tokens=None if prompt is None else prompt + counts.get("toolUsePromptTokenCount", 0),
        cached_tokens=counts.get("cachedContentTokenCount"),
        completion_tokens=counts.get("candidatesTokenCount", 0) + (thinking or 0),
        reasoning_tokens=thinking,
    )


def write_model_answer(
    answer: ModelAnswer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and chunks of this response as a provider sends it; all chunks at time 0.

    The dialect has no field for `created`.
    """
    if stream:
        return (("content-type", "text/event-stream"),), tuple(
            Chunk(at=0.0, data=b"data: " + orjson.dumps(event) + b"\r\n\r\n")
            for event in _make_gemini_events(answer, id)
        )
    texts: list[dict[str, object]] = [{"text": answer.message}] if answer.message else []
    parts = [*texts, *map(_to_function_call, answer.calls)]
    body = orjson.dumps(_make_gemini_response(answer, id, parts, _to_finish_reason(answer)))
    headers = (
        ("content-type", "application/json; charset=UTF-8"),
        ("content-length", str(len(body))),
    )
    return headers, (Chunk(at=0.0, data=body),)


def _make_gemini_events(answer: ModelAnswer, id: str) -> Iterator[dict[str, object]]:
    """Yield the text in pieces, then each call undivided; the last event has the finish reason."""
    parts: list[dict[str, object]] = [
        {"text": piece} for piece in json_access.split_into_deltas(answer.message)
    ]
    parts += map(_to_function_call, answer.calls)
    *early, last = parts or [{"text": ""}]
    for part in early:
        yield _make_gemini_response(answer, id, [part], None)
    yield _make_gemini_response(answer, id, [last], _to_finish_reason(answer))


def _to_finish_reason(answer: ModelAnswer) -> str:
    return "SAFETY" if answer.refused else answer.finish or "STOP"


def _to_function_call(call: ToolCall) -> dict[str, object]:
    args: object = orjson.Fragment(call.arguments) if _is_json_object(call.arguments) else {}
    return {"functionCall": {"id": call.id, "name": call.name, "args": args}}


def _make_gemini_response(
    answer: ModelAnswer, id: str, parts: list[dict[str, object]], finish: str | None
) -> dict[str, object]:
    content = {"role": "model", "parts": parts}
    candidate = {"content": content, "finishReason": finish, "index": 0}
    usage = answer.usage or TokenUsage()
    prompt, thinking = usage.prompt_tokens or 0, usage.reasoning_tokens or 0
    counts: dict[str, object] = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": (usage.completion_tokens or 0) - thinking,
        "totalTokenCount": prompt + (usage.completion_tokens or 0),
    }
    if usage.cached_tokens:
        counts["cachedContentTokenCount"] = usage.cached_tokens
    if thinking:
        counts["thoughtsTokenCount"] = thinking
    return {
        "candidates": [{key: value for key, value in candidate.items() if value is not None}],
        "usageMetadata": counts,
        "modelVersion": answer.model or "unknown",
        "responseId": id,
    }
