"""Anthropic messages: POST .../v1/messages, plain or streamed; also at Vertex AI.

Wire facts: `system` is a member next to `messages`, read here as the first message; a tool result
is a `tool_result` block in a user message, with `tool_use_id`, `content` (a string, a list of
blocks, or absent) and `is_error`, which clients may omit; a streamed call sends its `input` as
pieces of JSON text (`input_json_delta`), joined by the `index` of its block; `stop_reason` and the
final usage come in `message_delta`; an `error` event may end a stream early. Tools that the
provider runs are blocks of their own (`server_tool_use`, `mcp_tool_use`) and so are their results
(`web_search_tool_result`, `mcp_tool_result`): no calls of the agent.
"""

import json
from collections.abc import Iterator
from itertools import pairwise
from urllib.parse import urlsplit

import orjson
from msgspec import Struct, field

from traces.bodies import json_offsets, sse
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

NAME = "anthropic_messages"
MESSAGES_KEY = "messages"

_CLOUDS = (":rawPredict", ":streamRawPredict")
"""Path suffixes of Vertex AI; its body has `anthropic_version` and no model."""

_BILLING = "x-anthropic-billing-header:"
"""Claude Code (2.1) begins `system` with such a block, which changes in every request."""


def can_read_request(request: Request) -> bool:
    """Whether it is a POST with messages to .../messages, or to a cloud path for these models."""
    path = urlsplit(request.url).path
    if request.method != "POST" or not path.endswith(("/messages", *_CLOUDS)):
        return False
    body = read_content(request)
    return b'"messages"' in body and (
        path.endswith("/v1/messages")
        or (path.endswith("/messages") and b'"max_tokens"' in body)
        or (path.endswith(_CLOUDS) and b'"anthropic_version"' in body)
    )


def read_model_name(body: bytes) -> str | None:
    """Return the requested model; None if the path names it."""
    return json_access.to_optional_string(json_access.read_body_object(body).get("model"))


def make_dialect_reader() -> RequestReader:
    """Return a reader of full conversations; `system` is the first message."""
    return RequestReader(MESSAGES_KEY, _read_anthropic_item, _read_anthropic_context)


def _read_anthropic_context(value: dict[str, object]) -> RequestContext:
    system = value.get("system")
    if not system:
        return RequestContext()
    address = hash_json_value({"role": "system", "content": _normalize_blocks(system)})
    return RequestContext(
        messages=(
            ChatMessage(
                role="system", content=json_access.join_content_text(system), address=address
            ),
        )
    )


def _read_anthropic_item(message: dict[str, object]) -> RequestItem:
    """Read one message; a user message of tool results only has role `tool`, as elsewhere."""
    role, content = str(message.get("role")), message.get("content")
    text, results = (
        json_access.join_content_text(content),
        [block for block in json_access.to_json_objects(content) if _is_tool_result(block)],
    )
    is_tool_message = role == "user" and bool(results) and not text
    return RequestItem(
        message=ChatMessage(
            role="tool" if is_tool_message else role,
            content="".join(map(_join_result_text, results)) if is_tool_message else text,
            address=hash_json_value({"role": role, "content": _normalize_blocks(content)}),
            media=list_media(content),
        ),
        results=tuple(
            ItemResult(
                str(block["tool_use_id"]),
                _join_result_text(block),
                _read_error_flag(block),
                list_media(block.get("content")),
            )
            for block in results
            if role == "user" and "tool_use_id" in block
        ),
    )


def _join_result_text(block: dict[str, object]) -> str:
    return json_access.join_content_text(block.get("content"))


def _read_error_flag(block: dict[str, object]) -> bool | None:
    flag = block.get("is_error")
    return flag if isinstance(flag, bool) else None


def _is_tool_result(block: dict[str, object]) -> bool:
    return block.get("type") == "tool_result"


def _normalize_blocks(content: object) -> object:
    if not isinstance(content, list):
        return content
    blocks = [
        block | {"content": json_access.normalize_content(block.get("content"))}
        if _is_tool_result(block)
        else block
        for block in json_access.to_json_objects(content)
        if not (json_access.to_optional_string(block.get("text")) or "").startswith(_BILLING)
    ]
    return json_access.normalize_content(blocks)


def replace_result(body: bytes, result: ToolResult, text: str) -> tuple[BodyEdit, ...]:
    """Return the edits that replace a result by `text`; none if it is already that text.

    A list stays a list: its first text block takes the text and its other text blocks are removed,
    since the API rejects empty ones ("text content blocks must be non-empty").
    """
    if result.text == text:
        return ()
    blocks = json_offsets.iter_json_objects(
        body, json_offsets.find_json_members(body, result.start).get(b"content")
    )
    same = (block for block in blocks if _is_block_of_result(body, block, result))
    return tuple(edit for block in same for edit in _replace_block_content(body, block, text))


