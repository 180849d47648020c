"""Gemini generateContent: POST .../models/NAME:generateContent or :streamGenerateContent.

Wire facts (Gemini API reference, "Generating content" and "Function calling"): the model is named
by the path; the conversation is `contents`, each with `role` user or model and `parts`; a call is a
part `functionCall` with `name`, `args` (an object) and perhaps an `id`; its result is a part
`functionResponse` in a user content, with `name` and an object `response`, in which `output` or
`error` is what a tool said and anything else is the output as a whole. Calls always arrive whole.
A stream is server-sent events with `alt=sse`, else a JSON list; each event is an answer that says
what is new. `candidatesTokenCount` leaves thinking out, `promptTokenCount` counts what was cached.
In a request each name may be in snake_case too (protobuf's JSON), as litellm writes it; and older
clients send results with the role `function`.

Where no id crosses the wire a call is named after its name and arguments, and counted where the
same comes again (`#2`); its result is the next one of that name.

What is sent to cloudcode-pa.googleapis.com (Gemini CLI with a Google login) wraps all this in one
more object and is not read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import orjson

from traces import spans, sse
from traces.canonical import address
from traces.dialects import wire
from traces.dialects.reading import replaced
from traces.encoding import plain
from traces.model import Chunk, Edit, Headers, Request
from traces.quick import quick
from traces.reader import Reader
from traces.step import Answer, Asked, Message, Result, ToolCall, Usage

NAME = "gemini"
LIST = "contents"

type Members = dict[bytes, wire.Span]

_ENDS = (":generateContent", ":streamGenerateContent")
_CALL = ("functionCall", "function_call")
_RESPONSE = ("functionResponse", "function_response")
_SAID = ("output", "error", "result", "return_value", "content")
"""Under which of these clients put a tool's text, alone: the first two by Google's reference,
`result` by google-genai's automatic calls, `return_value` by pydantic-ai, `content` by litellm."""
_REFUSALS = frozenset(
    ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY")
)


def fits(request: Request) -> bool:
    """True for a POST to one of the two methods with contents."""
    return (
        request.method == "POST"
        and urlsplit(request.url).path.endswith(_ENDS)
        and spans.array(plain(request.headers, request.body) or b"", b"contents") is not None
    )


def streams(request: Request) -> bool:
    """True if the answer is wanted in pieces, which the path says here."""
    return urlsplit(request.url).path.endswith(":streamGenerateContent")


def model(body: bytes) -> str | None:
    """None: the path names it, and an answer says it."""
    return None


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    id: str | None
    name: str
    known_by: str
    """Its id, or what stands for it."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class _Returned:
    """A result, and where its object stands in the content."""

    id: str | None
    name: str
    text: str
    is_error: bool | None
    start: int
    stop: int


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What one content says."""

    message: Message
    calls: tuple[_Call, ...] = ()
    returned: tuple[_Returned, ...] = ()


def _item(text: bytes) -> _Said | None:
    value = wire.parsed(text)
    if not isinstance(value, dict):
        return None
    role = "assistant" if value.get("role") == "model" else str(value.get("role") or "user")
    parts, returned = wire.tables(value.get("parts")), tuple(_returned(text))
    said, carries = _text(parts), role != "assistant" and bool(returned)
    return _Said(
        message=Message(
            role="tool" if carries and not said else role,
            content=said or "".join(each.text for each in returned),
            address=address(value),
        ),
        calls=tuple(_calls(parts)) if role == "assistant" else (),
        returned=returned if carries else (),
    )


def _text(parts: Iterable[dict[str, object]]) -> str:
    """What is said in parts, without what was only thought."""
    said = (wire.string(part.get("text")) for part in parts if part.get("thought") is not True)
    return "".join(filter(None, said))


def _thought(parts: Iterable[dict[str, object]]) -> str:
    """What was only thought."""
    said = (wire.string(part.get("text")) for part in parts if part.get("thought") is True)
    return "".join(filter(None, said))


def _calls(parts: Iterable[dict[str, object]]) -> Iterator[_Call]:
    for part in parts:
        if call := next((found for key in _CALL if (found := wire.table(part.get(key)))), None):
            id, name = wire.string(call.get("id")) or None, wire.string(call.get("name")) or ""
            yield _Call(id=id, name=name, known_by=id or _named(name, call.get("args")))


