"""Which of several recorded exchanges with equal requests a request is given.

The one of the same call first, if a tool's request serves a call (`replay.matching.tool_calls`),
then one that is the same in what equal requests may differ in, then the next by start time.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

from replay.matching.tool_calls import ServedCall, ToolCallContext
from traces.model import Exchange

type MatchChoice = Literal["call", "order"]
"""The exchange of the same call, or the first unused one by start time."""


class Sameness(NamedTuple):
    """What a request has beside the key that it shares with others."""

    head: int
    """Hash of its header."""
    body: Hashable = None


def _list_parts(same: Sameness) -> tuple[Hashable, ...]:
    return (same, ("body", same.body), ("head", same.head))


class EqualExchanges:
    """The order in which equal exchanges are tried; places are indices in the recording."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        served: Callable[[], Mapping[int, ServedCall]],
        used: Set[int],
    ) -> None:
        """`served` returns the calls that exchanges serve; it is called only for a choice. `used`
        are the places that have been given so far.
        """
        self._exchanges, self._tell_served, self._used = exchanges, served, used
        self._same: dict[tuple[str, bytes], dict[Hashable, list[int]]] = {}

    def order(
        self, places: list[int], asker: ToolCallContext | None, same: Sequence[list[int]]
    ) -> Iterable[int]:
        """Return places in the order of preference for this asker."""
        if asker is None or not (len(places) > 1 or "_served" in self.__dict__):
            return chain(*same, places)
        return self._iter_own_first(places, asker, same)

    def get_choice(self, position: int, asker: ToolCallContext | None) -> MatchChoice:
        """Return how a place was chosen among several."""
        call = asker.call if asker is not None else None
        return "call" if call is not None and self._served[0][position] == call else "order"

    def find_same(
        self,
        group: tuple[str, bytes],
        places: list[int],
        asked: Sameness,
        find_sameness: Callable[[int], Sameness],
    ) -> Sequence[list[int]]:
        """Return those of a group of equals that are the same as a request in more than is needed:

        first in all of it, then in what its body has beside its key, then in its header.
        """
        known = self._same.setdefault(group, {})
        if not known:
            for place in places:
                for part in _list_parts(find_sameness(place)):
                    known.setdefault(part, []).append(place)
        return [self._drop_used(known.get(part, [])) for part in _list_parts(asked)]

    def _drop_used(self, places: list[int]) -> list[int]:
        while places and places[0] in self._used:
            del places[0]
        return places

    def _iter_own_first(
        self, places: list[int], asker: ToolCallContext, same: Sequence[list[int]]
    ) -> Iterator[int]:
        served, calls = self._served
        for place in self._drop_used(calls.get(asker.call, [])):
            at = bisect_left(places, place)
            if places[at : at + 1] == [place]:
                yield place
        for expected in (True, False):
            for place in chain(*same, places):
                call = served[place]
                if asker.expects(call) is expected and asker.may_have(call):
                    yield place

    @cached_property
    def _served(self) -> tuple[list[ServedCall | None], dict[ServedCall | None, list[int]]]:
        """The call at each place, and the places of each call."""
        by_seq, by_call = self._tell_served(), dict[ServedCall | None, list[int]]()
        served = [by_seq.get(exchange.seq) for exchange in self._exchanges]
        for place, call in enumerate(served):
            if call is not None:
                by_call.setdefault(call, []).append(place)
        return served, by_call