def _is_block_of_result(
    body: bytes, block: dict[bytes, json_access.Span], result: ToolResult
) -> bool:
    is_result = (
        b"tool_use_id" in block
        and json_access.read_member_value(body, block, b"type") == "tool_result"
    )
    return (
        is_result
        and has_wire_id(result, str(json_access.read_member_value(body, block, b"tool_use_id")))
        and json_access.join_content_text(json_access.read_member_value(body, block, b"content"))
        == result.text
    )


def mark_result_failed(body: bytes, result: ToolResult) -> tuple[BodyEdit, ...]:
    """Return the edits that set `is_error` of a result; none if it is set."""
    blocks = json_offsets.iter_json_objects(
        body, json_offsets.find_json_members(body, result.start).get(b"content")
    )
    same = (block for block in blocks if _is_block_of_result(body, block, result))
    return tuple(edit for block in same for edit in _set_error_flag(body, block))


def _set_error_flag(body: bytes, block: dict[bytes, json_access.Span]) -> Iterator[BodyEdit]:
    if b"is_error" not in block:
        _, id_end = block[b"tool_use_id"]
        yield BodyEdit(start=id_end, stop=id_end, data=b', "is_error": true')
    elif json_access.read_member_value(body, block, b"is_error") is not True:
        start, stop = block[b"is_error"]
        yield BodyEdit(start=start, stop=stop, data=b"true")


def _replace_block_content(
    body: bytes, block: dict[bytes, json_access.Span], text: str
) -> Iterator[BodyEdit]:
    encoded = json_access.dump_json_string(body, text)
    if b"content" not in block:
        _, id_end = block[b"tool_use_id"]
        yield BodyEdit(start=id_end, stop=id_end, data=b', "content": ' + encoded)
        return
    start, stop = block[b"content"]
    if body[start : start + 1] != b"[":
        yield BodyEdit(start=start, stop=stop, data=encoded)
        return
    parts = list(json_offsets.iter_json_items(body, start))
    texts = {at: text_span for at in parts if (text_span := _find_block_text(body, at))}
    if not text:
        other_parts = (body[slice(*at)] for at in parts if at not in texts)
        yield BodyEdit(start=start, stop=stop, data=b"[" + b", ".join(other_parts) + b"]")
    elif not texts:
        comma = b", " if parts else b""
        new = b'{"type": "text", "text": ' + encoded + b"}" + comma
        yield BodyEdit(start=start + 1, stop=start + 1, data=new)
    else:
        (_, (at, end)), *others = texts.items()
        yield BodyEdit(start=at, stop=end, data=encoded)
        for (_, before), part in pairwise(parts):
            if part in dict(others):
                yield BodyEdit(start=before, stop=part[1], data=b"")


def _find_block_text(body: bytes, part: json_access.Span) -> json_access.Span | None:
    """Return the span of a block's text; None for a block without text."""
    if body[part[0] : part[0] + 1] != b"{":
        return None
    span = json_offsets.find_json_members(body, part[0]).get(b"text")
    return span if span and body[span[0] : span[0] + 1] == b'"' else None


def parse_model_answer(headers: Headers, body: bytes) -> ModelAnswer | None:
    """Parse the model's response, plain or streamed; None if it is not one (an error)."""
    text = decode_content(headers, body)
    if text is None:
        return None
    return _read_anthropic_body(text) if text.lstrip()[:1] == b"{" else _read_anthropic_stream(text)


def _read_anthropic_body(text: bytes) -> ModelAnswer | None:
    value = json_access.load_json_object(text)
    if not isinstance(value.get("content"), list):
        return None
    blocks = json_offsets.iter_json_objects(
        text,
        json_offsets.find_json_members(text, json_offsets.find_json_root(text)).get(b"content"),
    )
    parts = json_access.to_json_objects(value["content"])
    return ModelAnswer(
        message=json_access.join_content_text(parts),
        calls=tuple(
            ToolCall(
                id=str(json_access.read_member_value(text, block, b"id")),
                name=str(json_access.read_member_value(text, block, b"name")),
                arguments=text[slice(*block[b"input"])].decode("utf-8", "surrogatepass"),
            )
            for block in blocks
            if json_access.read_member_value(text, block, b"type") == "tool_use"
            and b"input" in block
        ),
        hosted=tuple(_pair_hosted_calls(parts)),
        model=json_access.to_optional_string(value.get("model")),
        finish=json_access.to_optional_string(value.get("stop_reason")),
        refused=value.get("stop_reason") == "refusal",
        usage=_to_anthropic_usage(json_access.to_json_object(value.get("usage"))),
        reasoning="".join(
            json_access.to_optional_string(part.get("thinking")) or "" for part in parts
        ),
    )


