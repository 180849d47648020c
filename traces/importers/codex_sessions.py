"""Import sessions of Codex, as they are in `~/.codex/sessions` (rollout files, JSON lines).

A line has a type and a payload: `session_meta`, `turn_context` (which names the model),
`response_item` (what the model was sent, and what it answered) and `event_msg`, of which the counts
of tokens are read. Before version 0.32 a line was the item itself. The output of a command begins
with a line of its exit code; its form, which changed with versions, is learnt from the outputs.
"""

from collections import defaultdict
from collections.abc import Iterator
from copy import replace
from functools import partial
from pathlib import Path

from msgspec import Struct, field

from traces.conversation.exit_codes import learn_exit_codes
from traces.importers.shared.conversation import (
    ConversationCall,
    ConversationMessage,
    ImportedConversation,
)
from traces.importers.shared.file_reader import read_file_head
from traces.importers.shared.json_values import join_text_parts, to_json_text, to_object
from traces.importers.shared.jsonl import iter_json_records
from traces.importers.shared.run_reader import ImportNotes, RawRun
from traces.importers.shared.session_times import measure_session, parse_session_time

NAME = "sessions of Codex (JSON lines)"

type Table = dict[str, object]

_SIGNS = (b'"session_meta"', b'"response_item"', b'"event_msg"', b'"turn_context"')
_ROLES = {"user": "user", "assistant": "assistant", "developer": "system", "system": "system"}
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_RESULTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


def can_import(path: Path) -> bool:
    """Whether a file begins with lines of a session, of the present or the first form."""
    start = read_file_head(path)
    if start.lstrip()[:1] != b"{":
        return False
    first = start.partition(b"\n")[0]
    is_old = b'"instructions"' in first and b'"timestamp"' in first and b'"id"' in first
    return (b'"payload"' in first and any(sign in first for sign in _SIGNS)) or is_old


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the session of a file."""
    yield RawRun(where="", read=partial(_read_session, path))


class _Session(Struct, kw_only=True):
    """A session as far as it was read."""

    notes: ImportNotes
    meta: Table = field(default_factory=dict)
    messages: list[ConversationMessage] = field(default_factory=list)
    times: list[object] = field(default_factory=list)
    asked_at: dict[str, float | None] = field(default_factory=dict)
    model: str | None = None
    is_open: bool = False
    """Whether the last message is an answer of the model that may have more parts."""
    total: object = None

    def add_line(self, line: Table) -> None:
        self.times.append(line.get("timestamp"))
        kind, payload = line.get("type"), to_object(line.get("payload"))
        if kind == "session_meta":
            # A session that was resumed or forked repeats that of the first.
            self.meta = self.meta or payload
        elif kind == "turn_context":
            self.model = str(payload["model"]) if payload.get("model") else self.model
        elif kind == "event_msg":
            self._add_event(payload)
        elif kind == "response_item":
            self._add_item(payload, parse_session_time(line.get("timestamp")))
        elif "record_type" not in line and payload == {}:
            if not self.meta and "instructions" in line:
                self.meta = line
            else:
                self._add_item(line, None)

    def _add_event(self, payload: Table) -> None:
        kind = payload.get("type")
        info = to_object(payload.get("info"))
        total = info.get("total_token_usage")
        if kind != "token_count" or not info or (total is not None and total == self.total):
            return
        self.total = total
        usage = to_object(info.get("last_token_usage"))
        answers = [n for n, each in enumerate(self.messages) if each.role == "assistant"]
        place = answers[-1] if answers else None
        if place is None or self.messages[place].usage:
            self.notes.skip("counts of tokens without an answer of the model")
            return
        self.is_open = False
        self.messages[place] = replace(
            self.messages[place],
            usage={
                "prompt_tokens": usage.get("input_tokens"),
                "cached_tokens": usage.get("cached_input_tokens"),
                "completion_tokens": usage.get("output_tokens"),
                "reasoning_tokens": usage.get("reasoning_output_tokens"),
            },
        )

    def _add_item(self, item: Table, at: float | None) -> None:
        kind = item.get("type")
        if kind in _RESULTS:
            self._add_result(item, at)
        elif kind in _CALLS:
            call = _read_call(item)
            self.asked_at[call.id] = at
            self._extend_answer(calls=(call,))
        elif kind == "message":
            role, text = _ROLES.get(str(item.get("role"))), join_text_parts(item.get("content"))
            if role == "assistant":
                self._extend_answer(text=text)
            elif role is not None:
                self.is_open = False
                self.messages.append(ConversationMessage(role=role, text=text))
            else:
                self.notes.skip(f"messages of role {item.get('role')}")
        elif kind != "reasoning":
            self.notes.skip(f"items of type {kind}")

    def _extend_answer(self, text: str = "", calls: tuple[ConversationCall, ...] = ()) -> None:
        """Add a part to the answer that is open; the parts of an answer are items of their own."""
        if not self.is_open:
            self.messages.append(ConversationMessage(role="assistant", model=self.model))
            self.is_open = True
        last = self.messages[-1]
        joined = "\n".join(filter(None, (last.text, text)))
        self.messages[-1] = replace(last, text=joined, calls=(*last.calls, *calls))

    def _add_result(self, item: Table, at: float | None) -> None:
        self.is_open = False
        id, output = str(item.get("call_id") or ""), item.get("output")
        known = to_object(output)
        text = join_text_parts(known.get("content", output)) or to_json_text(output)
        asked, success = self.asked_at.get(id), known.get("success")
        self.messages.append(
            ConversationMessage(
                role="tool",
                text=text,
                call_id=id,
                is_error=not success if isinstance(success, bool) else None,
                seconds=at - asked if at is not None and asked is not None else None,
            )
        )


def _read_call(item: Table) -> ConversationCall:
    arguments = item.get("arguments", item.get("input", item.get("action")))
    return ConversationCall(
        id=str(item.get("call_id") or item.get("id") or ""),
        tool=str(item.get("name") or "local_shell"),
        arguments=to_json_text(arguments),
    )


def _read_session(path: Path, notes: ImportNotes) -> ImportedConversation:
    session = _Session(notes=notes)
    for where, document in iter_json_records(path):
        if isinstance(document, ValueError):
            notes.add(where, str(document), lost=True)
        else:
            session.add_line(to_object(document))
    if not session.messages:
        raise ValueError("no line of it is a message")
    return ImportedConversation(
        source="codex",
        messages=tuple(_mark_exit_codes(session.messages)),
        facts={
            "agent": str(session.meta.get("originator") or "codex"),
            **measure_session(session.times),
        },
        key=session.meta.get("id") or session.meta.get("session_id"),
    )


def _mark_exit_codes(messages: list[ConversationMessage]) -> list[ConversationMessage]:
    """Return the messages with what the exit codes in the results of each tool say."""
    tools = {call.id: call.tool for each in messages for call in each.calls}
    places = defaultdict[str, list[int]](list)
    for place, each in enumerate(messages):
        if each.role == "tool" and each.is_error is None and each.call_id in tools:
            places[tools[each.call_id]].append(place)
    marked = list(messages)
    for of_tool in places.values():
        codes = learn_exit_codes([messages[place].text for place in of_tool])
        for place, code in zip(of_tool, codes, strict=True):
            if code is not None:
                marked[place] = replace(messages[place], is_error=code != 0)
    return marked
