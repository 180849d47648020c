"""Export to OpenTelemetry spans, as the JSON that its SDKs print: a root, `chat`, `execute_tool`.

Names are those of one version of the GenAI conventions, `SCHEMA`; the conventions are in
development and rename attributes. Each `chat` span has the entire conversation so far, as they
require. A tool span lasts from the response with the call to the request with its result.
"""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import orjson

from traces.exporters.run_model import ExportedCall, ExportedRun, ExportedStep

SCHEMA = "https://opentelemetry.io/schemas/gen-ai/1.42.0"

type JsonSpan = dict[str, object]


def to_otel_spans(run: ExportedRun) -> Iterator[JsonSpan]:
    """Yield the spans of a run, the root last; ValueError if it has no times, which spans need."""
    if run.recorded_at is None or any(_has_no_times(step) for step in run.steps):
        raise ValueError("it has no times, and a span of OpenTelemetry needs them")
    root, messages = _hash_to_id(run.id, 8), list[JsonSpan]()
    agents = [number for number, step in enumerate(run.steps) if step.source == "agent"]
    end = max((step.ended or 0.0 for step in run.steps), default=0.0)
    for number, step in enumerate(run.steps):
        if step.source != "agent":
            messages.append(_make_genai_message(step.source, [_make_text_part(step.message)]))
            continue
        message = _to_answer_message(step)
        yield _make_otel_span(
            run,
            f"chat {step.model or ''}".strip(),
            f"step {number}",
            root,
            (step.started or 0.0, step.ended or 0.0),
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": step.model,
                "gen_ai.response.model": step.model,
                "gen_ai.conversation.id": run.id,
                "gen_ai.input.messages": orjson.dumps(messages).decode(),
                "gen_ai.output.messages": orjson.dumps([message]).decode(),
                **_to_usage_attributes(step),
            },
        )
        messages.append(message)
        after = next((run.steps[n].started or end for n in agents if n > number), end)
        for place, call in enumerate(step.calls):
            times = (step.ended or 0.0, max(after, step.ended or 0.0))
            yield _to_tool_span(run, call, f"step {number} call {place}", root, times)
            if call.result is not None:
                part = {"type": "tool_call_response", "id": call.id, "response": call.result}
                messages.append(_make_genai_message("tool", [part]))
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": run.agent}
    yield _make_otel_span(
        run, f"invoke_agent {run.agent or 'unknown'}", "", None, (0.0, end), attributes
    )


def _has_no_times(step: ExportedStep) -> bool:
    return step.source == "agent" and (step.started is None or step.ended is None)


def _to_tool_span(
    run: ExportedRun, call: ExportedCall, name: str, root: str, times: tuple[float, float]
) -> JsonSpan:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.call.arguments": call.arguments,
        "gen_ai.tool.call.result": call.result,
    }
    span = _make_otel_span(run, f"execute_tool {call.tool}", name, root, times, attributes)
    if call.is_error:
        span["status"] = {"status_code": "ERROR"}
    return span


def _make_otel_span(
    run: ExportedRun,
    name: str,
    own: str,
    parent: str | None,
    times: tuple[float, float],
    attributes: Mapping[str, object],
) -> JsonSpan:
    zero = run.recorded_at or 0.0
    begin, end = (
        datetime.fromtimestamp(zero + at, UTC).isoformat().replace("+00:00", "Z") for at in times
    )
    return {
        "name": name,
        "context": {
            "trace_id": f"0x{_hash_to_id(run.id, 16)}",
            "span_id": f"0x{_hash_to_id(f'{run.id} {own}' if own else run.id, 8)}",
            "trace_state": "[]",
        },
        "kind": "SpanKind.CLIENT" if name.startswith("chat") else "SpanKind.INTERNAL",
        "parent_id": f"0x{parent}" if parent else None,
        "start_time": begin,
        "end_time": end,
        "status": {"status_code": "UNSET"},
        "attributes": {key: value for key, value in attributes.items() if value is not None},
        "events": [],
        "links": [],
        "resource": {"attributes": {"service.name": "stumble"}, "schema_url": SCHEMA},
    }


def _to_answer_message(step: ExportedStep) -> JsonSpan:
    calls = [
        {"type": "tool_call", "id": call.id, "name": call.tool, "arguments": call.arguments}
        for call in step.calls
    ]
    return _make_genai_message(
        "assistant", ([_make_text_part(step.message)] if step.message else []) + calls
    )


def _make_genai_message(role: str, parts: list[dict[str, str]]) -> JsonSpan:
    return {"role": role, "parts": parts}


def _make_text_part(said: str) -> dict[str, str]:
    return {"type": "text", "content": said}


def _to_usage_attributes(step: ExportedStep) -> JsonSpan:
    usage = step.usage
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.details.reasoning_tokens": usage.reasoning_tokens,
    }


def _hash_to_id(text: str, size: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * size]
