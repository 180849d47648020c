"""A run that somebody kept as a conversation: its messages, as rows of the store.

What is said by system, user or agent is a step; what a tool returned belongs to the call with its
id, the nearest one before it where an id was used twice.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from traces.formats.rows import Row, Rows, call, message
from traces.relations import row


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call of a tool."""

    id: str
    tool: str
    arguments: str
    """JSON, or the text that stands in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message; `role` is system, user, assistant or tool."""

    role: str
    text: str = ""
    model: str | None = None
    calls: tuple[Asked, ...] = ()
    answers: str | None = None
    """Of a tool: the id of the call."""
    is_error: bool | None = None
    usage: Mapping[str, object] = field(default_factory=dict)
    """Columns of the relation `usage`, where the file tells what this answer took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A whole run: `facts` are columns of `trajectories`."""

    source: str
    said: tuple[Said, ...]
    facts: Mapping[str, object]
    whole: object
    """What the run was read from; the same gives the same id."""

    @property
    def id(self) -> str:
        """The same run has the same id, whatever file it is in."""
        text = orjson.dumps(self.whole, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
        return f"{self.source}-{hashlib.sha256(text).hexdigest()[:16]}"


def add(rows: Rows, talk: Talk) -> None:
    """Put a run among the rows."""
    trajectory, requests = talk.id, sum(each.role == "assistant" for each in talk.said)
    results = _results(talk.said)
    step, request = 0, 1
    for position, said in enumerate(talk.said):
        rows.messages.append(_message(trajectory, request, position, requests, said))
        if said.role == "tool":
            continue
        step += 1
        source = "agent" if said.role == "assistant" else said.role
        rows.steps.append((trajectory, step, source, said.text, said.model, None))
        for place, asked in enumerate(said.calls):
            rows.tool_calls.append(_call(trajectory, step, asked, results.get((position, place))))
        if said.role == "assistant":
            if said.usage:
                known = {"trajectory_id": trajectory, "seq": request, "model": said.model}
                rows.usage.append(row("usage", known | dict(said.usage)))
            request += 1
    model = next((each.model for each in talk.said if each.model), None)
    known = {
        "trajectory_id": trajectory,
        "model": model,
        "condition": "clean",
        "source": talk.source,
        "n_steps": requests,
    }
    rows.trajectories.append(row("trajectories", known | dict(talk.facts)))


def _message(trajectory: str, request: int, position: int, requests: int, said: Said) -> Row:
    calls = [
        {"id": each.id, "function": {"name": each.tool, "arguments": each.arguments}}
        for each in said.calls
    ]
    return message(trajectory, request, position, max(requests, 1), said.role, said.text, calls)


def _results(said: tuple[Said, ...]) -> dict[tuple[int, int], Said]:
    """The result of each call, by the places of its message and of the call in it."""
    waiting: dict[str, list[tuple[int, int]]] = {}
    found: dict[tuple[int, int], Said] = {}
    for position, each in enumerate(said):
        for place, asked in enumerate(each.calls):
            waiting.setdefault(asked.id, []).append((position, place))
        if each.role == "tool" and (calls := waiting.get(each.answers or "")):
            found[calls.pop(0)] = each
    return found


def _call(trajectory: str, step: int, asked: Asked, said: Said | None) -> Row:
    known: dict[str, object] = {
        "trajectory_id": trajectory,
        "step": step,
        "call_id": asked.id,
        "tool": asked.tool,
        "is_error": said.is_error if said else None,
    }
    return call(known, asked.arguments, said.text if said else None)
