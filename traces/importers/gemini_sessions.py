"""Import sessions of Gemini CLI (`~/.gemini/tmp/PROJECT/chats`): JSON, or a line for each message.

A message of type `gemini` is a response, with its calls and their results. A line with a known id
replaces that message; one with `$rewindTo` removes it and what came after.
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
    to_json_text,
    to_object,
    to_objects,
)
from traces.importers.shared.jsonl import iter_json_records
from traces.importers.shared.run_reader import ImportNotes, RawRun
from traces.importers.shared.session_times import measure_session

NAME = "sessions of Gemini CLI (JSON, or JSON lines, of messages)"
_FAILED = {"error": True, "success": False}
"""Whether a call of this status failed; that of a cancelled one is unknown."""

Table = dict[str, object]


def can_import(path: Path) -> bool:
    """Whether a file begins like a session."""
    start = read_file_head(path)
    return start.lstrip()[:1] == b"{" and b'"sessionId"' in start and b'"projectHash"' in start


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the session."""
    yield RawRun(where="", read=partial(_read_session, path))


def _read_session(path: Path, notes: ImportNotes) -> ImportedConversation:
    session, known = Table(), dict[object, Table]()
    for where, document in iter_json_records(path):
        line = to_object(document)
        if isinstance(document, ValueError):
            notes.add(where, str(document), lost=True)
        elif "projectHash" in line:
            session |= line
            known |= {each.get("id"): each for each in to_objects(line.get("messages"))}
        elif "$rewindTo" in line:
            ids = list(known)
            kept = ids[: ids.index(line["$rewindTo"])] if line["$rewindTo"] in known else ids
            known = {id: known[id] for id in kept}
        elif "type" in line:
            known[line.get("id")] = line
    messages = list(known.values())
    if not messages:
        raise ValueError("no message is in it")
    times = [session.get("startTime"), *(each.get("timestamp") for each in messages)]
    return ImportedConversation(
        source="gemini-cli",
        messages=tuple(_read_messages(messages, notes)),
        facts={"agent": "gemini-cli", **measure_session(times)},
        key=session.get("sessionId"),
    )


def _read_messages(messages: list[Table], notes: ImportNotes) -> Iterator[ConversationMessage]:
    for each in messages:
        text = join_text_parts(each.get("content"))
        if each.get("type") == "user":
            yield ConversationMessage(role="user", text=text)
        elif each.get("type") == "gemini":
            calls = to_objects(each.get("toolCalls"))
            yield ConversationMessage(
                role="assistant",
                text=text,
                model=str(each["model"]) if each.get("model") else None,
                calls=tuple(map(_read_call, calls)),
                usage=_read_usage(to_object(each.get("tokens"))),
            )
            yield from (_read_result(call) for call in calls if call.get("result") is not None)
        else:
            notes.skip(f"messages of type {each.get('type')}")


def _read_call(call: Table) -> ConversationCall:
    return ConversationCall(
        id=str(call.get("id") or ""),
        tool=str(call.get("name") or ""),
        arguments=to_json_text(call.get("args")),
    )


def _read_result(call: Table) -> ConversationMessage:
    result = call["result"]
    parts = to_objects(result if isinstance(result, list) else [result])
    answers = [to_object(to_object(x.get("functionResponse")).get("response")) for x in parts]
    texts = [to_json_text(x.get("output", x.get("error", x))) for x in answers if x]
    return ConversationMessage(
        role="tool",
        text="\n".join(texts) or join_text_parts(result) or to_json_text(result),
        call_id=str(call.get("id") or ""),
        is_error=_FAILED.get(str(call.get("status"))),
    )


def _read_usage(tokens: Table) -> Table:
    if not tokens:
        return {}
    output, thoughts = tokens.get("output"), tokens.get("thoughts")
    both = [each for each in (output, thoughts) if isinstance(each, int)]
    return {
        "prompt_tokens": tokens.get("input"),
        "cached_tokens": tokens.get("cached"),
        "completion_tokens": sum(both) if both else None,
        "reasoning_tokens": thoughts,
    }
