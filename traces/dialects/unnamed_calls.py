"""Shared by the dialects whose calls may have no id on the wire: read requests, name the calls.

Such a call is named after its name and arguments. Its result is the next one with its id, else the
next one of its name, else the next one without a name. Equal names are numbered as equal ids are
(`number_equal_results`).
"""

from collections.abc import Callable

from traces.bodies.canonical_json import hash_json_value
from traces.bodies.incremental_json import IncrementalListReader
from traces.dialects.request_reader import number_equal_results
from traces.dialects.types import ChatMessage, ModelRequest, ToolResult
from traces.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call in an earlier answer, as the client sends it back."""

    id: str | None
    name: str
    known_by: str
    """Its id, or the name derived for it, which is the same for equal calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedResult:
    """A result, and its span in the item of the list that holds it."""

    id: str | None
    name: str
    text: str
    is_error: bool | None
    start: int
    stop: int
    media: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallItem:
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

    def __call__(self, body: bytes) -> ModelRequest:
        """Read a request body; empty if it is invalid."""
        try:
            parsed = self._reader.read(body)
        except ValueError:
            return ModelRequest()
        messages, results = [*parsed.rest], list[ToolResult]()
        waiting = list[AskedCall]()
        for item, start in zip(parsed.items, parsed.starts, strict=True):
            if item is None:
                continue
            messages.append(item.message)
            if item.message.role != "assistant":
                results += (_match_result(each, waiting, start) for each in item.returned)
            elif messages[-2:-1] and messages[-2].role != "assistant":
                waiting = list(item.calls)
            else:
                waiting += item.calls
        return ModelRequest(messages=tuple(messages), results=number_equal_results(results))


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
