"""OpenAI responses: POST .../responses, plain or streamed, and the same over a WebSocket.

Wire facts: the conversation is `input` (a text or a list of items), preceded by `instructions`; a
call is an item with a `call_id`, its result another item, whose `output` is a string or a list of
parts; a stream sends each item when it is added and again when it is done, with its text and
arguments in pieces between, joined by `output_index`, and ends with the complete response in
`response.completed`, `.incomplete` or `.failed`. `finish` is the status, or why it is incomplete.

Tools that the provider runs are not calls of the agent: they are items without a `call_id`, which
no output could name (`web_search_call`, `mcp_call`), or their output is in the same response.

Over a WebSocket to the same path (`OpenAI-Beta: responses_websockets=2026-02-06`) a request is a
message `{"type": "response.create", ...}` with the members of the body, and the response is the
events of a stream, one per message, without server-sent event framing. `"generate": false` is a
warm-up: the provider stores the conversation and sends no output. An error is an event `error` with
`status`, as in HTTP.

With `previous_response_id`, over either transport, a request holds only the items since that
response, except for `instructions`, which apply to one request. A conversation stored under
`conversation` is not rebuilt.

`computer_call` and `tool_search_call` are not read as calls, since their results are not text.
"""

from collections.abc import Container, Iterable, Iterator
from urllib.parse import urlsplit

import orjson
from msgspec import Struct, field

from traces.bodies import json_offsets, sse
from traces.bodies.canonical_json import dump_canonical_json, hash_json_value
from traces.bodies.content_encoding import decode_content, read_content
from traces.bodies.websocket import BINARY_METHOD, TEXT_METHOD, is_websocket_upgrade
from traces.dialects import json_access
from traces.dialects.media_parts import list_media
from traces.dialects.request_reader import (
    ItemResult,
    JsonObject,
    RequestContext,
    RequestItem,
    RequestReader,
)
from traces.dialects.types import (
    ChatMessage,
    ConversationLink,
    HostedCall,
    ModelAnswer,
    TokenUsage,
    ToolCall,
    ToolResult,
)
from traces.model import BodyEdit, Chunk, Headers, Request

NAME = "openai_responses"
MESSAGES_KEY = "input"

_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
}
"""Items with which the model calls the agent, and the member with the arguments."""

_FINAL_EVENTS = {"response.completed", "response.incomplete", "response.failed", "error"}

_OUTPUTS = {f"{kind}_output" for kind in _CALLS}

_HOSTED_RESULTS = ("output", "outputs", "results", "result", "tools")
_NO_ARGUMENTS = {"id", "call_id", "type", "status", "name", "server_label", "error"}

_TEXTS = ("text", "stdout", "stderr")
"""Members with text in the parts of an output; the latter two in `shell_call_output`."""


def can_read_request(request: Request) -> bool:
    """Whether it is a POST with an input to .../responses, or such a WebSocket turn."""
    if not urlsplit(request.url).path.endswith("/responses"):
        return False
    if request.method == TEXT_METHOD:
        return b'"response.create"' in request.body and b'"input"' in request.body
    return request.method == "POST" and b'"input"' in (read_content(request))


def is_websocket_traffic(request: Request) -> bool:
    """Whether it opens a WebSocket for such turns, or is another message on one."""
    is_websocket = request.method in (TEXT_METHOD, BINARY_METHOD) or (
        request.method == "GET" and is_websocket_upgrade(request)
    )
    return is_websocket and urlsplit(request.url).path.endswith("/responses")


def is_final_event(message: bytes) -> bool:
    """Whether it is the last event of a response."""
    return json_access.load_json_object(message).get("type") in _FINAL_EVENTS


def read_model_name(body: bytes) -> str | None:
    """Return the requested model."""
    return json_access.to_optional_string(json_access.read_body_object(body).get("model"))


def make_dialect_reader() -> RequestReader:
    """Return a reader of conversations, `instructions` first, with the response they continue."""
    return RequestReader(MESSAGES_KEY, _read_responses_item, _read_responses_context)


