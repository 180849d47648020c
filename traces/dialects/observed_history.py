"""Chat completions of an agent that tells its calls and their results as text: smolagents.

Wire facts (smolagents 1.26, `memory.py` and `models.py`): tools are offered and called as in any
chat, but the history is text. A step is an assistant message that ends in `Calling tools:` and a
Python list of the calls, ids and all, and a user message that begins with `Observation:`. Where
several calls were made together their results are joined, in the order of the ids, with nothing
between them that could not be in one of them: then nobody's result is known.
"""

import ast
import json
from dataclasses import dataclass
from dataclasses import replace as changed

from traces.dialects import openai_chat, wire
from traces.dialects.reading import replaced
from traces.encoding import plain
from traces.model import Chunk, Edit, Headers, Request
from traces.reader import Reader
from traces.step import Answer, Asked, Message, Result

NAME = "observed_history"
LIST = "messages"

CALLING, OBSERVED = "Calling tools:\n", "Observation:\n"
_CALLING, _OBSERVED = rb"Calling tools:\n[", rb"Observation:\n"


def fits(request: Request) -> bool:
    """True for chat completions whose history holds a call and what was observed, as text."""
    if not openai_chat.fits(request):
        return False
    body = plain(request.headers, request.body) or b""
    return body.find(_CALLING) >= 0 and body.find(_OBSERVED) >= 0


def model(body: bytes) -> str | None:
    """The model that was asked for."""
    return openai_chat.model(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What one message says: the ids of the calls it tells, or what it says was observed."""

    message: Message
    calls: tuple[str, ...] = ()
    observed: str | None = None


def _item(text: bytes) -> _Said | None:
    value = wire.parsed(text)
    if not isinstance(value, dict):
        return None
    said = openai_chat.message(value)
    if said.role == "assistant":
        return _Said(message=said, calls=tuple(id for id, _, _ in calls(said.content)))
    if said.role == "user" and said.content.startswith(OBSERVED):
        return _Said(message=said, observed=said.content.removeprefix(OBSERVED))
    return _Said(message=said)


def calls(text: str) -> tuple[tuple[str, str, str], ...]:
    """(id, name, arguments as JSON) of the calls that an assistant's text tells, in order."""
    _, calling, listed = text.rpartition(CALLING)
    try:
        found = ast.literal_eval(listed.strip()) if calling else []
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    return tuple(_call(call) for call in wire.tables(found) if "id" in call)


def _call(call: dict[str, object]) -> tuple[str, str, str]:
    function = wire.table(call.get("function"))
    given = function.get("arguments")
    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return str(call["id"]), wire.string(function.get("name")) or "", arguments


class _Reading:
    """Goes through the messages in order: what was observed follows the call."""

    def __init__(self) -> None:
        self._reader = Reader(LIST, _item, wire.parsed)

    def __call__(self, body: bytes) -> Asked:
        """What a body says; nothing where it cannot be read."""
        try:
            read = self._reader.read(body)
        except ValueError:
            return Asked()
        messages, results, made = list[Message](), list[Result](), tuple[str, ...]()
        for said, start, stop in zip(read.items, read.starts, read.stops, strict=True):
            if said is None:
                continue
            if said.observed is not None and len(made) == 1:
                messages.append(changed(said.message, role="tool", content=said.observed))
                results.append(Result(call_id=made[0], text=said.observed, start=start, stop=stop))
            else:
                messages.append(said.message)
            made = said.calls
        return Asked(messages=tuple(messages), results=tuple(results))


def reading() -> _Reading:
    """Clients send the whole conversation every time."""
    return _Reading()


def messages(body: bytes) -> tuple[Message, ...]:
    """The conversation in the request; what was observed is of role `tool`."""
    return reading()(body).messages


def results(body: bytes) -> tuple[Result, ...]:
    """What was observed of each call that was made alone."""
    return reading()(body).results


def put(body: bytes, result: Result, text: str) -> tuple[Edit, ...]:
    """The edits that put `text` in place of what was observed; none where it stands there."""
    was = changed(result, text=OBSERVED + result.text)
    return openai_chat.put(body, was, OBSERVED + text)


def fail(body: bytes, result: Result) -> tuple[Edit, ...]:
    """None: the form has no flag for a result that is an error."""
    return ()


def replace(body: bytes, call_id: str, text: str) -> tuple[Edit, ...]:
    """`put` in every message that says what was observed of the call."""
    return replaced(put, body, results(body), call_id, text)


def read(headers: Headers, body: bytes) -> Answer | None:
    """What the model answered, as in any chat."""
    return openai_chat.read(headers, body)


def write(
    answer: Answer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Headers and chunks of this answer, as in any chat; all chunks at time 0."""
    return openai_chat.write(answer, stream=stream, id=id, created=created)
