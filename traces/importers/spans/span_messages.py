"""Read the messages of a model request from its attributes and events.

In order: OpenTelemetry's GenAI conventions (`gen_ai.input.messages`, in attributes or in an event),
OpenInference, OpenLLMetry before them (`gen_ai.prompt.0.content`), the Vercel AI SDK, the events of
older GenAI conventions, and `input.value`.
"""

import re
from collections.abc import Callable, Iterator
from copy import replace
from itertools import count

from traces.importers.shared.conversation import ConversationCall, ConversationMessage
from traces.importers.shared.exported_runs import IS_STEP
from traces.importers.shared.json_values import (
    join_text_parts,
    to_json_text,
    to_object,
    to_objects,
)
from traces.importers.spans.message_values import read_message_value
from traces.importers.spans.plain_messages import (
    parse_json_text,
    read_call_part,
    read_genai_message,
    read_plain_message,
    to_role,
)
from traces.importers.spans.span_files import Span, Table

_OPEN = re.compile(r"llm\.(input|output)_messages\.(\d+)\.message\.(.+)")
_OPEN_CALL = re.compile(r"(?:message\.)?tool_calls\.(\d+)\.tool_call\.(.+)")
_OPEN_PART = re.compile(r"contents\.(\d+)\.message_content\.text")
_LEGACY = re.compile(r"(?:gen_ai|llm)\.(prompt|completion)s?\.(\d+)\.(.+)")
_LEGACY_CALL = re.compile(r"tool_calls\.(\d+)\.(.+)")
_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
type Messages = list[ConversationMessage]


def read_span_messages(span: Span, side: str) -> Messages:
    """Return the messages of a side, `input` or `output`; empty if the span has none."""
    return next((found for reader in _READERS if (found := reader(span, side))), [])


def _read_genai(span: Span, side: str) -> Messages:
    for known in (span.attributes, *(attributes for _, attributes in span.events)):
        messages = parse_json_text(known.get(f"gen_ai.{side}.messages"))
        if isinstance(messages, list) and messages:
            steps = [one for one in to_objects(messages) if one.get(IS_STEP) is not False]
            found = [each for one in steps for each in read_genai_message(one)]
            said = known.get("gen_ai.system_instructions") if side == "input" else None
            rules = parse_json_text(said)
            texts = [to_json_text(each.get("content")) for each in to_objects(rules)]
            is_new = bool(texts) and not any(each.role == "system" for each in found)
            first = [ConversationMessage(role="system", text="\n".join(texts))] if is_new else []
            return [*first, *found]
    return []


def _read_openinference(span: Span, side: str) -> Messages:
    messages: dict[int, Table] = {}
    for name, value in span.attributes.items():
        match = _OPEN.fullmatch(name)
        if match and match[1] == side:
            messages.setdefault(int(match[2]), {})[match[3]] = value
    return [_read_openinference_message(messages[place]) for place in sorted(messages)]


def _read_openinference_message(message: Table) -> ConversationMessage:
    calls: dict[int, Table] = {}
    texts = [to_json_text(message["content"])] if "content" in message else []
    for name, value in sorted(message.items()):
        if match := _OPEN_CALL.fullmatch(name):
            calls.setdefault(int(match[1]), {})[match[2]] = value
        elif _OPEN_PART.fullmatch(name):
            texts.append(to_json_text(value))
    if call_id := message.get("tool_call_id"):
        return ConversationMessage(role="tool", text="\n".join(texts), call_id=str(call_id))
    role = to_role(message.get("role"))
    return ConversationMessage(
        role=role, text="\n".join(texts), calls=_to_calls(calls, "function.name", "function.")
    )


def _to_calls(calls: dict[int, Table], name: str, prefix: str) -> tuple[ConversationCall, ...]:
    return tuple(
        ConversationCall(
            id=str(each.get("id") or ""),
            tool=str(each.get(name) or ""),
            arguments=to_json_text(each.get(f"{prefix}arguments")),
        )
        for _, each in sorted(calls.items())
    )


def _read_legacy(span: Span, side: str) -> Messages:
    wanted = "prompt" if side == "input" else "completion"
    messages: dict[int, Table] = {}
    for name, value in span.attributes.items():
        match = _LEGACY.fullmatch(name)
        if match and match[1] == wanted:
            messages.setdefault(int(match[2]), {})[match[3]] = value
    return [
        each
        for place in sorted(messages)
        for each in _read_legacy_message(
            messages[place], "assistant" if side == "output" else "user"
        )
    ]


