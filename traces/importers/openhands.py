"""Import OpenHands runs: a JSON list of events, or JSON lines with `history` (resolver output).

An action of the agent is a step with one call; several actions of one model response are one step.
The result is the observation that names the action as its cause (in old files: the next one). A
command failed if its exit code is not 0, anything else if the observation is an `error`. Internal
events (state changes, recall) are skipped.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

import orjson

from traces.importers.shared.conversation import (
    ConversationCall,
    ConversationMessage,
    ImportedConversation,
)
from traces.importers.shared.file_reader import read_file_head
from traces.importers.shared.finish_reason import find_finish_reason
from traces.importers.shared.json_values import to_object
from traces.importers.shared.jsonl import is_json_list, iter_json_records
from traces.importers.shared.run_reader import ImportNotes, RawRun
from traces.importers.shared.session_times import subtract_times

NAME = "OpenHands runs (a JSON list of events, or JSON lines with history)"
SPLITS = frozenset(("lines",))
"""What of a file are runs of their own: its lines, or the elements of its list."""

type Event = dict[str, object]

_MACHINERY = (
    "change_agent_state",
    "recall",
    "system",
    "null",
    "condensation",
    "agent_state_changed",
)
_SAYS = ("message", "finish", "reject")


def can_import(path: Path) -> bool:
    """Whether a file begins like a list of events, or like a line of results."""
    start = read_file_head(path).lstrip()
    if start[:1] == b"[":
        return b'"action"' in start and b'"source"' in start and b'"args"' in start
    return start[:1] == b"{" and (
        b'"history"' in start and b'"action"' in start and b'"git_patch"' in start
    )


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the runs: a list of events is one, each line with a history is one."""
    if is_json_list(path):
        yield RawRun(where="", read=partial(_read_events, path))
        return
    for where, document in iter_json_records(path):
        yield RawRun(where=where, read=partial(_read_line, document))


def _read_events(path: Path, notes: ImportNotes) -> ImportedConversation:
    [(_, events)] = iter_json_records(path)
    return _to_openhands_conversation(events, {}, notes)


def _read_line(document: object, notes: ImportNotes) -> ImportedConversation:
    if isinstance(document, ValueError):
        raise document
    run = to_object(document)
    return _to_openhands_conversation(run.get("history"), run, notes)


def _to_openhands_conversation(
    listed: object, run: Event, notes: ImportNotes
) -> ImportedConversation:
    if not isinstance(listed, list):
        raise ValueError("it has no history of events")
    events = _flatten_event_pairs(listed)
    times = [at for each in events if (at := _parse_event_time(each.get("timestamp"))) is not None]
    messages = tuple(_read_openhands_messages(events))
    passed = run.get("success", to_object(run.get("test_result")).get("resolved"))
    facts = {
        "agent": "openhands",
        "scenario": run.get("issue_type"),
        "task": _read_task_name(run),
        "recorded_at": min(times, default=None),
        "seconds": max(times) - min(times) if times else None,
        "passed": passed if isinstance(passed, bool) else None,
        "ended": _read_ending(events, run),
        "cost_usd": to_object(run.get("metrics")).get("accumulated_cost"),
    }
    key = [_read_task_name(run), str(events[0].get("timestamp")) if events else None]
    return ImportedConversation(source="openhands", messages=messages, facts=facts, key=key)


def _flatten_event_pairs(listed: list[object]) -> list[Event]:
    """Return the events; some versions list pairs of an action and its observation."""
    flat = (each if isinstance(each, list) else [each] for each in listed)
    return [each for pair in flat for each in pair if isinstance(each, dict)]


def _read_ending(events: list[Event], run: Event) -> str | None:
    if error := run.get("error"):
        return "budget" if "maximum iteration" in str(error) else "crash"
    return "final" if any(each.get("action") == "finish" for each in events) else None


def _read_task_name(run: Event) -> str | None:
    if isinstance(name := run.get("instance_id"), str):
        return name
    issue = to_object(run.get("issue"))
    if not issue:
        return None
    return f"{issue.get('owner')}/{issue.get('repo')}#{issue.get('number')}"


