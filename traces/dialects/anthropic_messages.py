"""Anthropic messages: POST .../v1/messages, whole or streamed; also at Bedrock and Vertex.

Wire facts: `system` stands beside `messages` and is here their first message; a tool result is
a `tool_result` block in a user message, with `tool_use_id`, `content` (a string, a list of
blocks, or absent) and `is_error`, which clients may leave out; a streamed call sends its `input`
as pieces of JSON text (`input_json_delta`), joined by the `index` of its block; `stop_reason`
and the final usage come in `message_delta`; an `error` event may end a stream in its middle.
Tools that the provider runs (`server_tool_use`, `mcp_tool_use`) are no calls of the agent.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from urllib.parse import urlsplit

import orjson

from traces import spans, sse
from traces.canonical import address
from traces.dialects import wire
from traces.dialects.reading import Around, Item, Reading, replaced
from traces.encoding import plain
from traces.model import Chunk, Edit, Headers, Request
from traces.step import Answer, Message, Result, ToolCall, Usage

NAME = "anthropic_messages"
LIST = "messages"

_CLOUDS = ("/invoke", ":rawPredict", ":streamRawPredict")
"""How Bedrock and Vertex end the path; the body names `anthropic_version` and no model."""

_BILLING = "x-anthropic-billing-header:"
"""Claude Code (2.1) begins `system` with a block of this kind that changes in every request."""


def fits(request: Request) -> bool:
    """True for a POST to .../messages, or to a cloud's path for these models, with messages."""
    path = urlsplit(request.url).path
    if request.method != "POST" or not path.endswith(("/messages", *_CLOUDS)):
        return False
    body = plain(request.headers, request.body) or b""
    return b'"messages"' in body and (
        path.endswith("/v1/messages")
        or (path.endswith("/messages") and b'"max_tokens"' in body)
        or (path.endswith(_CLOUDS) and b'"anthropic_version"' in body)
    )


def model(body: bytes) -> str | None:
    """The model that was asked for; None where the path names it."""
    return wire.string(wire.load(body).get("model"))


def reading() -> Reading:
    """Clients send the whole conversation every time; `system` is its first message."""
    return Reading(LIST, _item, _around)


def _around(value: dict[str, object]) -> Around:
    system = value.get("system")
    if not system:
        return Around()
    said = address({"role": "system", "content": _bare(system)})
    return Around(messages=(Message(role="system", content=wire.text(system), address=said),))


def _item(message: dict[str, object]) -> Item:
    """A user message of nothing but tool results is of role `tool`, as in other dialects."""
    role, content = str(message.get("role")), message.get("content")
    text, results = wire.text(content), [block for block in wire.tables(content) if _result(block)]
    carries = role == "user" and bool(results) and not text
    return Item(
        message=Message(
            role="tool" if carries else role,
            content="".join(map(_text, results)) if carries else text,
            address=address({"role": role, "content": _bare(content)}),
        ),
        results=tuple(
            (str(block["tool_use_id"]), _text(block), _flag(block))
            for block in results
            if role == "user" and "tool_use_id" in block
        ),
    )


def _text(block: dict[str, object]) -> str:
    return wire.text(block.get("content"))


def _flag(block: dict[str, object]) -> bool | None:
    flag = block.get("is_error")
    return flag if isinstance(flag, bool) else None


def messages(body: bytes) -> tuple[Message, ...]:
    """The conversation in the request, `system` first; empty where the body cannot be read."""
    return reading()(body).messages


def results(body: bytes) -> tuple[Result, ...]:
    """The tool results in the request, in order; an absent content is empty."""
    return reading()(body).results


def _result(block: dict[str, object]) -> bool:
    return block.get("type") == "tool_result"


def _bare(content: object) -> object:
    if not isinstance(content, list):
        return content
    blocks = [
        block | {"content": wire.bare(block.get("content"))} if _result(block) else block
        for block in wire.tables(content)
        if not (wire.string(block.get("text")) or "").startswith(_BILLING)
    ]
    return wire.bare(blocks)


def put(body: bytes, result: Result, text: str) -> tuple[Edit, ...]:
    """The edits that put `text` in place of a result; none where it says so, so no byte moves.

    A list stays a list: its first text block takes the text and its other text blocks go, for
    the API refuses empty ones ("text content blocks must be non-empty").
    """
    if result.text == text:
        return ()
    blocks = spans.objects(body, spans.members(body, result.start).get(b"content"))
    same = (block for block in blocks if _is(body, block, result))
    return tuple(edit for block in same for edit in _put(body, block, text))


def _is(body: bytes, block: dict[bytes, wire.Span], result: Result) -> bool:
    named = b"tool_use_id" in block and wire.value(body, block, b"type") == "tool_result"
    return (
        named
        and str(wire.value(body, block, b"tool_use_id")) == result.call_id
        and wire.text(wire.value(body, block, b"content")) == result.text
    )