def _named(name: str, args: object) -> str:
    return f"{name}-{address(args or {}).hex()[:16]}"


def _returned(content: bytes) -> Iterator[_Returned]:
    if not any(key.encode() in content for key in _RESPONSE):
        return
    parts = spans.objects(content, spans.members(content, spans.root(content)).get(b"parts"))
    for part in parts:
        start, stop = next((part[k] for key in _RESPONSE if (k := key.encode()) in part), (0, 0))
        if content[start : start + 1] != b"{" or start == 0:
            continue
        value = wire.table(wire.parsed(content[start:stop]))
        told = wire.table(value.get("response"))
        yield _Returned(
            id=wire.string(value.get("id")) or None,
            name=wire.string(value.get("name")) or "",
            text=_told(content, spans.members(content, start).get(b"response")),
            is_error=_failed(told),
            start=start,
            stop=stop,
        )


def _failed(told: dict[str, object]) -> bool | None:
    """Whether a response says that the tool failed; an `error` that is empty is none."""
    if told.get("error") not in (None, False, ""):
        return True
    return False if "output" in told else None


def _told(body: bytes, response: wire.Span | None) -> str:
    """What a tool said: its text, or the JSON text of all that was returned."""
    if response is None:
        return ""
    place = _alone(body, response)
    if place is not None:
        return str(wire.parsed(body[slice(*place)]))
    return body[slice(*response)].decode("utf-8", "surrogatepass")


def _alone(body: bytes, response: wire.Span) -> wire.Span | None:
    """Where the text stands that is all of a response; None where it is something else."""
    start, _ = response
    members = spans.members(body, start) if body[start : start + 1] == b"{" else {}
    match list(members.items()):
        case [(name, place)] if name.decode("utf-8", "replace") in _SAID:
            return place if body[place[0] : place[0] + 1] == b'"' else None
    return None


def _rest(text: bytes) -> Message | None:
    """The system instruction, which stands beside the contents."""
    value = wire.table(wire.parsed(text))
    system = value.get("systemInstruction") or value.get("system_instruction")
    if not isinstance(system, dict):
        return None
    said = _text(wire.tables(system.get("parts")))
    return Message(role="system", content=said, address=address(system))


class _Reading:
    """Goes through the contents in order: a result belongs to a call made before it."""

    def __init__(self) -> None:
        self._reader = Reader(LIST, _item, _rest)

    def __call__(self, body: bytes) -> Asked:
        """What a body says; nothing where it cannot be read."""
        try:
            read = self._reader.read(body)
        except ValueError:
            return Asked()
        messages, results = [read.rest] if read.rest else [], list[Result]()
        seen, waiting = Counter[str](), list[_Call]()
        for said, start in zip(read.items, read.starts, strict=True):
            if said is None:
                continue
            messages.append(said.message)
            if said.message.role != "assistant":
                results += (_result(each, waiting, seen, start) for each in said.returned)
            elif messages[-2:-1] and messages[-2].role != "assistant":
                waiting = list(said.calls)
            else:
                waiting += said.calls
        return Asked(messages=tuple(messages), results=tuple(results))


def _result(returned: _Returned, waiting: list[_Call], seen: Counter[str], start: int) -> Result:
    same_id = (call for call in waiting if call.id and call.id == returned.id)
    same_name = (call for call in waiting if call.name == returned.name)
    call = next(same_id, None) or next(same_name, None)
    if call is None:
        known_by = returned.id or returned.name
    else:
        waiting.remove(call)
        seen[call.known_by] += 1
        again = seen[call.known_by] if call.id is None else 1
        known_by = call.known_by + (f"#{again}" if again > 1 else "")
    return Result(
        call_id=known_by,
        text=returned.text,
        start=start + returned.start,
        stop=start + returned.stop,
        is_error=returned.is_error,
    )


def reading() -> _Reading:
    """Clients send the whole conversation every time."""
    return _Reading()


def messages(body: bytes) -> tuple[Message, ...]:
    """The conversation in the request, the system instruction first."""
    return reading()(body).messages