def _read_responses_context(value: dict[str, object]) -> RequestContext:
    instructions, user_input = value.get("instructions"), value.get("input")
    system: list[JsonObject] = [{"role": "system", "content": instructions}] if instructions else []
    user_items: list[JsonObject] = (
        [{"role": "user", "content": user_input}] if isinstance(user_input, str) else []
    )
    state = ConversationLink(
        previous_answer=json_access.to_optional_string(value.get("previous_response_id")) or None,
        leading_messages=len(system),
        is_warmup=value.get("generate") is False,
    )
    return RequestContext(
        messages=tuple(_to_item_message(item) for item in (*system, *user_items)), state=state
    )


def _read_responses_item(item: dict[str, object]) -> RequestItem:
    if "output" not in item or str(item.get("type")) not in _OUTPUTS:
        return RequestItem(message=_to_item_message(item))
    # The output of a local shell has no call_id and names the call by its own id.
    key, output = _get_call_id(item), item["output"]
    parts = (pair for part in json_access.to_json_objects(output) for pair in part.items())
    text = "".join(value for name, value in parts if name in _TEXTS and isinstance(value, str))
    text = output if isinstance(output, str) else text
    result = ItemResult(key, text, _is_failed_patch(item), list_media(output))
    return RequestItem(message=_to_item_message(item), results=(result,))


def _to_item_message(item: dict[str, object]) -> ChatMessage:
    kind = json_access.to_optional_string(item.get("type")) or "message"
    role = "tool" if kind in _OUTPUTS else "assistant"
    return ChatMessage(
        role=json_access.to_optional_string(item.get("role")) or role,
        content=json_access.join_content_text(
            item.get("output" if kind in _OUTPUTS else "content")
        ),
        address=hash_json_value(_normalize_item(item)),
        media=list_media(item.get("output" if kind in _OUTPUTS else "content")),
    )


def _normalize_item(item: dict[str, object]) -> dict[str, object]:
    """Return an item without the members that clients may omit or add when they send it back."""
    kind = json_access.to_optional_string(item.get("type")) or "message"
    is_identified = kind in ("message", "reasoning") or "call_id" in item
    dropped = {"id"} if is_identified else set[str]()
    if kind not in _OUTPUTS:  # the status of a result is significant
        dropped.add("status")
    normalized = {
        key: value
        for key, value in item.items()
        if key not in dropped and value is not None and not key.startswith("internal_")
    }
    if kind == "message":
        normalized |= {"type": kind, "content": _join_plain_parts(item.get("content"))}
    return normalized


def _join_plain_parts(content: object) -> object:
    """Return a content of text parts only as one text."""
    if isinstance(content, list) and all(
        isinstance(part, dict) and part.get("type") in ("input_text", "output_text")
        for part in content
    ):
        return json_access.join_content_text(content)
    return content


def _is_failed_patch(item: dict[str, object]) -> bool | None:
    """Return the error flag, which only a patch has: elsewhere `status` is about completeness."""
    if item.get("type") != "apply_patch_call_output":
        return None
    return item.get("status") == "failed"


def replace_result(body: bytes, result: ToolResult, text: str) -> tuple[BodyEdit, ...]:
    """Return the edits that replace a result by `text`; none if it is already that text.

    In a list of parts the first text takes the new text, and the other texts become empty; a list
    without a text gets one.
    """
    output = json_offsets.find_json_members(body, result.start).get(b"output")
    if output is None or result.text == text:
        return ()
    places = json_access.find_content_strings(body, output, _TEXTS)
    return (
        tuple(json_access.replace_string_spans(body, places, text))
        if places
        else (_insert_text_part(body, output, text),)
    )


def mark_result_failed(body: bytes, result: ToolResult) -> tuple[BodyEdit, ...]:
    """Return no edits: the dialect has no error flag."""
    return ()


def _insert_text_part(body: bytes, output: json_access.Span, text: str) -> BodyEdit:
    comma = b", " if any(json_offsets.iter_json_items(body, output[0])) else b""
    part = (
        b'{"type": "input_text", "text": ' + json_access.dump_json_string(body, text) + b"}" + comma
    )
    return BodyEdit(start=output[0] + 1, stop=output[0] + 1, data=part)


