"""Ids that tell results apart, where ids on the wire are reused, equal or missing.

The nth result of an id is that of the nth call with it (see `ConversationTracker`): the later ones
of an id are `id#2` etc.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import replace

from traces.dialects.types import ToolResult


class ResultNumbers:
    """The ids of the results so far."""

    def __init__(self, before: Iterable[str] = ()) -> None:
        self._seen = Counter[str]()
        for id in before:
            self._seen[self._strip_number(id)] += 1

    def copy(self) -> "ResultNumbers":
        """Return the same ids, to which others are added apart from these."""
        copied = ResultNumbers()
        copied._seen = self._seen.copy()
        return copied

    def number(self, result: ToolResult) -> ToolResult:
        """Add a result; return it with an id that no earlier one has."""
        id = self._strip_number(result.call_id)
        self._seen[id] += 1
        name = id if self._seen[id] == 1 else f"{id}#{self._seen[id]}"
        return result if name == result.call_id else replace(result, call_id=name)

    def _strip_number(self, id: str) -> str:
        """Return an id without the number of an earlier pass."""
        name, mark, number = id.rpartition("#")
        return name if mark and name in self._seen and number.isdecimal() else id


def number_equal_results(
    results: Sequence[ToolResult], before: Iterable[str] = ()
) -> tuple[ToolResult, ...]:
    """Return the results with ids that tell them apart; `before` are the ids of earlier ones."""
    return tuple(map(ResultNumbers(before).number, results))


def has_wire_id(result: ToolResult, id: str) -> bool:
    """Whether the result may have this id on the wire, where equal ids have no numbers."""
    name, _, number = result.call_id.rpartition("#")
    return id == result.call_id or (id == name and number.isdecimal())
