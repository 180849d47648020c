"""Finding the recorded answer to a request: exact bytes first, canonical JSON only on a miss.

Exact is a hash of method, URL and body, so the cost does not grow with the recording. The
canonical key (`replay.alike`) forgives spacing, volatile values, secrets and what the rules of
the user name. Headers do not count: auth and user agents differ from one machine to the next.
Among equals the order of the recording holds, by start times: the second time the same thing is
asked, the second answer is given. Where the request of a tool serves a call, what that call was
told comes first (`replay.calls`), so that parallel conversations may come in any order.

A message to an MCP server is known by its gist alone: its id counts what the client happened to
send before, so by its bytes the first of two equal calls could get the answer to the second.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from replay.alike import Alike, blind
from replay.calls import Asker, Served
from replay.rules import Rules
from traces.dialects import lens, mcp
from traces.model import Exchange, Request
from traces.tape import Shelf, digest

type How = Literal["bytes", "meaning", "gist"]
"""What was the same: every byte, what it says, or the gist of an MCP message."""
type Of = Literal["call", "order"]
"""The one of the same call, or the first by start time that is left."""
type _Key = Callable[[Request], bytes | None]

BUILT_IN = Rules()


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A recorded exchange for a request, and why it is this one."""

    exchange: Exchange
    how: How
    of: Of | None = None
    """Which of several that were equal; None where it was the only one."""


def exact(request: Request) -> bytes:
    """The key of a request by its very bytes."""
    return digest(request.method, request.url, request.body)


def alike(request: Request, rules: Rules = BUILT_IN) -> bytes | None:
    """The key of a request by what it says; None where only its very bytes can tell."""
    return Alike(rules)(request)


def meant(request: Request) -> bytes | None:
    """The key of a message to an MCP server by its gist; None for any other request."""
    gist = mcp.gist(request) if lens(request) is None else None
    return None if gist is None else digest(request.method, request.url, blind(gist))


