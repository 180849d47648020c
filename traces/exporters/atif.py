"""Export to Harbor's trajectories (ATIF), at the newest version that its own validator accepts.

The format has no field for a reward or for the task: these are under `extra`. Arguments must be an
object; any other text is in it under `text`. If the index shortened a value, the `extra` of the
call has its full size.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import orjson

from traces.dialects.types import TokenUsage
from traces.exporters.run_model import ExportedCall, ExportedRun, ExportedStep, to_valid_utf8
from traces.importers.shared.exported_runs import RUN_ID

VERSION = "ATIF-v1.8"


def to_atif_document(run: ExportedRun) -> dict[str, object]:
    """Convert a run to one document."""
    agent = {"name": run.agent or "unknown", "version": "unknown", "model_name": run.model}
    usages = [step.usage for step in run.steps if step.usage is not None]
    return _drop_none_values(
        {
            "schema_version": VERSION,
            "session_id": run.id,
            "trajectory_id": run.id,
            "agent": _drop_none_values(agent),
            "steps": [_to_atif_step(number, each, run) for number, each in enumerate(run.steps, 1)],
            "final_metrics": _drop_none_values(
                {
                    "total_prompt_tokens": _sum_usage_field(usages, "prompt_tokens"),
                    "total_completion_tokens": _sum_usage_field(usages, "completion_tokens"),
                    "total_cached_tokens": _sum_usage_field(usages, "cached_tokens"),
                    "total_cost_usd": run.facts.get("cost_usd") or _sum_costs(run.steps),
                    "total_steps": len(run.steps),
                }
            ),
            "extra": {RUN_ID: run.id, **run.facts},
        }
    )


def _to_atif_step(number: int, step: ExportedStep, run: ExportedRun) -> dict[str, object]:
    results = [
        {"source_call_id": call.id, "content": to_valid_utf8(call.result)}
        for call in step.calls
        if call.result is not None
    ]
    return _drop_none_values(
        {
            "step_id": number,
            "timestamp": _to_iso_time(run.recorded_at, step.ended),
            "source": step.source,
            "model_name": step.model if step.source == "agent" else None,
            "message": to_valid_utf8(step.message),
            "tool_calls": [_to_atif_call(call) for call in step.calls] or None,
            "observation": {"results": results} if results else None,
            "metrics": _to_atif_metrics(step.usage or TokenUsage(), step.cost),
            "extra": {"finish_reason": step.finish} if step.finish else None,
        }
    )


def _to_atif_call(call: ExportedCall) -> dict[str, object]:
    extra: dict[str, object] = {}
    if call.is_error is not None:
        extra["is_error"] = call.is_error
    if call.cut:
        extra["full_bytes"] = dict(call.cut)
    return _drop_none_values(
        {
            "tool_call_id": call.id,
            "function_name": call.tool,
            "arguments": _to_arguments_object(call.arguments),
            "extra": extra or None,
        }
    )


def _to_arguments_object(text: str) -> Mapping[str, object]:
    try:
        arguments = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"text": to_valid_utf8(text)}


def _to_atif_metrics(usage: TokenUsage, cost: float | None) -> dict[str, object] | None:
    counts = _drop_none_values(
        {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cached_tokens": usage.cached_tokens,
            "cost_usd": cost,
            "extra": _drop_none_values({"reasoning_tokens": usage.reasoning_tokens}) or None,
        }
    )
    return counts or None


def _sum_usage_field(used: list[TokenUsage], name: str) -> int | None:
    """Return the sum of a field; None unless every response has it."""
    counts = [getattr(each, name) for each in used]
    return sum(counts) if counts and None not in counts else None


def _sum_costs(steps: Iterable[ExportedStep]) -> float | None:
    costs = [step.cost for step in steps if step.source == "agent"]
    return sum(costs) if costs and None not in costs else None  # type: ignore[arg-type]


def _to_iso_time(zero: float | None, at: float | None) -> str | None:
    if zero is None or at is None:
        return None
    return datetime.fromtimestamp(zero + at, UTC).isoformat()


def _drop_none_values(table: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in table.items() if value is not None}
