"""What of a request may differ from the recorded one, as its user says.

A rule is `CLASS:WHERE`. The class says what becomes of the values there:

    ignore   they do not count
    map      another value stands for the recorded one, and then always: an id that the agent
             draws for a session. Answers are played with the value of this run in its place,
             if it has 4 characters or more: shorter ones stand in too much else
    exact    they count, although the built-in lists (`traces.volatile`, `replay.headers`) would
             pass over them

and where they are:

    body.metadata.run_id        a field of a JSON body; `[2]` is an item of a list, `[*]` or `.*`
                                each of them. `body.` may be left out, as a divergence does
    query.ts                    a parameter of the URL
    path./v1/sessions/*/steps   the `*` in such a path, each of them one segment
    header.x-run-id             a field of the header

Whatever no rule names must be the same.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, get_args
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from replay.body_path import any_item, find, is_indexed
from traces.dialects import lens
from traces.model import Request
from traces.nearest import nearest
from traces.step import Lens
from traces.volatile import RULES, SETTLED, VERSION, Taken, parsed, settled

type Class = Literal["ignore", "map", "exact"]
type Place = Literal["body", "query", "path", "header"]

CLASSES: tuple[Class, ...] = get_args(Class.__value__)
PLACES: tuple[Place, ...] = get_args(Place.__value__)

SHORTEST = 4
"""Characters of a value that is put in the place of another in answers."""
_IGNORED = b"IGNORED"
"""Stands for an item of a list that does not count; no JSON text says that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of the user."""

    kind: Class
    place: Place
    where: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.place}.{self.where}"

    @property
    def pattern(self) -> re.Pattern[str]:
        """Of a path; each `*` is a group."""
        return re.compile("([^/]+)".join(map(re.escape, self.where.split("*"))))

    def values(self, request: Request) -> tuple[str | None, ...]:
        """The texts that the rule names in a request; None for a value that is no text."""
        match self.place:
            case "path":
                found = self.pattern.fullmatch(urlsplit(request.url).path)
                return found.groups() if found else ()
            case "query":
                pairs = parse_qsl(urlsplit(request.url).query, keep_blank_values=True)
                return tuple(value for name, value in pairs if name == self.where)
            case "header":
                return tuple(v for name, v in request.headers if name.lower() == self.where)
            case "body":
                held = find(parsed(request), self.where)
                values = [holder[key] for holder, key in held]  # type: ignore[index]
                return tuple(each if isinstance(each, str) else None for each in values)

    def reaches(self, request: Request) -> bool:
        """True if the request has something at the place that the rule names."""
        if self.kind != "exact" or self.place != "body":
            return bool(self.values(request))
        dialect, where = lens(request), any_item(self.where)
        listed = RULES.get(dialect.NAME, ()) if dialect is not None else ()
        return any(each.where == where for each in listed) and bool(self.values(request))


def bind(text: str) -> Rule:
    """The rule that a text says; ValueError, with what is right, where it says none."""
    kind, colon, rest = text.partition(":")
    if not (colon and rest) or rest.endswith("."):
        raise ValueError(f"{text!r}: a rule is CLASS:PLACE.WHERE, as in ignore:body.run_id")
    if kind not in CLASSES:
        raise ValueError(f"{text!r}: no class {kind!r}{nearest(kind, CLASSES)}")
    place, dot, where = rest.partition(".")
    if place not in PLACES or not dot:
        first = re.split(r"[.\[]", rest, maxsplit=1)[0]
        close = get_close_matches(first, PLACES, n=1, cutoff=0.6)
        if close and rest not in ("path", "query", "header"):
            raise ValueError(
                f"{text!r}: no place {first!r}; did you mean {close[0]}? A field of a body that "
                f"is called so is body.{rest}"
            )
        place, where = "body", rest
    assert place in PLACES
    if kind == "exact" and place not in ("body", "header"):
        raise ValueError(f"{text!r}: all of a URL counts already; exact is for fields of a body")
    if place == "path" and (not where.startswith("/") or "*" not in where):
        raise ValueError(f"{text!r}: a path begins with / and has a * for what may differ")
    return Rule(kind=kind, place=place, where=where.lower() if place == "header" else where)


class Rules:
    """All rules of a replay, over the built-in list."""

    def __init__(self, rules: Iterable[Rule] = (), volatile: int = VERSION) -> None:
        """`volatile` is the version of the built-in list."""
        self.all, self._volatile = tuple(rules), volatile
        exact = [rule for rule in self.all if rule.kind == "exact"]
        self._exact = frozenset(any_item(rule.where) for rule in exact if rule.place == "body")
        self.exact_headers = frozenset(rule.where for rule in exact if rule.place == "header")
        passed = [rule for rule in self.all if rule.kind != "exact"]
        self._body = [rule for rule in passed if rule.place == "body"]
        self._query = frozenset(rule.where for rule in passed if rule.place == "query")
        self._paths = [rule for rule in passed if rule.place == "path"]
        self.headers = frozenset(rule.where for rule in passed if rule.place == "header")
        """Names of header fields, in lower case, that do not count."""
        self._maps = [rule for rule in self.all if rule.kind == "map"]

    @property
    def maps(self) -> bool:
        """Whether any value stands for another."""
        return bool(self._maps)

    def body(self, dialect: Lens | None, value: object, taken: Taken | None = None) -> object:
        """A parsed body without what does not count; it is changed in place."""
        value = settled(dialect, value, self._exact, self._volatile, taken)
        for rule in self._body:
            for holder, key in tuple(find(value, rule.where)):
                if isinstance(holder, dict):
                    del holder[str(key)]
                elif isinstance(key, int):
                    holder[key] = _IGNORED
        return value

    def needs_whole(self, dialect: Lens) -> bool:
        """True if a rule names an item of the conversation by its number."""
        return any(is_indexed(rule.where, dialect.LIST) for rule in self._body)

    def url(self, url: str) -> str:
        """A URL without what does not count."""
        if not (self._query or self._paths):
            return url
        bare, mark, fragment = url.partition("#")
        address, ask, query = bare.partition("?")
        if self._query and ask:
            left = [pair for pair in query.split("&") if _name(pair) not in self._query]
            query, ask = "&".join(left), "?" if left else ""
        if self._paths:
            path = urlsplit(address).path
            for rule in self._paths:
                if rule.pattern.fullmatch(path):
                    address = address[: len(address) - len(path)] + rule.where.replace("*", SETTLED)
        return address + ask + query + mark + fragment

    def pairs(self, recorded: Request, asked: Request) -> tuple[tuple[str, str], ...]:
        """(recorded, asked) for each value that stands for another."""
        return tuple(
            (was, now)
            for rule in self._maps
            for was, now in zip(rule.values(recorded), rule.values(asked), strict=False)
            if was is not None and now
        )

    def unused(self, requests: Iterable[Request]) -> tuple[str, ...]:
        """The rules that name no place in any of these requests."""
        left = dict.fromkeys(self.all)
        for request in requests:
            if not left:
                break
            for rule in [rule for rule in left if rule.reaches(request)]:
                del left[rule]
        return tuple(map(str, left))


def _name(pair: str) -> str:
    return unquote_plus(pair.partition("=")[0])
