"""Import sessions of opencode, as `opencode export` writes them: `info` and `messages` with parts.

Its database and its older folder of files are brought to this form first (`opencode_storage`). An
assistant's message is a response of the model.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from traces.importers.shared.conversation import (
    ConversationCall,
    ConversationMessage,
    ImportedConversation,
)
from traces.importers.shared.file_reader import read_file_head
from traces.importers.shared.json_values import (
    require_objects,
    to_json_text,
    to_object,
    to_objects,
)
from traces.importers.shared.jsonl import iter_any_records
from traces.importers.shared.run_reader import ImportNotes, RawRun
from traces.importers.shared.session_times import subtract_times

NAME = "sessions of opencode (JSON with info, and messages with parts)"
SPLITS = frozenset(("lines", "list"))
"""What of a file are runs of their own: its lines, or the elements of its list."""
_FAILED = {"error": True, "completed": False}

type Table = dict[str, object]


def can_import(path: Path) -> bool:
    """Whether a file begins like an export of a session."""
    start = read_file_head(path).lstrip()
    return start[:1] == b"{" and b'"info"' in start[:200] and b'"ses_' in start[:2000]


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the sessions."""
    for where, document in iter_any_records(path):
        yield RawRun(where=where, read=partial(_read_run, document))


def _read_run(document: object, notes: ImportNotes) -> ImportedConversation:
    if isinstance(document, ValueError):
        raise document
    run = to_object(document)
    info, messages = to_object(run.get("info")), require_objects(run.get("messages"), "messages")
    times = [at for each in messages for at in _list_times(to_object(each.get("info")))]
    return ImportedConversation(
        source="opencode",
        messages=tuple(each for one in messages for each in _read_message(one, notes)),
        facts={
            "agent": "opencode",
            "recorded_at": min(times, default=None),
            "seconds": max(times) - min(times) if times else None,
        },
        key=info.get("id"),
    )


def _list_times(info: Table) -> list[float]:
    """Return the times of an object in seconds; they are in milliseconds."""
    return [at / 1000 for at in to_object(info.get("time")).values() if isinstance(at, int | float)]


def _read_message(message: Table, notes: ImportNotes) -> Iterator[ConversationMessage]:
    info, parts = to_object(message.get("info")), to_objects(message.get("parts"))
    texts = [str(x.get("text")) for x in parts if x.get("type") == "text" and x.get("text")]
    if info.get("role") != "assistant":
        yield ConversationMessage(role="user", text="\n".join(texts))
        return
    tools = [part for part in parts if part.get("type") == "tool"]
    model, finish = info.get("modelID"), info.get("finish")
    yield ConversationMessage(
        role="assistant",
        text="\n".join(texts),
        model=str(model) if model else None,
        calls=tuple(map(_read_call, tools)),
        usage=_read_usage(info),
        finish=finish if isinstance(finish, str) else None,
    )
    yield from (_read_result(part) for part in tools if _has_ended(part))


def _has_ended(part: Table) -> bool:
    return to_object(part.get("state")).get("status") in _FAILED


def _read_call(part: Table) -> ConversationCall:
    return ConversationCall(
        id=str(part.get("callID") or part.get("id") or ""),
        tool=str(part.get("tool") or ""),
        arguments=to_json_text(to_object(part.get("state")).get("input")),
    )


def _read_result(part: Table) -> ConversationMessage:
    state = to_object(part.get("state"))
    times = to_object(state.get("time"))
    start, end = (
        x / 1000 if isinstance(x := times.get(n), int) else None for n in ("start", "end")
    )
    return ConversationMessage(
        role="tool",
        text=to_json_text(state.get("output", state.get("error"))),
        call_id=_read_call(part).id,
        is_error=_FAILED[str(state["status"])],
        seconds=subtract_times(end, start),
    )


def _read_usage(info: Table) -> Table:
    tokens = to_object(info.get("tokens"))
    if not tokens:
        return {}
    cache = to_object(tokens.get("cache"))
    prompt = [x for x in (tokens.get("input"), cache.get("read"), cache.get("write"))]
    return {
        "prompt_tokens": sum(x for x in prompt if isinstance(x, int)),
        "cached_tokens": cache.get("read"),
        "completion_tokens": tokens.get("output"),
        "reasoning_tokens": tokens.get("reasoning"),
        "cost_reported_usd": float(cost)
        if isinstance(cost := info.get("cost"), int | float)
        else None,
    }