def _read_openhands_messages(events: list[Event]) -> Iterator[ConversationMessage]:
    """Yield the messages; the actions of one model response are one message."""
    call_numbers, last_call_id = count(1), ""
    started = {each.get("id"): _parse_event_time(each.get("timestamp")) for each in events}
    at = 0
    while at < len(events):
        event = events[at]
        at += 1
        if "observation" in event and "action" not in event:
            if event["observation"] not in _MACHINERY:
                began = started.get(event.get("cause")) if "cause" in event else None
                yield _read_observation(event, last_call_id, began)
            continue
        if str(event.get("action")) in _MACHINERY:
            continue
        if _is_user_message(event, at):
            yield ConversationMessage(role="user", text=_read_event_text(event, "content"))
            continue
        response = to_object(to_object(event.get("tool_call_metadata")).get("model_response"))
        actions = [event]
        while response.get("id") and at < len(events) and _is_of_same_answer(events[at], response):
            actions.append(events[at])
            at += 1
        yield _read_agent_step(actions, response, call_numbers)
        last_call_id = _read_event_call_id(actions[-1]) or last_call_id


def _is_user_message(event: Event, at: int) -> bool:
    if event.get("source") in ("user", "environment"):
        return event.get("action") == "message"
    return event.get("source") is None and event.get("action") == "message" and at == 1


def _is_of_same_answer(event: Event, answer: Event) -> bool:
    response = to_object(to_object(event.get("tool_call_metadata")).get("model_response"))
    return "action" in event and response.get("id") == answer.get("id")


def _read_agent_step(
    actions: list[Event], answer: Event, unnamed: "count[int]"
) -> ConversationMessage:
    calls = []
    for each in actions:
        name = str(each.get("action"))
        if name in _SAYS and "tool_call_metadata" not in each:
            continue
        metadata = to_object(each.get("tool_call_metadata"))
        id = _read_event_call_id(each) or f"{name}-{next(unnamed)}"
        each["_call"] = id
        tool = str(metadata.get("function_name") or name)
        calls.append(
            ConversationCall(id=id, tool=tool, arguments=_read_call_arguments(each, answer, id))
        )
    message = _get_answer_message(answer)
    text = message.get("content") if isinstance(message.get("content"), str) else None
    model = answer.get("model")
    return ConversationMessage(
        role="assistant",
        text=str(text)
        if text
        else _read_event_text(actions[0], "thought") or _read_event_text(actions[0], "content"),
        model=str(model) if model else None,
        calls=tuple(calls),
        usage=_read_openhands_usage(to_object(answer.get("usage"))),
        finish=find_finish_reason(answer),
    )


def _read_event_call_id(event: Event) -> str:
    metadata = to_object(event.get("tool_call_metadata"))
    return str(metadata.get("tool_call_id") or event.get("_call") or "")


def _read_call_arguments(event: Event, answer: Event, id: str) -> str:
    """Return the arguments in the model's response, else those of the action."""
    calls = _get_answer_message(answer).get("tool_calls")
    for each in calls if isinstance(calls, list) else ():
        function = to_object(to_object(each).get("function"))
        if to_object(each).get("id") == id and isinstance(function.get("arguments"), str):
            return str(function["arguments"])
    excluded = {"action", "thought", "source", "id", "timestamp", "_call", "message", "args"}
    args = to_object(event.get("args")) or {k: v for k, v in event.items() if k not in excluded}
    return orjson.dumps({k: v for k, v in args.items() if k != "thought"}).decode()


def _read_observation(event: Event, waiting: str, began: float | None) -> ConversationMessage:
    ended = _parse_event_time(event.get("timestamp"))
    extras = to_object(event.get("extras"))
    code = extras.get("exit_code", event.get("exit_code"))
    code = to_object(extras.get("metadata")).get("exit_code", code)
    is_error = event["observation"] == "error" or (code != 0 if isinstance(code, int) else None)
    return ConversationMessage(
        role="tool",
        text=_read_event_text(event, "content"),
        call_id=_read_event_call_id(event) or waiting,
        is_error=is_error,
        seconds=subtract_times(ended, began),
    )


def _read_openhands_usage(said: Event) -> dict[str, object]:
    if not said:
        return {}
    cached = to_object(said.get("prompt_tokens_details")).get("cached_tokens")
    return {
        "prompt_tokens": said.get("prompt_tokens"),
        "completion_tokens": said.get("completion_tokens"),
        "cached_tokens": cached,
    }


def _get_answer_message(answer: Event) -> Event:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return to_object(to_object(first).get("message"))


def _read_event_text(event: Event, name: str) -> str:
    text = event.get(name) or to_object(event.get("args")).get(name)
    return text if isinstance(text, str) else ""


def _parse_event_time(said: object) -> float | None:
    """Return seconds since the epoch; a time without a zone is taken as UTC."""
    try:
        time = datetime.fromisoformat(said) if isinstance(said, str) else None
    except ValueError:
        return None
    return None if time is None else (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
