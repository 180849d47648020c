"""Spans of OpenTelemetry, as the JSON that its SDKs print: a root, `chat` and `execute_tool`.

Names are those of one version of the GenAI conventions, `SCHEMA`, which rename things as long as
they are in development. Each `chat` has the whole conversation so far, as the conventions want it.
The span of a tool lasts from the answer that asked for it to the request that has its result.
"""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import orjson

from traces.exports.told import Call, Step, Told

SCHEMA = "https://opentelemetry.io/schemas/gen-ai/1.42.0"

type Span = dict[str, object]


def spans(run: Told) -> Iterator[Span]:
    """The spans of a run, the root last; ValueError where it has no times, which spans need."""
    if run.recorded_at is None or any(_timeless(step) for step in run.steps):
        raise ValueError("it has no times, and a span of OpenTelemetry needs them")
    root, said = _id(run.id, 8), list[Span]()
    agents = [number for number, step in enumerate(run.steps) if step.source == "agent"]
    end = max((step.over or 0.0 for step in run.steps), default=0.0)
    for number, step in enumerate(run.steps):
        if step.source != "agent":
            said.append(_message(step.source, [_text(step.message)]))
            continue
        answer = _answer(step)
        yield _span(
            run,
            f"chat {step.model or ''}".strip(),
            f"step {number}",
            root,
            (step.began or 0.0, step.over or 0.0),
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": step.model,
                "gen_ai.response.model": step.model,
                "gen_ai.conversation.id": run.id,
                "gen_ai.input.messages": orjson.dumps(said).decode(),
                "gen_ai.output.messages": orjson.dumps([answer]).decode(),
                **_usage(step),
            },
        )
        said.append(answer)
        after = next((run.steps[n].began or end for n in agents if n > number), end)
        for place, call in enumerate(step.calls):
            times = (step.over or 0.0, max(after, step.over or 0.0))
            yield _tool(run, call, f"step {number} call {place}", root, times)
            if call.result is not None:
                part = {"type": "tool_call_response", "id": call.id, "response": call.result}
                said.append(_message("tool", [part]))
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": run.agent}
    yield _span(run, f"invoke_agent {run.agent or 'unknown'}", "", None, (0.0, end), attributes)


def _timeless(step: Step) -> bool:
    return step.source == "agent" and (step.began is None or step.over is None)


def _tool(run: Told, call: Call, name: str, root: str, times: tuple[float, float]) -> Span:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.call.arguments": call.arguments,
        "gen_ai.tool.call.result": call.result,
    }
    span = _span(run, f"execute_tool {call.tool}", name, root, times, attributes)
    if call.is_error:
        span["status"] = {"status_code": "ERROR"}
    return span


def _span(
    run: Told,
    name: str,
    own: str,
    parent: str | None,
    times: tuple[float, float],
    attributes: Mapping[str, object],
) -> Span:
    zero = run.recorded_at or 0.0
    begin, end = (
        datetime.fromtimestamp(zero + at, UTC).isoformat().replace("+00:00", "Z") for at in times
    )
    return {
        "name": name,
        "context": {
            "trace_id": f"0x{_id(run.id, 16)}",
            "span_id": f"0x{_id(f'{run.id} {own}' if own else run.id, 8)}",
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


def _answer(step: Step) -> Span:
    calls = [
        {"type": "tool_call", "id": call.id, "name": call.tool, "arguments": call.arguments}
        for call in step.calls
    ]
    return _message("assistant", ([_text(step.message)] if step.message else []) + calls)


def _message(role: str, parts: list[dict[str, str]]) -> Span:
    return {"role": role, "parts": parts}


def _text(said: str) -> dict[str, str]:
    return {"type": "text", "content": said}


def _usage(step: Step) -> Span:
    used = step.usage
    if used is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": used.prompt_tokens,
        "gen_ai.usage.output_tokens": used.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": used.cached_tokens,
        "gen_ai.usage.details.reasoning_tokens": used.reasoning_tokens,
    }


def _id(text: str, size: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * size]
