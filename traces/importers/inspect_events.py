"""What the events of an Inspect sample add to its messages: tokens of the agent alone, and times.

A sample's `model_usage` counts every request, those of a grading model too. Its events are in
spans; a request in a span of a scorer, or of a model with another role, is not the agent's.
"""

from collections.abc import Iterable
from datetime import datetime

from traces.importers.shared.json_values import to_objects

type Table = dict[str, object]

_SCORING = ("scorers", "scorer")


def list_agent_requests(sample: Table) -> list[Table]:
    """Return the model events that are the agent's, in their order."""
    scoring = _find_scoring_spans(to_objects(sample.get("events")))
    return [
        each
        for each in to_objects(sample.get("events"))
        if each.get("event") == "model"
        and not each.get("role")
        and each.get("span_id") not in scoring
    ]


def _find_scoring_spans(events: Iterable[Table]) -> set[object]:
    """Return the ids of the spans of scorers, and of those in them, which begin later."""
    found = set[object]()
    for each in events:
        is_scoring = each.get("type") in _SCORING or each.get("parent_id") in found
        if each.get("event") == "span_begin" and each.get("id") and is_scoring:
            found.add(each["id"])
    return found


def find_call_seconds(sample: Table) -> dict[str, float]:
    """Return how long each tool call took, by the id of the call."""
    found: dict[str, float] = {}
    for each in to_objects(sample.get("events")):
        if each.get("event") == "tool" and isinstance(id := each.get("id"), str):
            start, end = (parse_inspect_time(each.get(name)) for name in ("timestamp", "completed"))
            if start is not None and end is not None and end >= start:
                found[id] = end - start
    return found


def sum_model_usage(counts: list[Table]) -> dict[str, object]:
    """Return the totals of usages: of the agent's requests, or of a sample's models."""
    prompt = _add_counts(
        sum_token_counts(
            each.get("input_tokens"),
            each.get("input_tokens_cache_read"),
            each.get("input_tokens_cache_write"),
        )
        for each in counts
    )
    completion = _add_counts(each.get("output_tokens") for each in counts)
    costs = [cost for each in counts if isinstance(cost := each.get("total_cost"), int | float)]
    return {
        "prompt_tokens": prompt,
        "cached_tokens": _add_counts(each.get("input_tokens_cache_read") for each in counts),
        "completion_tokens": completion,
        "reasoning_tokens": _add_counts(each.get("reasoning_tokens") for each in counts),
        "tokens": None if prompt is None else prompt + (completion or 0),
        "cost_usd": sum(costs) if costs and len(costs) == len(counts) else None,
    }


def _add_counts(counts: Iterable[object]) -> int | None:
    known = [each for each in counts if isinstance(each, int)]
    return sum(known) if known else None


def sum_token_counts(first: object, *more: object) -> int | None:
    """Return a sum of counts; None if the first one is not known."""
    if not isinstance(first, int):
        return None
    return first + sum(each for each in more if isinstance(each, int))


def parse_inspect_time(text: object) -> float | None:
    """Return seconds since the epoch."""
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None