class Index:
    """The exchanges of a recording, each to be used once.

    `served` says of which calls they are; it is asked only where there is a choice.
    """

    def __init__(
        self,
        exchanges: Iterable[Exchange],
        rules: Rules = BUILT_IN,
        served: Callable[[], Mapping[int, Served]] = dict,
    ) -> None:
        self.exchanges, keys = _in_order(exchanges)
        self.names: dict[str, str] = {}
        """Values of the recording, and those of this run that stand for them."""
        self._rules, self._tell_served = rules, served
        self._taken: dict[str, str] = {}
        self._alike: _Key = Alike(rules)
        self._exact: dict[bytes, list[int]] = {}
        self._by: dict[_Key, dict[bytes, list[int]]] = {}
        self._used: set[int] = set()
        self._order: list[int] = []
        """The used ones, in the order of their use."""
        for place, key in enumerate(keys):
            self._exact.setdefault(key, []).append(place)

    def find(
        self,
        request: Request,
        redact: Callable[[Request], Request] = lambda request: request,
        asker: Asker | None = None,
    ) -> Match | None:
        """The next unused exchange that fits; None where there is none (left).

        `redact` makes of a request what a tape would say of it. What stands on the tape byte for
        byte is found without: there is nothing in it that a tape would not say. `asker` is known
        of the request of a tool.
        """
        if meant(request) is None:
            found = self._next(self._exact, exact(request), request, "bytes", asker)
            if found is not None:
                return found
        clean, found = redact(request), None
        if changed := (clean.url, clean.body) != (request.url, request.body):
            request = clean
        if (key := meant(request)) is not None:
            return self._next(self._places(meant), key, request, "gist", asker)
        if changed:
            found = self._next(self._exact, exact(request), request, "bytes", asker)
        if found is None and (key := self._alike(request)) is not None:
            found = self._next(self._places(self._alike), key, request, "meaning", asker)
        return found

    def unused(self) -> tuple[Exchange, ...]:
        """The exchanges that nothing has asked for yet."""
        return tuple(x for place, x in enumerate(self.exchanges) if place not in self._used)

    def spent(self, request: Request, count: int) -> Exchange | None:
        """The latest of so many given exchanges that asks the same; None where there is none."""
        key = self.meaning(request)
        latest = (self.exchanges[place] for place in reversed(self._order[-count:]))
        same = (x for x in latest if x.request.url == request.url)
        return next((x for x in same if self.meaning(x.request) == key), None)

    def meaning(self, request: Request) -> bytes:
        """What requests share that matching cannot tell apart."""
        return meant(request) or self._alike(request) or exact(request)

    def near(self, count: int) -> tuple[Exchange, ...]:
        """So many of the unused exchanges, those nearest to the one that was asked for last."""
        places = [n for n in range(len(self.exchanges)) if n not in self._used]
        last = self._order[-1] if self._order else 0
        places.sort(key=lambda place: abs(place - last))
        return tuple(self.exchanges[place] for place in places[:count])

    def _next(
        self,
        by: dict[bytes, list[int]],
        key: bytes,
        request: Request,
        how: How,
        asker: Asker | None,
    ) -> Match | None:
        places = by.get(key, [])
        while places and places[0] in self._used:
            del places[0]
        equals = len(places) > 1
        for place in self._in_turn(places, asker):
            if place not in self._used and self._named(self.exchanges[place].request, request):
                self._used.add(place)
                self._order.append(place)
                return Match(
                    exchange=self.exchanges[place], how=how, of=self._of(place, asker, equals)
                )
        return None

    def _of(self, place: int, asker: Asker | None, equals: bool) -> Of | None:
        if not equals:
            return None
        own = asker is not None and asker.call is not None and self._served[0][place] == asker.call
        return "call" if own else "order"

    def _in_turn(self, places: list[int], asker: Asker | None) -> Iterable[int]:
        """Equals in the order in which this asker is to have them."""
        if asker is None or not (len(places) > 1 or "_served" in self.__dict__):
            return places
        return self._own_first(places, asker)

    def _own_first(self, places: list[int], asker: Asker) -> Iterator[int]:
        served, calls = self._served
        own = calls.get(asker.call, [])
        while own and own[0] in self._used:
            del own[0]
        for place in own:
            at = bisect_left(places, place)
            if places[at : at + 1] == [place]:
                yield place
        for expected in (True, False):
            for place in places:
                call = served[place]
                if asker.expects(call) is expected and asker.may_have(call):
                    yield place

    @cached_property
    def _served(self) -> tuple[list[Served | None], dict[Served | None, list[int]]]:
        """The call of each place, and the places of each call."""
        by_seq, own = self._tell_served(), dict[Served | None, list[int]]()
        served = [by_seq.get(exchange.seq) for exchange in self.exchanges]
        for place, call in enumerate(served):
            if call is not None:
                own.setdefault(call, []).append(place)
        return served, own

    def _named(self, recorded: Request, asked: Request) -> bool:
        """True, and remembered, where each value stands for the one it has always stood for."""
        if not self._rules.maps:
            return True
        pairs = self._rules.pairs(recorded, asked)
        names, taken = dict(pairs), {b: a for a, b in pairs}
        given, held = self.names, self._taken
        if any(given.get(a, names[a]) != b or held.get(b, taken[b]) != a for a, b in pairs):
            return False
        self.names |= names
        self._taken |= taken
        return True

    def _places(self, key_of: _Key) -> dict[bytes, list[int]]:
        if key_of not in self._by:
            places = self._by[key_of] = {}
            for place, exchange in enumerate(self.exchanges):
                if (key := key_of(exchange.request)) is not None:
                    places.setdefault(key, []).append(place)
        return self._by[key_of]


def _in_order(exchanges: Iterable[Exchange]) -> tuple[Sequence[Exchange], Iterable[bytes]]:
    """The exchanges by start time, with their exact keys; a shelf knows both without reading."""
    if isinstance(exchanges, Shelf):
        return exchanges, exchanges.keys()
    ordered = tuple(sorted(exchanges, key=lambda exchange: exchange.started))
    return ordered, (exact(exchange.request) for exchange in ordered)
