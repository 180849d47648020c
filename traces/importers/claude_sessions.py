"""Import sessions of Claude Code, as they are in `~/.claude/projects` (JSON lines).

A line is one message or one block of it; the lines of an answer have its `message.id`, and its
usage on each. A session that was resumed in a file of its own begins with the lines of the earlier
one, under their uuids, so the first uuid is what identifies a run. What a subagent did is in the
file in older versions (`isSidechain`), and in a file beside it in newer ones. Lines of the
client itself (summaries, snapshots of files, progress) are no messages. A session has no ending: it
may go on any day.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from traces.dialects.media_parts import list_media
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
from traces.importers.shared.session_times import measure_session, parse_session_time

NAME = "sessions of Claude Code (JSON lines)"

type Table = dict[str, object]

_SYNTHETIC = "<synthetic>"
"""The model of answers that the client made up, for an error of the API."""
_HOSTED = ("server_tool_use", "web_search_tool_result", "web_fetch_tool_result")


def can_import(path: Path) -> bool:
    """Whether a file begins with lines of a session."""
    start = read_file_head(path)
    has_ids = b'"sessionId"' in start and (b'"uuid"' in start or b'"parentUuid"' in start)
    return start.lstrip()[:1] == b"{" and has_ids


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the session of a file."""
    yield RawRun(where="", read=partial(_read_session, path))


def _read_session(path: Path, notes: ImportNotes) -> ImportedConversation:
    lines = list(_read_lines(path, notes))
    if not lines:
        raise ValueError("no line of it is a message")
    agent = "claude-code subagent" if all(x.get("isSidechain") for x in lines) else "claude-code"
    return ImportedConversation(
        source="claude-code",
        messages=tuple(_read_messages(lines, notes)),
        facts={"agent": agent, **measure_session(each.get("timestamp") for each in lines)},
        key=lines[0].get("uuid"),
    )


def _read_lines(path: Path, notes: ImportNotes) -> Iterator[Table]:
    """Yield the lines that are messages, each once: a resumed session may have some twice."""
    seen = set[object]()
    for where, document in iter_json_records(path):
        if isinstance(document, ValueError):
            notes.add(where, str(document), lost=True)
            continue
        line = to_object(document)
        if line.get("type") not in ("user", "assistant") or line.get("uuid") in seen:
            continue
        message = to_object(line.get("message"))
        if message.get("model") == _SYNTHETIC:
            notes.skip("answers that the client made up for an error of the API")
            continue
        seen.add(line.get("uuid"))
        yield line


def _read_messages(lines: Iterable[Table], notes: ImportNotes) -> Iterator[ConversationMessage]:
    asked_at: dict[str, float | None] = {}
    for part in _join_answers(lines):
        line, message = part[0], to_object(part[0].get("message"))
        at = parse_session_time(part[-1].get("timestamp"))
        if line.get("type") == "assistant":
            blocks = [x for each in part for x in _list_blocks(each)]
            calls = tuple(_read_call(each) for each in blocks if each.get("type") == "tool_use")
            asked_at |= dict.fromkeys((call.id for call in calls), at)
            for each in blocks:
                if each.get("type") in _HOSTED:
                    notes.skip("calls and results of tools of the provider")
            final = to_object(part[-1].get("message"))
            yield ConversationMessage(
                role="assistant",
                text=_join_texts(blocks),
                model=str(message["model"]) if message.get("model") else None,
                calls=calls,
                usage=_read_usage(to_object(final.get("usage")), line),
                finish=reason if isinstance(reason := final.get("stop_reason"), str) else None,
            )
            continue
        blocks = _list_blocks(line)
        for each in blocks:
            if each.get("type") == "tool_result":
                yield _read_result(each, line, asked_at, at)
        others = [each for each in blocks if each.get("type") != "tool_result"]
        if others:
            yield ConversationMessage(
                role="user", text=_join_texts(others), media=tuple(list_media(others))
            )


def _join_answers(lines: Iterable[Table]) -> Iterator[list[Table]]:
    """Yield the lines of each answer together, and any other line alone.

    The result of an early call may stand between the lines of an answer.
    """
    answers: dict[object, list[Table]] = {}
    order: list[list[Table]] = []
    for line in lines:
        id = to_object(line.get("message")).get("id") if line.get("type") == "assistant" else None
        if id is None or id not in answers:
            order.append([line])
            if id is not None:
                answers[id] = order[-1]
        else:
            answers[id].append(line)
    yield from order


def _list_blocks(line: Table) -> list[Table]:
    content = to_object(line.get("message")).get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else to_objects(content)


def _join_texts(blocks: Iterable[Table]) -> str:
    return "\n".join(str(each["text"]) for each in blocks if each.get("text"))


def _read_call(block: Table) -> ConversationCall:
    return ConversationCall(
        id=str(block.get("id") or ""),
        tool=str(block.get("name") or ""),
        arguments=to_json_text(block.get("input")),
    )


def _read_result(
    block: Table, line: Table, asked_at: dict[str, float | None], at: float | None
) -> ConversationMessage:
    id, content = str(block.get("tool_use_id") or ""), block.get("content")
    asked = asked_at.get(id)
    own = to_object(line.get("toolUseResult")).get("durationMs")
    seconds = own / 1000 if isinstance(own, int | float) else None
    if seconds is None and asked is not None and at is not None and at >= asked:
        seconds = at - asked
    return ConversationMessage(
        role="tool",
        text=join_text_parts(content),
        call_id=id,
        is_error=block.get("is_error") is True,
        seconds=seconds,
        media=tuple(list_media(content)),
    )


def _read_usage(usage: Table, line: Table) -> dict[str, object]:
    """Return the tokens of an answer; those of its cache are apart from its input."""
    if not usage:
        return {}
    cached = usage.get("cache_read_input_tokens")
    parts = [usage.get("input_tokens"), cached, usage.get("cache_creation_input_tokens")]
    return {
        "prompt_tokens": sum(each for each in parts if isinstance(each, int)),
        "cached_tokens": cached,
        "completion_tokens": usage.get("output_tokens"),
        "cost_reported_usd": line.get("costUSD"),
    }
