"""AWS Bedrock Converse: POST .../model/NAME/converse, or /converse-stream as an event stream.

Wire facts (Bedrock API reference; the service model of botocore): the path names the model; the
conversation is `messages` after `system`, each with a list of content blocks without a type:
`text`, `toolUse` (`toolUseId`, `name`, `input` as an object), `toolResult` (`toolUseId`, `status`,
and `content`, a list of blocks `text` or `json`), `reasoningContent`. A `toolUse` of type
`server_tool_use` is run by the provider, its result is in the same answer. A stream has the events
of `traces/bodies/aws_event_stream.py`; a call's `input` comes in pieces of JSON text, joined by
`contentBlockIndex`; `stopReason` comes in `messageStop`, usage in `metadata`; an exception ends the
stream. Requests are signed (SigV4, with a hash of the body), or carry a bearer token.
"""

from collections import defaultdict
from collections.abc import Iterator
from urllib.parse import urlsplit

import orjson

from traces.bodies import json_offsets, sse
from traces.bodies.aws_event_stream import (
    CONTENT_TYPE,
    is_aws_event_stream,
    make_event,
    show_as_sse,
)
from traces.bodies.canonical_json import hash_json_value
from traces.bodies.content_encoding import decode_content, read_content
from traces.dialects import json_access
from traces.dialects.incomplete_calls import mark_incomplete_calls
from traces.dialects.media_parts import list_media
from traces.dialects.request_reader import (
    ItemResult,
    RequestContext,
    RequestItem,
    RequestReader,
)
from traces.dialects.result_numbers import has_wire_id
from traces.dialects.types import (
    ChatMessage,
    HostedCall,
    ModelAnswer,
    TokenUsage,
    ToolCall,
    ToolResult,
)
from traces.model import BodyEdit, Chunk, Headers, Request

NAME = "bedrock_converse"
MESSAGES_KEY = "messages"

type JsonObject = dict[str, object]

_HOSTED = "server_tool_use"
_REFUSALS = frozenset(("guardrail_intervened", "content_filtered"))


def can_read_request(request: Request) -> bool:
    """Whether it is a POST with messages to one of the two paths."""
    path = urlsplit(request.url).path
    if request.method != "POST" or not path.endswith(("/converse", "/converse-stream")):
        return False
    body = json_access.read_body_object(read_content(request))
    return isinstance(body.get("messages"), list)


def read_model_name(body: bytes) -> str | None:
    """Return None: the path names the model."""
    return None


def make_dialect_reader() -> RequestReader:
    """Return a reader of full conversations; `system` is the first message."""
    return RequestReader(MESSAGES_KEY, _read_converse_item, _read_converse_context)


def _read_converse_context(value: JsonObject) -> RequestContext:
    system = _drop_cache_points(value.get("system"))
    if not system:
        return RequestContext()
    message = ChatMessage(
        role="system",
        content=json_access.join_content_text(system),
        address=hash_json_value({"role": "system", "content": system}),
    )
    return RequestContext(messages=(message,))


def _drop_cache_points(content: object) -> object:
    """Return blocks without marks of the prompt cache, which move from request to request."""
    if not isinstance(content, list):
        return content
    return [each for each in content if not (isinstance(each, dict) and "cachePoint" in each)]


def _read_converse_item(message: JsonObject) -> RequestItem:
    """Read one message; a user message of tool results only has role `tool`, as elsewhere."""
    role, content = str(message.get("role")), _drop_cache_points(message.get("content"))
    results = [
        result
        for block in json_access.to_json_objects(content)
        if "toolUseId" in (result := json_access.to_json_object(block.get("toolResult")))
    ]
    text = json_access.join_content_text(content)
    is_tool_message = role == "user" and bool(results) and not text
    return RequestItem(
        message=ChatMessage(
            role="tool" if is_tool_message else role,
            content="".join(map(_read_result_text, results)) if is_tool_message else text,
            address=hash_json_value({"role": role, "content": content}),
            media=list_media(content),
        ),
        results=tuple(
            ItemResult(
                str(each["toolUseId"]),
                _read_result_text(each),
                _read_error_flag(each),
                list_media(each.get("content")),
            )
            for each in results
            if role == "user"
        ),
    )


