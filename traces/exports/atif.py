"""Harbor's trajectories (ATIF), at the newest version that its own validator accepts.

The format has no field for a reward or for what a task was: these stand under `extra`. Arguments
have to be an object; any other text stands in it under `text`. What the index keeps shortened
says so, with its full size, in the `extra` of the call.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

import orjson

from traces.exports.told import Call, Step, Told
from traces.step import Usage

VERSION = "ATIF-v1.8"


def document(run: Told) -> dict[str, object]:
    """A run as one document."""
    agent = {"name": run.agent or "unknown", "version": "unknown", "model_name": run.model}
    used = [step.usage for step in run.steps if step.usage is not None]
    return _known(
        {
            "schema_version": VERSION,
            "session_id": run.id,
            "trajectory_id": run.id,
            "agent": _known(agent),
            "steps": [_step(number, each, run) for number, each in enumerate(run.steps, 1)],
            "final_metrics": _known(
                {
                    "total_prompt_tokens": _total(used, "prompt_tokens"),
                    "total_completion_tokens": _total(used, "completion_tokens"),
                    "total_cached_tokens": _total(used, "cached_tokens"),
                    "total_steps": len(run.steps),
                }
            ),
            "extra": dict(run.facts) or None,
        }
    )


def _step(number: int, step: Step, run: Told) -> dict[str, object]:
    results = [
        {"source_call_id": call.id, "content": _sound(call.result)}
        for call in step.calls
        if call.result is not None
    ]
    return _known(
        {
            "step_id": number,
            "timestamp": _when(run.recorded_at, step.over),
            "source": step.source,
            "model_name": step.model if step.source == "agent" else None,
            "message": _sound(step.message),
            "tool_calls": [_call(call) for call in step.calls] or None,
            "observation": {"results": results} if results else None,
            "metrics": _metrics(step.usage) if step.usage else None,
        }
    )


def _call(call: Call) -> dict[str, object]:
    extra: dict[str, object] = {}
    if call.is_error is not None:
        extra["is_error"] = call.is_error
    if call.cut:
        extra["full_bytes"] = dict(call.cut)
    return _known(
        {
            "tool_call_id": call.id,
            "function_name": call.tool,
            "arguments": _arguments(call.arguments),
            "extra": extra or None,
        }
    )


def _arguments(text: str) -> Mapping[str, object]:
    try:
        said = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        said = None
    return said if isinstance(said, dict) else {"text": _sound(text)}


def _metrics(usage: Usage) -> dict[str, object] | None:
    known = _known(
        {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cached_tokens": usage.cached_tokens,
            "extra": _known({"reasoning_tokens": usage.reasoning_tokens}) or None,
        }
    )
    return known or None


def _total(used: list[Usage], name: str) -> int | None:
    """The sum, if every answer says it."""
    counts = [getattr(each, name) for each in used]
    return sum(counts) if counts and None not in counts else None


def _when(zero: float | None, at: float | None) -> str | None:
    if zero is None or at is None:
        return None
    return datetime.fromtimestamp(zero + at, UTC).isoformat()


def _known(said: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in said.items() if value is not None}


def _sound(text: str) -> str:
    """A text that UTF-8 can hold: JSON may hold half a surrogate pair."""
    return text.encode("utf-8", "replace").decode()
