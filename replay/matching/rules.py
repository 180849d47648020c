"""The user's rules for the parts of a request that may differ from the recorded one.

A rule is `CLASS:WHERE`. The class defines how the values there are treated:

    ignore   they do not count
    map      a new value replaces the recorded one consistently: an id that the agent generates
             for a session. Answers are played with this run's value in its place, if it has
             4 characters or more: shorter ones occur in too many other places
    exact    they count, although the built-in lists (`traces.conversation.volatile_fields`,
             `replay.matching.headers`) would ignore them

and WHERE locates them:

    body.metadata.run_id        a field of a JSON body; `[2]` is an item of a list, `[*]` or `.*`
                                every item. `body.` may be omitted, as a divergence does
    body                        the entire body, which need not be JSON; only for `ignore`
    query.ts                    a parameter of the URL
    path./v1/sessions/*/steps   each `*` in such a path matches one segment
    header.x-run-id             a field of the header

`background:METHOD URL`, without a query, names requests that an agent makes for itself, such as
telemetry and polls: their number and their contents do not count. One that is not in the recording
gets 503.

A learnt rule has a value's type instead of a class, its location, and the text around it:
`day:body.messages[0].content "Today is {}, "`. Only a value of that type may differ, only there.
The types are those of `replay.matching.typed_values`.

Everything that no rule names must be equal.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from replay.matching.body_path import Holder, find_path_holders, generalize_path, is_indexed_path
from replay.matching.surrounding_text import SurroundingText, cut_out_values
from replay.matching.typed_values import VALUE_TYPES, ValueType, get_rule_pattern
from traces.conversation.classify import classify_request
from traces.conversation.volatile_fields import (
    VOLATILE_RULES,
    VOLATILE_TEXT,
    VOLATILE_VERSION,
    RemovedValues,
    VolatileValue,
    parse_json_body,
    remove_volatile_values,
    sort_results,
)
from traces.dialects import find_dialect
from traces.dialects.types import DialectLens
from traces.did_you_mean import suggest_nearest_name
from traces.model import Exchange, Request, Response

type RuleClass = Literal["ignore", "map", "exact", "background"]
type RulePlace = Literal["body", "query", "path", "header", "endpoint"]

RULE_CLASSES: tuple[RuleClass, ...] = get_args(RuleClass.__value__)
RULE_PLACES: tuple[RulePlace, ...] = ("body", "query", "path", "header")
"""The places that a rule can be written with; `endpoint` is that of `background`."""

_HEADER_TOKEN = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
FIRST_LEARNT_RULE, FIRST_CLOCK_RULE = 1000, 1_000_000
"""The numbers of the first learnt rule and of the first place of the agent's clock, among all rules
that remove values from a body; those of the built-in list are lower.
"""
_IGNORED = b"IGNORED"
"""Represents an ignored item of a list; no JSON text has this value."""


@dataclass(frozen=True, kw_only=True)
class MatchRule:
    """One rule of the user."""

    kind: RuleClass | ValueType
    place: RulePlace
    where: str
    around: SurroundingText | None = None
    """The text around the value; only for a learnt rule."""

    def __str__(self) -> str:
        if self.kind == "background":
            return f"background:{self.where}"
        text = f"{self.kind}:{self.place}" + (f".{self.where}" if self.where else "")
        return text if self.around is None else f"{text} {self.around}"

    @property
    def is_learnt(self) -> bool:
        """Whether it is a rule that lets only values of one type differ."""
        return self.kind in VALUE_TYPES

    @cached_property
    def is_indexed(self) -> bool:
        """Whether it names an item of a list by its index."""
        return re.search(r"\[\d|\.\d", self.where) is not None

    @cached_property
    def value_pattern(self) -> re.Pattern[str]:
        """Pattern of a learnt rule: the value with the text around it."""
        if self.kind in RULE_CLASSES:
            raise ValueError(f"{self.kind} is no type of a value")
        return (self.around or SurroundingText()).compile_pattern(get_rule_pattern(self.kind))

    @property
    def path_pattern(self) -> re.Pattern[str]:
        """Pattern of a path; each `*` is a group."""
        return re.compile("([^/]+)".join(map(re.escape, self.where.split("*"))))

    def find_values(self, request: Request) -> tuple[str | None, ...]:
        """Return the texts that the rule names in a request; None for a value that is not text."""
        match self.place:
            case "endpoint":
                return (request.url,) if describe_endpoint(request) == self.where else ()
            case "path":
                match = self.path_pattern.fullmatch(urlsplit(request.url).path)
                return match.groups() if match else ()
            case "query":
                pairs = parse_qsl(urlsplit(request.url).query, keep_blank_values=True)
                return tuple(value for name, value in pairs if name == self.where)
            case "header":
                return tuple(v for name, v in request.headers if name.lower() == self.where)
            case "body" if not self.where:
                return ("",) if request.body else ()
            case "body":
                places = find_path_holders(parse_json_body(request), self.where)
                values = [holder[key] for holder, key in places]  # type: ignore[index]
                return tuple(each if isinstance(each, str) else None for each in values)

    def names_place_in_answer(self, answer: Response) -> bool:
        """Return whether a live answer before a fork would have a value at the place."""
        if self.place != "body" or self.kind not in ("ignore", *VALUE_TYPES):
            return False
        request = Request(method="", url="", headers=answer.headers, body=answer.body)
        return bool(self.find_values(request))

    def names_place_in(self, request: Request) -> bool:
        """Return whether the request has a value at the place that the rule names."""
        if self.kind != "exact" or self.place != "body":
            return bool(self.find_values(request))
        dialect, where = find_dialect(request), generalize_path(self.where)
        listed = VOLATILE_RULES.get(dialect.NAME, ()) if dialect is not None else ()
        return any(each.where == where for each in listed) and bool(self.find_values(request))


def parse_match_rule(text: str) -> MatchRule:
    """Parse a rule. Raises ValueError, with the correct form, for an invalid one."""
    kind, colon, rest = text.partition(":")
    if kind in VALUE_TYPES:
        return _parse_learnt_rule(text, kind, rest)
    if kind == "background":
        return _parse_background_rule(text, rest)
    if not (colon and rest) or rest.endswith("."):
        raise ValueError(f"{text!r}: a rule is CLASS:PLACE.WHERE, as in ignore:body.run_id")
    if kind not in RULE_CLASSES:
        raise ValueError(f"{text!r}: no class {kind!r}{suggest_nearest_name(kind, RULE_CLASSES)}")
    place, dot, path = rest.partition(".")
    if rest == "body":
        if kind != "ignore":
            raise ValueError(f"{text!r}: all of a body can be ignored, no more: name a field of it")
        return MatchRule(kind="ignore", place="body", where="")
    if rest in ("url", "method"):
        raise ValueError(
            f"{text!r}: what may differ of it is query.NAME or path./a/*/b; a field of a body that "
            f"is called so is body.{rest}"
        )
    if place == "header" and dot and not _HEADER_TOKEN.fullmatch(path):
        raise ValueError(f"{text!r}: no field of a header can be called {path!r}")
    if place not in RULE_PLACES or not dot:
        first = re.split(r"[.\[]", rest, maxsplit=1)[0]
        from difflib import get_close_matches

        close = get_close_matches(first, RULE_PLACES, n=1, cutoff=0.6)
        if close and rest not in ("path", "query", "header"):
            raise ValueError(
                f"{text!r}: no place {first!r}; did you mean {close[0]}? A field of a body that "
                f"is called so is body.{rest}"
            )
        place, path = "body", rest
    assert place in RULE_PLACES
    if kind == "exact" and place not in ("body", "header"):
        raise ValueError(f"{text!r}: all of a URL counts already; exact is for fields of a body")
    if place == "path" and (not path.startswith("/") or "*" not in path):
        raise ValueError(f"{text!r}: a path begins with / and has a * for what may differ")
    return MatchRule(kind=kind, place=place, where=path.lower() if place == "header" else path)


def describe_endpoint(request: Request) -> str:
    """Return the method and the URL without its query, as a `background` rule names them."""
    return f"{request.method} {urlsplit(request.url)._replace(query='', fragment='').geturl()}"


def _parse_background_rule(text: str, where: str) -> MatchRule:
    method, space, url = where.partition(" ")
    parts = urlsplit(url)
    if not (space and method.isupper() and parts.scheme and parts.netloc) or parts.query:
        raise ValueError(
            f"{text!r}: a background rule is background:METHOD URL, without the query of the URL, "
            f"as in 'background:POST https://telemetry.example/v1/events'"
        )
    return MatchRule(kind="background", place="endpoint", where=where)


def _parse_learnt_rule(text: str, kind: ValueType, rest: str) -> MatchRule:
    """Parse a learnt rule: the same places, and a quoted text with {} for the value."""
    place_text, quote, around = rest.partition(' "')
    place = parse_match_rule(f"ignore:{place_text}")
    if not place.where and not quote:
        raise ValueError(
            f"{text!r}: a {kind} of a body that is not JSON has the text around it, in quotes"
        )
    try:
        surrounding = SurroundingText.parse(quote.strip() + around) if quote else SurroundingText()
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None
    return MatchRule(
        kind=kind, place=place.place, where=place.where, around=surrounding if quote else None
    )


class MatchRules:
    """All rules of a replay, on top of the built-in list."""

    def __init__(
        self,
        rules: Iterable[MatchRule] = (),
        volatile: int = VOLATILE_VERSION,
        clock: Callable[[], Iterable[MatchRule]] = tuple,
    ) -> None:
        """`volatile` is the version of the built-in list; `clock` returns rules for the places of
        the agent's own date, and is called only if needed.
        """
        self.all, self._volatile, self._tell_clock = tuple(rules), volatile, clock
        exact = [rule for rule in self.all if rule.kind == "exact"]
        self._exact = frozenset(
            generalize_path(rule.where) for rule in exact if rule.place == "body"
        )
        self.exact_headers = frozenset(rule.where for rule in exact if rule.place == "header")
        ignoring = [rule for rule in self.all if rule.kind in ("ignore", "map")]
        learnt = [rule for rule in self.all if rule.is_learnt]
        self._learnt = [
            (n, rule)
            for n, rule in enumerate(learnt, FIRST_LEARNT_RULE)
            if rule.place == "body" and rule.where
        ]
        self._of_text = [rule for rule in learnt if rule.place == "body" and not rule.where]
        self._of_url = [rule for rule in learnt if rule.place in ("query", "path")]
        self._of_header = [rule for rule in learnt if rule.place == "header"]
        self._body = [rule for rule in ignoring if rule.place == "body" and rule.where]
        self._has_indexed = any(r.is_indexed for r in (*self._body, *(r for _, r in self._learnt)))
        self.has_body = not any(rule.place == "body" and not rule.where for rule in ignoring)
        """Whether any part of a body counts."""
        self._query = frozenset(rule.where for rule in ignoring if rule.place == "query")
        self._paths = [rule for rule in ignoring if rule.place == "path"]
        self.headers = frozenset(rule.where for rule in ignoring if rule.place == "header")
        """Names of header fields, in lower case, that do not count."""
        self._maps = [rule for rule in self.all if rule.kind == "map"]
        self._background = frozenset(r.where for r in self.all if r.kind == "background")

    @property
    def has_url(self) -> bool:
        """Whether a rule names a part of URLs."""
        return bool(self._query or self._paths or self._of_url)

    @property
    def has_maps(self) -> bool:
        """Whether there are rules that map values."""
        return bool(self._maps)

    def is_background(self, request: Request) -> bool:
        """Return whether the agent makes this request for itself."""
        return bool(self._background) and describe_endpoint(request) in self._background

    def normalize_body(
        self, dialect: DialectLens | None, value: object, taken: RemovedValues | None = None
    ) -> object:
        """Remove the parts that do not count from a parsed body, in place, and return it.

        An index in a rule counts the results in the order of their ids, as a divergence does.
        """
        self._apply_body_rules(value, taken, indexed=False)
        if self._has_indexed:
            sort_results(dialect, value)
            self._apply_body_rules(value, taken, indexed=True)
        value = remove_volatile_values(dialect, value, self._exact, self._volatile, taken)
        for number, rule in self._clock_rules:
            for holder, key in tuple(find_path_holders(value, rule.where)):
                _take_out_typed_values(holder, key, number, rule, taken)
        return value

    def _apply_body_rules(
        self, value: object, taken: RemovedValues | None, *, indexed: bool
    ) -> None:
        for rule in self._body:
            if rule.is_indexed is indexed:
                _ignore_values(value, rule)
        for number, rule in self._learnt:
            if rule.is_indexed is indexed:
                for holder, key in tuple(find_path_holders(value, rule.where)):
                    _take_out_typed_values(holder, key, number, rule, taken)

    @cached_property
    def _clock_rules(self) -> tuple[tuple[int, MatchRule], ...]:
        return tuple(enumerate(self._tell_clock(), FIRST_CLOCK_RULE))

    def with_clock(self, clock: Callable[[], Iterable[MatchRule]]) -> "MatchRules":
        """Return these rules with rules for the places of the agent's own date."""
        return MatchRules(self.all, self._volatile, clock)

    def normalize_text(self, body: bytes) -> bytes:
        """Return a body that is not JSON without the values that the rules for all of it name."""
        if not self._of_text:
            return body
        text = body.decode("utf-8", "surrogateescape")
        for rule in self._of_text:
            text, _ = cut_out_values(text, rule.value_pattern)
        return text.encode("utf-8", "surrogateescape")

    def names_indexed_item(self, dialect: DialectLens) -> bool:
        """Return whether a rule names an item of the conversation by its index."""
        rules = (*self._body, *(rule for _, rule in self._learnt))
        return any(is_indexed_path(rule.where, dialect.MESSAGES_KEY) for rule in rules)

    def normalize_field(self, name: str, value: str) -> str:
        """Return the value of a header field, without the parts that do not count."""
        for rule in self._of_header:
            if rule.where == name:
                value, _ = cut_out_values(value, rule.value_pattern)
        return value

    def normalize_url(self, url: str) -> str:
        """Return a URL without the parts that do not count."""
        if not self.has_url:
            return url
        without_fragment, hash_mark, fragment = url.partition("#")
        address, question_mark, query = without_fragment.partition("?")
        if self._query and question_mark:
            remaining = [
                pair for pair in query.split("&") if _parse_parameter_name(pair) not in self._query
            ]
            query, question_mark = "&".join(remaining), "?" if remaining else ""
        for rule in self._of_url:
            if rule.place == "query":
                query = "&".join(_replace_typed_parameter(pair, rule) for pair in query.split("&"))
            else:
                address = _replace_typed_path(address, rule)
        if self._paths:
            path = urlsplit(address).path
            for rule in self._paths:
                if rule.path_pattern.fullmatch(path):
                    address = address[: len(address) - len(path)] + rule.where.replace(
                        "*", VOLATILE_TEXT
                    )
        return address + question_mark + query + hash_mark + fragment

    def find_mapped_pairs(self, recorded: Request, request: Request) -> tuple[tuple[str, str], ...]:
        """Return (recorded, asked) for each mapped value."""
        return tuple(
            (was, now)
            for rule in self._maps
            for was, now in zip(rule.find_values(recorded), rule.find_values(request), strict=False)
            if was is not None and now
        )

    def find_unused_rules(self, exchanges: Iterable[Exchange]) -> tuple[str, ...]:
        """Return the rules that match no place in any of these requests and answers."""
        unused = dict.fromkeys(self.all)
        for exchange in exchanges:
            if not unused:
                break
            for rule in [rule for rule in unused if _has_place(rule, exchange)]:
                del unused[rule]
        return tuple(map(str, unused))


