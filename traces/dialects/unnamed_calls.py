"""Shared by the dialects whose calls may have no id on the wire: read requests, name the calls.

Such a call is named after its name and arguments. Its result is the next one with its id, else the
next one of its name, else the next one without a name. Equal names are numbered as equal ids are
(`ResultNumbers`).
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from traces.bodies.canonical_json import hash_json_value
from traces.bodies.incremental_json import IncrementalListReader
from traces.dialects.conversation_fold import ConversationFold, ConversationFolds
from traces.dialects.types import ChatMessage, ModelRequest, ToolResult


class AskedCall(Struct, frozen=True, kw_only=True):
    """A call in an earlier answer, as the client sends it back."""

    id: str | None
    name: str
    known_by: str
    """Its id, or the name derived for it, which is the same for equal calls."""


class ReturnedResult(Struct, frozen=True, kw_only=True):
    """A result, and its span in the item of the list that holds it."""

    id: str | None
    name: str
    text: str
    is_error: bool | None
    start: int
    stop: int
    media: tuple[str, ...] = ()


class CallItem(Struct, frozen=True, kw_only=True):
    """One parsed item of the conversation."""

    message: ChatMessage
    calls: tuple[AskedCall, ...] = ()
    returned: tuple[ReturnedResult, ...] = ()


def derive_call_id(name: str, arguments: object) -> str:
    """Return the name of a call without an id; equal for equal calls."""
    return f"{name}-{hash_json_value(arguments or {}).hex()[:16]}"


class UnnamedCallReader:
    """Reads requests in order: a result belongs to an earlier call."""

    def __init__(
        self,
        key: str,
        item: Callable[[bytes], CallItem | None],
        around: Callable[[bytes], tuple[ChatMessage, ...]],
    ) -> None:
        self._reader = IncrementalListReader(key, item, around)
        self._folds = ConversationFolds(_CallFold)

    def __call__(self, body: bytes) -> ModelRequest:
        """Read a request body; empty if it is invalid."""
        try:
            parsed = self._reader.read(body)
        except ValueError:
            return ModelRequest()
        return self._folds.read(parsed, parsed.rest)


class _CallFold(ConversationFold[CallItem]):
    """A result belongs to one of the calls of the last turn of the model."""

    _waiting: tuple[AskedCall, ...] = ()

    def __init__(self, leading: Sequence[ChatMessage] = ()) -> None:
        super().__init__(leading)
        self._last_role = leading[-1].role if leading else None

    def add_item(self, item: CallItem, start: int, stop: int) -> None:
        self.add_message(item.message)
        if item.message.role != "assistant":
            waiting = list(self._waiting)
            for each in item.returned:
                self.add_result(_match_result(each, waiting, start))
            self._waiting = tuple(waiting)
        elif self._last_role in (None, "assistant"):
            self._waiting += item.calls
        else:
            self._waiting = item.calls
        self._last_role = item.message.role


def _match_result(returned: ReturnedResult, waiting: list[AskedCall], start: int) -> ToolResult:
    call = _find_call(returned, waiting)
    if call is not None:
        waiting.remove(call)
    return ToolResult(
        call_id=returned.id or returned.name if call is None else call.known_by,
        text=returned.text,
        start=start + returned.start,
        stop=start + returned.stop,
        is_error=returned.is_error,
        media=returned.media,
    )


def _find_call(returned: ReturnedResult, waiting: list[AskedCall]) -> AskedCall | None:
    same_id = (call for call in waiting if call.id and call.id == returned.id)
    same_name = (call for call in waiting if call.name == returned.name)
    any_call = iter(() if returned.name else waiting)
    return next(same_id, None) or next(same_name, None) or next(any_call, None)
