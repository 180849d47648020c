"""Import Who&When: failed runs of teams of agents, each with the turn of the decisive mistake.

Every run was chosen because it failed. A turn of an agent is a step, the first turn is the task;
the calls of tools are text in these turns, so there are none.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from traces.importers.shared.conversation import ConversationMessage, ImportedConversation
from traces.importers.shared.file_reader import read_file_head
from traces.importers.shared.json_values import (
    join_text_parts,
    require_objects,
    to_json_text,
    to_object,
)
from traces.importers.shared.jsonl import iter_json_records
from traces.importers.shared.run_reader import ImportNotes, RawRun

NAME = "Who&When runs (JSON documents with a history and a mistake)"
SPLITS = frozenset(("lines",))
"""What of a file are runs of their own: its lines, or the elements of its list."""
_HUMANS = ("human", "user")

type Table = dict[str, object]


def can_import(path: Path) -> bool:
    """Whether a file has a conversation and a dated mistake; these stand at its end."""
    start = read_file_head(path)
    if start.lstrip()[:1] != b"{" or b'"history"' not in start:
        return False
    return any(sign in start for sign in (b'"mistake_step"', b'"question_ID"')) or (
        b'"history"' in start[:400]
    )


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the documents."""
    for where, document in iter_json_records(path):
        yield RawRun(where=where, read=partial(_read_run, document))


def _read_run(document: object, notes: ImportNotes) -> ImportedConversation:
    if isinstance(document, ValueError):
        raise document
    run = to_object(document)
    history = require_objects(run.get("history"), "messages")
    if "mistake_step" not in run:
        raise ValueError("it has a history and no mistake")
    notes.skip("dates of the decisive mistake, which no column has")
    facts = {
        "agent": "team",
        "scenario": "who-and-when",
        "task": to_json_text(run.get("question_ID")) or None,
        "passed": False,
        "ended": "final",
        "verifier": "Who&When",
    }
    return ImportedConversation(
        source="who-and-when",
        messages=tuple(_read_turns(history)),
        facts=facts,
        key=[run.get("question_ID"), run.get("mistake_step"), run.get("mistake_agent")],
    )


def _read_turns(history: list[Table]) -> Iterator[ConversationMessage]:
    for place, each in enumerate(history):
        text = join_text_parts(each.get("content"))
        speaker = str(each.get("name") or each.get("role") or "")
        is_task = place == 0 or speaker.lower() in _HUMANS
        yield ConversationMessage(role="user" if is_task else "assistant", text=text)
