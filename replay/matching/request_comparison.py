"""Compare requests with equal URL and body by their header fields and generated values."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, partial
from typing import Literal

from replay.matching import headers
from replay.matching.canonical_key import make_placeholder_normalizer
from replay.matching.credentials import RecordedCredentials, find_credentials, is_login, read_host
from replay.matching.headers import HeaderFields
from replay.matching.rules import FIRST_CLOCK_RULE, MatchRules
from replay.matching.typed_values import list_days_on_earth, parse_possible_days
from traces.bodies.generated_values import are_of_one_kind, is_call_id_name
from traces.conversation.classify import classify_request
from traces.conversation.volatile_fields import VolatileValue
from traces.model import Exchange, Headers, Request, find_header
from traces.redaction.fingerprints import RedactionRecord

type HeaderPolicy = Literal["all", "new calls", "shared", "none"]
"""Which header fields are compared: all; all except call ids, which a live model generates again;
those that both requests have, if a recording may have lost some; none, if any client may ask.
"""
type RequestRedactor = Callable[[Request], Request]
type _ComparedHead = tuple[HeaderFields, Mapping[str, str]]
"""The fields that count, and the credentials."""


def _redact_nothing(request: Request) -> Request:
    return request


class RequestComparison:
    """Compares requests of this run with those of a recording."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        rules: MatchRules,
        redactions: Iterable[RedactionRecord] | None,
        policy: HeaderPolicy = "all",
        recorded_at: float = 0.0,
        credentials: RecordedCredentials | None = None,
    ) -> None:
        """`redactions` are those of the tape, None for one of an earlier version."""
        self._recorded_at = recorded_at
        self._credentials = credentials or RecordedCredentials(
            lambda: (each.request for each in exchanges), redactions
        )
        self._exchanges, self._rules, self._policy = exchanges, rules, policy
        self.blind = make_placeholder_normalizer(redactions)
        self._fields: dict[tuple[Headers, bool], _ComparedHead] = {}
        self._latest: tuple[Request | None, _ComparedHead] = (None, ({}, {}))

    def find_differing_fields(
        self, recorded: Exchange, request: Request, redact: RequestRedactor = _redact_nothing
    ) -> list[str]:
        """Return the names of the header fields in which two requests differ."""
        old = recorded.request
        if (old.headers == request.headers and old.body == request.body) or self._policy == "none":
            return []
        if not old.headers:
            return self._find_chosen_fields(request, redact)
        old_fields, old_secrets = self._get_recorded_head(recorded)
        new_fields, new_secrets = self._get_asked_head(request, redact)
        if self._policy == "shared":
            old_fields, new_fields = _keep_shared_fields(old_fields, new_fields)
        names = []
        if old_fields != new_fields:
            names = headers.find_differing_fields(
                old_fields,
                new_fields,
                lambda: self._known_drawn_values,
                partial(_is_sent_to_model, request),
            )
        rules = self._rules
        names = [
            name
            for name in names
            if name not in old_fields
            or name not in new_fields
            or rules.normalize_field(name, old_fields[name])
            != rules.normalize_field(name, new_fields[name])
        ]
        if self._policy == "new calls":
            names = [name for name in names if not is_call_id_name(name)]
        if old_secrets != new_secrets and self._policy != "shared":
            names += self._credentials.find_differing(read_host(old), old_secrets, new_secrets)
        if (coding := _read_answer_coding(recorded)) and not headers.is_coding_accepted(
            request.headers, coding
        ):
            names.append("accept-encoding")
        return [name for name in names if name.partition(" ")[0] not in self._rules.headers]

    def find_drawn_pairs(
        self, recorded: Exchange, request: Request, redact: RequestRedactor = _redact_nothing
    ) -> list[tuple[str, str]]:
        """Return the generated values (recorded, asked) in the fields of two matching requests."""
        if recorded.request.headers == request.headers or self._policy == "none":
            return []
        old, new = self._get_recorded_head(recorded)[0], self._get_asked_head(request, redact)[0]
        return [
            pair
            for name, was in old.items()
            if was != new.get(name, was) and name not in self._rules.headers
            for pair in zip(
                headers.find_drawn_values(was), headers.find_drawn_values(new[name]), strict=False
            )
        ]

    def count_drawn_value(self, value: str) -> int:
        """Return how many recorded requests have a generated value in their header."""
        return self._drawn_counts[value]

    def explain_field(self, recorded: Exchange, name: str) -> str:
        """Return why no other value stands for a recorded credential; empty if one may."""
        number = self._credentials.count_identities(read_host(recorded.request), name)
        if number < 2:
            return ""
        return f" (the recording has {number} there, and this one has the mark of none)"

    def _find_chosen_fields(self, request: Request, redact: RequestRedactor) -> list[str]:
        """Return the deliberately set fields of a request, for a recording without headers.

        Every client sends headers, so they were not recorded: fields that clients set by themselves
        are ignored, and logins. A field that somebody chose was never recorded with an answer.
        """
        fields, credentials = self._get_asked_head(request, redact)
        chosen = [name for name in fields if not headers.is_default_field(name)]
        chosen += [name for name in credentials if not is_login(name)]
        return [name for name in chosen if name.partition(" ")[0] not in self._rules.headers]

    def is_drawn_anew(
        self,
        recorded: Sequence[VolatileValue],
        asked: Sequence[VolatileValue],
        known: AbstractSet[str],
    ) -> bool:
        """Return whether the generated values may differ: one in `known` matches only itself."""
        return not any(
            was.value != now.value and (now.value in known or not self._may_differ(was, now))
            for was, now in zip(recorded, asked, strict=True)
        )

    def _may_differ(self, was: VolatileValue, now: VolatileValue) -> bool:
        """Return False for a time in place of an id, or a day of neither run."""
        if was.rule < FIRST_CLOCK_RULE:
            return are_of_one_kind(was.value, now.value)
        recorded_days = list_days_on_earth(self._recorded_at)
        return bool(
            parse_possible_days(was.value) & recorded_days
            and parse_possible_days(now.value) & list_days_on_earth(time.time())
        )

    def _get_recorded_head(self, exchange: Exchange) -> _ComparedHead:
        request = exchange.request
        key = request.headers, headers.find_multipart_delimiter(request) is not None
        if (head := self._fields.get(key)) is None:
            head = self._fields[key] = self._read_head(*key)
        return head

    def _get_asked_head(self, request: Request, redact: RequestRedactor) -> _ComparedHead:
        if self._latest[0] is not request:
            headers_only = Request(method=request.method, url="", headers=request.headers)
            head = self._read_head(
                redact(headers_only).headers, headers.find_multipart_delimiter(request) is not None
            )
            self._latest = request, head
        return self._latest[1]

    def _read_head(self, said: Headers, parted: bool) -> _ComparedHead:
        fields = headers.select_counted_fields(said, self._rules.exact_headers, parted=parted)
        return fields, find_credentials(said)

    @cached_property
    def _drawn_counts(self) -> Counter[str]:
        found = Counter[str]()
        for exchange in self._exchanges:
            fields = self._get_recorded_head(exchange)[0].values()
            found.update({value for each in fields for value in headers.find_drawn_values(each)})
        return found

    @cached_property
    def _known_drawn_values(self) -> Mapping[str, set[str]]:
        """Per field, the generated values that the recording contains."""
        values_by_name: dict[str, set[str]] = {}
        for exchange in self._exchanges:
            for name, value in self._get_recorded_head(exchange)[0].items():
                values_by_name.setdefault(name, set()).update(headers.find_drawn_values(value))
        return values_by_name


def _is_sent_to_model(request: Request) -> bool:
    return classify_request(request) == "model"


def _keep_shared_fields(one: HeaderFields, two: HeaderFields) -> tuple[HeaderFields, HeaderFields]:
    both = one.keys() & two.keys()
    return {name: one[name] for name in both}, {name: two[name] for name in both}


def _read_answer_coding(exchange: Exchange) -> str:
    """Return the content coding of the recorded answer."""
    value = (
        find_header(exchange.response.headers, "content-encoding") if exchange.response else None
    )
    return (value or "").strip().lower()
