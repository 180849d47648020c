"""OpenAI chat completions: POST .../chat/completions, whole or streamed.

Wire facts: the conversation is `messages`; a tool result is a message of role `tool` whose
`tool_call_id` names the call and whose `content` is a string or a list of text parts, with no
flag for errors; a streamed call sends its id and name once and its arguments in pieces, joined
by `index`; usage comes in a last chunk with empty `choices` if it was asked for; the stream
ends with `data: [DONE]`.
"""

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import orjson

from traces import spans, sse
from traces.canonical import canonical_value
from traces.encoding import plain
from traces.model import Chunk, Edit, Headers, Request
from traces.step import Answer, Message, Result, ToolCall, Usage

NAME = "openai_chat"


def fits(request: Request) -> bool:
    """True for a POST to .../chat/completions whose body has messages."""
    return (
        request.method == "POST"
        and urlsplit(request.url).path.endswith("/chat/completions")
        and b'"messages"' in (plain(request.headers, request.body) or b"")
    )


def _load(body: bytes) -> dict[str, object]:
    try:
        value = json.loads(body) if b"\\ud" in body.lower() else orjson.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def model(body: bytes) -> str | None:
    """The model that was asked for."""
    name = _load(body).get("model")
    return name if isinstance(name, str) else None


def messages(body: bytes) -> tuple[Message, ...]:
    """The conversation in the request; empty where the body cannot be read."""
    found = _load(body).get("messages")
    return tuple(
        Message(
            role=str(message.get("role")),
            content=_text(message.get("content")),
            canonical=canonical_value(message).decode("utf-8", "surrogatepass"),
        )
        for message in (found if isinstance(found, list) else ())
        if isinstance(message, dict)
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            part["text"]
            for part in content
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return ""


def _contents(body: bytes) -> Iterator[tuple[str, int, int]]:
    """(call id, start, stop of the content value) of each tool message."""
    if not _load(body):
        return
    top = spans.members(body, spans.root(body))
    start, _ = top.get(b"messages", (0, 0))
    if body[start : start + 1] != b"[":
        return
    for at, _ in spans.items(body, start):
        if body[at : at + 1] != b"{":
            continue
        message = spans.members(body, at)
        if b"content" in message and b"tool_call_id" in message:
            role, key = (body[slice(*message[name])] for name in (b"role", b"tool_call_id"))
            if json.loads(role) == "tool":
                yield str(json.loads(key)), *message[b"content"]


def results(body: bytes) -> tuple[Result, ...]:
    """The tool results in the request, in order; offsets are those of an identity-coded body."""
    return tuple(
        Result(call_id=key, text=_text(json.loads(body[start:stop])), start=start, stop=stop)
        for key, start, stop in _contents(body)
    )


def replace(body: bytes, call_id: str, text: str) -> tuple[Edit, ...]:
    """The edits that put `text` in place of the result of a call, in every message that has it.

    No edit where the text is what already stands there, so no byte moves without need. Of a
    list of parts the first text part takes the new text, the other text parts become empty.
    """
    edits: list[Edit] = []
    for key, start, stop in _contents(body):
        if key == call_id and _text(json.loads(body[start:stop])) != text:
            for index, (at, end) in enumerate(_strings(body, start, stop)):
                edits.append(Edit(start=at, stop=end, data=_dump(body, "" if index else text)))
    return tuple(edits)


def _strings(body: bytes, start: int, stop: int) -> list[tuple[int, int]]:
    if body[start : start + 1] != b"[":
        return [(start, stop)]
    parts = [spans.members(body, at) for at, _ in spans.items(body, start)]
    return [part[b"text"] for part in parts if b"text" in part] or [(start, stop)]


def _dump(body: bytes, text: str) -> bytes:
    """A JSON string in the client's own style: raw UTF-8 if it sends any, else escapes."""
    return json.dumps(text, ensure_ascii=body.isascii()).encode("utf-8", "surrogatepass")


def read(headers: Headers, body: bytes) -> Answer | None:
    """What the model answered, whole or streamed; None where this is no answer (an error)."""
    text = plain(headers, body)
    if text is None:
        return None
    if text.lstrip()[:1] == b"{":
        return _read_whole(_load(text))
    return _read_stream(text)


def _read_whole(value: dict[str, object]) -> Answer | None:
    choice = _first(value.get("choices"))
    message = choice.get("message")
    if not isinstance(message, dict):
        return None
    calls = message.get("tool_calls")
    return Answer(
        message=_text(message.get("content")),
        calls=tuple(_call(call) for call in calls or () if isinstance(call, dict)),
        model=_str(value.get("model")),
        finish=_str(choice.get("finish_reason")),
        usage=_usage(value.get("usage")),
    )


def _read_stream(text: bytes) -> Answer | None:
    content, calls, seen = [], dict[int, dict[str, str]](), False
    name = finish = usage = None
    for event in sse.events(text):
        value = _load(event.data.encode("utf-8", "surrogatepass"))
        if "choices" not in value:
            continue
        seen = True
        name = name or _str(value.get("model"))
        usage = _usage(value.get("usage")) or usage
        choice = _first(value["choices"])
        finish = _str(choice.get("finish_reason")) or finish
        delta = choice.get("delta")
        if isinstance(delta, dict):
            content.append(_text(delta.get("content")))
            for piece in delta.get("tool_calls") or ():
                _grow(calls.setdefault(int(piece.get("index", 0)), {}), piece)
    if not seen:
        return None
    return Answer(
        message="".join(content),
        calls=tuple(
            ToolCall(
                id=call.get("id", ""),
                name=call.get("name", ""),
                arguments=call.get("arguments", ""),
            )
            for _, call in sorted(calls.items())
        ),
        model=name,
        finish=finish,
        usage=usage,
    )


def _grow(call: dict[str, str], piece: dict[str, object]) -> None:
    function = piece.get("function")
    if isinstance(piece.get("id"), str):
        call["id"] = str(piece["id"])
    if isinstance(function, dict):
        for key in ("name", "arguments"):
            call[key] = call.get(key, "") + (_str(function.get(key)) or "")


def _first(choices: object) -> dict[str, object]:
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return {}


def _str(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _call(call: dict[str, object]) -> ToolCall:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    return ToolCall(
        id=_str(call.get("id")) or "",
        name=_str(function.get("name")) or "",
        arguments=_str(function.get("arguments")) or "",
    )


def _usage(value: object) -> Usage | None:
    """Cached tokens are part of prompt tokens, reasoning tokens of completion tokens."""
    if not isinstance(value, dict):
        return None

    def count(of: object, key: str) -> int | None:
        number = of.get(key) if isinstance(of, dict) else None
        return number if isinstance(number, int) else None

    return Usage(
        prompt_tokens=count(value, "prompt_tokens"),
        cached_tokens=count(value.get("prompt_tokens_details"), "cached_tokens"),
        completion_tokens=count(value, "completion_tokens"),
        reasoning_tokens=count(value.get("completion_tokens_details"), "reasoning_tokens"),
    )


def write(
    answer: Answer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Headers and chunks of this answer as a provider sends it; all chunks at time 0."""
    if stream:
        return (("content-type", "text/event-stream"),), tuple(
            Chunk(at=0.0, data=data) for data in _events(answer, id, created)
        )
    message: dict[str, object] = {"role": "assistant", "content": answer.message or None}
    if answer.calls:
        message["tool_calls"] = [_dump_call(call) for call in answer.calls]
    finish = answer.finish or ("tool_calls" if answer.calls else "stop")
    choice = {"index": 0, "message": message, "finish_reason": finish}
    value = _envelope(answer, "chat.completion", id, created, [choice]) | _dump_usage(answer)
    body = orjson.dumps(value)
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    return headers, (Chunk(at=0.0, data=body),)


def _envelope(
    answer: Answer, kind: str, id: str, created: int, choices: list[dict[str, object]]
) -> dict[str, object]:
    name = answer.model or "unknown"
    return {"id": id, "object": kind, "created": created, "model": name, "choices": choices}


def _dump_call(call: ToolCall) -> dict[str, object]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _dump_usage(answer: Answer) -> dict[str, object]:
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


_PIECE = 24
"""Characters of text or arguments in one streamed delta."""


def _events(answer: Answer, id: str, created: int) -> Iterator[bytes]:
    def event(delta: dict[str, object], finish: str | None = None) -> bytes:
        choice: dict[str, object] = {"index": 0, "delta": delta, "finish_reason": finish}
        value = _envelope(answer, "chat.completion.chunk", id, created, [choice])
        return b"data: " + orjson.dumps(value) + b"\n\n"

    yield event({"role": "assistant", "content": ""})
    for piece in _pieces(answer.message):
        yield event({"content": piece})
    for index, call in enumerate(answer.calls):
        opened = _dump_call(ToolCall(id=call.id, name=call.name, arguments=""))
        yield event({"tool_calls": [{"index": index} | opened]})
        for piece in _pieces(call.arguments):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, answer.finish or ("tool_calls" if answer.calls else "stop"))
    if answer.usage is not None:
        value = _envelope(answer, "chat.completion.chunk", id, created, []) | _dump_usage(answer)
        yield b"data: " + orjson.dumps(value) + b"\n\n"
    yield b"data: [DONE]\n\n"


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