def _read_legacy_message(message: Table, usual: str) -> Iterator[ConversationMessage]:
    calls: dict[int, Table] = {}
    for name, value in sorted(message.items()):
        if match := _LEGACY_CALL.fullmatch(name):
            calls.setdefault(int(match[1]), {})[match[2]] = value
    content = message.get("content")
    parts = parse_json_text(content) if isinstance(content, str) and content[:1] == "[" else content
    said = {**message, "role": message.get("role") or usual}
    said["content"] = parts if to_objects(parts) else content
    for each in read_plain_message(said):
        own = _to_calls(calls, "name", "") if each.role == "assistant" else ()
        yield replace(each, calls=each.calls or own)


def _read_vercel(span: Span, side: str) -> Messages:
    known = span.attributes
    if side == "input":
        messages = parse_json_text(known.get("ai.prompt.messages"))
        return [each for said in to_objects(messages) for each in read_plain_message(said)]
    text, asked = known.get("ai.response.text"), parse_json_text(known.get("ai.response.toolCalls"))
    if text is None and not asked:
        return []
    calls = tuple(read_call_part(each) for each in to_objects(asked))
    return [ConversationMessage(role="assistant", text=to_json_text(text), calls=calls)]


def _read_events(span: Span, side: str) -> Messages:
    """Read the events of older GenAI conventions, also those that are in an attribute."""
    listed = [
        (str(each.get("event.name") or each.get("name") or ""), each)
        for each in to_objects(parse_json_text(span.attributes.get("events")))
    ]
    found: Messages = []
    for name, said in (*span.events, *listed):
        body = parse_json_text(said.get("gen_ai.event.content", said.get("body")))
        known = {**said, **to_object(body)}
        match = _EVENT.fullmatch(name)
        if match and side == "input" and (known.keys() & {"content", "tool_calls"}):
            message = {**known, "role": known.get("role") or match[1]}
            message["content"] = _unwrapped(known.get("content"))
            found.extend(read_plain_message(message))
        elif name == "gen_ai.choice" and side == "output":
            choice = parse_json_text(known.get("message"))
            inner = to_object(choice) or {
                "content": _unwrapped(known.get("message", known.get("content")))
            }
            inner = {"tool_calls": known.get("tool_calls"), **inner, "role": "assistant"}
            found.extend(read_plain_message(inner))
        elif name == ("gen_ai.content.prompt" if side == "input" else "gen_ai.content.completion"):
            side_name = "gen_ai.prompt" if side == "input" else "gen_ai.completion"
            content = parse_json_text(said.get(side_name))
            for each in to_objects(content):
                found.extend(read_plain_message(each))
    return found


def _unwrapped(content: object) -> object:
    """Return content parts that are a text of JSON, as some exporters must write them."""
    parts = parse_json_text(content) if isinstance(content, str) and content[:1] in "[{" else None
    if not to_objects(parts):
        return content
    return [_to_typed_part(each) for each in to_objects(parts)]


def _to_typed_part(part: Table) -> Table:
    """Return a part of Bedrock's form, which has its type as its key, with a type."""
    if "toolUse" in part:
        said = to_object(part["toolUse"])
        return {"type": "tool_use", **said, "id": said.get("toolUseId")}
    if "toolResult" in part:
        said = to_object(part["toolResult"])
        text = join_text_parts(said.get("content"))
        return {"type": "tool_result", "id": said.get("toolUseId"), "content": text}
    return part


def _read_values(span: Span, side: str) -> Messages:
    """Read what a model request was given or gave: messages in any form, or a text."""
    text = span.attributes.get(f"{side}.value")
    if text is None or span.attributes.get("openinference.span.kind") != "LLM":
        return []
    if found := read_message_value(text, side):
        return found
    role = "user" if side == "input" else "assistant"
    return [ConversationMessage(role=role, text=to_json_text(text))]


_READERS: tuple[Callable[[Span, str], Messages], ...] = (
    _read_genai,
    _read_openinference,
    _read_legacy,
    _read_vercel,
    _read_events,
    _read_values,
)


def name_calls(messages: Messages, counter: "count[int]") -> Messages:
    """Return the messages with an id for each call that has none."""
    return [
        replace(
            each,
            calls=tuple(
                call if call.id else replace(call, id=f"call-{next(counter)}")
                for call in each.calls
            ),
        )
        for each in messages
    ]
