"""OpenAI responses: POST .../responses, whole or streamed, and the same over a WebSocket.

Wire facts: the conversation is `input` (a text or a list of items) with `instructions` before
it; a call is an item with a `call_id`, its result another item, whose `output` is a string or a
list of parts; a stream sends each item when it is added and again when it is done, its text and
arguments in pieces between, joined by `output_index`, and ends with the whole response in
`response.completed`, `.incomplete` or `.failed`. `finish` is the status, or why it is incomplete.

Tools that the provider runs are no calls of the agent: they are items of their own
(`web_search_call`, `mcp_call`), or their output stands beside them in the same answer.

Over a WebSocket to the same path (`OpenAI-Beta: responses_websockets=2026-02-06`) a request is a
message `{"type": "response.create", ...}` with the members of the body, and the answer is the
events of a stream, one a message, without the frames of server-sent events. `"generate": false`
is a warm-up: the provider keeps the conversation and says nothing. What is wrong is an event
`error` with `status`, as of HTTP.

With `previous_response_id`, over either, a request holds only what is new since that answer,
except for `instructions`, which hold for one request. A conversation that is kept elsewhere
(`conversation`) is not rebuilt.

`computer_call` and `tool_search_call` are not read as calls, for their results are no text.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import orjson

from traces import spans, sse
from traces.canonical import address, canonical_value
from traces.dialects import wire
from traces.dialects.reading import Around, Item, Reading, Value, replaced
from traces.encoding import plain
from traces.model import Chunk, Edit, Headers, Request
from traces.step import Answer, Message, Result, State, ToolCall, Usage
from traces.websocket import BINARY, TEXT, upgrades

NAME = "openai_responses"
LIST = "input"

_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
}
"""Items by which the model asks the agent for something, and what holds the arguments."""

_ENDS = {"response.completed", "response.incomplete", "response.failed", "error"}

_OUTPUTS = {f"{kind}_output" for kind in _CALLS}

_TEXTS = ("text", "stdout", "stderr")
"""What holds text in the parts of an output; the latter two in those of `shell_call_output`."""


def fits(request: Request) -> bool:
    """True for a POST to .../responses whose body has an input, and for such a turn."""
    if not urlsplit(request.url).path.endswith("/responses"):
        return False
    if request.method == TEXT:
        return b'"response.create"' in request.body and b'"input"' in request.body
    return request.method == "POST" and b'"input"' in (plain(request.headers, request.body) or b"")


def beside(request: Request) -> bool:
    """True for what opens a WebSocket for such turns, and for what else is said on it."""
    asks = request.method in (TEXT, BINARY) or (request.method == "GET" and upgrades(request))
    return asks and urlsplit(request.url).path.endswith("/responses")


def ends(message: bytes) -> bool:
    """True for an event after which a provider says no more, until it is asked again."""
    return wire.load(message).get("type") in _ENDS


def model(body: bytes) -> str | None:
    """The model that was asked for."""
    return wire.string(wire.load(body).get("model"))


def reading() -> Reading:
    """Reads the conversation in a request, `instructions` first, and what it goes on from."""
    return Reading(LIST, _item, _around)


def _around(value: dict[str, object]) -> Around:
    given, said = value.get("instructions"), value.get("input")
    system: list[Value] = [{"role": "system", "content": given}] if given else []
    user: list[Value] = [{"role": "user", "content": said}] if isinstance(said, str) else []
    state = State(
        previous=wire.string(value.get("previous_response_id")) or None,
        lead=len(system),
        silent=value.get("generate") is False,
    )
    return Around(messages=tuple(_message(item) for item in (*system, *user)), state=state)


def _item(item: dict[str, object]) -> Item:
    if "output" not in item or str(item.get("type")) not in _OUTPUTS:
        return Item(message=_message(item))
    # The output of a local shell has no call_id and names the call by its own id.
    key, output = item.get("call_id") or item.get("id"), item["output"]
    parts = (pair for part in wire.tables(output) for pair in part.items())
    text = "".join(said for name, said in parts if name in _TEXTS and isinstance(said, str))
    result = str(key), output if isinstance(output, str) else text, _is_error(item)
    return Item(message=_message(item), results=(result,))


def messages(body: bytes) -> tuple[Message, ...]:
    """The conversation in the request, `instructions` first, one message for each item."""
    return reading()(body).messages


def _message(item: dict[str, object]) -> Message:
    kind = wire.string(item.get("type")) or "message"
    role = "tool" if kind in _OUTPUTS else "assistant"
    return Message(
        role=wire.string(item.get("role")) or role,
        content=wire.text(item.get("output" if kind in _OUTPUTS else "content")),
        address=address(_bare(item)),
    )


def _bare(item: dict[str, object]) -> dict[str, object]:
    """An item without what a client may leave out, or add, when it sends back what it was sent."""
    kind = wire.string(item.get("type")) or "message"
    named = kind in ("message", "reasoning") or "call_id" in item
    dropped = {"id"} if named else set[str]()
    if kind not in _OUTPUTS:  # of a result the status says something
        dropped.add("status")
    kept = {
        key: value
        for key, value in item.items()
        if key not in dropped and value is not None and not key.startswith("internal_")
    }
    if kind == "message":
        kept |= {"type": kind, "content": _plain(item.get("content"))}
    return kept


def _plain(content: object) -> object:
    """A content of texts alone as one text."""
    if isinstance(content, list) and all(
        isinstance(part, dict) and part.get("type") in ("input_text", "output_text")
        for part in content
    ):
        return wire.text(content)
    return content


def results(body: bytes) -> tuple[Result, ...]:
    """The tool results in the request, in order; offsets are those of an identity-coded body."""
    return reading()(body).results


def _is_error(item: dict[str, object]) -> bool | None:
    """Only a patch has a flag: elsewhere `status` says whether the item is whole."""
    if item.get("type") != "apply_patch_call_output":
        return None
    return item.get("status") == "failed"


def put(body: bytes, result: Result, text: str) -> tuple[Edit, ...]:
    """The edits that put `text` in place of a result; none where it says so, so no byte moves.

    Of a list of parts the first text takes the new text, the other texts become empty; a list
    without a text gets one.
    """
    output = spans.members(body, result.start).get(b"output")
    if output is None or result.text == text:
        return ()
    places = wire.strings(body, output, _TEXTS)
    return tuple(wire.put(body, places, text)) if places else (_part(body, output, text),)


def fail(body: bytes, result: Result) -> tuple[Edit, ...]:
    """None: the dialect has no flag for a result that is an error."""
    return ()


def replace(body: bytes, call_id: str, text: str) -> tuple[Edit, ...]:
    """`put` in every item that has a result of the call."""
    return replaced(put, body, results(body), call_id, text)


def _part(body: bytes, output: wire.Span, text: str) -> Edit:
    comma = b", " if any(spans.items(body, output[0])) else b""
    part = b'{"type": "input_text", "text": ' + wire.dump(body, text) + b"}" + comma
    return Edit(start=output[0] + 1, stop=output[0] + 1, data=part)


def read(headers: Headers, body: bytes) -> Answer | None:
    """What the model answered, whole or streamed; None where this is no answer (an error)."""
    text = plain(headers, body)
    if text is None:
        return None
    if text.lstrip()[:1] != b"{":
        data = (event.data.encode("utf-8", "surrogatepass") for event in sse.events(text))
        return _joined(wire.load(each) for each in data)
    value = wire.load(text)
    if "output" in value:
        return _answer(value, wire.tables(value.get("output")))
    return _joined(wire.objects(text))


def _answer(response: dict[str, object], items: list[dict[str, object]]) -> Answer | None:
    """None where the model failed before it said anything."""
    status = wire.string(response.get("status"))
    if status == "failed" and not items:
        return None
    why = wire.string(wire.table(response.get("incomplete_details")).get("reason"))
    finish = {"completed": "completed", "incomplete": why or "incomplete"}.get(status or "")
    kept = [item.get("call_id") for item in items if str(item.get("type")) in _OUTPUTS]
    said = [item.get("content") for item in items if item.get("type") == "message"]
    refused = "".join(_refusal(content) for content in said)
    return Answer(
        message="\n".join(wire.text(content) for content in said) or refused,
        refused=bool(refused),
        calls=tuple(
            _call(item)
            for item in items
            if str(item.get("type")) in _CALLS and item.get("call_id") not in kept
        ),
        model=wire.string(response.get("model")),
        finish=finish,
        usage=_usage(response.get("usage")),
        id=wire.string(response.get("id")),
        reasoning="\n".join(_thought(item) for item in items if item.get("type") == "reasoning"),
        said=tuple(_message(item) for item in items),
    )


def _thought(item: dict[str, object]) -> str:
    """The summary of what was thought, and the thoughts where a server shows them."""
    return wire.text(item.get("summary")) + wire.text(item.get("content"))


def _refusal(content: object) -> str:
    return "".join(wire.string(part.get("refusal")) or "" for part in wire.tables(content))


def _call(item: dict[str, object]) -> ToolCall:
    kind = str(item.get("type"))
    given = item.get(_CALLS[kind])
    if not isinstance(given, str):
        given = canonical_value(given or {}).decode("utf-8", "surrogatepass")
    return ToolCall(
        id=wire.string(item.get("call_id")) or wire.string(item.get("id")) or "",
        name=wire.string(item.get("name")) or kind.removesuffix("_call"),
        arguments=given,
    )


def _usage(value: object) -> Usage | None:
    """Cached tokens are part of input tokens, reasoning tokens of output tokens."""
    if not isinstance(value, dict):
        return None
    return Usage(
        prompt_tokens=wire.count(value, "input_tokens"),
        cached_tokens=wire.count(value.get("input_tokens_details"), "cached_tokens"),
        completion_tokens=wire.count(value, "output_tokens"),
        reasoning_tokens=wire.count(value.get("output_tokens_details"), "reasoning_tokens"),
    )


@dataclass(slots=True)
class _Stream:
    """What the events of a stream have said so far."""

    response: dict[str, object] = field(default_factory=dict)
    failed: bool = False
    items: dict[int, dict[str, object]] = field(default_factory=dict)
    pieces: dict[int, str] = field(default_factory=dict)

    def take(self, event: dict[str, object]) -> None:
        kind, index = str(event.get("type")), wire.count(event, "output_index") or 0
        match kind.removeprefix("response."):
            case "output_item.added":
                self.items[index] = wire.table(event.get("item"))
            case "output_item.done":
                self.items[index] = wire.table(event.get("item"))
                self.pieces.pop(index, None)
            case (
                "output_text.delta"
                | "function_call_arguments.delta"
                | "custom_tool_call_input.delta"
            ):
                delta = wire.string(event.get("delta")) or ""
                self.pieces[index] = self.pieces.get(index, "") + delta
            case "created" | "queued" | "in_progress" | "completed" | "incomplete" | "failed":
                self.response = wire.table(event.get("response"))
            case "error":
                self.failed = True

    def said(self) -> list[dict[str, object]]:
        """The items, those that broke off as far as they came."""
        items = [self._grown(index, item) for index, item in sorted(self.items.items())]
        return items or wire.tables(self.response.get("output"))

    def _grown(self, index: int, item: dict[str, object]) -> dict[str, object]:
        pieces, kind = self.pieces.get(index), str(item.get("type"))
        if pieces is None:
            return item
        if kind in _CALLS:
            return item | {_CALLS[kind]: pieces}
        return item | {"content": pieces}


def _joined(events: Iterable[dict[str, object]]) -> Answer | None:
    """The answer that a sequence of events makes, whatever carried them."""
    stream = _Stream()
    for event in events:
        stream.take(event)
    if not stream.response or (stream.failed and not stream.items):
        return None
    response = stream.response | ({"status": None} if stream.failed else {})
    return _answer(response, stream.said())


def write(
    answer: Answer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Headers and chunks of this answer as a provider sends it; all chunks at time 0."""
    if stream:
        return (("content-type", "text/event-stream; charset=utf-8"),), tuple(
            Chunk(
                at=0.0,
                data=b"event: " + kind.encode() + b"\ndata: " + orjson.dumps(event) + b"\n\n",
            )
            for kind, event in _numbered(_events(answer, id, created))
        )
    body = orjson.dumps(_ended(answer, id, created))
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    return headers, (Chunk(at=0.0, data=body),)


