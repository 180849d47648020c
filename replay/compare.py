"""What two requests of the same URL and body may still differ in: header and drawn values."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, partial
from typing import Literal

from replay import credentials, headers
from replay.alike import blinding
from replay.headers import Fields
from replay.rules import Rules
from traces.drawn import is_of_a_call
from traces.kind import kind
from traces.model import Exchange, Headers, Request, header
from traces.redact import Redaction
from traces.volatile import Drawn

type Policy = Literal["all", "new calls", "shared", "none"]
"""Which header fields are compared: all; all but ids of calls, which a live model gives anew;
those that both requests have, where a recording may have lost some; none, where any client may
ask."""
type Redact = Callable[[Request], Request]
type _Head = tuple[Fields, Mapping[str, str]]
"""The fields that count, and the credentials."""


def _as_it_is(request: Request) -> Request:
    return request


class Comparison:
    """Compares requests of this run with those of a recording."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        rules: Rules,
        redactions: Iterable[Redaction] | None,
        policy: Policy = "all",
    ) -> None:
        """`redactions` are those of the tape, None for one of an earlier version."""
        self._exchanges, self._rules, self._policy = exchanges, rules, policy
        self._redactions = {each.tag: each for each in redactions or ()}
        self.blind = blinding(redactions)
        self._fields: dict[tuple[Headers, bool], _Head] = {}
        self._latest: tuple[Request | None, _Head] = (None, ({}, {}))

    def unlike(self, recorded: Exchange, asked: Request, redact: Redact = _as_it_is) -> list[str]:
        """The names of the header fields in which two requests differ."""
        was = recorded.request
        if (was.headers == asked.headers and was.body == asked.body) or self._policy == "none":
            return []
        fields, secrets = self._recorded(recorded)
        now, own = self._asked(asked, redact)
        if self._policy == "shared":
            fields, now = _on_both_sides(fields, now)
        found = []
        if fields != now:
            found = headers.unlike(fields, now, lambda: self._known, partial(_is_model, asked))
        if self._policy == "new calls":
            found = [name for name in found if not is_of_a_call(name)]
        if secrets != own and self._policy != "shared":
            found += credentials.unlike(secrets, own, self._redactions)
        if (coding := _coding(recorded)) and not headers.accepts(asked.headers, coding):
            found.append("accept-encoding")
        return [name for name in found if name.partition(" ")[0] not in self._rules.headers]

    def is_drawn(
        self, recorded: Sequence[Drawn], asked: Sequence[Drawn], known: AbstractSet[str]
    ) -> bool:
        """True if the drawn values are new ones: one of `known` stands for itself alone."""
        return not any(
            was.value != now.value and now.value in known
            for was, now in zip(recorded, asked, strict=True)
        )

    def _recorded(self, exchange: Exchange) -> _Head:
        request = exchange.request
        key = request.headers, headers.delimiter(request) is not None
        if (found := self._fields.get(key)) is None:
            found = self._fields[key] = self._read(*key)
        return found

    def _asked(self, request: Request, redact: Redact) -> _Head:
        if self._latest[0] is not request:
            bare = Request(method=request.method, url="", headers=request.headers)
            head = self._read(redact(bare).headers, headers.delimiter(request) is not None)
            self._latest = request, head
        return self._latest[1]

    def _read(self, said: Headers, parted: bool) -> _Head:
        fields = headers.fields(said, self._rules.exact_headers, parted=parted)
        return fields, credentials.parts(said)

    @cached_property
    def _known(self) -> Mapping[str, set[str]]:
        """For each field the drawn values that the recording holds."""
        known: dict[str, set[str]] = {}
        for exchange in self._exchanges:
            for name, value in self._recorded(exchange)[0].items():
                known.setdefault(name, set()).update(headers.drawn(value))
        return known


def _is_model(request: Request) -> bool:
    return kind(request) == "model"


def _on_both_sides(one: Fields, two: Fields) -> tuple[Fields, Fields]:
    both = one.keys() & two.keys()
    return {name: one[name] for name in both}, {name: two[name] for name in both}


def _coding(exchange: Exchange) -> str:
    """The content coding of the recorded answer."""
    said = header(exchange.response.headers, "content-encoding") if exchange.response else None
    return (said or "").strip().lower()
