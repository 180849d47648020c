"""Messages and results of successive requests, each computed from the new items alone."""

from collections.abc import Callable, Sequence
from typing import Self

from traces.bodies.incremental_json import ParsedListBody
from traces.dialects.result_numbers import ResultNumbers
from traces.dialects.types import ChatMessage, ModelRequest, ToolResult
from traces.shared_sequence import SharedSequence

MAX_FOLDS = 32
"""Conversations whose state is kept; more than a reader of lists remembers."""


class ConversationFold[T]:
    """The messages and results of a list of items, in order; a dialect adds its own state."""

    def __init__(self, leading: Sequence[ChatMessage] = ()) -> None:
        """`leading` are messages that precede the list."""
        self.messages, self.results = SharedSequence(leading), SharedSequence[ToolResult]()
        self.count = 0
        """Number of items so far."""
        self.numbers = ResultNumbers()
        self._new_messages, self._new_results = list[ChatMessage](), list[ToolResult]()

    def copy(self) -> Self:
        """Return a fold that continues from here while this one stays."""
        copied = self.__class__.__new__(self.__class__)
        copied.__dict__.update(self.__dict__, numbers=self.numbers.copy())
        copied._new_messages, copied._new_results = [], []
        return copied

    def add_item(self, item: T, start: int, stop: int) -> None:
        """Call `add_message` and `add_result` for the parts of body[start:stop]."""
        raise NotImplementedError

    def add_message(self, message: ChatMessage) -> None:
        """Append a message."""
        self._new_messages.append(message)

    def add_result(self, result: ToolResult) -> None:
        """Append a result, with an id that tells it from earlier ones."""
        self._new_results.append(self.numbers.number(result))

    def advance(self, parsed: ParsedListBody[T | None, object], stop: int) -> None:
        """Add the items up to index `stop`."""
        for at in range(self.count, stop):
            if (item := parsed.items[at]) is not None:
                self.add_item(item, parsed.starts[at], parsed.stops[at])
        self.count = stop
        self.messages = self.messages.plus(self._new_messages)
        self.results = self.results.plus(self._new_results)
        self._new_messages, self._new_results = [], []


class ConversationFolds[T]:
    """The folds of the last requests: of each at its end, and where it left an earlier one."""

    def __init__(self, begin: Callable[[Sequence[ChatMessage]], ConversationFold[T]]) -> None:
        self._begin = begin
        self._known: dict[int, tuple[ConversationFold[T], ConversationFold[T]]] = {}
        self._leading: tuple[ChatMessage, ...] = ()

    def read(
        self,
        parsed: ParsedListBody[T | None, object],
        leading: tuple[ChatMessage, ...] = (),
    ) -> ModelRequest:
        """Return the request with these items."""
        if leading != self._leading:
            self._known, self._leading = {}, leading
        end, left = self._find_folds(parsed)
        end.advance(parsed, len(parsed.items))
        self._known[parsed.version] = end, left
        if len(self._known) > MAX_FOLDS:
            del self._known[next(iter(self._known))]
        return ModelRequest(messages=end.messages, results=end.results)

    def _find_folds(
        self, parsed: ParsedListBody[T | None, object]
    ) -> tuple[ConversationFold[T], ConversationFold[T]]:
        """Return a fold that may be advanced, and one of no more items that stays."""
        known = self._known.get(parsed.earlier)
        if known is None:
            return self._begin(self._leading), self._begin(self._leading)
        end, left = known
        if end.count == parsed.shared:
            del self._known[parsed.earlier]  # nothing else continues a list that grew
            return end, left
        left = left.copy() if left.count <= parsed.shared else self._begin(self._leading)
        left.advance(parsed, parsed.shared)
        return left.copy(), left
