"""Find the recorded answer to a request: by exact bytes first, by canonical JSON only on a miss.

The exact key is a hash of method, URL and body, so the cost does not grow with the recording. The
canonical key (`replay.matching.canonical_key`) ignores spacing, volatile values and the parts that
the user's rules name. Of the exchanges with the same key, those are excluded whose header requests
something else (`replay.matching.headers`), that have another credential of the recording
(`replay.matching.credentials`), or a generated value that occurs elsewhere in the recording. Equal
exchanges are used in recorded order, by start time: the second equal request gets the second
answer. One whose header is the same comes before one whose header is equivalent. If a tool's
request serves a call, the answers recorded for that call come first
(`replay.matching.tool_calls`), so that parallel conversations may interleave in any order.

A message to an MCP server is matched by its gist alone: its id counts the client's previous
messages, so by its bytes the first of two equal calls could get the answer to the second.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Literal

from replay.matching.canonical_key import CanonicalKeys, MatchKey
from replay.matching.credentials import RecordedCredentials
from replay.matching.forged_placeholders import ForgedPlaceholders
from replay.matching.headers import hash_head
from replay.matching.request_comparison import HeaderPolicy, RequestComparison, RequestRedactor
from replay.matching.rules import MatchRules
from replay.matching.tool_calls import ServedCall, ToolCallContext
from traces.conversation.volatile_fields import VolatileValue
from traces.dialects import find_dialect, mcp
from traces.lazy_dataclass import dataclass
from traces.model import Exchange, Request
from traces.redaction.redactor import RedactionRecord
from traces.tape import LazyExchanges, hash_request_parts

type MatchKind = Literal["bytes", "meaning", "gist"]
"""Which parts were equal: all bytes, the canonical form, or the gist of an MCP message."""
type MatchChoice = Literal["call", "order"]
"""The exchange of the same call, or the first unused one by start time."""
type _KeyFunction = Callable[[Request], MatchKey | None]

BUILT_IN_RULES = MatchRules()


def _keep_unredacted(request: Request) -> Request:
    return request


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMatch:
    """A recorded exchange for a request, and the reason it was chosen."""

    exchange: Exchange
    kind: MatchKind
    choice: MatchChoice | None = None
    """How it was chosen among several equal exchanges; None if it was the only one."""


def compute_exact_key(request: Request) -> bytes:
    """Return the key of a request's exact bytes."""
    return hash_request_parts(request.method, request.url, request.body)


def compute_canonical_key(request: Request, rules: MatchRules = BUILT_IN_RULES) -> bytes | None:
    """Return the canonical key of a request; None if only its exact bytes identify it."""
    match_key = CanonicalKeys(rules)(request)
    return None if match_key is None else match_key.key


def compute_gist_key(request: Request, policy: HeaderPolicy = "all") -> MatchKey | None:
    """Return the key of an MCP message by its gist; None for any other request."""
    if find_dialect(request) is not None:
        return None
    message = mcp.to_canonical_message(
        request, any_client=policy == "none", new_calls=policy == "new calls"
    )
    return (
        None
        if message is None
        else MatchKey(hash_request_parts(request.method, request.url, message))
    )


