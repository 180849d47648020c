"""Import `.aider.chat.history.md` of aider: each chat in it is a run.

Lines of the user begin with `#### `, lines of aider itself with `> `. A response ends with the line
of its tokens. aider has no tool calls: edits are in the text.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from traces.importers.shared.conversation import ConversationMessage, ImportedConversation
from traces.importers.shared.file_reader import (
    MAX_WHOLE_FILE,
    open_unpacked_file,
    read_file_head,
)
from traces.importers.shared.run_reader import ImportNotes, RawRun

NAME = "chats of aider (its history in Markdown)"
_START = "# aider chat started at "
_MODEL = re.compile(r"> (?:Main model|Models?): (\S+)")
_TOKENS = re.compile(r"> Tokens: ([\d.,]+[kM]?) sent, (?:.*?)([\d.,]+[kM]?) received\.?")
_COST = re.compile(r"Cost: \$([\d.]+) message")
_SCALES = {"k": 1e3, "M": 1e6}


def can_import(path: Path) -> bool:
    """Whether a file begins like a history."""
    return read_file_head(path).lstrip().startswith(_START.encode())


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the chats."""
    started, lines = "", list[str]()
    with open_unpacked_file(path) as file:
        while data := file.readline(MAX_WHOLE_FILE):
            line = data.decode("utf-8", "replace").rstrip("\r\n")
            if not line.startswith(_START):
                lines.append(line)
                continue
            if started:
                yield RawRun(where=started, read=partial(_read_chat, started, lines))
            started, lines = line.removeprefix(_START).strip(), []
    yield RawRun(where=started, read=partial(_read_chat, started, lines))


def _read_chat(started: str, lines: list[str], notes: ImportNotes) -> ImportedConversation:
    model = next((found[1] for line in lines if (found := _MODEL.match(line))), None)
    return ImportedConversation(
        source="aider",
        messages=tuple(_read_messages(lines, model)),
        facts={"agent": "aider", "model": model, "recorded_at": _parse_time(started)},
        key=started,
    )


def _read_messages(lines: list[str], model: str | None) -> Iterator[ConversationMessage]:
    user, answer = list[str](), list[str]()
    for line in [*lines, "#### "]:
        if line.startswith("####"):
            if text := "\n".join(answer).strip():
                yield ConversationMessage(role="assistant", text=text, model=model)
            answer = []
            user.append(line.removeprefix("####").strip())
        elif found := _TOKENS.match(line):
            usage = {
                "prompt_tokens": _to_number(found[1]),
                "completion_tokens": _to_number(found[2]),
            }
            cost = _COST.search(line)
            yield ConversationMessage(
                role="assistant",
                text="\n".join(answer).strip(),
                model=model,
                usage=usage | ({"cost_reported_usd": float(cost[1])} if cost else {}),
            )
            answer = []
        elif line.strip() and not line.startswith(">"):
            if user:
                yield ConversationMessage(role="user", text="\n".join(user))
            user = []
            answer.append(line)
        elif answer and not line.startswith(">"):
            answer.append(line)
    if text := "\n".join(user).strip():
        yield ConversationMessage(role="user", text=text)


def _to_number(text: str) -> int:
    scale = _SCALES.get(text[-1], 1)
    return round(float(text.rstrip("kM").replace(",", "")) * scale)


def _parse_time(text: str) -> float | None:
    """Return seconds since the epoch of a local time, taken as UTC: the file has no zone."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