def _read_result_text(result: JsonObject) -> str:
    """Return the joined texts of a result; JSON of it as canonical text."""
    return "".join(
        orjson.dumps(block["json"]).decode()
        if "json" in block
        else json_access.to_optional_string(block.get("text")) or ""
        for block in json_access.to_json_objects(result.get("content"))
    )


def _read_error_flag(result: JsonObject) -> bool | None:
    return {"error": True, "success": False}.get(str(result.get("status")))


def _find_result_members(
    body: bytes, result: ToolResult
) -> Iterator[dict[bytes, json_access.Span]]:
    """Yield the members of each `toolResult` of this call and text in the result's message."""
    blocks = json_offsets.iter_json_objects(
        body, json_offsets.find_json_members(body, result.start).get(b"content")
    )
    for block in blocks:
        span = block.get(b"toolResult")
        if span is None or body[span[0] : span[0] + 1] != b"{":
            continue
        value = json_access.load_json_object(body[slice(*span)])
        if has_wire_id(result, str(value.get("toolUseId"))) and (
            _read_result_text(value) == result.text
        ):
            yield json_offsets.find_json_members(body, span[0])


def replace_result(body: bytes, result: ToolResult, text: str) -> tuple[BodyEdit, ...]:
    """Return the edits that replace a result by `text`; none if it is already that text.

    A single text keeps its block; any other content becomes one block of text.
    """
    if result.text == text:
        return ()
    return tuple(
        edit
        for members in _find_result_members(body, result)
        for edit in _replace_content(body, members, text)
    )


def _replace_content(
    body: bytes, members: dict[bytes, json_access.Span], text: str
) -> Iterator[BodyEdit]:
    encoded = json_access.dump_json_string(body, text)
    block = b'[{"text": ' + encoded + b"}]"
    content = members.get(b"content")
    if content is None:
        _, end = members[b"toolUseId"]
        yield BodyEdit(start=end, stop=end, data=b', "content": ' + block)
        return
    blocks = list(json_offsets.iter_json_objects(body, content))
    texts = [span for each in blocks if (span := each.get(b"text")) and len(each) == 1]
    if len(blocks) == len(texts) == 1 and body[texts[0][0] : texts[0][0] + 1] == b'"':
        yield BodyEdit(start=texts[0][0], stop=texts[0][1], data=encoded)
    else:
        yield BodyEdit(start=content[0], stop=content[1], data=block)


def mark_result_failed(body: bytes, result: ToolResult) -> tuple[BodyEdit, ...]:
    """Return the edits that set the status of a result to `error`; none if it is."""
    edits = list[BodyEdit]()
    for members in _find_result_members(body, result) if result.is_error is not True else ():
        if (status := members.get(b"status")) is not None:
            edits.append(BodyEdit(start=status[0], stop=status[1], data=b'"error"'))
        else:
            _, end = members[b"toolUseId"]
            edits.append(BodyEdit(start=end, stop=end, data=b', "status": "error"'))
    return tuple(edits)


def parse_model_answer(headers: Headers, body: bytes) -> ModelAnswer | None:
    """Parse the model's response, plain or streamed; None if it is not one (an error)."""
    text = decode_content(headers, body)
    if text is None:
        return None
    if is_aws_event_stream(headers) or text[:1] == b"\0":
        return _read_converse_stream(show_as_sse(text))
    return _read_converse_body(text)


def _read_converse_body(text: bytes) -> ModelAnswer | None:
    value = json_access.load_json_object(text)
    output = json_access.to_json_object(value.get("output"))
    message = json_access.to_json_object(output.get("message"))
    blocks = json_access.to_json_objects(message.get("content"))
    if not isinstance(message.get("content"), list):
        return None
    finish = json_access.to_optional_string(value.get("stopReason"))
    return ModelAnswer(
        message=json_access.join_content_text(blocks),
        calls=mark_incomplete_calls(_find_body_calls(text), finish),
        hosted=tuple(_pair_hosted_calls(blocks)),
        media=list_media(blocks),
        finish=finish,
        refused=finish in _REFUSALS,
        usage=_to_converse_usage(value.get("usage")),
        reasoning="".join(map(_read_reasoning, blocks)),
    )


