"""Conversations that a responses provider stores, for requests with a previous response id.

Over HTTP they are known to every client, over a WebSocket on the same connection only, and there
even if the request sets `store: false`.
"""

from collections.abc import Sequence

from scenarios.practice.tools.json_schema import Json, JsonRow

MAX_CONVERSATIONS = 1000
"""Number of stored conversations; beyond it the oldest is dropped."""


class StoredResponses:
    """Input and output items of each conversation, keyed by the id of its last response."""

    def __init__(self) -> None:
        self._items: dict[str, tuple[Json, ...]] = {}

    def complete_request(self, body: JsonRow) -> JsonRow:
        """Return the request with all earlier items. Raises LookupError if the id is unknown."""
        previous = body.get("previous_response_id")
        if previous is None:
            return body
        if not isinstance(previous, str) or previous not in self._items:
            raise LookupError(f"Previous response with id '{previous}' not found.")
        return {**body, "input": [*self._items[previous], *_get_input_items(body)]}

    def store_response(self, id: str, body: JsonRow, output: Sequence[Json]) -> None:
        """Store a complete request and its output."""
        self._items[id] = (*_get_input_items(body), *output)
        if len(self._items) > MAX_CONVERSATIONS:
            del self._items[next(iter(self._items))]


def _get_input_items(body: JsonRow) -> list[Json]:
    items = body.get("input")
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    return items if isinstance(items, list) else []
