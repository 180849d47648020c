"""Shared by the dialects: read requests with one list of messages, each message once."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from traces.bodies.incremental_json import IncrementalListReader
from traces.dialects import json_access
from traces.dialects.types import ChatMessage, ConversationLink, ModelRequest, ToolResult
from traces.lazy_dataclass import dataclass

type JsonObject = dict[str, object]


class ItemResult(NamedTuple):
    """A tool result in an item."""

    call_id: str
    text: str
    is_error: bool | None = None
    media: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestItem:
    """One parsed message, or conversation item."""

    message: ChatMessage
    results: tuple[ItemResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """Data outside the list: messages that precede it, and the link to stored conversations."""

    messages: tuple[ChatMessage, ...] = ()
    state: ConversationLink = ConversationLink()


_NOTHING = RequestContext()
_SMALL = 1 << 13
"""Size in bytes up to which parsing a body is faster than comparing it with earlier ones."""


class RequestReader:
    """Reads the requests of one dialect; `key` names the list."""

    def __init__(
        self,
        key: str,
        item: Callable[[JsonObject], RequestItem],
        around: Callable[[JsonObject], RequestContext] = lambda _: _NOTHING,
    ) -> None:
        self._key, self._item, self._around = key, item, around
        self._reader = IncrementalListReader(key, self._read_item, self._read_context)
        self._has_results = False

    def __call__(self, body: bytes) -> ModelRequest:
        """Read a request body; empty if it is invalid."""
        is_read_at_once = len(body) <= _SMALL and not self._has_results
        if is_read_at_once and (request := self._read_small_body(body)) is not None:
            return request
        try:
            parsed = self._reader.read(body)
        except ValueError:
            return ModelRequest()
        messages = [item.message for item in parsed.items if item is not None]
        results = [
            ToolResult(**each._asdict(), start=start, stop=stop)
            for item, start, stop in zip(parsed.items, parsed.starts, parsed.stops, strict=True)
            if item is not None
            for each in item.results
        ]
        return ModelRequest(
            messages=(*parsed.rest.messages, *messages),
            results=number_equal_results(results),
            state=parsed.rest.state,
        )

    def _read_small_body(self, body: bytes) -> ModelRequest | None:
        """Parse a body in one step; None if it is not such JSON, or has results.

        Results need offsets, which this does not compute; later requests have them too.
        """
        value = json_access.read_body_object(body)
        if not isinstance(list_items := value.get(self._key), list):
            return None
        items = [self._item(each) for each in list_items if isinstance(each, dict)]
        self._has_results = any([item.results for item in items])
        if self._has_results:
            return None
        around = self._around({**value, self._key: []})
        messages = [item.message for item in items]
        return ModelRequest(messages=(*around.messages, *messages), state=around.state)

    def _read_item(self, text: bytes) -> RequestItem | None:
        value = json_access.parse_json_text(text)
        return self._item(value) if isinstance(value, dict) else None

    def _read_context(self, text: bytes) -> RequestContext:
        return self._around(json_access.to_json_object(json_access.parse_json_text(text)))


def number_equal_results(
    results: Sequence[ToolResult], before: Iterable[str] = ()
) -> tuple[ToolResult, ...]:
    """Return the results with ids that tell them apart: the later ones of an id are `id#2` etc.

    Ids may be reused, equal or missing; the nth result of an id is that of the nth call with it
    (see `ConversationTracker`). `before` are the ids of earlier results.
    """
    seen, numbered = Counter[str](), list[ToolResult]()
    for id in before:
        seen[_strip_number(id, seen)] += 1
    for result in results:
        id = _strip_number(result.call_id, seen)
        seen[id] += 1
        name = id if seen[id] == 1 else f"{id}#{seen[id]}"
        numbered.append(result if name == result.call_id else replace(result, call_id=name))
    return tuple(numbered)


def has_wire_id(result: ToolResult, id: str) -> bool:
    """Whether the result may have this id on the wire, where equal ids have no numbers."""
    name, _, number = result.call_id.rpartition("#")
    return id == result.call_id or (id == name and number.isdecimal())


def _strip_number(id: str, seen: Counter[str]) -> str:
    """Return an id without the number of an earlier pass."""
    name, mark, number = id.rpartition("#")
    return name if mark and name in seen and number.isdecimal() else id
