"""A run that another tool stored as a conversation: its messages, as rows of the store.

Each message of system, user or agent is a step. A tool result belongs to the call with its id, in
order if an id was used several times.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from traces.importers.shared.conversation_rows import (
    ConversationRows,
    Row,
    make_call_row,
    make_message_row,
)
from traces.store.schema import make_relation_row


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationCall:
    """A tool call."""

    id: str
    tool: str
    arguments: str
    """JSON, or the text in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationMessage:
    """One message; `role` is system, user, assistant or tool."""

    role: str
    text: str = ""
    model: str | None = None
    calls: tuple[ConversationCall, ...] = ()
    call_id: str | None = None
    """The id of the call, in a tool message."""
    is_error: bool | None = None
    usage: Mapping[str, object] = field(default_factory=dict)
    """Columns of the relation `usage` for this response, if the file has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedConversation:
    """An imported run; `facts` are columns of `trajectories`."""

    source: str
    messages: tuple[ConversationMessage, ...]
    facts: Mapping[str, object]
    source_data: object
    """The data the run was read from; the id is its hash."""

    @property
    def id(self) -> str:
        """The id, which is the same for the same run in any file."""
        text = orjson.dumps(self.source_data, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
        return f"{self.source}-{hashlib.sha256(text).hexdigest()[:16]}"


def add_conversation(rows: ConversationRows, talk: ImportedConversation) -> None:
    """Add the rows of a run."""
    trajectory, requests = talk.id, sum(each.role == "assistant" for each in talk.messages)
    results = _match_results_to_calls(talk.messages)
    step, request = 0, 1
    for position, message in enumerate(talk.messages):
        rows.messages.append(_to_message_row(trajectory, request, position, requests, message))
        if message.role == "tool":
            continue
        step += 1
        source = "agent" if message.role == "assistant" else message.role
        rows.steps.append((trajectory, step, source, message.text, message.model, None))
        for place, call in enumerate(message.calls):
            rows.tool_calls.append(
                _to_call_row(trajectory, step, call, results.get((position, place)))
            )
        if message.role == "assistant":
            if message.usage:
                fields = {"trajectory_id": trajectory, "seq": request, "model": message.model}
                rows.usage.append(make_relation_row("usage", fields | dict(message.usage)))
            request += 1
    model = next((each.model for each in talk.messages if each.model), None)
    fields = {
        "trajectory_id": trajectory,
        "model": model,
        "condition": "clean",
        "source": talk.source,
        "n_steps": requests,
    }
    rows.trajectories.append(make_relation_row("trajectories", fields | dict(talk.facts)))


def _to_message_row(
    trajectory: str, request: int, position: int, requests: int, said: ConversationMessage
) -> Row:
    calls = [
        {"id": each.id, "function": {"name": each.tool, "arguments": each.arguments}}
        for each in said.calls
    ]
    return make_message_row(
        trajectory, request, position, max(requests, 1), said.role, said.text, calls
    )


def _match_results_to_calls(
    said: tuple[ConversationMessage, ...],
) -> dict[tuple[int, int], ConversationMessage]:
    """Map each call, as (message position, place in the message), to its result."""
    open_calls: dict[str, list[tuple[int, int]]] = {}
    matches: dict[tuple[int, int], ConversationMessage] = {}
    for position, each in enumerate(said):
        for place, call in enumerate(each.calls):
            open_calls.setdefault(call.id, []).append((position, place))
        if each.role == "tool" and (calls := open_calls.get(each.call_id or "")):
            matches[calls.pop(0)] = each
    return matches


def _to_call_row(
    trajectory: str, step: int, asked: ConversationCall, said: ConversationMessage | None
) -> Row:
    fields: dict[str, object] = {
        "trajectory_id": trajectory,
        "step": step,
        "call_id": asked.id,
        "tool": asked.tool,
        "is_error": said.is_error if said else None,
    }
    return make_call_row(fields, asked.arguments, said.text if said else None)
