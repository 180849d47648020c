"""A trace as a conversation.

Each model request has the conversation so far, so only what is new in it is taken, then its
response. Several agents of one trace have conversations of their own: a request continues the one
that it begins like. If one request contains another, as two instrumentations report it, the inner
one counts. Calls that only the spans of tools report belong to the response before them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import replace
from itertools import count

from msgspec import Struct

from traces.importers.shared.conversation import (
    ConversationMessage,
    ImportedConversation,
)
from traces.importers.shared.exported_runs import (
    HISTORY,
    RUN_ID,
    UNANSWERED,
    read_exported_facts,
)
from traces.importers.shared.json_values import to_objects
from traces.importers.shared.run_reader import ImportNotes
from traces.importers.spans.plain_messages import parse_json_text, read_genai_message
from traces.importers.spans.span_files import Span, Table
from traces.importers.spans.span_messages import name_calls, read_span_messages
from traces.importers.spans.tool_spans import (
    ToolSpan,
    is_tool_span,
    match_tool_spans,
    number_id,
    read_tool_span,
    strip_number,
)

_MODELS = (
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "llm.response.model_name",
    "llm.request.model_name",
    "ai.response.model",
    "ai.model.id",
    "llm.request.model",
)
_AGENTS = ("gen_ai.agent.name", "agent.name", "agent_name", "ai.telemetry.functionId")
_FINISHES = (
    "gen_ai.response.finish_reasons",
    "gen_ai.completion.0.finish_reason",
    "llm.finish_reason",
    "ai.response.finishReason",
)
_REQUESTS = ("chat", "generate_content", "text_completion", "completion")
_OTHER_OPERATIONS = (
    "create_agent",
    "embeddings",
    "execute_tool",
    "invoke_agent",
    "invoke_workflow",
    "rerank",
    "retrieval",
)
"""Operations of the GenAI conventions that are no request to a model for its words."""
_COUNTS = {
    "prompt_tokens": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "llm.usage.prompt_tokens",
        "ai.usage.promptTokens",
        "ai.usage.inputTokens",
    ),
    "completion_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "llm.usage.completion_tokens",
        "ai.usage.completionTokens",
        "ai.usage.outputTokens",
    ),
    "cached_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "llm.token_count.prompt_details.cache_read",
        "ai.usage.cachedInputTokens",
    ),
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.details.reasoning_tokens",
        "gen_ai.usage.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
        "ai.usage.reasoningTokens",
    ),
    "cost_reported_usd": (
        "gen_ai.usage.cost",
        "operation.cost",
        "llm.cost.total",
        "llm.usage.cost",
    ),
}

_OWN_MODEL_OR_TOKENS = (
    "gen_ai.request.model",
    *_COUNTS["prompt_tokens"],
    *_COUNTS["completion_tokens"],
)

Timed = list[tuple[float | None, ConversationMessage]]
"""Messages with the time at which their request began."""


class _Lane(Struct, kw_only=True):
    """One conversation of a trace: its first message, and how many were seen."""

    first: ConversationMessage
    seen: int


def is_model_request(span: Span) -> bool:
    """Whether a span is a request to a model.

    Instrumentations name operations of their own (`call_llm`): then a span that has the model that
    it asked, or tokens, is one, unless its convention says what else it is.
    """
    known = span.attributes
    name = known.get("gen_ai.operation.name")
    if name in _REQUESTS or "llm.request.type" in known:
        return known.get("llm.request.type") not in ("embedding", "rerank")
    if (kind := known.get("openinference.span.kind")) is not None:
        return str(kind).upper() == "LLM"
    operation = str(known.get("ai.operationId") or known.get("operation.name") or "")
    if operation.startswith("ai."):
        return operation.split()[0].endswith((".doGenerate", ".doStream"))
    if name in _OTHER_OPERATIONS or "traceloop.span.kind" in known:
        return False
    return any(known.get(name) is not None for name in _OWN_MODEL_OR_TOKENS)


def has_agent_content(span: Span) -> bool:
    """Whether a span is of a model, a tool, or an agent with messages."""
    if RUN_ID in span.attributes:
        return True
    return is_model_request(span) or is_tool_span(span) or bool(read_span_messages(span, "output"))


def read_trace(
    trace: str,
    spans: list[Span],
    notes: ImportNotes,
    *,
    source: str = "otel",
    known: Mapping[str, object] | None = None,
) -> ImportedConversation:
    """Return a trace as a run; `known` are facts that its file has beside the spans.

    Raises ValueError if no span is of a model or a tool.
    """
    spans = sorted(spans, key=lambda span: span.start or 0.0)
    if not any(has_agent_content(span) for span in spans):
        raise ValueError(f"none of its {len(spans)} spans is of a model request or a tool call")
    starts = [span.start for span in spans if span.start is not None]
    ends = [span.end for span in spans if span.end is not None]
    names = (span.attributes.get(name) for span in spans for name in _AGENTS)
    exported = next((span.attributes for span in spans if RUN_ID in span.attributes), {})
    facts: dict[str, object] = {
        "agent": next((name for name in names if isinstance(name, str) and name), None),
        "recorded_at": min(starts, default=None),
        "seconds": max(ends) - min(starts) if starts and ends else None,
    }
    facts |= {name: value for name, value in (known or {}).items() if value is not None}
    facts |= read_exported_facts(exported, "stumble.")
    messages = (*_read_trace_messages(spans, notes), *_read_unanswered(exported))
    id = exported.get(RUN_ID)
    return ImportedConversation(
        source=source,
        messages=messages,
        facts=facts,
        key=trace,
        fidelity="span",
        exported_id=id if isinstance(id, str) else None,
    )


def _read_unanswered(exported: Table) -> Iterator[ConversationMessage]:
    for message in to_objects(parse_json_text(exported.get(UNANSWERED))):
        yield from read_genai_message(message)


def _read_trace_messages(spans: list[Span], notes: ImportNotes) -> list[ConversationMessage]:
    requests = _find_requests(spans, notes)
    timed, counter = Timed(), count(1)
    lanes: list[_Lane] = []
    for span in requests:
        inputs = name_calls(read_span_messages(span, "input"), counter)
        outputs = name_calls(read_span_messages(span, "output"), counter)
        outputs = [each for each in outputs if each.role == "assistant"]
        is_exported = HISTORY in span.attributes
        if not outputs and span.failed:
            notes.skip("model requests that failed")
        elif not outputs:
            outputs = [ConversationMessage(role="assistant")]
        if not inputs and not is_exported and any(each.text or each.calls for each in outputs):
            notes.skip("model requests without what was sent, so results of tools may be missing")
        if not is_exported:  # there they are only what is new
            lane = _find_lane(lanes, inputs)
            seen, lane.seen = lane.seen, len(inputs) + len(outputs)
            inputs = _drop_known(inputs[seen:], timed)
        timed += [(span.start, each) for each in inputs]
        if outputs:
            known = span.attributes
            said = _join(outputs)
            finish = _read_finish(known) or said.finish
            said = replace(said, model=_read_model(known), usage=_read_usage(known), finish=finish)
            timed.append((span.start, said))
    tools = [read_tool_span(span) for span in spans if is_tool_span(span)]
    return _add_tool_spans(_link_results(timed), tools, counter, notes)


def _drop_known(inputs: list[ConversationMessage], timed: Timed) -> list[ConversationMessage]:
    """Return the messages without calls that a response made; some requests repeat only these."""
    asked = {call.id for _, each in timed for call in each.calls}
    return [
        each for each in inputs if not (each.calls and asked.issuperset(c.id for c in each.calls))
    ]


def _join(outputs: list[ConversationMessage]) -> ConversationMessage:
    """Return a response as one message; some exporters list its parts or chunks as messages."""
    calls = tuple(call for each in outputs for call in each.calls)
    text = "\n".join(each.text for each in outputs if each.text)
    return replace(outputs[0], text=text, calls=calls)


def _link_results(timed: Timed) -> Timed:
    """Return the messages with the id of a call for each result that names none, in their order."""
    open_calls, linked = list[str](), Timed()
    for at, each in timed:
        open_calls += [call.id for call in each.calls]
        if each.role == "tool":
            id = each.call_id or next(iter(open_calls), "")
            open_calls = [other for other in open_calls if other != id]
            each = replace(each, call_id=id)
        linked.append((at, each))
    return linked


def _find_requests(spans: list[Span], notes: ImportNotes) -> list[Span]:
    """Return the model requests with content, the innermost ones; without any, all of them."""
    requests = [span for span in spans if is_model_request(span)]
    full = [x for x in requests if HISTORY in x.attributes or read_span_messages(x, "output")]
    full = full or [
        span
        for span in spans
        if not is_model_request(span)
        and not is_tool_span(span)
        and read_span_messages(span, "output")
    ]
    if not full:
        for _ in requests:
            notes.skip("model requests without content, which the instrumentation left out")
        return _drop_outer(requests, spans)
    return _drop_outer(full, spans)


def _drop_outer(chosen: list[Span], spans: list[Span]) -> list[Span]:
    parents = {span.span_id: span.parent_id for span in spans}
    outer = set[str]()
    for span in chosen:
        at, steps = span.parent_id, 0
        while at is not None and at not in outer and steps < len(spans):
            outer.add(at)
            at, steps = parents.get(at), steps + 1
    return [span for span in chosen if span.span_id not in outer]


def _find_lane(lanes: list[_Lane], inputs: list[ConversationMessage]) -> _Lane:
    """Return the conversation that a request continues; a new one if there is none."""
    first = inputs[0] if inputs else ConversationMessage(role="user")
    for lane in lanes:
        if lane.first.role == first.role and lane.first.text == first.text:
            if lane.seen > len(inputs):
                lane.seen = 0
            return lane
    lanes.append(_Lane(first=first, seen=0))
    return lanes[-1]


def _add_tool_spans(
    timed: list[tuple[float | None, ConversationMessage]],
    tools: list[ToolSpan],
    counter: "count[int]",
    notes: ImportNotes,
) -> list[ConversationMessage]:
    """Return the messages with what the spans of tools add: failures, results and calls.

    A model may give several calls one id: meanwhile these are numbered.
    """
    timed, tools = _number_repeated_ids(timed, tools)
    asked = [call for _, each in timed for call in each.calls]
    matched, others = match_tool_spans(tools, asked)
    answered = {each.call_id for _, each in timed if each.role == "tool"}
    messages = [
        (at, _mark_failure(each, matched)) if each.role == "tool" else (at, each)
        for at, each in timed
    ]
    for each in others:
        _add_own_call(messages, each, counter)
    tail = [
        _to_result(tool, call.id)
        for call in asked
        if call.id not in answered
        and (tool := matched.get(call.id)) is not None
        and (tool.result is not None or tool.failed is not None)
    ]
    return [_strip_numbers(each) for each in (*(each for _, each in messages), *tail)]


def _number_repeated_ids(timed: Timed, tools: list[ToolSpan]) -> tuple[Timed, list[ToolSpan]]:
    asked, answered, made = Counter[str](), Counter[str](), Counter[str]()
    numbered = Timed()
    for at, each in timed:
        calls = tuple(replace(call, id=number_id(call.id, asked)) for call in each.calls)
        result = each.call_id if each.call_id is None else number_id(each.call_id, answered)
        numbered.append((at, replace(each, calls=calls, call_id=result)))
    spans = [replace(x, call=replace(x.call, id=number_id(x.call.id, made))) for x in tools]
    return numbered, spans


def _strip_numbers(each: ConversationMessage) -> ConversationMessage:
    calls = tuple(replace(call, id=strip_number(call.id)) for call in each.calls)
    return replace(each, calls=calls, call_id=each.call_id and strip_number(each.call_id))


def _mark_failure(said: ConversationMessage, matched: dict[str, ToolSpan]) -> ConversationMessage:
    tool = matched.get(said.call_id or "")
    return said if tool is None else replace(said, is_error=tool.failed, seconds=tool.seconds)


def _to_result(tool: ToolSpan, call_id: str) -> ConversationMessage:
    return ConversationMessage(
        role="tool",
        text=tool.result or "",
        call_id=call_id,
        is_error=tool.failed,
        seconds=tool.seconds,
    )


def _add_own_call(
    messages: list[tuple[float | None, ConversationMessage]],
    tool: ToolSpan,
    counter: "count[int]",
) -> None:
    """Add a call that no message has to the response before it, and its result after that."""
    call = tool.call if tool.call.id else replace(tool.call, id=f"call-{next(counter)}")
    place = None
    for at, (time, each) in enumerate(messages):
        is_before = time is None or tool.start is None or time <= tool.start
        if each.role == "assistant" and is_before:
            place = at
    if place is None:
        messages.append((tool.start, ConversationMessage(role="assistant", calls=(call,))))
        place = len(messages) - 1
    else:
        time, each = messages[place]
        messages[place] = (time, replace(each, calls=(*each.calls, call)))
    if tool.result is not None or tool.failed is not None:
        after = place + 1
        while after < len(messages) and messages[after][1].role == "tool":
            after += 1
        messages.insert(after, (messages[place][0], _to_result(tool, call.id)))


def _read_usage(known: Table) -> dict[str, object]:
    usage = {
        column: next((known[name] for name in names if known.get(name) is not None), None)
        for column, names in _COUNTS.items()
    }
    return usage if any(value is not None for value in usage.values()) else {}


def _read_model(known: Table) -> str | None:
    return next((str(known[name]) for name in _MODELS if known.get(name)), None)


def _read_finish(known: Table) -> str | None:
    """Return why the response ended: the last of several choices' or chunks' reasons."""
    for name in _FINISHES:
        reasons = parse_json_text(known.get(name)) or known.get(name)
        last = reasons[-1] if isinstance(reasons, list) and reasons else reasons
        if isinstance(last, str) and last:
            return last
    return None


def group_by_trace(spans: Iterator[Span]) -> dict[str, list[Span]]:
    """Return the spans of each trace, each span once, with the log records of each as events."""
    traces: dict[str, dict[str, Span]] = {}
    records: dict[tuple[str, str], dict[str, tuple[str, Table]]] = {}
    for span in spans:
        if span.is_log_record:
            own = records.setdefault((span.trace_id, span.span_id), {})
            own |= {repr(event): event for event in span.events}
        else:
            traces.setdefault(span.trace_id, {})[span.span_id] = span
    for (trace, id), events in records.items():
        if (span := traces.get(trace, {}).get(id)) is not None:  # type: ignore[assignment]
            traces[trace][id] = replace(span, events=(*span.events, *events.values()))
    return {trace: list(found.values()) for trace, found in traces.items()}
