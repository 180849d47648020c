"""The conversations that a provider of responses keeps, for who names an answer to go on from.

Over HTTP they are known to everyone, over a WebSocket on the same connection only, and there
also where the request says `store: false`.
"""

from collections.abc import Sequence

from scenarios.practice.schema import Json, Row

MOST = 1000
"""How many conversations are kept; then the oldest is forgotten."""


class Kept:
    """Input and output items of each conversation, by the id of the answer it ended in."""

    def __init__(self) -> None:
        self._items: dict[str, tuple[Json, ...]] = {}

    def whole(self, body: Row) -> Row:
        """The request with all that was said before; LookupError where that is not known."""
        previous = body.get("previous_response_id")
        if previous is None:
            return body
        if not isinstance(previous, str) or previous not in self._items:
            raise LookupError(f"Previous response with id '{previous}' not found.")
        return {**body, "input": [*self._items[previous], *_items(body)]}

    def keep(self, id: str, body: Row, output: Sequence[Json]) -> None:
        """Remember a whole request and what was answered."""
        self._items[id] = (*_items(body), *output)
        if len(self._items) > MOST:
            del self._items[next(iter(self._items))]


def _items(body: Row) -> list[Json]:
    said = body.get("input")
    if isinstance(said, str):
        return [{"role": "user", "content": said}]
    return said if isinstance(said, list) else []
