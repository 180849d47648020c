"""Import Harbor's trajectories (ATIF 1.0 to 1.8), one document for each run.

https://github.com/laude-institute/harbor: steps of system, user and agent, with tool calls and
observations. An observation without the id of a call is the result of the only call of its step.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from traces.importers.atif_parts import find_parts, join_parts
from traces.importers.shared.conversation import (
    ConversationCall,
    ConversationMessage,
    ImportedConversation,
)
from traces.importers.shared.exported_runs import RUN_ID, read_exported_facts
from traces.importers.shared.file_reader import read_file_head
from traces.importers.shared.json_values import (
    join_text_parts,
    require_objects,
    to_json_text,
    to_object,
    to_objects,
)
from traces.importers.shared.jsonl import iter_any_records
from traces.importers.shared.run_reader import ImportNotes, RawRun

__all__ = ["NAME", "can_import", "find_parts", "read_runs"]

NAME = "Harbor's trajectories (ATIF)"
SPLITS = frozenset(("lines", "list"))
"""What of a file are runs of their own: its lines, or the elements of its list."""

type Table = dict[str, object]


def can_import(path: Path) -> bool:
    """Whether a file begins like such a document, or like a list or lines of them."""
    start = read_file_head(path)
    return start.lstrip()[:1] in (b"{", b"[") and b'"ATIF-v' in start


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the documents, those of one trajectory together."""
    for where, document in join_parts(iter_any_records(path)):
        yield RawRun(where=where, read=partial(_read_run, document))


def _read_run(document: object, notes: ImportNotes) -> ImportedConversation:
    if isinstance(document, ValueError):
        raise document
    run = to_object(document)
    agent, extra = to_object(run.get("agent")), to_object(run.get("extra"))
    steps = require_objects(run.get("steps"), "steps")
    metrics = to_object(run.get("final_metrics"))
    times = [at for step in steps if (at := _parse_time(step.get("timestamp"))) is not None]
    is_ours = isinstance(extra.get(RUN_ID), str)
    facts = {
        "agent": agent.get("name"),
        "model": agent.get("model_name"),
        "recorded_at": min(times, default=None),
        "seconds": max(times) - min(times) if times else None,
        "cost_usd": metrics.get("total_cost_usd"),
        "prompt_tokens": metrics.get("total_prompt_tokens"),
        "cached_tokens": metrics.get("total_cached_tokens"),
        "completion_tokens": metrics.get("total_completion_tokens"),
        **read_exported_facts(extra),
    }
    model = agent.get("model_name")
    return ImportedConversation(
        source="atif",
        messages=tuple(_read_steps(steps, str(model) if model else None, notes)),
        facts=facts,
        key=[run.get("session_id"), run.get("trajectory_id")],
        exported_id=str(extra[RUN_ID]) if is_ours else None,
    )


def _read_steps(
    steps: list[Table], model: str | None, notes: ImportNotes
) -> Iterator[ConversationMessage]:
    for number, step in enumerate(steps, 1):
        source, text = str(step.get("source")), join_text_parts(step.get("message"))
        calls = tuple(_read_calls(step, number))
        if source == "agent":
            yield ConversationMessage(
                role="assistant",
                text=text,
                model=str(step.get("model_name") or model or "") or None,
                calls=calls,
                usage=_read_usage(to_object(step.get("metrics"))),
                finish=_read_finish(to_object(step.get("extra"))),
            )
        elif source in ("user", "system"):
            yield ConversationMessage(role=source, text=text)
            for _ in calls:
                notes.skip(f"tool calls of a step of {source}")
        else:
            notes.skip(f"steps of source {source}")
            continue
        yield from _read_results(step, calls, notes)


def _read_calls(step: Table, number: int) -> Iterator[ConversationCall]:
    for place, each in enumerate(to_objects(step.get("tool_calls")), 1):
        yield ConversationCall(
            id=str(each.get("tool_call_id") or f"step-{number}-call-{place}"),
            tool=str(each.get("function_name") or ""),
            arguments=to_json_text(each.get("arguments")),
        )


def _read_results(
    step: Table, calls: tuple[ConversationCall, ...], notes: ImportNotes
) -> Iterator[ConversationMessage]:
    failed = {
        str(each.get("tool_call_id")): to_object(each.get("extra")).get("is_error")
        for each in to_objects(step.get("tool_calls"))
    }
    for each in to_objects(to_object(step.get("observation")).get("results")):
        id = each.get("source_call_id") or (calls[0].id if len(calls) == 1 else None)
        if each.get("subagent_trajectory_ref"):
            notes.skip("trajectories of subagents, which are files of their own")
        if id is None:
            notes.skip("observations of no call")
            continue
        error = failed.get(str(id))
        yield ConversationMessage(
            role="tool",
            text=join_text_parts(each.get("content")),
            call_id=str(id),
            is_error=error if isinstance(error, bool) else None,
        )


def _read_usage(metrics: Table) -> Table:
    names = ("prompt_tokens", "cached_tokens", "completion_tokens")
    usage = {name: metrics.get(name) for name in names}
    usage["reasoning_tokens"] = to_object(metrics.get("extra")).get("reasoning_tokens")
    usage["cost_reported_usd"] = metrics.get("cost_usd")
    return usage if any(value is not None for value in usage.values()) else {}


def _read_finish(extra: Table) -> str | None:
    finish = extra.get("finish_reason")
    return finish if isinstance(finish, str) else None


def _parse_time(text: object) -> float | None:
    """Return seconds since the epoch; a time without a zone is taken as UTC."""
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
