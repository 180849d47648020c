"""Import results of tau2-bench: a document with `info`, `tasks`, and a list of `simulations`.

The model is that of the agent; cost and tokens are the agent's, without those of the simulated
user. The calls that the simulated user makes are no steps of the agent, and are counted as unread.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from traces.importers.shared.conversation import (
    ConversationMessage,
    ImportedConversation,
    iter_openai_calls,
)
from traces.importers.shared.file_reader import open_unpacked_file, read_file_head
from traces.importers.shared.finish_reason import find_finish_reason
from traces.importers.shared.json_values import (
    join_text_parts,
    require_objects,
    to_object,
    to_objects,
)
from traces.importers.shared.jsonl import iter_list_records
from traces.importers.shared.run_reader import ImportNotes, RawRun
from traces.importers.shared.session_times import subtract_times

NAME = "tau2-bench results (a JSON document of simulations)"
_INFO_BYTES = 4 << 20
_ENDINGS = {
    "user_stop": "final",
    "agent_stop": "final",
    "max_steps": "budget",
    "timeout": "budget",
    "too_many_errors": "crash",
    "agent_error": "crash",
    "user_error": "harness",
    "infrastructure_error": "harness",
}

type Table = dict[str, object]


def can_import(path: Path) -> bool:
    """Whether a file begins like results of tau2-bench."""
    start = read_file_head(path)
    names = (b'"num_trials"', b'"user_info"', b'"info"')
    return start.lstrip()[:1] == b"{" and all(name in start for name in names)


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the simulations."""
    info = read_info(path)
    for where, run in iter_list_records(path, "simulations"):
        yield RawRun(where=where, read=partial(_read_run, run, info))


def read_info(path: Path) -> Table:
    """Return `info`, which stands before the tasks and simulations. Raises ValueError."""
    with open_unpacked_file(path) as file:
        text = file.read(_INFO_BYTES).decode("utf-8", "replace")
    position = text.find("{", text.find('"info"'))
    try:
        info: object = json.JSONDecoder().raw_decode(text, position)[0]
    except (ValueError, RecursionError):
        raise ValueError("its `info` cannot be read") from None
    return to_object(info)


def _read_run(document: object, info: Table, notes: ImportNotes) -> ImportedConversation:
    if isinstance(document, ValueError):
        raise document
    run, agent = to_object(document), to_object(info.get("agent_info"))
    reward = to_object(run.get("reward_info")).get("reward")
    reason, domain = run.get("termination_reason"), to_object(info.get("environment_info"))
    model = agent.get("llm")
    messages = require_objects(run.get("messages"), "messages")
    start = _parse_time(run.get("start_time"))
    if reason not in _ENDINGS and reason is not None:
        notes.skip(f"endings of kind {reason}")
    facts = {
        "agent": f"tau2-bench {agent.get('implementation') or 'agent'}",
        "model": model,
        "scenario": f"tau2-{domain.get('domain_name')}" if domain.get("domain_name") else "tau2",
        "task": str(run["task_id"]),
        "trial": run.get("trial"),
        "seed": run.get("seed"),
        "world": "fresh",
        "recorded_at": None if start is None else start + _find_zone(messages),
        "seconds": run.get("duration"),
        "passed": reward >= 1 - 1e-6 if isinstance(reward, int | float) else None,
        "reward": reward,
        "ended": _ENDINGS.get(str(reason)),
        "cost_usd": run.get("agent_cost"),
        "verifier": "tau2-bench reward",
    }
    read = tuple(_read_messages(messages, str(model) if model else None, notes))
    key = [run.get("id"), run["task_id"], run.get("trial")]
    return ImportedConversation(source="tau2", messages=read, facts=facts, key=key)


def _read_messages(
    messages: list[Table], model: str | None, notes: ImportNotes
) -> Iterator[ConversationMessage]:
    before: float | None = None  # the time of the last message
    for each in messages:
        role, text = str(each.get("role")), join_text_parts(each.get("content"))
        if role == "tool":
            for result in to_objects(each.get("tool_messages")) or [each]:
                began, before = before, _parse_time(result.get("timestamp"))
                if result.get("requestor") == "user":
                    notes.skip("results of tools that the simulated user called")
                    continue
                yield ConversationMessage(
                    role="tool",
                    text=join_text_parts(result.get("content")),
                    call_id=str(result.get("id")),
                    is_error=failed if isinstance(failed := result.get("error"), bool) else None,
                    seconds=subtract_times(before, began),
                )
        elif role in ("system", "user"):
            for _ in to_objects(each.get("tool_calls")):
                notes.skip("tool calls of the simulated user")
            yield ConversationMessage(role=role, text=text)
        elif role == "assistant":
            calls = tuple(iter_openai_calls(each.get("tool_calls")))
            usage = to_object(each.get("usage"))
            known = {
                "prompt_tokens": usage.get("prompt_tokens"),
                "completion_tokens": usage.get("completion_tokens"),
                "cost_reported_usd": each.get("cost"),
            }
            yield ConversationMessage(
                role=role,
                text=text,
                calls=calls,
                model=model,
                usage=known if usage else {},
                finish=find_finish_reason(to_object(each.get("raw_data"))),
            )
        else:
            notes.skip(f"messages of role {role}")
        before = before if role == "tool" else _parse_time(each.get("timestamp"))


def _parse_time(text: object) -> float | None:
    """Return seconds since the epoch of a local time, taken as UTC: the file has no zone."""
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _find_zone(messages: list[Table]) -> float:
    """Return the seconds by which times differ from UTC, by the providers' own times.

    0 if no response has one. Zones are multiples of 15 minutes.
    """
    for each in messages:
        at, created = (
            _parse_time(each.get("timestamp")),
            to_object(each.get("raw_data")).get("created"),
        )
        if at is not None and isinstance(created, int) and each.get("role") == "assistant":
            return round((created - at) / 900) * 900.0
    return 0.0