def _pair_hosted_calls(blocks: list[JsonObject]) -> Iterator[HostedCall]:
    """Yield the provider's calls, each with its result if the answer has it."""
    results = [json_access.to_json_object(each.get("toolResult")) for each in blocks]
    by_id = {str(each.get("toolUseId")): each for each in results if each}
    for block in blocks:
        call = json_access.to_json_object(block.get("toolUse"))
        if call.get("type") == _HOSTED:
            result = by_id.get(str(call.get("toolUseId")))
            yield HostedCall(
                tool=str(call.get("name")),
                arguments=json_access.dump_json_text(call.get("input") or {}),
                result=_read_result_text(result) if result else None,
                is_error=_read_error_flag(result) if result else None,
            )


def _read_reasoning(block: JsonObject) -> str:
    reasoning = json_access.to_json_object(block.get("reasoningContent"))
    told = json_access.to_json_object(reasoning.get("reasoningText"))
    return json_access.to_optional_string(told.get("text", reasoning.get("text"))) or ""


def _find_body_calls(text: bytes) -> Iterator[ToolCall]:
    """Yield the calls in a plain response, with their input as written."""
    members = json_offsets.find_json_members(text, json_offsets.find_json_root(text))
    for name in (b"output", b"message"):
        start, _ = members.get(name, (0, 0))
        is_object = text[start : start + 1] == b"{" and start > 0
        members = json_offsets.find_json_members(text, start) if is_object else {}
    for block in json_offsets.iter_json_objects(text, members.get(b"content")):
        start, _ = block.get(b"toolUse", (0, 0))
        if start == 0 or text[start : start + 1] != b"{":
            continue
        call = json_offsets.find_json_members(text, start)
        if json_access.read_member_value(text, call, b"type") == _HOSTED:
            continue
        given = text[slice(*call[b"input"])] if b"input" in call else b"{}"
        yield ToolCall(
            id=str(json_access.read_member_value(text, call, b"toolUseId")),
            name=str(json_access.read_member_value(text, call, b"name")),
            arguments=given.decode("utf-8", "surrogatepass"),
        )


def _read_converse_stream(text: bytes) -> ModelAnswer | None:
    """Read the events of a stream, shown as server-sent events."""
    texts, reasoning, started = list[str](), list[str](), False
    blocks = dict[int, JsonObject]()
    pieces = defaultdict[int, str](str)
    finish = usage = None
    failed = False
    for event in sse.parse_sse_events(text):
        value = json_access.load_json_object(event.data.encode("utf-8", "surrogatepass"))
        index = json_access.get_integer(value, "contentBlockIndex") or 0
        match event.name:
            case "messageStart":
                started = True
            case "contentBlockStart":
                blocks[index] = json_access.to_json_object(value.get("start"))
            case "contentBlockDelta":
                delta = json_access.to_json_object(value.get("delta"))
                texts.append(json_access.to_optional_string(delta.get("text")) or "")
                reasoning.append(_read_reasoning(delta))
                piece = json_access.to_json_object(delta.get("toolUse")).get("input")
                pieces[index] += piece if isinstance(piece, str) else ""
                if isinstance(result := delta.get("toolResult"), list) and index in blocks:
                    opened = json_access.to_json_object(blocks[index].get("toolResult"))
                    blocks[index] = {"toolResult": opened | {"content": result}}
            case "contentBlockStop":
                pieces[index] = pieces[index] or "{}"
            case "messageStop":
                finish = json_access.to_optional_string(value.get("stopReason"))
            case "metadata":
                usage = _to_converse_usage(value.get("usage"))
            case name:
                failed = failed or name.endswith("Exception")
    if not started:
        return None
    uses = {
        index: use
        for index, block in sorted(blocks.items())
        if (use := json_access.to_json_object(block.get("toolUse")))
    }
    for index, use in uses.items():
        given = json_access.load_json_object(pieces[index].encode("utf-8", "replace"))
        blocks[index] = {"toolUse": use | {"input": given}}
    calls = (
        ToolCall(id=str(use.get("toolUseId")), name=str(use.get("name")), arguments=pieces[index])
        for index, use in uses.items()
        if use.get("type") != _HOSTED
    )
    return ModelAnswer(
        message="".join(texts),
        calls=mark_incomplete_calls(calls, None if failed else finish),
        hosted=tuple(_pair_hosted_calls(list(blocks.values()))),
        finish=None if failed else finish,
        refused=finish in _REFUSALS,
        usage=usage,
        reasoning="".join(reasoning),
    )