def fail(body: bytes, result: Result) -> tuple[Edit, ...]:
    """The edits that set `is_error` of a result; none where it is set."""
    blocks = spans.objects(body, spans.members(body, result.start).get(b"content"))
    same = (block for block in blocks if _is(body, block, result))
    return tuple(edit for block in same for edit in _fail(body, block))


def _fail(body: bytes, block: dict[bytes, wire.Span]) -> Iterator[Edit]:
    if b"is_error" not in block:
        _, behind = block[b"tool_use_id"]
        yield Edit(start=behind, stop=behind, data=b', "is_error": true')
    elif wire.value(body, block, b"is_error") is not True:
        start, stop = block[b"is_error"]
        yield Edit(start=start, stop=stop, data=b"true")


def replace(body: bytes, call_id: str, text: str) -> tuple[Edit, ...]:
    """`put` in every message that has a result of the call."""
    return replaced(put, body, results(body), call_id, text)


def _put(body: bytes, block: dict[bytes, wire.Span], text: str) -> Iterator[Edit]:
    said = wire.dump(body, text)
    if b"content" not in block:
        _, behind = block[b"tool_use_id"]
        yield Edit(start=behind, stop=behind, data=b', "content": ' + said)
        return
    start, stop = block[b"content"]
    if body[start : start + 1] != b"[":
        yield Edit(start=start, stop=stop, data=said)
        return
    parts = list(spans.items(body, start))
    texts = {at: found for at in parts if (found := _text_of(body, at))}
    if not text:
        kept = (body[slice(*at)] for at in parts if at not in texts)
        yield Edit(start=start, stop=stop, data=b"[" + b", ".join(kept) + b"]")
    elif not texts:
        comma = b", " if parts else b""
        new = b'{"type": "text", "text": ' + said + b"}" + comma
        yield Edit(start=start + 1, stop=start + 1, data=new)
    else:
        (_, (at, end)), *others = texts.items()
        yield Edit(start=at, stop=end, data=said)
        for (_, before), part in pairwise(parts):
            if part in dict(others):
                yield Edit(start=before, stop=part[1], data=b"")


def _text_of(body: bytes, part: wire.Span) -> wire.Span | None:
    """Where the text of a block stands; None for a block without one."""
    if body[part[0] : part[0] + 1] != b"{":
        return None
    found = spans.members(body, part[0]).get(b"text")
    return found if found and body[found[0] : found[0] + 1] == b'"' else None


def read(headers: Headers, body: bytes) -> Answer | None:
    """What the model answered, whole or streamed; None where this is no answer (an error)."""
    text = plain(headers, body)
    if text is None:
        return None
    return _read_whole(text) if text.lstrip()[:1] == b"{" else _read_stream(text)


def _read_whole(text: bytes) -> Answer | None:
    value = wire.load(text)
    if not isinstance(value.get("content"), list):
        return None
    blocks = spans.objects(text, spans.members(text, spans.root(text)).get(b"content"))
    return Answer(
        message=wire.text(value["content"]),
        calls=tuple(
            ToolCall(
                id=str(wire.value(text, block, b"id")),
                name=str(wire.value(text, block, b"name")),
                arguments=text[slice(*block[b"input"])].decode("utf-8", "surrogatepass"),
            )
            for block in blocks
            if wire.value(text, block, b"type") == "tool_use" and b"input" in block
        ),
        model=wire.string(value.get("model")),
        finish=wire.string(value.get("stop_reason")),
        refused=value.get("stop_reason") == "refusal",
        usage=_usage(wire.table(value.get("usage"))),
        reasoning="".join(
            wire.string(part.get("thinking")) or "" for part in wire.tables(value["content"])
        ),
    )


def _usage(value: dict[str, object]) -> Usage | None:
    """Tokens read from and written to the cache are no part of `input_tokens`, which counts only
    what follows the last cache mark (Anthropic's guide to prompt caching, "Tracking cache
    performance"); the prompt is all three. Thinking is not counted by itself.
    """
    if not value:
        return None
    fresh, cached = wire.count(value, "input_tokens"), wire.count(value, "cache_read_input_tokens")
    written = wire.count(value, "cache_creation_input_tokens")
    return Usage(
        prompt_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
        cached_tokens=cached,
        completion_tokens=wire.count(value, "output_tokens"),
    )


@dataclass(slots=True)
class _Block:
    opened: dict[str, object]
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return (wire.string(self.opened.get("text")) or "") + "".join(self.pieces)

    @property
    def call(self) -> ToolCall:
        given = self.opened.get("input") or {}
        return ToolCall(
            id=wire.string(self.opened.get("id")) or "",
            name=wire.string(self.opened.get("name")) or "",
            arguments="".join(self.pieces) or json.dumps(given, ensure_ascii=False),
        )


