"""Import sessions of Continue (`~/.continue/sessions`): a JSON document each."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from traces.importers.shared.conversation import (
    ConversationMessage,
    ImportedConversation,
    iter_openai_calls,
)
from traces.importers.shared.file_reader import read_file_head
from traces.importers.shared.json_values import (
    join_text_parts,
    require_objects,
    to_object,
    to_objects,
)
from traces.importers.shared.jsonl import iter_json_records
from traces.importers.shared.run_reader import ImportNotes, RawRun

NAME = "sessions of Continue (a JSON document with a history)"
_FAILED = {"done": False, "errored": True}

type Table = dict[str, object]


def can_import(path: Path) -> bool:
    """Whether a file begins like a session."""
    start = read_file_head(path)
    signs = (b'"sessionId"', b'"workspaceDirectory"', b'"history"')
    return start.lstrip()[:1] == b"{" and all(sign in start for sign in signs)


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the session."""
    for where, document in iter_json_records(path):
        yield RawRun(where=where, read=partial(_read_run, document))


def _read_run(document: object, notes: ImportNotes) -> ImportedConversation:
    if isinstance(document, ValueError):
        raise document
    run = to_object(document)
    history = require_objects(run.get("history"), "messages")
    return ImportedConversation(
        source="continue",
        messages=tuple(_read_history(history, notes)),
        facts={"agent": "continue", "model": run.get("chatModelTitle")},
        key=run.get("sessionId"),
    )


def _read_history(history: list[Table], notes: ImportNotes) -> Iterator[ConversationMessage]:
    answered = {
        to_object(item.get("message")).get("toolCallId")
        for item in history
        if to_object(item.get("message")).get("role") == "tool"
    }
    failed = dict[str, bool | None]()
    for item in history:
        message, states = to_object(item.get("message")), to_objects(item.get("toolCallStates"))
        role, text = str(message.get("role")), join_text_parts(message.get("content"))
        failed |= {str(x.get("toolCallId")): _FAILED.get(str(x.get("status"))) for x in states}
        if role == "tool":
            id = str(message.get("toolCallId") or "")
            yield ConversationMessage(role="tool", text=text, call_id=id, is_error=failed.get(id))
        elif role == "assistant":
            listed = message.get("toolCalls") or [x.get("toolCall") for x in states]
            logs = to_objects(item.get("promptLogs"))
            model = next((str(x["modelTitle"]) for x in logs if x.get("modelTitle")), None)
            calls = tuple(iter_openai_calls(listed))
            yield ConversationMessage(role=role, text=text, calls=calls, model=model)
            for state in states:
                if state.get("toolCallId") not in answered and state.get("output") is not None:
                    yield _read_state(state)
        elif role in ("user", "system"):
            yield ConversationMessage(role=role, text=text)
        else:
            notes.skip(f"messages of role {role}")


def _read_state(state: Table) -> ConversationMessage:
    output = state["output"]
    texts = [str(x["content"]) for x in to_objects(output) if isinstance(x.get("content"), str)]
    return ConversationMessage(
        role="tool",
        text=output if isinstance(output, str) else "\n".join(texts),
        call_id=str(state.get("toolCallId") or ""),
        is_error=_FAILED.get(str(state.get("status"))),
    )