def _to_converse_usage(value: object) -> TokenUsage | None:
    """Convert usage: the prompt is uncached input, cache reads and cache writes together."""
    counts = json_access.to_json_object(value)
    if not counts:
        return None
    uncached = json_access.get_integer(counts, "inputTokens")
    cached = json_access.get_integer(counts, "cacheReadInputTokens")
    written = json_access.get_integer(counts, "cacheWriteInputTokens")
    return TokenUsage(
        prompt_tokens=None if uncached is None else uncached + (cached or 0) + (written or 0),
        cached_tokens=cached,
        completion_tokens=json_access.get_integer(counts, "outputTokens"),
    )


def write_model_answer(
    answer: ModelAnswer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and chunks of this response as Bedrock sends it; all chunks at time 0.

    The dialect has no field for `created`; the id is that of the request, in a header.
    """
    named = ("x-amzn-requestid", id)
    if stream:
        events = (Chunk(at=0.0, data=data) for data in _write_converse_events(answer))
        return (("content-type", CONTENT_TYPE), named), tuple(events)
    content: list[JsonObject] = [{"text": answer.message}] if answer.message else []
    content += [{"toolUse": _to_tool_use(call)} for call in answer.calls]
    value: JsonObject = {
        "metrics": {"latencyMs": 0},
        "output": {"message": {"content": content, "role": "assistant"}},
        "stopReason": _to_stop_reason(answer),
        "usage": _to_converse_counts(answer),
    }
    body = orjson.dumps(value)
    kind, size = ("content-type", "application/json"), ("content-length", str(len(body)))
    return (kind, size, named), (Chunk(at=0.0, data=body),)


def _to_stop_reason(answer: ModelAnswer) -> str:
    if answer.refused:
        return "content_filtered"
    return answer.finish or ("tool_use" if answer.calls else "end_turn")


def _to_tool_use(call: ToolCall) -> JsonObject:
    is_object = bool(json_access.load_json_object(call.arguments.encode("utf-8", "replace")))
    given: object = orjson.Fragment(call.arguments) if is_object else {}
    return {"input": given, "name": call.name, "toolUseId": call.id}


def _to_converse_counts(answer: ModelAnswer) -> JsonObject:
    usage = answer.usage or TokenUsage()
    prompt, cached = usage.prompt_tokens or 0, usage.cached_tokens or 0
    return {
        "cacheReadInputTokens": cached,
        "inputTokens": prompt - cached,
        "outputTokens": usage.completion_tokens or 0,
        "totalTokens": prompt + (usage.completion_tokens or 0),
    }


def _write_converse_events(answer: ModelAnswer) -> Iterator[bytes]:
    yield make_event("messageStart", {"role": "assistant"})
    index = 0
    if answer.message:
        for piece in json_access.split_into_deltas(answer.message):
            yield _make_delta(index, {"text": piece})
        yield make_event("contentBlockStop", {"contentBlockIndex": index})
        index = 1
    for call in answer.calls:
        start = {"toolUse": {"name": call.name, "toolUseId": call.id}}
        yield make_event("contentBlockStart", {"contentBlockIndex": index, "start": start})
        for piece in json_access.split_into_deltas(call.arguments):
            yield _make_delta(index, {"toolUse": {"input": piece}})
        yield make_event("contentBlockStop", {"contentBlockIndex": index})
        index += 1
    yield make_event("messageStop", {"stopReason": _to_stop_reason(answer)})
    usage = {"metrics": {"latencyMs": 0}, "usage": _to_converse_counts(answer)}
    yield make_event("metadata", usage)


def _make_delta(index: int, delta: JsonObject) -> bytes:
    return make_event("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
