"""Chat completions of an agent that writes its calls and their results as text: smolagents.

Wire facts (smolagents 1.26, `memory.py` and `models.py`): tools are offered and called as in any
chat, but the history is text. A step is an assistant message that ends in `Calling tools:` and a
Python list of the calls, with ids, and a user message that begins with `Observation:`. The results
of several parallel calls are joined in the order of the ids, without an unambiguous separator: then
no single result is known.
"""

import ast
import json
from copy import replace as changed

from msgspec import Struct

from traces.bodies.content_encoding import read_content
from traces.bodies.incremental_json import IncrementalListReader
from traces.bodies.repeated_search import RepeatedSearch
from traces.dialects import json_access, openai_chat
from traces.dialects.conversation_fold import ConversationFold, ConversationFolds
from traces.dialects.types import ChatMessage, ModelAnswer, ModelRequest, ToolResult
from traces.model import BodyEdit, Chunk, Headers, Request

NAME = "observed_history"
MESSAGES_KEY = "messages"

CALLING, OBSERVED = "Calling tools:\n", "Observation:\n"
_find_calling = RepeatedSearch(rb"Calling tools:\n[")
_find_observed = RepeatedSearch(rb"Observation:\n")


def can_read_request(request: Request) -> bool:
    """Whether it is a chat completion whose history has a call and its observation as text."""
    if not openai_chat.can_read_request(request):
        return False
    body = read_content(request)
    return _find_calling(body) >= 0 and _find_observed(body) >= 0


def read_model_name(body: bytes) -> str | None:
    """Return the requested model."""
    return openai_chat.read_model_name(body)


class _SmolagentsMessage(Struct, frozen=True, kw_only=True):
    """One parsed message, with the ids of the calls in it, or the observation in it."""

    message: ChatMessage
    calls: tuple[str, ...] = ()
    observed: str | None = None


def _read_smolagents_message(text: bytes) -> _SmolagentsMessage | None:
    value = json_access.parse_json_text(text)
    if not isinstance(value, dict):
        return None
    message = openai_chat.read_chat_message(value)
    if message.role == "assistant":
        return _SmolagentsMessage(
            message=message, calls=tuple(id for id, _, _ in parse_smolagents_calls(message.content))
        )
    if message.role == "user" and message.content.startswith(OBSERVED):
        return _SmolagentsMessage(message=message, observed=message.content.removeprefix(OBSERVED))
    return _SmolagentsMessage(message=message)


def parse_smolagents_calls(text: str) -> tuple[tuple[str, str, str], ...]:
    """Return (id, name, arguments as JSON) of the calls in an assistant's text, in order."""
    _, marker, call_list = text.rpartition(CALLING)
    try:
        calls = ast.literal_eval(call_list.strip()) if marker else []
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    return tuple(
        _parse_listed_call(call) for call in json_access.to_json_objects(calls) if "id" in call
    )


def _parse_listed_call(call: dict[str, object]) -> tuple[str, str, str]:
    function = json_access.to_json_object(call.get("function"))
    raw_arguments = function.get("arguments")
    arguments = (
        raw_arguments
        if isinstance(raw_arguments, str)
        else json.dumps(raw_arguments, ensure_ascii=False)
    )
    return str(call["id"]), json_access.to_optional_string(function.get("name")) or "", arguments


class _SmolagentsRequestReader:
    """Reads the messages in order: an observation follows its call."""

    def __init__(self) -> None:
        self._reader = IncrementalListReader(
            MESSAGES_KEY, _read_smolagents_message, json_access.parse_json_text
        )
        self._folds = ConversationFolds(_SmolagentsFold)

    def __call__(self, body: bytes) -> ModelRequest:
        """Read a request body; empty if it is invalid."""
        try:
            parsed = self._reader.read(body)
        except ValueError:
            return ModelRequest()
        return self._folds.read(parsed)


class _SmolagentsFold(ConversationFold[_SmolagentsMessage]):
    """An observation is the result of the one call before it."""

    _open_calls: tuple[str, ...] = ()

    def add_item(self, item: _SmolagentsMessage, start: int, stop: int) -> None:
        if item.observed is not None and len(self._open_calls) == 1:
            self.add_message(changed(item.message, role="tool", content=item.observed))
            (call,) = self._open_calls
            self.add_result(ToolResult(call_id=call, text=item.observed, start=start, stop=stop))
        else:
            self.add_message(item.message)
        self._open_calls = item.calls


def make_dialect_reader() -> _SmolagentsRequestReader:
    """Return a reader of full conversations."""
    return _SmolagentsRequestReader()


def replace_result(body: bytes, result: ToolResult, text: str) -> tuple[BodyEdit, ...]:
    """Return the edits that replace an observation by `text`; none if it is already that text."""
    prefixed = changed(result, text=OBSERVED + result.text)
    return openai_chat.replace_result(body, prefixed, OBSERVED + text)


def mark_result_failed(body: bytes, result: ToolResult) -> tuple[BodyEdit, ...]:
    """Return no edits: the form has no error flag."""
    return ()


def parse_model_answer(headers: Headers, body: bytes) -> ModelAnswer | None:
    """Parse the model's response, as in any chat completion."""
    return openai_chat.parse_model_answer(headers, body)


def write_model_answer(
    answer: ModelAnswer, *, stream: bool, id: str, created: int
) -> tuple[Headers, tuple[Chunk, ...]]:
    """Return headers and chunks of this response, as in any chat; all chunks at time 0."""
    return openai_chat.write_model_answer(answer, stream=stream, id=id, created=created)
