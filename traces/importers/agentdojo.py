"""Import runs of AgentDojo: one document for each task, with or without an injection.

`utility` is whether the user's task was done. `security` is whether the injected task was done, so
true is a successful attack; no column has it, so it is counted as unread.
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
    join_text_parts,
    require_objects,
    to_json_text,
    to_object,
    to_objects,
)
from traces.importers.shared.jsonl import iter_json_records
from traces.importers.shared.run_reader import ImportNotes, RawRun

NAME = "AgentDojo runs (a JSON document for each task)"
SPLITS = frozenset(("lines",))
"""What of a file are runs of their own: its lines, or the elements of its list."""
_SIGNS = (b'"suite_name"', b'"pipeline_name"')

type Table = dict[str, object]


def can_import(path: Path) -> bool:
    """Whether a file begins like a run of AgentDojo."""
    start = read_file_head(path)
    return start.lstrip()[:1] == b"{" and all(sign in start for sign in _SIGNS)


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the documents."""
    for where, document in iter_json_records(path):
        yield RawRun(where=where, read=partial(_read_run, document))


def _read_run(document: object, notes: ImportNotes) -> ImportedConversation:
    if isinstance(document, ValueError):
        raise document
    run = to_object(document)
    messages = require_objects(run.get("messages"), "messages")
    pipeline, attack = run.get("pipeline_name"), run.get("attack_type")
    injected = run.get("injection_task_id")
    verdicts = run if "utility" in run else to_object(run.get("evaluation"))
    utility, security = verdicts.get("utility"), verdicts.get("security")
    task = run["user_task_id"] if "user_task_id" in run else run["task_id"]
    ended = "crash" if run.get("error") else "final"
    facts = {
        "agent": f"agentdojo {pipeline}",
        "model": pipeline,
        "scenario": f"agentdojo-{run.get('suite_name')}" + (f"-{attack}" if attack else ""),
        "task": f"{task}" + (f"+{injected}" if injected else ""),
        "world": "fresh",
        "seconds": run.get("duration"),
        "passed": utility if isinstance(utility, bool) else None,
        "reward": float(utility) if isinstance(utility, bool) else None,
        "ended": ended,
        "verifier": "agentdojo utility",
    }
    if isinstance(security, bool):
        notes.skip(f"verdicts on security that are {str(security).lower()}")
    key = [run.get("suite_name"), pipeline, task, injected, attack, run.get("run_id")]
    read = tuple(_read_messages(messages, str(pipeline), notes))
    return ImportedConversation(source="agentdojo", messages=read, facts=facts, key=key)


def _read_messages(
    messages: list[Table], model: str, notes: ImportNotes
) -> Iterator[ConversationMessage]:
    open_ids: list[str] = []
    for number, each in enumerate(messages, 1):
        role, text = str(each.get("role")), _read_content(each.get("content"))
        if role == "tool":
            given = each.get("tool_call_id") or to_object(each.get("tool_call")).get("id")
            id = str(given) if given else open_ids[0] if open_ids else ""
            if id in open_ids:
                open_ids.remove(id)
            error = each.get("error")
            yield ConversationMessage(
                role="tool", text=text or to_json_text(error), call_id=id, is_error=bool(error)
            )
        elif role == "assistant":
            calls = tuple(_read_calls(each, number))
            open_ids += [call.id for call in calls]
            yield ConversationMessage(role=role, text=text, model=model, calls=calls)
        elif role in ("system", "user"):
            yield ConversationMessage(role=role, text=text)
        else:
            notes.skip(f"messages of role {role}")


def _read_calls(message: Table, number: int) -> Iterator[ConversationCall]:
    for place, each in enumerate(to_objects(message.get("tool_calls")), 1):
        yield ConversationCall(
            id=str(each.get("id") or f"message-{number}-call-{place}"),
            tool=str(each.get("function") or ""),
            arguments=to_json_text(each.get("args")),
        )


def _read_content(content: object) -> str:
    """Return the text of a message; later versions have parts, whose text is in `content`."""
    parts = [each.get("content", each.get("text")) for each in to_objects(content)]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if texts else join_text_parts(content)
