"""Export to OpenTelemetry: a run as one OTLP document, with a root span, `chat`, `execute_tool`.

Names are those of one version of the GenAI conventions, `SCHEMA`; the conventions are in
development and rename attributes. A `chat` span has the messages that are new in its request, as
the conventions let instrumentations shorten them, and a link to the request before it in the same
conversation. `stumble.input.history` is how many messages the request took from there: the first
ones of those before it, its response included. So a message is written once, and
`stumble.is_step` is false in one that stands for an earlier message. A tool span lasts from the
response with the call to the request with its result. The root has the id and the outcome of the
run (`stumble.*`), by which an import knows it again.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version

import orjson

from traces.dialects.types import TokenUsage
from traces.exporters import ExportOmission
from traces.exporters.run_model import ExportedCall, ExportedRun, ExportedStep, to_valid_utf8
from traces.exporters.sent_messages import SentMessage
from traces.importers.shared.exported_runs import (
    EXPORTED_FACTS,
    HISTORY,
    IS_STEP,
    RUN_ID,
    UNANSWERED,
    UNKNOWN_VERDICT,
)

SCHEMA = "https://opentelemetry.io/schemas/gen-ai/1.42.0"
_INTERNAL, _CLIENT = 1, 3
_OK, _ERROR = 1, 2

type Table = dict[str, object]
type Times = tuple[float | None, float | None]


def to_otlp_document(run: ExportedRun) -> tuple[Table, tuple[ExportOmission, ...]]:
    """Return a run as a value of OTLP's JSON (`TracesData`), and what it lacks.

    The times of its spans are 0, which is unknown, if the run has none.
    """
    timed = run.recorded_at is not None and not any(map(_has_no_times, run.steps))
    why = "its steps have no times, so those of its spans are 0"
    lacks = () if timed else (ExportOmission(what="times", why=why),)
    attributes = _to_attributes({"service.name": "stumble"})
    scope = {"name": "stumble", "version": version("stumble")}
    spans = {"scope": scope, "spans": list(_iter_spans(run, timed)), "schemaUrl": SCHEMA}
    resource = {"resource": {"attributes": attributes}, "scopeSpans": [spans], "schemaUrl": SCHEMA}
    return {"resourceSpans": [resource]}, lacks


def _iter_spans(run: ExportedRun, timed: bool) -> Iterator[Table]:
    """Yield the spans of a run, the root last."""
    root = _hash_to_id(run.id, 8)
    zero = run.recorded_at if timed else None
    agents = [number for number, step in enumerate(run.steps) if step.source == "agent"]
    end = max((step.ended or 0.0 for step in run.steps), default=0.0)
    for number in agents:
        step = run.steps[number]
        name = f"chat {step.model or ''}".strip()
        times = _to_times(zero, step.started, step.ended)
        span = _make_span(run, name, f"step {number}", root, times, _to_chat_attributes(run, step))
        if step.sent.follows is not None:
            before = _hash_to_id(f"{run.id} step {step.sent.follows}", 8)
            span["links"] = [{"traceId": span["traceId"], "spanId": before}]
        yield span
        after = next((run.steps[n].started or end for n in agents if n > number), end)
        times = _to_times(zero, step.ended, max(after, step.ended or 0.0))
        for place, call in enumerate(step.calls):
            yield _to_tool_span(run, call, f"step {number} call {place}", root, times)
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": run.agent,
        "gen_ai.conversation.id": run.id,
        RUN_ID: run.id,
        UNANSWERED: _dump_messages(map(_to_message, run.unanswered)) if run.unanswered else None,
        **{f"stumble.{name}": run.facts.get(name) for name in EXPORTED_FACTS},
    }
    name = f"invoke_agent {run.agent or ''}".strip()
    seconds = run.facts.get("seconds")
    end = seconds if isinstance(seconds, float) and not timed else end
    yield _make_span(run, name, "", None, _to_times(run.recorded_at, 0.0, end), attributes)


def _to_chat_attributes(run: ExportedRun, step: ExportedStep) -> Table:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": step.model,
        "gen_ai.response.model": step.model,
        "gen_ai.response.finish_reasons": [step.finish] if step.finish else None,
        "gen_ai.conversation.id": run.id if step.lane == 0 else f"{run.id} {step.lane}",
        "gen_ai.input.messages": _dump_messages(map(_to_message, step.sent.messages)),
        "gen_ai.output.messages": _dump_messages([_to_answer_message(step)]),
        HISTORY: step.sent.history,
        **_to_usage_attributes(step),
    }


def _dump_messages(messages: Iterable[Table]) -> str:
    return orjson.dumps(list(messages)).decode()


def _to_message(sent: SentMessage) -> Table:
    """Return a message of a request in the form of the conventions."""
    text = to_valid_utf8(sent.text)
    part = {"type": "text", "content": text}
    if sent.call_id is not None:
        id = to_valid_utf8(sent.call_id)
        part = {"type": "tool_call_response", "id": id, "response": text}
    message: Table = {"role": sent.role, "parts": [part]}
    return message if sent.is_step else message | {IS_STEP: False}


def _has_no_times(step: ExportedStep) -> bool:
    return step.source == "agent" and (step.started is None or step.ended is None)


def _to_times(zero: float | None, start: float | None, end: float | None) -> Times:
    if zero is None:
        return None, None
    return zero + (start or 0.0), zero + (end or 0.0)


def _to_tool_span(
    run: ExportedRun, call: ExportedCall, name: str, root: str, times: Times
) -> Table:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.call.arguments": call.arguments,
        "gen_ai.tool.call.result": call.result,
        UNKNOWN_VERDICT: True if call.is_error is None else None,
    }
    span = _make_span(run, f"execute_tool {call.tool}", name, root, times, attributes)
    if call.is_error is not None:
        span["status"] = {"code": _ERROR if call.is_error else _OK}
    return span


def _make_span(
    run: ExportedRun,
    name: str,
    own: str,
    parent: str | None,
    times: Times,
    attributes: Mapping[str, object],
) -> Table:
    start, end = (str(round((at or 0.0) * 1e9)) for at in times)
    span: Table = {
        "traceId": _hash_to_id(run.id, 16),
        "spanId": _hash_to_id(f"{run.id} {own}" if own else run.id, 8),
        "name": to_valid_utf8(name),
        "kind": _CLIENT if name.startswith("chat") else _INTERNAL,
        "startTimeUnixNano": start,
        "endTimeUnixNano": end,
        "attributes": _to_attributes(attributes),
    }
    return span | ({"parentSpanId": parent} if parent else {})


def _to_attributes(known: Mapping[str, object]) -> list[Table]:
    return [
        {"key": key, "value": _to_any_value(value)}
        for key, value in known.items()
        if value is not None
    ]


def _to_any_value(value: object) -> Table:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_to_any_value(each) for each in value]}}
    return {"stringValue": to_valid_utf8(str(value))}


def _to_answer_message(step: ExportedStep) -> Table:
    calls = [
        {
            "type": "tool_call",
            "id": to_valid_utf8(call.id),
            "name": to_valid_utf8(call.tool),
            "arguments": to_valid_utf8(call.arguments),
        }
        for call in step.calls
    ]
    text = [{"type": "text", "content": to_valid_utf8(step.message)}] if step.message else []
    return {"role": "assistant", "parts": text + calls}


def _to_usage_attributes(step: ExportedStep) -> Table:
    usage = step.usage or TokenUsage()
    return {
        "gen_ai.usage.cost": step.cost,
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }


def _hash_to_id(text: str, size: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * size]
