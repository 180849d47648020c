"""What the dialects share: requests with one list of messages, each message read once."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from traces.dialects import wire
from traces.model import Edit
from traces.quick import quick
from traces.reader import Reader
from traces.step import Asked, Message, Result, State

type Value = dict[str, object]
type Put = Callable[[bytes, Result, str], tuple[Edit, ...]]


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What one message, or conversation item, says."""

    message: Message
    results: tuple[tuple[str, str, bool | None], ...] = ()
    """Call id, text and error flag of each result in it."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What stands around them: the messages that come before, and what is said of the whole."""

    messages: tuple[Message, ...] = ()
    state: State = State()


_NOTHING = Around()
_SMALL = 1 << 13
"""Bytes of a body that is parsed sooner than compared with those before it."""


class Reading:
    """Reads the requests of one dialect; `key` names the list."""

    def __init__(
        self,
        key: str,
        item: Callable[[Value], Item],
        around: Callable[[Value], Around] = lambda _: _NOTHING,
    ) -> None:
        self._key, self._item, self._around = key, item, around
        self._reader = Reader(key, self._one, self._rest)

    def __call__(self, body: bytes) -> Asked:
        """What a body says; nothing where it cannot be read."""
        if len(body) <= _SMALL and (asked := self._at_once(body)) is not None:
            return asked
        try:
            read = self._reader.read(body)
        except ValueError:
            return Asked()
        said = [item.message for item in read.items if item is not None]
        results = [
            Result(call_id=call_id, text=text, start=start, stop=stop, is_error=flag)
            for item, start, stop in zip(read.items, read.starts, read.stops, strict=True)
            if item is not None
            for call_id, text, flag in item.results
        ]
        return Asked(
            messages=(*read.rest.messages, *said), results=tuple(results), state=read.rest.state
        )

    def _at_once(self, body: bytes) -> Asked | None:
        """What a body says; None where it is no such JSON, or the places of results are asked."""
        try:
            value = wire.parsed(body)
        except ValueError:
            return None
        if not isinstance(value, dict) or not isinstance(listed := value.get(self._key), list):
            return None
        items = [self._item(each) for each in listed if isinstance(each, dict)]
        if any([item.results for item in items]):
            return None
        value[self._key] = []
        around = self._around(value)
        said = [item.message for item in items]
        return Asked(messages=(*around.messages, *said), state=around.state)

    def _one(self, text: bytes) -> Item | None:
        value = wire.parsed(text)
        return self._item(value) if isinstance(value, dict) else None

    def _rest(self, text: bytes) -> Around:
        return self._around(wire.table(wire.parsed(text)))


def replaced(
    put: Put, body: bytes, results: Iterable[Result], call_id: str, text: str
) -> tuple[Edit, ...]:
    """The edits that put `text` in place of each of these results that is of that call."""
    edits = (
        each for found in results if found.call_id == call_id for each in put(body, found, text)
    )
    return tuple(dict.fromkeys(edits))
