"""Shared by the dialects: calls whose arguments the end of an answer cut off."""

from collections.abc import Iterable
from copy import replace as changed

from traces.dialects import json_access
from traces.dialects.types import ToolCall

_LIMITS = frozenset(("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"))
"""Reasons to finish that leave arguments half written (case does not matter)."""


def mark_incomplete_calls(calls: Iterable[ToolCall], finish: str | None) -> tuple[ToolCall, ...]:
    """Return the calls, those marked whose arguments are no JSON in an answer that was cut off.

    `finish` is the reason as the provider wrote it; None if the answer never came to its end. A
    model that writes invalid JSON to the end made a complete call.
    """
    if finish is not None and finish.lower() not in _LIMITS:
        return tuple(calls)
    return tuple(
        call if _is_json(call.arguments) else changed(call, incomplete=True) for call in calls
    )


def _is_json(text: str) -> bool:
    try:
        json_access.parse_json_text(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return False
    return True