@dataclass(slots=True)
class _Stream:
    """What the events of a stream have said so far."""

    model: str | None = None
    finish: str | None = None
    started: bool = False
    failed: bool = False
    usage: dict[str, object] = field(default_factory=dict)
    blocks: dict[int | None, _Block] = field(default_factory=dict)

    def take(self, event: dict[str, object]) -> None:
        index = wire.count(event, "index")
        match event.get("type"):
            case "message_start":
                self.started, message = True, wire.table(event.get("message"))
                self.model = wire.string(message.get("model"))
                # Its output_tokens are those of the first moment, not of the answer.
                self._count(wire.table(message.get("usage")) | {"output_tokens": None})
            case "content_block_start":
                self.blocks[index] = _Block(wire.table(event.get("content_block")))
            case "content_block_delta":
                self._grow(index, wire.table(event.get("delta")))
            case "message_delta":
                delta = wire.table(event.get("delta"))
                self.finish = wire.string(delta.get("stop_reason")) or self.finish
                self._count(wire.table(event.get("usage")))
            case "error":
                self.failed = True

    def _count(self, usage: dict[str, object]) -> None:
        self.usage |= {key: value for key, value in usage.items() if value is not None}

    def _grow(self, index: int | None, delta: dict[str, object]) -> None:
        said = (wire.string(delta.get(name)) for name in ("text", "partial_json", "thinking"))
        piece = next(filter(None, said), None)
        if piece and index in self.blocks:
            self.blocks[index].pieces.append(piece)

    def of(self, kind: str) -> list[_Block]:
        return [block for block in self.blocks.values() if block.opened.get("type") == kind]


def _read_stream(text: bytes) -> Answer | None:
    stream = _Stream()
    for event in sse.events(text):
        stream.take(wire.load(event.data.encode("utf-8", "surrogatepass")))
    if not stream.started:
        return None
    return Answer(
        message="".join(block.text for block in stream.of("text")),
        calls=tuple(block.call for block in stream.of("tool_use")),
        model=stream.model,
        finish=None if stream.failed else stream.finish,
        refused=stream.finish == "refusal",
        usage=_usage(stream.usage),
        reasoning="".join(block.text for block in stream.of("thinking")),
    )


def write(
    answer: Answer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Headers and chunks of this answer as a provider sends it; all chunks at time 0.

    The dialect has no place for `created`, and none for an answer without usage: unknown is 0.
    """
    if stream:
        return (("content-type", "text/event-stream; charset=utf-8"),), tuple(
            Chunk(at=0.0, data=data) for data in _events(answer, id)
        )
    texts = [{"type": "text", "text": answer.message}] if answer.message else []
    value = _envelope(answer, id) | {
        "content": [*texts, *(_tool_use(call, _input(call.arguments)) for call in answer.calls)],
        "stop_reason": _stop_reason(answer),
        "usage": _counted(answer),
    }
    body = orjson.dumps(value)
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    return headers, (Chunk(at=0.0, data=body),)


def _stop_reason(answer: Answer) -> str:
    if answer.refused:
        return "refusal"
    return answer.finish or ("tool_use" if answer.calls else "end_turn")


def _envelope(answer: Answer, id: str) -> dict[str, object]:
    name = answer.model or "unknown"
    said = {"id": id, "type": "message", "role": "assistant", "model": name}
    return {**said, "content": [], "stop_reason": None, "stop_sequence": None}


def _tool_use(call: ToolCall, given: object) -> dict[str, object]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def _input(arguments: str) -> object:
    """Arguments as the value of `input`; what is no object is wrapped as Anthropic's guide to
    fine-grained tool streaming says.
    """
    if wire.load(arguments.encode("utf-8", "replace")) or "".join(arguments.split()) == "{}":
        return orjson.Fragment(arguments)
    return {"INVALID_JSON": arguments}


def _counted(answer: Answer) -> dict[str, object]:
    usage = answer.usage or Usage()
    cached = usage.cached_tokens or 0
    return {
        "input_tokens": (usage.prompt_tokens or 0) - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.completion_tokens or 0,
    }


def _events(answer: Answer, id: str) -> Iterator[bytes]:
    counted = _counted(answer)
    started = _envelope(answer, id) | {"usage": counted | {"output_tokens": 1}}
    yield _event("message_start", message=started)
    blocks: list[tuple[dict[str, object], str, str, str]] = []
    if answer.message:
        blocks.append(({"type": "text", "text": ""}, "text_delta", "text", answer.message))
    for call in answer.calls:
        opened = _tool_use(call, {})
        blocks.append((opened, "input_json_delta", "partial_json", call.arguments))
    for index, (opened, kind, key, text) in enumerate(blocks):
        yield _event("content_block_start", index=index, content_block=opened)
        for piece in wire.pieces(text):
            yield _event("content_block_delta", index=index, delta={"type": kind, key: piece})
        yield _event("content_block_stop", index=index)
    delta = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage=counted)
    yield _event("message_stop")


def _event(kind: str, **rest: object) -> bytes:
    value: dict[str, object] = {"type": kind, **rest}
    return b"event: " + kind.encode() + b"\ndata: " + orjson.dumps(value) + b"\n\n"