def _has_place(rule: MatchRule, exchange: Exchange) -> bool:
    answer = exchange.response
    return rule.names_place_in(exchange.request) or (
        answer is not None
        and classify_request(exchange.request) == "tool"
        and rule.names_place_in_answer(answer)
    )


def _ignore_values(value: object, rule: MatchRule) -> None:
    for holder, key in tuple(find_path_holders(value, rule.where)):
        if isinstance(holder, dict):
            del holder[str(key)]
        elif isinstance(key, int):
            holder[key] = _IGNORED


def _take_out_typed_values(
    holder: Holder, key: str | int, number: int, rule: MatchRule, taken: RemovedValues | None
) -> None:
    """Remove the typed values from the value under a key, which need not be text."""
    value: object = holder[key]  # type: ignore[index]
    text = value.decode() if isinstance(value, bytes) else str(value)
    if isinstance(value, bool) or not isinstance(value, str | int | bytes):
        return
    if isinstance(value, str):
        remaining, removed = cut_out_values(value, rule.value_pattern)
        replacement: object = remaining
    else:
        removed = [(0, text)] if rule.value_pattern.fullmatch(text) else []
        replacement = {VOLATILE_TEXT: rule.kind} if removed else value
    holder[key] = replacement  # type: ignore[index]
    if taken is not None:
        first_index = sum(each.rule == number for each in taken.values)
        taken.values += [
            VolatileValue(number, first_index + n, start, text)
            for n, (start, text) in enumerate(removed)
        ]


def _replace_typed_path(address: str, rule: MatchRule) -> str:
    path = urlsplit(address).path
    match = rule.path_pattern.fullmatch(path)
    if match is None or not all(
        rule.value_pattern.fullmatch(unquote(each)) for each in match.groups()
    ):
        return address
    return address[: len(address) - len(path)] + rule.where.replace("*", VOLATILE_TEXT)


def _replace_typed_parameter(pair: str, rule: MatchRule) -> str:
    name, mark, value = pair.partition("=")
    if unquote_plus(name) == rule.where and rule.value_pattern.fullmatch(unquote_plus(value)):
        return f"{name}{mark}{VOLATILE_TEXT}"
    return pair


def _parse_parameter_name(pair: str) -> str:
    return unquote_plus(pair.partition("=")[0])
