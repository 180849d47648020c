"""OpenHands runs: a JSON list of events, or JSON lines with `history` (the resolver's output).

An action of the agent is a step with one call, several actions of one model answer are one step;
the observation that names it as its cause (in old files: the next one) is its result. A command
failed if its exit code is not 0, anything else if the observation is an `error`. Events of the
machinery (state changes, recall) are left out.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import orjson
import pyarrow as pa

from traces.formats.files import head
from traces.formats.lines import documents
from traces.formats.rows import Rows
from traces.formats.talk import Asked, Said, Talk, add

NAME = "OpenHands runs (a JSON list of events, or JSON lines with history)"

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


def fits(path: Path) -> bool:
    """Whether a file begins like a list of events, or like a line of results."""
    start = head(path).lstrip()
    if start[:1] == b"[":
        return b'"action"' in start and b'"source"' in start and b'"args"' in start
    return start[:1] == b"{" and (
        b'"history"' in start and b'"action"' in start and b'"git_patch"' in start
    )


def tables(path: Path) -> Mapping[str, pa.Table]:
    """The runs as trajectories, steps, tool calls, messages and usage."""
    rows = Rows()
    for document in documents(path):
        if isinstance(document, list):
            add(rows, _talk(document, {}))
        elif isinstance(document, dict) and isinstance(document.get("history"), list):
            add(rows, _talk(document["history"], document))
        else:
            raise ValueError("a line without history")
    return rows.tables()


def _talk(events: list[Event], run: Event) -> Talk:
    events = [each for each in events if isinstance(each, dict)]
    times = [at for each in events if (at := _when(each.get("timestamp"))) is not None]
    ended = any(each.get("action") == "finish" for each in events)
    said = tuple(_said(events))
    passed = run.get("success")
    facts = {
        "agent": "openhands",
        "scenario": run.get("issue_type"),
        "task": _task(run),
        "recorded_at": min(times, default=None),
        "seconds": max(times) - min(times) if times else None,
        "passed": passed if isinstance(passed, bool) else None,
        "ended": "crash" if run.get("error") else "final" if ended else None,
        "cost_usd": _table(run.get("metrics")).get("accumulated_cost"),
    }
    return Talk(source="openhands", said=said, facts=facts, whole=[events, run])


def _task(run: Event) -> str | None:
    if isinstance(named := run.get("instance_id"), str):
        return named
    issue = _table(run.get("issue"))
    if not issue:
        return None
    return f"{issue.get('owner')}/{issue.get('repo')}#{issue.get('number')}"


def _said(events: list[Event]) -> Iterator[Said]:
    """The messages; the actions of one model answer together."""
    unnamed, waiting = count(1), ""
    at = 0
    while at < len(events):
        event = events[at]
        at += 1
        if "observation" in event and "action" not in event:
            if event["observation"] not in _MACHINERY:
                yield _result(event, waiting)
            continue
        if str(event.get("action")) in _MACHINERY:
            continue
        if _by_user(event, at):
            yield Said(role="user", text=_text(event, "content"))
            continue
        answer = _table(_table(event.get("tool_call_metadata")).get("model_response"))
        own = [event]
        while answer.get("id") and at < len(events) and _same(events[at], answer):
            own.append(events[at])
            at += 1
        yield _step(own, answer, unnamed)
        waiting = _id(own[-1]) or waiting


def _by_user(event: Event, at: int) -> bool:
    if event.get("source") in ("user", "environment"):
        return event.get("action") == "message"
    return event.get("source") is None and event.get("action") == "message" and at == 1


def _same(event: Event, answer: Event) -> bool:
    told = _table(_table(event.get("tool_call_metadata")).get("model_response"))
    return "action" in event and told.get("id") == answer.get("id")


def _step(actions: list[Event], answer: Event, unnamed: "count[int]") -> Said:
    calls = []
    for each in actions:
        name = str(each.get("action"))
        if name in _SAYS and "tool_call_metadata" not in each:
            continue
        told = _table(each.get("tool_call_metadata"))
        id = _id(each) or f"{name}-{next(unnamed)}"
        each["_call"] = id
        tool = str(told.get("function_name") or name)
        calls.append(Asked(id=id, tool=tool, arguments=_arguments(each, answer, id)))
    message = _message(answer)
    text = message.get("content") if isinstance(message.get("content"), str) else None
    model = answer.get("model")
    return Said(
        role="assistant",
        text=str(text) if text else _text(actions[0], "thought") or _text(actions[0], "content"),
        model=str(model) if model else None,
        calls=tuple(calls),
        usage=_usage(_table(answer.get("usage"))),
    )


def _id(event: Event) -> str:
    told = _table(event.get("tool_call_metadata"))
    return str(told.get("tool_call_id") or event.get("_call") or "")


def _arguments(event: Event, answer: Event, id: str) -> str:
    """What the model said; else the arguments of the action."""
    calls = _message(answer).get("tool_calls")
    for each in calls if isinstance(calls, list) else ():
        function = _table(_table(each).get("function"))
        if _table(each).get("id") == id and isinstance(function.get("arguments"), str):
            return str(function["arguments"])
    beside = {"action", "thought", "source", "id", "timestamp", "_call", "message", "args"}
    args = _table(event.get("args")) or {k: v for k, v in event.items() if k not in beside}
    return orjson.dumps({k: v for k, v in args.items() if k != "thought"}).decode()


def _result(event: Event, waiting: str) -> Said:
    extras = _table(event.get("extras"))
    code = extras.get("exit_code", event.get("exit_code"))
    code = _table(extras.get("metadata")).get("exit_code", code)
    failed = event["observation"] == "error" or (code != 0 if isinstance(code, int) else None)
    return Said(
        role="tool", text=_text(event, "content"), answers=_id(event) or waiting, is_error=failed
    )


def _usage(said: Event) -> dict[str, object]:
    if not said:
        return {}
    cached = _table(said.get("prompt_tokens_details")).get("cached_tokens")
    return {
        "prompt_tokens": said.get("prompt_tokens"),
        "completion_tokens": said.get("completion_tokens"),
        "cached_tokens": cached,
    }


def _message(answer: Event) -> Event:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return _table(_table(first).get("message"))


def _text(event: Event, name: str) -> str:
    said = event.get(name) or _table(event.get("args")).get(name)
    return said if isinstance(said, str) else ""


def _table(said: object) -> Event:
    return said if isinstance(said, dict) else {}


def _when(said: object) -> float | None:
    """Seconds since the epoch; these files name no zone, and are taken for UTC."""
    try:
        at = datetime.fromisoformat(said) if isinstance(said, str) else None
    except ValueError:
        return None
    return None if at is None else (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