def write_turn(answer: Answer, *, id: str, created: int) -> tuple[Chunk, ...]:
    """The messages of this answer over a WebSocket; all at time 0."""
    return tuple(
        Chunk(at=0.0, data=orjson.dumps(event))
        for _, event in _numbered(_events(answer, id, created))
    )


def _started(answer: Answer, id: str, created: int) -> dict[str, object]:
    return {
        "id": id,
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": answer.model or "unknown",
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def _ended(answer: Answer, id: str, created: int) -> dict[str, object]:
    finish = answer.finish or "completed"
    whole = finish == "completed"
    return _started(answer, id, created) | {
        "status": "completed" if whole else "incomplete",
        "incomplete_details": None if whole else {"reason": finish},
        "output": list(_items(answer, id)),
        "usage": _counted(answer.usage),
    }


def _items(answer: Answer, id: str) -> Iterator[dict[str, object]]:
    tail = id.rpartition("_")[2]
    if answer.message:
        said = {"type": "message", "id": f"msg_{tail}", "status": "completed"}
        yield {**said, "role": "assistant", "content": [_content(answer, answer.message)]}
    for number, call in enumerate(answer.calls):
        asked = {"type": "function_call", "id": f"fc_{tail}_{number}", "status": "completed"}
        yield {**asked, "call_id": call.id, "name": call.name, "arguments": call.arguments}


def _content(answer: Answer, text: str) -> dict[str, object]:
    if answer.refused:
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": []}


def _counted(usage: Usage | None) -> dict[str, object] | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.prompt_tokens or 0,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
        "output_tokens": usage.completion_tokens or 0,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": (usage.prompt_tokens or 0) + (usage.completion_tokens or 0),
    }