def parse_model_answer(headers: Headers, body: bytes) -> ModelAnswer | None:
    """Parse the model's response, plain or streamed; None if it is not one (an error)."""
    text = decode_content(headers, body)
    if text is None:
        return None
    if text.lstrip()[:1] != b"{":
        data = (event.data.encode("utf-8", "surrogatepass") for event in sse.parse_sse_events(text))
        return _join_response_events(json_access.load_json_object(each) for each in data)
    value = json_access.load_json_object(text)
    if "output" in value:
        return _to_responses_answer(value, json_access.to_json_objects(value.get("output")))
    return _join_response_events(json_access.read_json_sequence(text))


def _to_responses_answer(
    response: dict[str, object], items: list[dict[str, object]]
) -> ModelAnswer | None:
    """Convert a response object; None if the model failed before any output."""
    status = json_access.to_optional_string(response.get("status"))
    if status == "failed" and not items:
        return None
    why = json_access.to_optional_string(
        json_access.to_json_object(response.get("incomplete_details")).get("reason")
    )
    finish = {"completed": "completed", "incomplete": why or "incomplete"}.get(status or "")
    outputs = (item for item in items if str(item.get("type")) in _OUTPUTS)
    answered = {str(item.get("call_id")): item for item in outputs}
    contents = [item.get("content") for item in items if item.get("type") == "message"]
    refused = "".join(_join_refusals(content) for content in contents)
    return ModelAnswer(
        message="\n".join(json_access.join_content_text(content) for content in contents)
        or refused,
        refused=bool(refused),
        calls=tuple(
            _to_responses_tool_call(item)
            for item in items
            if str(item.get("type")) in _CALLS and str(item.get("call_id")) not in answered
        ),
        hosted=tuple(
            _to_hosted_call(item, answered.get(str(item.get("call_id")), item))
            for item in items
            if _is_hosted_call(item, answered)
        ),
        media=tuple(kind for item in items for kind in _list_output_media(item)),
        model=json_access.to_optional_string(response.get("model")),
        finish=finish,
        usage=_to_responses_usage(response.get("usage")),
        id=json_access.to_optional_string(response.get("id")),
        reasoning="\n".join(
            _join_reasoning_text(item) for item in items if item.get("type") == "reasoning"
        ),
        added_messages=tuple(_to_item_message(item) for item in items),
    )


def _list_output_media(item: dict[str, object]) -> tuple[str, ...]:
    if item.get("type") == "image_generation_call" and item.get("result"):
        return ("image",)
    return list_media(item.get("content")) if item.get("type") == "message" else ()


def _is_hosted_call(item: dict[str, object], answered: Container[str]) -> bool:
    kind, call_id = str(item.get("type")), item.get("call_id")
    if not kind.endswith("_call"):
        return False
    return str(call_id) in answered or (kind not in _CALLS and not call_id)


def _to_hosted_call(item: dict[str, object], result: dict[str, object]) -> HostedCall:
    """Convert a call of the provider; its result is in the same item or in another one."""
    kind = str(item.get("type")).removesuffix("_call")
    name = json_access.to_optional_string(item.get("name"))
    server = json_access.to_optional_string(item.get("server_label"))
    error = item.get("error")
    shown = next((result[key] for key in _HOSTED_RESULTS if result.get(key) is not None), error)
    given = {
        key: value
        for key, value in item.items()
        if key not in _NO_ARGUMENTS and key not in _HOSTED_RESULTS and value is not None
    }
    only = next(iter(given.values()), None) if len(given) == 1 else given
    return HostedCall(
        tool=".".join(filter(None, (server, name))) or kind,
        arguments=json_access.dump_json_text(only),
        result=None if shown is None else json_access.dump_json_text(shown),
        is_error=True
        if error
        else {"completed": False, "failed": True}.get(str(item["status"]))
        if "status" in item
        else None,
    )


def _join_reasoning_text(item: dict[str, object]) -> str:
    """Return the reasoning summary, and the reasoning itself if a server shows it."""
    return json_access.join_content_text(item.get("summary")) + json_access.join_content_text(
        item.get("content")
    )


