"""OpenAI chat completions: POST .../chat/completions, whole or streamed.

Wire facts: the conversation is `messages`; a tool result is a message of role `tool` whose
`tool_call_id` names the call and whose `content` is a string or a list of text parts, with no
flag for errors; a streamed call sends its id and name once and its arguments in pieces, joined
by `index`; usage comes in a last chunk with empty `choices` if it was asked for; the stream
ends with `data: [DONE]`.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

import orjson

from traces import spans, sse
from traces.canonical import address
from traces.dialects import wire
from traces.dialects.reading import Item, Reading, replaced
from traces.encoding import plain
from traces.model import Chunk, Edit, Headers, Request
from traces.step import Answer, Message, Result, ToolCall, Usage

NAME = "openai_chat"
LIST = "messages"
_REASONING = ("reasoning_content", "reasoning")
"""Members with what was thought: DeepSeek and vLLM say the first, OpenRouter the second."""


def fits(request: Request) -> bool:
    """True for a POST to .../chat/completions whose body has messages."""
    return (
        request.method == "POST"
        and urlsplit(request.url).path.endswith("/chat/completions")
        and b'"messages"' in (plain(request.headers, request.body) or b"")
    )


def model(body: bytes) -> str | None:
    """The model that was asked for."""
    name = wire.load(body).get("model")
    return name if isinstance(name, str) else None


def message(value: dict[str, object]) -> Message:
    """What one message says."""
    content = value.get("content")
    bare = wire.bare(content)
    said = value if bare is content else value | {"content": bare}
    return Message(role=str(value.get("role")), content=wire.text(content), address=address(said))


def _item(value: dict[str, object]) -> Item:
    said = message(value)
    if said.role != "tool" or "tool_call_id" not in value or "content" not in value:
        return Item(message=said)
    return Item(message=said, results=((str(value["tool_call_id"]), said.content, None),))


def reading() -> Reading:
    """Clients send the whole conversation every time."""
    return Reading(LIST, _item)


def messages(body: bytes) -> tuple[Message, ...]:
    """The conversation in the request; empty where the body cannot be read."""
    return reading()(body).messages


def results(body: bytes) -> tuple[Result, ...]:
    """The tool results in the request, in order; offsets are those of an identity-coded body."""
    return reading()(body).results


def put(body: bytes, result: Result, text: str) -> tuple[Edit, ...]:
    """The edits that put `text` in place of a result; none where it says so, so no byte moves.

    Of a list of parts the first text part takes the new text, the others become empty.
    """
    content = spans.members(body, result.start).get(b"content")
    if content is None or result.text == text:
        return ()
    return tuple(wire.put(body, wire.strings(body, content) or [content], text))


def fail(body: bytes, result: Result) -> tuple[Edit, ...]:
    """None: the dialect has no flag for a result that is an error."""
    return ()


def replace(body: bytes, call_id: str, text: str) -> tuple[Edit, ...]:
    """`put` in every message that has a result of the call."""
    return replaced(put, body, results(body), call_id, text)


def read(headers: Headers, body: bytes) -> Answer | None:
    """What the model answered, whole or streamed; None where this is no answer (an error)."""
    text = plain(headers, body)
    if text is None:
        return None
    if text.lstrip()[:1] == b"{":
        return _read_whole(wire.load(text))
    return _read_stream(text)


def _read_whole(value: dict[str, object]) -> Answer | None:
    choice = _first(value.get("choices"))
    message = choice.get("message")
    if not isinstance(message, dict):
        return None
    refusal = wire.string(message.get("refusal"))
    return Answer(
        message=wire.text(message.get("content")) or refusal or "",
        refused=bool(refusal),
        calls=tuple(_call(call) for call in wire.tables(message.get("tool_calls"))),
        model=wire.string(value.get("model")),
        finish=wire.string(choice.get("finish_reason")),
        usage=_usage(value.get("usage")),
        reasoning=_reasoning(message),
    )


def _reasoning(said: dict[str, object]) -> str:
    """What was thought, by either name that servers give it."""
    return next((found for name in _REASONING if (found := wire.string(said.get(name)))), "")


def _read_stream(text: bytes) -> Answer | None:
    content, calls, seen = [], dict[int, dict[str, str]](), False
    reasoning = list[str]()
    refused = False
    name = finish = usage = None
    for event in sse.events(text):
        value = wire.load(event.data.encode("utf-8", "surrogatepass"))
        if "choices" not in value:
            continue
        seen = True
        name = name or wire.string(value.get("model"))
        usage = _usage(value.get("usage")) or usage
        choice = _first(value["choices"])
        finish = wire.string(choice.get("finish_reason")) or finish
        delta = choice.get("delta")
        if isinstance(delta, dict):
            refusal = wire.string(delta.get("refusal")) or ""
            refused = refused or bool(refusal)
            content.append(wire.text(delta.get("content")) + refusal)
            reasoning.append(_reasoning(delta))
            for piece in wire.tables(delta.get("tool_calls")):
                _grow(calls.setdefault(wire.count(piece, "index") or 0, {}), piece)
    if not seen:
        return None
    return Answer(
        message="".join(content),
        refused=refused,
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
        reasoning="".join(reasoning),
    )


def _grow(call: dict[str, str], piece: dict[str, object]) -> None:
    function = piece.get("function")
    if isinstance(piece.get("id"), str):
        call["id"] = str(piece["id"])
    if isinstance(function, dict):
        for key in ("name", "arguments"):
            call[key] = call.get(key, "") + (wire.string(function.get(key)) or "")


def _first(choices: object) -> dict[str, object]:
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return {}


def _call(call: dict[str, object]) -> ToolCall:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    return ToolCall(
        id=wire.string(call.get("id")) or "",
        name=wire.string(function.get("name")) or "",
        arguments=wire.string(function.get("arguments")) or "",
    )


def _usage(value: object) -> Usage | None:
    """Cached tokens are part of prompt tokens, reasoning tokens of completion tokens."""
    if not isinstance(value, dict):
        return None

    return Usage(
        prompt_tokens=wire.count(value, "prompt_tokens"),
        cached_tokens=wire.count(value.get("prompt_tokens_details"), "cached_tokens"),
        completion_tokens=wire.count(value, "completion_tokens"),
        reasoning_tokens=wire.count(value.get("completion_tokens_details"), "reasoning_tokens"),
    )


def write(
    answer: Answer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Headers and chunks of this answer as a provider sends it; all chunks at time 0."""
    if stream:
        return (("content-type", "text/event-stream"),), tuple(
            Chunk(at=0.0, data=data) for data in _events(answer, id, created)
        )
    text = None if answer.refused else answer.message or None
    message: dict[str, object] = {"role": "assistant", "content": text}
    if answer.refused:
        message["refusal"] = answer.message
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


def _events(answer: Answer, id: str, created: int) -> Iterator[bytes]:
    def event(delta: dict[str, object], finish: str | None = None) -> bytes:
        choice: dict[str, object] = {"index": 0, "delta": delta, "finish_reason": finish}
        value = _envelope(answer, "chat.completion.chunk", id, created, [choice])
        return b"data: " + orjson.dumps(value) + b"\n\n"

    yield event({"role": "assistant", "content": ""})
    for piece in wire.pieces(answer.message):
        yield event({"refusal" if answer.refused else "content": piece})
    for index, call in enumerate(answer.calls):
        opened = _dump_call(ToolCall(id=call.id, name=call.name, arguments=""))
        yield event({"tool_calls": [{"index": index} | opened]})
        for piece in wire.pieces(call.arguments):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, answer.finish or ("tool_calls" if answer.calls else "stop"))
    if answer.usage is not None:
        value = _envelope(answer, "chat.completion.chunk", id, created, []) | _dump_usage(answer)
        yield b"data: " + orjson.dumps(value) + b"\n\n"
    yield b"data: [DONE]\n\n"
