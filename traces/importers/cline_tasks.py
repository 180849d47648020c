"""Import tasks of Cline and Roo Code: `api_conversation_history.json` of their folders.

It is a list of messages in the form of Anthropic's API. Calls are blocks, or XML in the text whose
result is in the next message (`[read_file for 'a'] Result:`).
"""

import re
from collections.abc import Iterator
from copy import replace
from functools import partial
from itertools import count
from pathlib import Path

import orjson

from traces.importers.shared.conversation import (
    ConversationCall,
    ConversationMessage,
    ImportedConversation,
)
from traces.importers.shared.file_reader import read_file_head, read_unpacked_file
from traces.importers.shared.json_values import parse_json, require_objects, to_object
from traces.importers.shared.run_reader import ImportNotes, RawRun
from traces.importers.spans.plain_messages import read_plain_message

NAME = "tasks of Cline (a JSON list of messages that begins with a task)"
_START = re.compile(
    rb'\s*\[\s*\{\s*"role"\s*:\s*"user"\s*,\s*"content"\s*:.{0,400}<task>', re.DOTALL
)
_CALL = re.compile(r"<([a-z_]+)>\s*((?:<([a-z_]+)>.*?</\3>\s*)+)</\1>", re.DOTALL)
_FIELD = re.compile(r"<([a-z_]+)>(.*?)</\1>", re.DOTALL)
_RESULT = re.compile(r"\[([a-z_]+)(?: for [^\n]*)?\] Result:\s*(.*)", re.DOTALL)
_SAYS = ("thinking", "task", "environment_details", "feedback")
"""Tags in a text that are no call."""

type Table = dict[str, object]


def can_import(path: Path) -> bool:
    """Whether a file begins like a task."""
    return _START.match(read_file_head(path)) is not None


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the task."""
    yield RawRun(where="", read=partial(_read_run, path))


def _read_run(path: Path, notes: ImportNotes) -> ImportedConversation:
    messages = require_objects(parse_json(read_unpacked_file(path)), "messages")
    times = [each["ts"] / 1000 for each in messages if isinstance(each.get("ts"), int)]  # type: ignore[operator]
    return ImportedConversation(
        source="cline",
        messages=tuple(_read_messages(messages)),
        facts={
            "agent": "cline",
            "recorded_at": min(times, default=None),
            "seconds": max(times) - min(times) if times else None,
        },
        key=messages[0].get("ts") if messages else None,
    )


def _read_messages(messages: list[Table]) -> Iterator[ConversationMessage]:
    counter, open_call = count(1), ""
    for message in messages:
        model = to_object(message.get("modelInfo")).get("modelId")
        for each in read_plain_message(message):
            if each.role == "assistant":
                each = replace(each, model=str(model) if model else None)
                calls = each.calls or tuple(_find_calls(each.text, counter))
                open_call = calls[-1].id if calls and not each.calls else ""
                yield replace(each, calls=calls)
            elif open_call and (found := _RESULT.match(each.text)):
                yield ConversationMessage(role="tool", text=found[2], call_id=open_call)
                open_call = ""
            else:
                yield each


def _find_calls(text: str, counter: "count[int]") -> Iterator[ConversationCall]:
    for tool, fields in ((found[1], found[2]) for found in _CALL.finditer(text)):
        if tool not in _SAYS:
            arguments = {name: value.strip() for name, value in _FIELD.findall(fields)}
            yield ConversationCall(
                id=f"call-{next(counter)}", tool=tool, arguments=orjson.dumps(arguments).decode()
            )