def _join_refusals(content: object) -> str:
    return "".join(
        json_access.to_optional_string(part.get("refusal")) or ""
        for part in json_access.to_json_objects(content)
    )


def _get_call_id(item: dict[str, object]) -> str:
    """Return the id of a call, which is empty for some servers, else that of its item."""
    id = item.get("call_id")
    return str(item.get("id") or "") if id is None else str(id)


def _to_responses_tool_call(item: dict[str, object]) -> ToolCall:
    kind = str(item.get("type"))
    arguments = item.get(_CALLS[kind])
    if not isinstance(arguments, str):
        arguments = dump_canonical_json(arguments or {}).decode("utf-8", "surrogatepass")
    return ToolCall(
        id=_get_call_id(item),
        name=json_access.to_optional_string(item.get("name")) or kind.removesuffix("_call"),
        arguments=arguments,
        incomplete=item.get("status") in ("in_progress", "incomplete"),
    )


def _to_responses_usage(value: object) -> TokenUsage | None:
    """Convert usage: input tokens include cached tokens, output tokens reasoning tokens."""
    if not isinstance(value, dict):
        return None
    return TokenUsage(
        prompt_tokens=json_access.get_integer(value, "input_tokens"),
        cached_tokens=json_access.get_integer(value.get("input_tokens_details"), "cached_tokens"),
        completion_tokens=json_access.get_integer(value, "output_tokens"),
        reasoning_tokens=json_access.get_integer(
            value.get("output_tokens_details"), "reasoning_tokens"
        ),
    )


class _ResponsesStream(Struct):
    """The response as far as the events of a stream have delivered it."""

    response: dict[str, object] = field(default_factory=dict)
    failed: bool = False
    items: dict[int, dict[str, object]] = field(default_factory=dict)
    pieces: dict[int, str] = field(default_factory=dict)

    def add_event(self, event: dict[str, object]) -> None:
        kind, index = str(event.get("type")), json_access.get_integer(event, "output_index") or 0
        match kind.removeprefix("response."):
            case "output_item.added":
                self.items[index] = json_access.to_json_object(event.get("item"))
            case "output_item.done":
                self.items[index] = json_access.to_json_object(event.get("item"))
                self.pieces.pop(index, None)
            case (
                "output_text.delta"
                | "function_call_arguments.delta"
                | "custom_tool_call_input.delta"
            ):
                delta = json_access.to_optional_string(event.get("delta")) or ""
                self.pieces[index] = self.pieces.get(index, "") + delta
            case "created" | "queued" | "in_progress" | "completed" | "incomplete" | "failed":
                self.response = json_access.to_json_object(event.get("response"))
            case "error":
                self.failed = True

    def collect_items(self) -> list[dict[str, object]]:
        """Return the items; truncated ones as far as they came."""
        items = [self._fill_item(index, item) for index, item in sorted(self.items.items())]
        return items or json_access.to_json_objects(self.response.get("output"))

    def _fill_item(self, index: int, item: dict[str, object]) -> dict[str, object]:
        pieces, kind = self.pieces.get(index), str(item.get("type"))
        if pieces is None:
            return item
        if kind in _CALLS:
            return item | {_CALLS[kind]: pieces}
        return item | {"content": pieces}


def _join_response_events(events: Iterable[dict[str, object]]) -> ModelAnswer | None:
    """Return the response made of a sequence of events, over any transport."""
    stream = _ResponsesStream()
    for event in events:
        stream.add_event(event)
    if not stream.response or (stream.failed and not stream.items):
        return None
    response = stream.response | ({"status": None} if stream.failed else {})
    return _to_responses_answer(response, stream.collect_items())