def results(body: bytes) -> tuple[Result, ...]:
    """The results in the request, in order; each is the object of its `functionResponse`."""
    return reading()(body).results


def put(body: bytes, result: Result, text: str) -> tuple[Edit, ...]:
    """The edits that put `text` in place of a result; none where it says so, so no byte moves.

    Where the response is no lone text it is replaced as a whole, by `text` itself if that is an
    object, which is all that may stand there, else by an object with it as `output`.
    """
    if result.text == text:
        return ()
    response = spans.members(body, result.start).get(b"response")
    said = wire.dump(body, text)
    whole = text.encode("utf-8", "surrogatepass") if _object(text) else b'{"output": ' + said + b"}"
    if response is None:
        return (
            Edit(start=result.stop - 1, stop=result.stop - 1, data=_joint(body, result) + whole),
        )
    place = _alone(body, response)
    start, stop = place or response
    return (Edit(start=start, stop=stop, data=said if place else whole),)


def _object(text: str) -> bool:
    try:
        return isinstance(wire.parsed(text.encode("utf-8", "surrogatepass")), dict)
    except ValueError:
        return False


def _joint(body: bytes, result: Result) -> bytes:
    """What comes before one more value in this object: there may be none yet."""
    return (b", " if spans.members(body, result.start) else b"") + b'"response": '


def fail(body: bytes, result: Result) -> tuple[Edit, ...]:
    """The edits that make what was returned an `error`; none where it is one."""
    response = spans.members(body, result.start).get(b"response")
    if result.is_error or response is None:
        return ()
    start, stop = response
    return (
        Edit(start=start, stop=start, data=b'{"error": '),
        Edit(start=stop, stop=stop, data=b"}"),
    )


def replace(body: bytes, call_id: str, text: str) -> tuple[Edit, ...]:
    """`put` in every result of the call."""
    return replaced(put, body, results(body), call_id, text)


def read(headers: Headers, body: bytes) -> Answer | None:
    """What the model answered, whole or streamed; None where this is no answer (an error)."""
    text = plain(headers, body)
    if text is None:
        return None
    texts = list(_texts(text))
    values = [wire.load(each) for each in texts]
    said = [value for value in values if "error" not in value]
    blocked = [found for each in said if (found := _blocked(each))]
    if not blocked and not any("candidates" in each for each in said):
        return None
    candidates = [_first(each.get("candidates")) for each in said]
    finish = _last(candidates, "finishReason") or (blocked[-1] if blocked else None)
    return Answer(
        message="".join(_text(_parts(each)) for each in candidates) or "".join(blocked),
        calls=tuple(call for each in texts for call in _tool_calls(each)),
        model=_last(said, "modelVersion"),
        finish=None if len(said) < len(values) else finish,
        refused=bool(blocked) or finish in _REFUSALS,
        usage=_usage([wire.table(each.get("usageMetadata")) for each in said]),
        reasoning="".join(_thought(_parts(each)) for each in candidates),
    )


def _texts(text: bytes) -> Iterator[bytes]:
    """The objects of an answer: one, a list of them, or the events of a stream."""
    start = text.lstrip()[:1]
    if start == b"{":
        yield text
    elif start == b"[":
        yield from _listed(text)
    else:
        for event in sse.events(text):
            yield event.data.encode("utf-8", "surrogatepass")


def _listed(text: bytes) -> Iterator[bytes]:
    """The objects of a list, which may break off: as far as they are whole."""
    try:
        for start, stop in spans.items(text, spans.root(text)):
            yield text[start:stop]
    except ValueError:
        return


def _first(candidates: object) -> dict[str, object]:
    return next(iter(wire.tables(candidates)), {})


def _parts(candidate: dict[str, object]) -> list[dict[str, object]]:
    return wire.tables(wire.table(candidate.get("content")).get("parts"))


def _last(said: Iterable[dict[str, object]], key: str) -> str | None:
    return next(
        (found for each in reversed([*said]) if (found := wire.string(each.get(key)))), None
    )


def _blocked(value: dict[str, object]) -> str | None:
    """Why a prompt was not answered at all."""
    return wire.string(wire.table(value.get("promptFeedback")).get("blockReason"))