def _pair_hosted_calls(blocks: list[dict[str, object]]) -> Iterator[HostedCall]:
    """Yield the provider's calls, each with its result if the answer has it."""
    results = {str(each["tool_use_id"]): each for each in blocks if "tool_use_id" in each}
    for block in blocks:
        kind = str(block.get("type"))
        if kind == "tool_use" or not kind.endswith("_tool_use"):
            continue
        server = json_access.to_optional_string(block.get("server_name"))
        name = str(block.get("name"))
        result = results.get(str(block.get("id")), {})
        yield HostedCall(
            tool=f"{server}.{name}" if server else name,
            arguments=json_access.dump_json_text(block.get("input") or {}),
            result=_read_hosted_result(result.get("content")) if result else None,
            is_error=_is_hosted_error(result) if result else None,
        )


def _read_hosted_result(content: object) -> str:
    return json_access.join_content_text(content) or json_access.dump_json_text(content)


def _is_hosted_error(result: dict[str, object]) -> bool:
    """Whether a result is one: by its flag (MCP), or by the type of its content."""
    kind = json_access.to_json_object(result.get("content")).get("type")
    return result.get("is_error") is True or str(kind).endswith("_error")


def _to_anthropic_usage(value: dict[str, object]) -> TokenUsage | None:
    """Convert usage: the prompt is uncached input, cache reads and cache writes together.

    `input_tokens` counts only what follows the last cache mark (Anthropic's guide to prompt
    caching, "Tracking cache performance"). Thinking is not counted separately.
    """
    if not value:
        return None
    uncached, cached = (
        json_access.get_integer(value, "input_tokens"),
        json_access.get_integer(value, "cache_read_input_tokens"),
    )
    written = json_access.get_integer(value, "cache_creation_input_tokens")
    return TokenUsage(
        prompt_tokens=None if uncached is None else uncached + (cached or 0) + (written or 0),
        cached_tokens=cached,
        completion_tokens=json_access.get_integer(value, "output_tokens"),
    )


class _ContentBlock(Struct):
    opened: dict[str, object]
    pieces: list[str] = field(default_factory=list)
    closed: bool = False

    @property
    def text(self) -> str:
        return (json_access.to_optional_string(self.opened.get("text")) or "") + "".join(
            self.pieces
        )

    @property
    def call(self) -> ToolCall:
        input_value = self.opened.get("input") or {}
        return ToolCall(
            id=json_access.to_optional_string(self.opened.get("id")) or "",
            name=json_access.to_optional_string(self.opened.get("name")) or "",
            arguments="".join(self.pieces)
            or (json.dumps(input_value, ensure_ascii=False) if self.closed else ""),
        )

    @property
    def part(self) -> dict[str, object]:
        """The block as a plain answer has it, as far as it came."""
        given = json_access.load_json_object("".join(self.pieces).encode("utf-8", "replace"))
        return self.opened | ({"input": given} if given else {})


class _AnthropicStream(Struct):
    """The response as far as the events of a stream have delivered it."""

    model: str | None = None
    finish: str | None = None
    started: bool = False
    failed: bool = False
    usage: dict[str, object] = field(default_factory=dict)
    blocks: dict[int | None, _ContentBlock] = field(default_factory=dict)

    def add_event(self, event: dict[str, object]) -> None:
        index = json_access.get_integer(event, "index")
        match event.get("type"):
            case "message_start":
                self.started, message = True, json_access.to_json_object(event.get("message"))
                self.model = json_access.to_optional_string(message.get("model"))
                # Its output_tokens are an initial count, not that of the response.
                self._update_usage(
                    json_access.to_json_object(message.get("usage")) | {"output_tokens": None}
                )
            case "content_block_start":
                self.blocks[index] = _ContentBlock(
                    json_access.to_json_object(event.get("content_block"))
                )
            case "content_block_delta":
                self._append_delta(index, json_access.to_json_object(event.get("delta")))
            case "content_block_stop" if index in self.blocks:
                self.blocks[index].closed = True
            case "message_delta":
                delta = json_access.to_json_object(event.get("delta"))
                self.finish = (
                    json_access.to_optional_string(delta.get("stop_reason")) or self.finish
                )
                self._update_usage(json_access.to_json_object(event.get("usage")))
                for block in self.blocks.values():  # some servers close no block
                    block.closed = True
            case "error":
                self.failed = True

    def _update_usage(self, usage: dict[str, object]) -> None:
        self.usage |= {key: value for key, value in usage.items() if value is not None}

    def _append_delta(self, index: int | None, delta: dict[str, object]) -> None:
        deltas = (
            json_access.to_optional_string(delta.get(name))
            for name in ("text", "partial_json", "thinking")
        )
        piece = next(filter(None, deltas), None)
        if piece and index in self.blocks:
            self.blocks[index].pieces.append(piece)

    def find_blocks(self, kind: str) -> list[_ContentBlock]:
        return [block for block in self.blocks.values() if block.opened.get("type") == kind]