class RecordingIndex:
    """The exchanges of a recording, each to be used once.

    `served` returns the calls they serve; it is called only if there is a choice.
    """

    def __init__(
        self,
        exchanges: Iterable[Exchange],
        rules: MatchRules = BUILT_IN_RULES,
        served: Callable[[], Mapping[int, ServedCall]] = dict,
        *,
        redactions: Iterable[RedactionRecord] | None = (),
        policy: HeaderPolicy = "all",
        given: Iterable[str] = (),
        recorded_at: float = 0.0,
        key: bytes | None = None,
    ) -> None:
        """`redactions` are those of the tape, None for one of an earlier version; `given` are texts
        that the agent received in addition to the answers; `key` is the key of the user who
        replays, None for that of the one who recorded.
        """
        self.exchanges, keys = _order_with_keys(exchanges)
        self.names: dict[str, str] = {}
        """Recorded values and the values of this run that replace them."""
        self._rules, self._tell_served = rules, served
        self._forged = ForgedPlaceholders(self.exchanges, redactions or (), given)
        credentials = RecordedCredentials(
            lambda: (each.request for each in self.exchanges),
            redactions,
            lambda: {tag.decode() for tag in self._forged.answer_tags},
            key,
        )
        self.comparison = RequestComparison(
            self.exchanges, rules, redactions, policy, recorded_at, credentials
        )
        self._taken: dict[str, str] = {}
        self._alike: _KeyFunction = CanonicalKeys(rules, redactions)
        self._gist: _KeyFunction = partial(compute_gist_key, policy=policy)
        self._exact: dict[bytes, list[int]] = {}
        self._by: dict[_KeyFunction, dict[bytes, list[int]]] = {}
        self._drawn: dict[int, tuple[VolatileValue, ...]] = {}
        self._heads: dict[tuple[MatchKind, bytes], dict[int, list[int]]] = {}
        self._used: set[int] = set()
        self._order: list[int] = []
        """The used exchanges, in the order of their use."""
        for place, key in enumerate(keys):
            self._exact.setdefault(key, []).append(place)

    def find(
        self,
        request: Request,
        redact: RequestRedactor = _keep_unredacted,
        asker: ToolCallContext | None = None,
    ) -> RequestMatch | None:
        """Return the next unused exchange that matches; None if there is none left.

        `redact` redacts a request as a tape would. A request with the exact bytes of the tape is
        found without it, since it contains nothing that a tape would redact. `asker` is the context
        of a tool's request.
        """
        if self._forged.has_forged_placeholder(request):
            return None
        lookup = _RequestLookup(request, redact, asker)
        if self._gist(request) is None:
            match = self._take_next_match(
                self._exact, MatchKey(compute_exact_key(request)), lookup, "bytes"
            )
            if match is not None:
                return match
        redacted, match = redact(request), None
        if changed := (redacted.url, redacted.body) != (request.url, request.body):
            lookup = _RequestLookup(redacted, _keep_unredacted, asker)
        if (key := self._gist(redacted)) is not None:
            return self._take_next_match(self._get_places(self._gist), key, lookup, "gist")
        if changed:
            match = self._take_next_match(
                self._exact, MatchKey(compute_exact_key(redacted)), lookup, "bytes"
            )
        if match is None and (key := self._alike(redacted)) is not None:
            match = self._take_next_match(self._get_places(self._alike), key, lookup, "meaning")
        return match

    def iter_unused(self) -> Iterator[Exchange]:
        """Yield the exchanges that have not been used yet; each is read when it is yielded."""
        return (
            self.exchanges[place] for place in range(len(self.exchanges)) if place not in self._used
        )

    @property
    def used_count(self) -> int:
        """How many exchanges have been used."""
        return len(self._used)

    @property
    def unused_count(self) -> int:
        """How many exchanges have not been used yet."""
        return len(self.exchanges) - len(self._used)

    def find_used_equal(self, request: Request, count: int) -> Exchange | None:
        """Return the latest of the last `count` used exchanges with an equal request, or None."""
        key = self.get_matching_key(request)
        latest = (self.exchanges[place] for place in reversed(self._order[-count:]))
        candidates = (x for x in latest if x.request.url == request.url)
        return next((x for x in candidates if self.get_matching_key(x.request) == key), None)

    def get_matching_key(self, request: Request) -> bytes:
        """Return a key shared by requests that differ only in their headers."""
        match_key = self._gist(request) or self._alike(request)
        return compute_exact_key(request) if match_key is None else match_key.key

    def list_nearest_unused(self, count: int) -> tuple[Exchange, ...]:
        """Return the `count` unused exchanges nearest to the one used last."""
        places = [n for n in range(len(self.exchanges)) if n not in self._used]
        last = self._order[-1] if self._order else 0
        places.sort(key=lambda place: abs(place - last))
        return tuple(self.exchanges[place] for place in places[:count])

    def _take_next_match(
        self, by: dict[bytes, list[int]], key: MatchKey, asked: "_RequestLookup", how: MatchKind
    ) -> RequestMatch | None:
        places = by.get(key.key, [])
        while places and places[0] in self._used:
            del places[0]
        has_equals, asker = len(places) > 1, asked.asker
        same_head = self._find_same_head(how, key, asked, places) if has_equals else ()
        for place in self._order_for_asker(places, asker, same_head):
            if place not in self._used and self._is_match(place, key, asked):
                self._used.add(place)
                self._order.append(place)
                return RequestMatch(
                    exchange=self.exchanges[place],
                    kind=how,
                    choice=self._get_match_choice(place, asker, has_equals),
                )
        return None

    def _is_match(self, place: int, key: MatchKey, asked: "_RequestLookup") -> bool:
        recorded = self.exchanges[place]
        if self.comparison.find_differing_fields(recorded, asked.request, asked.redact):
            return False
        if key.drawn and not self.comparison.is_drawn_anew(
            self._drawn[place], key.drawn, self._known_ids
        ):
            return False
        return self._try_mapping(recorded.request, asked.request)

    @cached_property
    def _known_ids(self) -> frozenset[str]:
        """The ids that the recording contains as generated values."""
        return frozenset(
            each.value for values in self._drawn.values() for each in values if each.is_identity
        )

    def _get_match_choice(
        self, place: int, asker: ToolCallContext | None, equals: bool
    ) -> MatchChoice | None:
        if not equals:
            return None
        is_own = (
            asker is not None and asker.call is not None and self._served[0][place] == asker.call
        )
        return "call" if is_own else "order"

    def _find_same_head(
        self, how: MatchKind, key: MatchKey, asked: "_RequestLookup", places: list[int]
    ) -> Sequence[int]:
        """Return those of equal exchanges whose header is the same in all that is redacted."""
        heads = self._heads.setdefault((how, key.key), {})
        if not heads:
            for place in places:
                head = hash_head(self.exchanges[place].request)
                heads.setdefault(head, []).append(place)
        request = Request(method="", url="", headers=asked.request.headers)
        found = heads.get(hash_head(asked.redact(request)), [])
        while found and found[0] in self._used:
            del found[0]
        return found

    def _order_for_asker(
        self, places: list[int], asker: ToolCallContext | None, same_head: Sequence[int]
    ) -> Iterable[int]:
        """Return equal exchanges in the order of preference for this asker."""
        if asker is None or not (len(places) > 1 or "_served" in self.__dict__):
            return chain(same_head, places)
        return self._iter_own_first(places, asker, same_head)

    def _iter_own_first(
        self, places: list[int], asker: ToolCallContext, same_head: Sequence[int]
    ) -> Iterator[int]:
        served, calls = self._served
        own_places = calls.get(asker.call, [])
        while own_places and own_places[0] in self._used:
            del own_places[0]
        for place in own_places:
            at = bisect_left(places, place)
            if places[at : at + 1] == [place]:
                yield place
        for expected in (True, False):
            for place in chain(same_head, places):
                call = served[place]
                if asker.expects(call) is expected and asker.may_have(call):
                    yield place

    @cached_property
    def _served(self) -> tuple[list[ServedCall | None], dict[ServedCall | None, list[int]]]:
        """The call at each place, and the places of each call."""
        by_seq, by_call = self._tell_served(), dict[ServedCall | None, list[int]]()
        served = [by_seq.get(exchange.seq) for exchange in self.exchanges]
        for place, call in enumerate(served):
            if call is not None:
                by_call.setdefault(call, []).append(place)
        return served, by_call

    def _try_mapping(self, recorded: Request, asked: Request) -> bool:
        """Accept and record the mapped values if each is consistent with all previous ones."""
        if not self._rules.has_maps:
            return True
        pairs = self._rules.find_mapped_pairs(recorded, asked)
        names, taken = dict(pairs), {b: a for a, b in pairs}
        new_of, old_of = self.names, self._taken
        if any(new_of.get(a, names[a]) != b or old_of.get(b, taken[b]) != a for a, b in pairs):
            return False
        self.names |= names
        self._taken |= taken
        return True

    def _get_places(self, key_of: _KeyFunction) -> dict[bytes, list[int]]:
        if key_of not in self._by:
            places = self._by[key_of] = {}
            for place, exchange in enumerate(self.exchanges):
                if (match_key := key_of(exchange.request)) is not None:
                    places.setdefault(match_key.key, []).append(place)
                    self._drawn[place] = match_key.drawn
        return self._by[key_of]


@dataclass(frozen=True, slots=True)
class _RequestLookup:
    """A request to look up, the function that redacts its header as on a tape, and its asker."""

    request: Request
    redact: RequestRedactor
    asker: ToolCallContext | None


def _order_with_keys(exchanges: Iterable[Exchange]) -> tuple[Sequence[Exchange], Iterable[bytes]]:
    """Return the exchanges by start time, with exact keys; a lazy list has both unread."""
    if isinstance(exchanges, LazyExchanges):
        return exchanges, exchanges.read_keys()
    ordered = tuple(sorted(exchanges, key=lambda exchange: exchange.started))
    return ordered, (compute_exact_key(exchange.request) for exchange in ordered)