def _tool_calls(text: bytes) -> Iterator[ToolCall]:
    """The calls in one object of an answer, their arguments as they were written."""
    if b'"functionCall"' not in text or not wire.load(text):
        return
    candidates = spans.members(text, spans.root(text)).get(b"candidates")
    first: Members = next(spans.objects(text, candidates), {})
    for part in spans.objects(text, _within(text, first, b"content").get(b"parts")):
        call = _within(text, part, b"functionCall")
        if b"name" not in call:
            continue
        name = wire.string(wire.value(text, call, b"name")) or ""
        given = text[slice(*call[b"args"])] if b"args" in call else b"{}"
        id = wire.string(wire.value(text, call, b"id"))
        yield ToolCall(
            id=id or _named(name, wire.parsed(given)),
            name=name,
            arguments=given.decode("utf-8", "surrogatepass"),
        )


def _within(text: bytes, members: Members, name: bytes) -> Members:
    start, _ = members.get(name, (0, 0))
    return spans.members(text, start) if start and text[start : start + 1] == b"{" else {}


def _usage(told: list[dict[str, object]]) -> Usage | None:
    """Counts of an answer so far, so the last ones hold; thinking is part of what was answered,
    and what the provider's own tools brought in is part of the prompt.
    """
    said = {key: number for each in told for key in each if (number := wire.count(each, key))}
    if not any(told):
        return None
    thought = said.get("thoughtsTokenCount")
    prompt = said.get("promptTokenCount")
    return Usage(
        prompt_tokens=None if prompt is None else prompt + said.get("toolUsePromptTokenCount", 0),
        cached_tokens=said.get("cachedContentTokenCount"),
        completion_tokens=said.get("candidatesTokenCount", 0) + (thought or 0),
        reasoning_tokens=thought,
    )


def write(
    answer: Answer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Headers and chunks of this answer as a provider sends it; all chunks at time 0.

    The dialect has no place for `created`.
    """
    if stream:
        return (("content-type", "text/event-stream"),), tuple(
            Chunk(at=0.0, data=b"data: " + orjson.dumps(event) + b"\r\n\r\n")
            for event in _events(answer, id)
        )
    texts: list[dict[str, object]] = [{"text": answer.message}] if answer.message else []
    parts = [*texts, *map(_function_call, answer.calls)]
    body = orjson.dumps(_envelope(answer, id, parts, _finish(answer)))
    headers = (
        ("content-type", "application/json; charset=UTF-8"),
        ("content-length", str(len(body))),
    )
    return headers, (Chunk(at=0.0, data=body),)


def _events(answer: Answer, id: str) -> Iterator[dict[str, object]]:
    """Text in pieces, then each call whole, and why it ended with the last."""
    said: list[dict[str, object]] = [{"text": piece} for piece in wire.pieces(answer.message)]
    said += map(_function_call, answer.calls)
    *early, last = said or [{"text": ""}]
    for part in early:
        yield _envelope(answer, id, [part], None)
    yield _envelope(answer, id, [last], _finish(answer))


def _finish(answer: Answer) -> str:
    return "SAFETY" if answer.refused else answer.finish or "STOP"


def _function_call(call: ToolCall) -> dict[str, object]:
    args: object = orjson.Fragment(call.arguments) if _object(call.arguments) else {}
    return {"functionCall": {"id": call.id, "name": call.name, "args": args}}


def _envelope(
    answer: Answer, id: str, parts: list[dict[str, object]], finish: str | None
) -> dict[str, object]:
    content = {"role": "model", "parts": parts}
    candidate = {"content": content, "finishReason": finish, "index": 0}
    usage = answer.usage or Usage()
    prompt, thought = usage.prompt_tokens or 0, usage.reasoning_tokens or 0
    counted: dict[str, object] = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": (usage.completion_tokens or 0) - thought,
        "totalTokenCount": prompt + (usage.completion_tokens or 0),
    }
    if usage.cached_tokens:
        counted["cachedContentTokenCount"] = usage.cached_tokens
    if thought:
        counted["thoughtsTokenCount"] = thought
    return {
        "candidates": [{key: value for key, value in candidate.items() if value is not None}],
        "usageMetadata": counted,
        "modelVersion": answer.model or "unknown",
        "responseId": id,
    }
