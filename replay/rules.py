"""What of a request may differ from the recorded one, as its user says.

A rule is `CLASS:WHERE`. The class says what becomes of the values there:

    ignore   they do not count
    map      another value stands for the recorded one, and then always: an id that the agent
             draws for a session. Answers are played with the value of this run in its place,
             if it has 4 characters or more: shorter ones stand in too much else
    exact    they count, although the built-in list (`traces.volatile`) would pass over them

and where they are:

    body.metadata.run_id        a field of a JSON body; `*` is each item of a list
    query.ts                    a parameter of the URL
    path./v1/sessions/*/steps   the `*` in such a path, each of them one segment

Whatever no rule names must be the same; headers never count.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from traces.model import Request
from traces.nearest import nearest
from traces.step import Lens
from traces.volatile import SETTLED, VERSION, parsed, reached, settled

type Class = Literal["ignore", "map", "exact"]
type Place = Literal["body", "query", "path"]

CLASSES: tuple[Class, ...] = ("ignore", "map", "exact")
PLACES: tuple[Place, ...] = ("body", "query", "path")

SHORTEST = 4
"""Characters of a value that is put in the place of another in answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of the user."""

    kind: Class
    place: Place
    where: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.place}.{self.where}"

    @property
    def keys(self) -> list[str]:
        return self.where.split(".")

    @property
    def pattern(self) -> re.Pattern[str]:
        """Of a path; each `*` is a group."""
        return re.compile("([^/]+)".join(map(re.escape, self.where.split("*"))))


def bind(text: str) -> Rule:
    """The rule that a text says; ValueError, with what is right, where it says none."""
    kind, colon, rest = text.partition(":")
    place, dot, where = rest.partition(".")
    if not (colon and dot and where):
        raise ValueError(f"{text!r}: a rule is CLASS:PLACE.WHERE, as in ignore:body.run_id")
    if kind not in CLASSES:
        raise ValueError(f"{text!r}: no class {kind!r}{nearest(kind, CLASSES)}")
    if place not in PLACES:
        raise ValueError(f"{text!r}: no place {place!r}{nearest(place, PLACES)}")
    if kind == "exact" and place != "body":
        raise ValueError(f"{text!r}: all of a URL counts already; exact is for fields of a body")
    if place == "path" and (not where.startswith("/") or "*" not in where):
        raise ValueError(f"{text!r}: a path begins with / and has a * for what may differ")
    return Rule(kind=kind, place=place, where=where)


class Rules:
    """All rules of a replay, over the built-in list."""

    def __init__(self, rules: Iterable[Rule] = (), volatile: int = VERSION) -> None:
        """`volatile` is the version of the built-in list."""
        rules, self._volatile = tuple(rules), volatile
        self._exact = frozenset(rule.where for rule in rules if rule.kind == "exact")
        self._passed = tuple(rule for rule in rules if rule.kind != "exact")
        self._maps = tuple(rule for rule in rules if rule.kind == "map")

    @property
    def maps(self) -> bool:
        """Whether any value stands for another."""
        return bool(self._maps)

    def body(self, dialect: Lens | None, value: object) -> object:
        """A parsed body without what does not count; it is changed in place."""
        value = settled(dialect, value, self._exact, self._volatile)
        for rule in self._passed:
            if rule.place == "body":
                *path, key = rule.keys
                for holder in reached([value], path):
                    if isinstance(holder, dict):
                        holder.pop(key, None)
        return value

    def url(self, url: str) -> str:
        """A URL without what does not count."""
        parts = urlsplit(url)
        query, path = parts.query, parts.path
        dropped = {rule.where for rule in self._passed if rule.place == "query"}
        if dropped & {name for name, _ in parse_qsl(query, keep_blank_values=True)}:
            pairs = parse_qsl(query, keep_blank_values=True)
            query = urlencode([pair for pair in pairs if pair[0] not in dropped])
        for rule in self._passed:
            if rule.place == "path" and rule.pattern.fullmatch(path):
                path = rule.where.replace("*", SETTLED)
        return urlunsplit(parts._replace(query=query, path=path))

    def pairs(self, recorded: Request, asked: Request) -> tuple[tuple[str, str], ...]:
        """(recorded, asked) for each value that stands for another."""
        if not self._maps:
            return ()
        was, now = self._mapped(recorded), self._mapped(asked)
        return tuple((a, b) for a, b in zip(was, now, strict=False) if a is not None and b)

    def _mapped(self, request: Request) -> Iterator[str | None]:
        """The values that the maps name, in the order of the rules; None where there is none."""
        parts, body = urlsplit(request.url), parsed(request)
        for rule in self._maps:
            match rule.place:
                case "path":
                    found = rule.pattern.fullmatch(parts.path)
                    yield from found.groups() if found else (None,)
                case "query":
                    yield dict(parse_qsl(parts.query)).get(rule.where)
                case "body":
                    *path, key = rule.keys
                    held = [h.get(key) for h in reached([body], path) if isinstance(h, dict)]
                    yield from (each if isinstance(each, str) else None for each in held)
