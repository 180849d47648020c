"""Calls and results in the spans of tools, and the calls in messages that they belong to."""

from collections import Counter
from collections.abc import Iterable

import orjson
from msgspec import Struct

from traces.importers.shared.conversation import ConversationCall
from traces.importers.shared.exported_runs import UNKNOWN_VERDICT
from traces.importers.shared.json_values import to_json_text, to_object
from traces.importers.spans.plain_messages import parse_json_text
from traces.importers.spans.span_files import Span, Table

_NAMES = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name", "tool_name")
_IDS = ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id", "tool.call_id", "tool_call_id")
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "tool_arguments",
    "ai.toolCall.args",
    "tool.parameters",
    "input.value",
    "traceloop.entity.input",
)
_RESULTS = (
    "gen_ai.tool.call.result",
    "tool_response",
    "ai.toolCall.result",
    "output.value",
    "traceloop.entity.output",
)

_NUMBERED = "\0"
NAMED_HERE = "call-"
"""How the ids begin that calls without an id get."""


class ToolSpan(Struct, frozen=True, kw_only=True):
    """A tool call that a span reports; the result is None if the span does not have it."""

    call: ConversationCall
    result: str | None
    failed: bool | None
    """None if the span has not ended."""
    start: float | None
    seconds: float | None


def is_tool_span(span: Span) -> bool:
    """Whether a span is a call of a tool."""
    known = span.attributes
    return (
        known.get("gen_ai.operation.name") == "execute_tool"
        or known.get("openinference.span.kind") == "TOOL"
        or known.get("traceloop.span.kind") == "tool"
        or known.get("operation.name") == "ai.toolCall"
        or known.get("ai.operationId") == "ai.toolCall"
    )


def read_tool_span(span: Span) -> ToolSpan:
    """Return the call of a tool's span.

    A span whose status is OK, or that ended without an error, is a success: OpenTelemetry's
    conventions leave the status of a success unset, and have instrumentations set that of a
    failure. A result of MCP has a flag of its own for a failure that its span does not count as
    one.
    """
    known = span.attributes | _read_event_values(span)
    result = _first(known, _RESULTS)
    arguments = _first(known, _ARGUMENTS)
    name = _first(known, _NAMES)
    return ToolSpan(
        call=ConversationCall(
            id=str(_first(known, _IDS) or ""),
            tool=str(name or span.name.removeprefix("execute_tool ")),
            arguments=to_json_text(arguments),
        ),
        result=None if result is None else to_json_text(result),
        failed=_has_failed(span, result),
        start=span.start,
        seconds=span.seconds,
    )


def _has_failed(span: Span, result: object) -> bool | None:
    if UNKNOWN_VERDICT in span.attributes:
        return None
    value = parse_json_text(result) if isinstance(result, str) else result
    if span.failed or to_object(value).get("isError") is True:
        return True
    return None if span.end is None and span.failed is None else False


def _read_event_values(span: Span) -> Table:
    """Return what events of the older conventions say: the call, and its result as a choice."""
    found: Table = {}
    for name, said in span.events:
        if name == "gen_ai.tool.message" and "content" in said:
            found["gen_ai.tool.call.arguments"] = said["content"]
        elif name == "gen_ai.choice" and ("message" in said or "content" in said):
            found["gen_ai.tool.call.result"] = said.get("message", said.get("content"))
        if name in ("gen_ai.tool.message", "gen_ai.choice") and said.get("id"):
            found.setdefault("gen_ai.tool.call.id", said["id"])
    return {key: value for key, value in found.items() if key not in span.attributes}


def _first(known: Table, names: Iterable[str]) -> object:
    return next((known[name] for name in names if known.get(name) is not None), None)


def match_tool_spans(
    spans: list[ToolSpan], asked: list[ConversationCall]
) -> tuple[dict[str, ToolSpan], list[ToolSpan]]:
    """Match spans to calls: by id, else by tool and arguments, else by tool, in their order.

    Returns the spans by the id of their call, and those that are of no call. Spans of one id are
    numbered as its calls are; a further one is of another instrumentation, and left out.
    """
    ids = {call.id for call in asked}
    by_id = {each.call.id: each for each in spans if each.call.id}
    matched = {call.id: by_id[call.id] for call in asked if call.id in by_id}
    taken = {id(each) for each in matched.values()}
    for same in (_is_same_call, _is_same_tool):
        for call in asked:
            if call.id in matched:
                continue
            for each in spans:
                is_named = call.id.startswith(NAMED_HERE) and each.call.id not in ids
                is_free = id(each) not in taken and (not each.call.id or is_named)
                if is_free and same(call, each.call):
                    matched[call.id] = each
                    taken.add(id(each))
                    break
    others = [each for each in spans if id(each) not in taken]
    return matched, [each for each in others if strip_number(each.call.id) not in ids]


def number_id(id: str, seen: Counter[str]) -> str:
    """Return an id that is unique: the first one as it is, further ones with their number."""
    number, seen[id] = seen[id], seen[id] + 1
    return f"{id}{_NUMBERED}{number}" if id and number else id


def strip_number(id: str) -> str:
    """Return the id that was numbered."""
    return id.partition(_NUMBERED)[0]


def _is_same_tool(one: ConversationCall, other: ConversationCall) -> bool:
    return one.tool == other.tool


def _is_same_call(one: ConversationCall, other: ConversationCall) -> bool:
    return one.tool == other.tool and _to_value(one.arguments) == _to_value(other.arguments)


def _to_value(arguments: str) -> object:
    try:
        value: object = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments
    return to_object(value) or value