def write_model_answer(
    answer: ModelAnswer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and chunks of this response as a provider sends it; all chunks at time 0."""
    if stream:
        return (("content-type", "text/event-stream; charset=utf-8"),), tuple(
            Chunk(
                at=0.0,
                data=b"event: " + kind.encode() + b"\ndata: " + orjson.dumps(event) + b"\n\n",
            )
            for kind, event in _number_events(_make_response_events(answer, id, created))
        )
    body = orjson.dumps(_make_final_response(answer, id, created))
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    return headers, (Chunk(at=0.0, data=body),)


def write_websocket_turn(answer: ModelAnswer, *, id: str, created: int) -> tuple[Chunk, ...]:
    """Return the messages of this response over a WebSocket; all at time 0."""
    return tuple(
        Chunk(at=0.0, data=orjson.dumps(event))
        for _, event in _number_events(_make_response_events(answer, id, created))
    )


def _make_open_response(answer: ModelAnswer, id: str, created: int) -> dict[str, object]:
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


def _make_final_response(answer: ModelAnswer, id: str, created: int) -> dict[str, object]:
    finish = answer.finish or "completed"
    is_completed = finish == "completed"
    return _make_open_response(answer, id, created) | {
        "status": "completed" if is_completed else "incomplete",
        "incomplete_details": None if is_completed else {"reason": finish},
        "output": list(_make_output_items(answer, id)),
        "usage": _to_responses_counts(answer.usage),
    }


def _make_output_items(answer: ModelAnswer, id: str) -> Iterator[dict[str, object]]:
    tail = id.rpartition("_")[2]
    if answer.message:
        message = {"type": "message", "id": f"msg_{tail}", "status": "completed"}
        yield {
            **message,
            "role": "assistant",
            "content": [_make_content_part(answer, answer.message)],
        }
    for number, call in enumerate(answer.calls):
        function_call = {
            "type": "function_call",
            "id": f"fc_{tail}_{number}",
            "status": "completed",
        }
        yield {**function_call, "call_id": call.id, "name": call.name, "arguments": call.arguments}


def _make_content_part(answer: ModelAnswer, text: str) -> dict[str, object]:
    if answer.refused:
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": []}


def _to_responses_counts(usage: TokenUsage | None) -> dict[str, object] | None:
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


def _number_events(events: Iterator[_Event]) -> Iterator[_Event]:
    for number, (kind, rest) in enumerate(events):
        yield kind, {"type": kind, "sequence_number": number} | rest


def _make_response_events(answer: ModelAnswer, id: str, created: int) -> Iterator[_Event]:
    open_response, final_response = (
        _make_open_response(answer, id, created),
        _make_final_response(answer, id, created),
    )
    yield "response.created", {"response": open_response}
    yield "response.in_progress", {"response": open_response}
    for index, item in enumerate(_make_output_items(answer, id)):
        if item["type"] == "message":
            yield from _make_message_events(index, item, answer)
        else:
            yield from _make_call_events(index, item)
    yield f"response.{final_response['status']}", {"response": final_response}


def _make_message_events(
    index: int, item: dict[str, object], answer: ModelAnswer
) -> Iterator[_Event]:
    position = {"item_id": item["id"], "output_index": index, "content_index": 0}
    kind = "refusal" if answer.refused else "output_text"
    rest: dict[str, object] = {} if answer.refused else {"logprobs": []}
    full_text = {"refusal" if answer.refused else "text": answer.message}
    opened = item | {"status": "in_progress", "content": []}
    yield "response.output_item.added", {"output_index": index, "item": opened}
    yield "response.content_part.added", {**position, "part": _make_content_part(answer, "")}
    for piece in json_access.split_into_deltas(answer.message):
        yield f"response.{kind}.delta", {**position, "delta": piece, **rest}
    yield f"response.{kind}.done", {**position, **full_text, **rest}
    yield (
        "response.content_part.done",
        {**position, "part": _make_content_part(answer, answer.message)},
    )
    yield "response.output_item.done", {"output_index": index, "item": item}


def _make_call_events(index: int, item: dict[str, object]) -> Iterator[_Event]:
    arguments, position = str(item["arguments"]), {"item_id": item["id"], "output_index": index}
    opened = item | {"status": "in_progress", "arguments": ""}
    yield "response.output_item.added", {"output_index": index, "item": opened}
    for piece in json_access.split_into_deltas(arguments):
        yield "response.function_call_arguments.delta", {**position, "delta": piece}
    done = {**position, "name": item["name"], "arguments": arguments}
    yield "response.function_call_arguments.done", done
    yield "response.output_item.done", {"output_index": index, "item": item}
