"""Shared by the dialects: read requests with one list of messages, each message once."""

from collections.abc import Callable
from copy import replace
from typing import NamedTuple

from msgspec import Struct

from traces.bodies.incremental_json import IncrementalListReader
from traces.dialects import json_access
from traces.dialects.conversation_fold import ConversationFold, ConversationFolds
from traces.dialects.types import ChatMessage, ConversationLink, ModelRequest, ToolResult
from traces.shared_sequence import SharedSequence

type JsonObject = dict[str, object]


class ItemResult(NamedTuple):
    """A tool result in an item."""

    call_id: str
    text: str
    is_error: bool | None = None
    media: tuple[str, ...] = ()


class RequestItem(Struct, frozen=True, kw_only=True):
    """One parsed message, or conversation item."""

    message: ChatMessage
    results: tuple[ItemResult, ...] = ()


class RequestContext(Struct, frozen=True, kw_only=True):
    """Data outside the list: messages that precede it, and the link to stored conversations."""

    messages: tuple[ChatMessage, ...] = ()
    state: ConversationLink = ConversationLink()


class _RequestFold(ConversationFold[RequestItem]):
    """Each item is a message, and may hold results."""

    def add_item(self, item: RequestItem, start: int, stop: int) -> None:
        self.add_message(item.message)
        for each in item.results:
            self.add_result(ToolResult(**each._asdict(), start=start, stop=stop))


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
        self._folds = ConversationFolds(_RequestFold)
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
        request = self._folds.read(parsed, parsed.rest.messages)
        state = parsed.rest.state
        return request if state is _NOTHING.state else replace(request, state=state)

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
        return ModelRequest(
            messages=SharedSequence([*around.messages, *messages]), state=around.state
        )

    def _read_item(self, text: bytes) -> RequestItem | None:
        value = json_access.parse_json_text(text)
        return self._item(value) if isinstance(value, dict) else None

    def _read_context(self, text: bytes) -> RequestContext:
        return self._around(json_access.to_json_object(json_access.parse_json_text(text)))
