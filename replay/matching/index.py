"""Find the recorded answer to a request: by exact bytes first, by canonical JSON only on a miss.

The exact key is a hash of method, URL and body, so the cost does not grow with the recording. The
canonical key (`replay.matching.canonical_key`) ignores spacing, volatile values and the parts that
the user's rules name. Of the exchanges with the same key, those are excluded whose header requests
something else (`replay.matching.headers`), that have another credential of the recording
(`replay.matching.credentials`), or a generated value that occurs elsewhere in the recording. Equal
exchanges are used in recorded order, by start time: the second equal request gets the second
answer. One whose header is the same comes before one whose header is equivalent. If a tool's
request serves a call, the answers recorded for that call come first
(`replay.matching.equal_exchanges`), so that parallel conversations may interleave in any order.

What the client chose for itself may have changed since: ids that it draws, and numbers of
concurrent things. All requests of a run share one renaming (`replay.matching.client_values`); a
request that fits no recorded one is looked up once more with the recorded values.

A message to an MCP server is matched by its gist alone: its id counts the client's previous
messages, so by its bytes the first of two equal calls could get the answer to the second.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import replace
from functools import partial
from typing import Literal

from msgspec import Struct

from replay.matching.canonical_key import CanonicalKeys, MatchKey
from replay.matching.chosen_ports import ChosenPorts, rename_address
from replay.matching.client_values import (
    ClientValues,
    ValuePair,
    find_labels,
    keep_ids,
    strip_prefix,
)
from replay.matching.credentials import RecordedCredentials
from replay.matching.equal_exchanges import EqualExchanges, MatchChoice, Sameness
from replay.matching.forged_placeholders import ForgedPlaceholders
from replay.matching.headers import hash_head
from replay.matching.request_comparison import HeaderPolicy, RequestComparison, RequestRedactor
from replay.matching.rules import MatchRules
from replay.matching.swapped_labels import LabelGroups, find_swapped_labels, read_label_groups
from replay.matching.tool_calls import ServedCall, ToolCallContext
from traces.bodies.content_encoding import decode_content_or_raw
from traces.conversation.derived_steps import find_answer_end
from traces.conversation.volatile_fields import VolatileValue
from traces.dialects import find_dialect, mcp
from traces.model import Exchange, Request
from traces.redaction.fingerprints import RedactionRecord
from traces.tape.random_access import LazyExchanges
from traces.tape.table_of_contents import hash_request_parts

type MatchKind = Literal["bytes", "meaning", "gist"]
"""Which parts were equal: all bytes, the canonical form, or the gist of an MCP message."""
type _KeyFunction = Callable[[Request], MatchKey | None]

BUILT_IN_RULES = MatchRules()
MAX_SWAP_SEARCHES = 20
"""How many requests that fit nothing are searched for swapped labels; the run is lost by then."""
MAX_SWAP_CANDIDATES = 64
"""How many recorded requests are compared with each."""
MAX_RIVALS = 64
"""Of equal requests, how many before and after one may have been under way at once with it."""


def _keep_unredacted(request: Request) -> Request:
    return request


class RequestMatch(Struct, frozen=True, kw_only=True):
    """A recorded exchange for a request, and the reason it was chosen."""

    exchange: Exchange
    place: int
    """Its index among the exchanges of the recording."""
    kind: MatchKind
    choice: MatchChoice | None = None
    """How it was chosen among several equal exchanges; None if it was the only one."""
    renamed: tuple[ValuePair, ...] = ()
    """Values of the client that stand for recorded ones from this request on."""


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
    drawn = list[str]()
    message = mcp.to_canonical_message(
        request, any_client=policy == "none", new_calls=policy == "new calls", drawn=drawn
    )
    if message is None:
        return None
    values = (VolatileValue(0, n, 0, value) for n, value in enumerate(drawn))
    return MatchKey(hash_request_parts(request.method, request.url, message), tuple(values))


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
        self.values = ClientValues()
        """Recorded values of the client and those of this run that stand for them."""
        self.conflict: str | None = None
        """Why the last request did not match although only values of the client differ."""
        self._rules = rules
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
        self._alike: _KeyFunction = CanonicalKeys(rules, redactions)
        self._gist: _KeyFunction = partial(compute_gist_key, policy=policy)
        self._key_functions: dict[MatchKind, _KeyFunction] = {
            "gist": self._gist,
            "meaning": self._alike,
        }
        self._chosen_ports = ChosenPorts(self.exchanges)
        self._by: dict[MatchKind, dict[bytes, list[int]]] = {"bytes": {}}
        self._drawn: dict[MatchKind, dict[int, tuple[VolatileValue, ...]]] = {"bytes": {}}
        self._known_ids: dict[MatchKind, frozenset[str]] = {}
        """The ids that the recording contains as generated values."""
        self._groups: dict[bytes, tuple[int, ...]] = {}
        """All places of a key that several exchanges have."""
        self._swap_searches = 0
        self._used: set[int] = set()
        self._equals = EqualExchanges(self.exchanges, served, self._used)
        self._order: list[int] = []
        """The used exchanges, in the order of their use."""
        for place, key in enumerate(keys):
            self._by["bytes"].setdefault(key, []).append(place)

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
        self.conflict = None
        if self._forged.has_forged_placeholder(request):
            return None
        pair = self._chosen_ports.find_pair(request, self.values.names)
        if pair is None:
            return self._find_named(request, redact, asker)
        match = self._find_named(rename_address(request, pair), redact, asker)
        if match is None or not self.values.find_new((pair,)):
            return match
        self.values.add((pair,))
        return replace(match, renamed=(pair, *match.renamed))

    def _find_named(
        self, request: Request, redact: RequestRedactor, asker: ToolCallContext | None
    ) -> RequestMatch | None:
        """Find a request that has the recorded addresses of the agent's servers."""
        lookup, match = _RequestLookup(request, redact, asker, request), None
        if self._gist(request) is None and (match := self._find_bytes(lookup)) is not None:
            return match
        redacted = redact(request)
        is_changed = (redacted.url, redacted.body) != (request.url, request.body)
        if is_changed:
            lookup = _RequestLookup(redacted, _keep_unredacted, asker, redacted)
        match = self._find_equal(lookup, has_new_bytes=is_changed)
        if (
            match is None
            and self.conflict is None
            and (named := self.values.to_recorded(redacted)) is not redacted
        ):
            match = self._find_equal(replace(lookup, request=named), has_new_bytes=True)
        if match is None and self.conflict is None:
            match = self._find_swapped(lookup)
        return match

    def _find_bytes(self, asked: "_RequestLookup") -> RequestMatch | None:
        key = MatchKey(compute_exact_key(asked.request))
        return self._take_next_match(key, asked, "bytes")

    def _find_equal(self, asked: "_RequestLookup", *, has_new_bytes: bool) -> RequestMatch | None:
        if (key := self._gist(asked.request)) is not None:
            return self._take_next_match(key, asked, "gist")
        match = self._find_bytes(asked) if has_new_bytes else None
        if match is None and (key := self._alike(asked.request)) is not None:
            match = self._take_next_match(key, asked, "meaning")
        return match

    def _find_swapped(self, asked: "_RequestLookup") -> RequestMatch | None:
        """Find a request that is equal up to labels of parallel calls that changed places."""
        groups = read_label_groups(asked.request)
        if not groups or self._swap_searches >= MAX_SWAP_SEARCHES:
            return None
        self._swap_searches += 1
        found = self._find_swaps(asked.request, groups)
        if len(found) != 1:
            self.conflict = "its numbers of parallel calls fit two requests" if found else None
            return None
        ((pairs, wider),) = found.items()
        named = replace(asked, request=wider.to_recorded(asked.request))
        match = self._find_equal(named, has_new_bytes=True)
        if match is None:
            return None
        self.values, self._swap_searches = wider, 0
        return replace(match, renamed=(*pairs, *match.renamed))

    def _find_swaps(
        self, request: Request, groups: LabelGroups
    ) -> dict[tuple[ValuePair, ...], ClientValues]:
        """Return the labels that changed places, with the renaming that makes a request equal."""
        found = dict[tuple[ValuePair, ...], ClientValues]()
        for exchange in self.list_nearest_unused(MAX_SWAP_CANDIDATES):
            was = exchange.request
            pairs = find_swapped_labels(read_label_groups(was), groups)
            wider = self.values.with_labels(pairs) if pairs and was.url == request.url else None
            if wider is None:
                continue
            is_equal = self.get_matching_key(was) == self.get_matching_key(
                wider.to_recorded(request)
            )
            if is_equal and not self._were_given(exchange, pairs):
                found[pairs] = wider
        return found

    def _were_given(self, near: Exchange, pairs: Iterable[ValuePair]) -> bool:
        """Return whether an earlier answer has one of the labels: the client did not choose it."""
        earlier = (each.response for each in self.exchanges if each.started < near.started)
        bodies = (decode_content_or_raw(each.headers, each.body) for each in earlier if each)
        given = {label for body in bodies for label in find_labels(body.decode("latin-1"))}
        return any(was in given for was, _ in pairs)

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
        self, key: MatchKey, asked: "_RequestLookup", how: MatchKind
    ) -> RequestMatch | None:
        places = self._get_places(how).get(key.key, [])
        while places and places[0] in self._used:
            del places[0]
        has_equals, asker = len(places) > 1, asked.asker
        same: Sequence[list[int]] = ()
        if has_equals:
            self._groups.setdefault(key.key, tuple(places))
            head = asked.redact(Request(method="", url="", headers=asked.request.headers))
            wanted = _find_sameness(replace(asked.request, headers=head.headers), how, key.drawn)
            same = self._equals.find_same(
                (how, key.key), places, wanted, lambda place: self._find_sameness(place, how)
            )
        for place in self._equals.order(places, asker, same):
            if place in self._used or (pairs := self._compare(place, key, asked, how)) is None:
                continue
            if (pairs := self._choose_names(place, pairs, key, asked, how)) is None:
                return None
            self.values.add(pairs)
            self._used.add(place)
            self._order.append(place)
            return RequestMatch(
                exchange=self.exchanges[place],
                place=place,
                kind=how,
                choice=self._equals.get_choice(place, asker) if has_equals else None,
                renamed=tuple(pair for pair in pairs if pair[0] != pair[1]),
            )
        return None

    def _find_sameness(self, position: int, how: MatchKind) -> Sameness:
        drawn = self._drawn[how].get(position, ())
        return _find_sameness(self.exchanges[position].request, how, drawn)

    def _compare(
        self, position: int, key: MatchKey, asked: "_RequestLookup", how: MatchKind
    ) -> tuple[ValuePair, ...] | None:
        """Return the values of the client that differ; None if anything else does."""
        recorded = self.exchanges[position]
        if self.comparison.find_differing_fields(recorded, asked.request, asked.redact):
            return None
        drawn = self._drawn[how][position] if key.drawn else ()
        if key.drawn and not self.comparison.is_drawn_anew(drawn, key.drawn, self._known_ids[how]):
            return None
        mapped = self._rules.find_mapped_pairs(recorded.request, asked.said)
        ids = [
            *((was.value, now.value) for was, now in zip(drawn, key.drawn, strict=True)),
            *self.comparison.find_drawn_pairs(recorded, asked.said, asked.redact),
        ]
        pairs = tuple(dict.fromkeys((*mapped, *keep_ids(ids))))
        if (conflict := self.values.find_conflict(pairs)) is not None:
            self.conflict = f"{conflict[1]} or {conflict[0]} stands for another value already"
            return None
        return pairs

    def _choose_names(
        self,
        position: int,
        pairs: Iterable[ValuePair],
        key: MatchKey,
        asked: "_RequestLookup",
        how: MatchKind,
    ) -> tuple[ValuePair, ...] | None:
        """Return the pairs that this match proves; None if another exchange fits as well.

        Two agents of one process may begin with equal requests at once. If they got the same
        answer, their later requests show which is which; else nothing does.
        """
        proved = self.values.find_new(pairs)
        group = self._groups.get(key.key, ()) if proved else ()
        at = bisect_left(group, position)
        for rival in group[max(0, at - MAX_RIVALS) : at + MAX_RIVALS]:
            if rival == position or not self._overlap(position, rival):
                continue
            is_alike = self._answer_alike(position, rival)
            if rival in self._used and not is_alike:
                continue
            other_of = {now: was for was, now in self._compare(rival, key, asked, how) or ()}
            for was, now in proved:
                other = other_of.get(now, was)
                if other == was or not (self._recurs(was) or self._recurs(other)):
                    continue
                if not is_alike:
                    self.conflict = f"{now} may stand for {was} or {other}, of parallel requests"
                    return None
                proved = tuple(pair for pair in proved if pair != (was, now))
        return proved

    def _overlap(self, *places: int) -> bool:
        """Return whether two exchanges were under way at once."""
        one, two = (self.exchanges[place] for place in places)
        return one.started < find_answer_end(two) and two.started < find_answer_end(one)

    def _answer_alike(self, *places: int) -> bool:
        answers = [self.exchanges[place].response for place in places]
        one, two = ((each.status, each.body) if each else None for each in answers)
        return one == two

    def _recurs(self, value: str) -> bool:
        """Return whether several recorded requests have an id."""
        ids = (values.values() for values in self._drawn.values())
        bodies = (each for values in ids for each in values)
        count = sum(any(strip_prefix(v.value) == value for v in each) for each in bodies)
        return self.comparison.count_drawn_value(value) + count > 1

    def _get_places(self, how: MatchKind) -> dict[bytes, list[int]]:
        if how not in self._by:
            key_of, places = self._key_functions[how], self._by.setdefault(how, {})
            drawn = dict[int, tuple[VolatileValue, ...]]()
            for place, exchange in enumerate(self.exchanges):
                if (match_key := key_of(exchange.request)) is not None:
                    places.setdefault(match_key.key, []).append(place)
                    drawn[place] = match_key.drawn
            self._drawn[how] = drawn
            self._known_ids[how] = frozenset(
                each.value for values in drawn.values() for each in values if each.is_identity
            )
        return self._by[how]


class _RequestLookup(Struct, frozen=True):
    """A request to look up, the function that redacts its header as on a tape, and its asker."""

    request: Request
    redact: RequestRedactor
    asker: ToolCallContext | None
    said: Request
    """The request with the values of this run."""


def _find_sameness(request: Request, how: MatchKind, drawn: tuple[VolatileValue, ...]) -> Sameness:
    body = mcp.to_uncounted_message(request) if how == "gist" else tuple(x.value for x in drawn)
    return Sameness(hash_head(request), body)


def _order_with_keys(exchanges: Iterable[Exchange]) -> tuple[Sequence[Exchange], Iterable[bytes]]:
    """Return the exchanges by start time, with exact keys; a lazy list has both unread."""
    if isinstance(exchanges, LazyExchanges):
        return exchanges, exchanges.read_keys()
    ordered = tuple(sorted(exchanges, key=lambda exchange: exchange.started))
    return ordered, (compute_exact_key(exchange.request) for exchange in ordered)