type _Event = tuple[str, dict[str, object]]


def _numbered(events: Iterator[_Event]) -> Iterator[_Event]:
    for number, (kind, rest) in enumerate(events):
        yield kind, {"type": kind, "sequence_number": number} | rest


def _events(answer: Answer, id: str, created: int) -> Iterator[_Event]:
    started, ended = _started(answer, id, created), _ended(answer, id, created)
    yield "response.created", {"response": started}
    yield "response.in_progress", {"response": started}
    for index, item in enumerate(_items(answer, id)):
        if item["type"] == "message":
            yield from _message_events(index, item, answer)
        else:
            yield from _call_events(index, item)
    yield f"response.{ended['status']}", {"response": ended}


def _message_events(index: int, item: dict[str, object], answer: Answer) -> Iterator[_Event]:
    here = {"item_id": item["id"], "output_index": index, "content_index": 0}
    kind = "refusal" if answer.refused else "output_text"
    rest: dict[str, object] = {} if answer.refused else {"logprobs": []}
    whole = {"refusal" if answer.refused else "text": answer.message}
    opened = item | {"status": "in_progress", "content": []}
    yield "response.output_item.added", {"output_index": index, "item": opened}
    yield "response.content_part.added", {**here, "part": _content(answer, "")}
    for piece in wire.pieces(answer.message):
        yield f"response.{kind}.delta", {**here, "delta": piece, **rest}
    yield f"response.{kind}.done", {**here, **whole, **rest}
    yield "response.content_part.done", {**here, "part": _content(answer, answer.message)}
    yield "response.output_item.done", {"output_index": index, "item": item}


def _call_events(index: int, item: dict[str, object]) -> Iterator[_Event]:
    arguments, here = str(item["arguments"]), {"item_id": item["id"], "output_index": index}
    opened = item | {"status": "in_progress", "arguments": ""}
    yield "response.output_item.added", {"output_index": index, "item": opened}
    for piece in wire.pieces(arguments):
        yield "response.function_call_arguments.delta", {**here, "delta": piece}
    done = {**here, "name": item["name"], "arguments": arguments}
    yield "response.function_call_arguments.done", done
    yield "response.output_item.done", {"output_index": index, "item": item}
