"""The column `steps.hosted`: calls that a provider ran, as JSON."""

import json
from collections.abc import Iterable

from traces.dialects.types import HostedCall
from traces.store.schema import clip_stored_text


def dump_hosted_calls(calls: Iterable[HostedCall]) -> str | None:
    """Return a list of objects with tool, arguments, result and is_error; None if there is none.

    Long texts are shortened as in other columns.
    """
    values = [
        {
            "tool": each.tool,
            "arguments": clip_stored_text(each.arguments),
            "result": None if each.result is None else clip_stored_text(each.result),
            "is_error": each.is_error,
        }
        for each in calls
    ]
    return json.dumps(values, ensure_ascii=False) if values else None


def load_hosted_calls(column: str | None) -> tuple[HostedCall, ...]:
    """Return the calls of a value of the column."""
    return tuple(HostedCall(**each) for each in json.loads(column or "[]"))