def _read_anthropic_stream(text: bytes) -> ModelAnswer | None:
    stream = _AnthropicStream()
    for event in sse.parse_sse_events(text):
        stream.add_event(json_access.load_json_object(event.data.encode("utf-8", "surrogatepass")))
    if not stream.started:
        return None
    finish = None if stream.failed else stream.finish
    return ModelAnswer(
        message="".join(block.text for block in stream.find_blocks("text")),
        calls=mark_incomplete_calls(
            [block.call for block in stream.find_blocks("tool_use")], finish
        ),
        hosted=tuple(_pair_hosted_calls([block.part for block in stream.blocks.values()])),
        model=stream.model,
        finish=finish,
        refused=stream.finish == "refusal",
        usage=_to_anthropic_usage(stream.usage),
        reasoning="".join(block.text for block in stream.find_blocks("thinking")),
    )


def write_model_answer(
    answer: ModelAnswer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and chunks of this response as a provider sends it; all chunks at time 0.

    The dialect has no field for `created`, and requires usage: unknown counts are 0.
    """
    if stream:
        return (("content-type", "text/event-stream; charset=utf-8"),), tuple(
            Chunk(at=0.0, data=data) for data in _write_anthropic_events(answer, id)
        )
    texts = [{"type": "text", "text": answer.message}] if answer.message else []
    value = _make_anthropic_message(answer, id) | {
        "content": [
            *texts,
            *(_to_tool_use(call, _to_tool_input(call.arguments)) for call in answer.calls),
        ],
        "stop_reason": _to_stop_reason(answer),
        "usage": _to_anthropic_counts(answer),
    }
    body = orjson.dumps(value)
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    return headers, (Chunk(at=0.0, data=body),)


def _to_stop_reason(answer: ModelAnswer) -> str:
    if answer.refused:
        return "refusal"
    return answer.finish or ("tool_use" if answer.calls else "end_turn")


def _make_anthropic_message(answer: ModelAnswer, id: str) -> dict[str, object]:
    name = answer.model or "unknown"
    head = {"id": id, "type": "message", "role": "assistant", "model": name}
    return {**head, "content": [], "stop_reason": None, "stop_sequence": None}


def _to_tool_use(call: ToolCall, given: object) -> dict[str, object]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def _to_tool_input(arguments: str) -> object:
    """Return arguments as the value of `input`; a value that is not an object is wrapped as in
    Anthropic's guide to fine-grained tool streaming.
    """
    if (
        json_access.load_json_object(arguments.encode("utf-8", "replace"))
        or "".join(arguments.split()) == "{}"
    ):
        return orjson.Fragment(arguments)
    return {"INVALID_JSON": arguments}


def _to_anthropic_counts(answer: ModelAnswer) -> dict[str, object]:
    usage = answer.usage or TokenUsage()
    cached = usage.cached_tokens or 0
    return {
        "input_tokens": (usage.prompt_tokens or 0) - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.completion_tokens or 0,
    }


def _write_anthropic_events(answer: ModelAnswer, id: str) -> Iterator[bytes]:
    counts = _to_anthropic_counts(answer)
    started = _make_anthropic_message(answer, id) | {"usage": counts | {"output_tokens": 1}}
    yield _write_sse_event("message_start", message=started)
    blocks: list[tuple[dict[str, object], str, str, str]] = []
    if answer.message:
        blocks.append(({"type": "text", "text": ""}, "text_delta", "text", answer.message))
    for call in answer.calls:
        opened = _to_tool_use(call, {})
        blocks.append((opened, "input_json_delta", "partial_json", call.arguments))
    for index, (opened, kind, key, text) in enumerate(blocks):
        yield _write_sse_event("content_block_start", index=index, content_block=opened)
        for piece in json_access.split_into_deltas(text):
            yield _write_sse_event(
                "content_block_delta", index=index, delta={"type": kind, key: piece}
            )
        yield _write_sse_event("content_block_stop", index=index)
    delta = {"stop_reason": _to_stop_reason(answer), "stop_sequence": None}
    yield _write_sse_event("message_delta", delta=delta, usage=counts)
    yield _write_sse_event("message_stop")


def _write_sse_event(kind: str, **rest: object) -> bytes:
    value: dict[str, object] = {"type": kind, **rest}
    return b"event: " + kind.encode() + b"\ndata: " + orjson.dumps(value) + b"\n\n"
