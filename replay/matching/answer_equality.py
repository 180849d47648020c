"""Which values of a live answer differ from the recorded one, and of what kind each difference is.

The answers before a fork are those of the recording: a value may differ only if it is of the run
(a clock, an id, a duration, a count) and if nothing later depends on it. This module knows the form
of a value; whether it is used, and whether it differs in each run, others have to know.
"""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from copy import replace
from datetime import date
from typing import Literal

from msgspec import Struct

from replay.matching.body_path import iter_leaf_values
from replay.matching.rules import MatchRules
from replay.matching.typed_values import get_type_pattern, parse_possible_days
from traces.bodies.canonical_json import parse_exact_json
from traces.bodies.content_encoding import decode_content_or_raw
from traces.dialects import mcp
from traces.model import Chunk, Exchange, Response
from traces.redaction.placeholder import PLACEHOLDER

type ChangeKind = Literal["clock", "id", "number", "other"]
"""A time, a name, a number; or anything else, which no rule of this module lets differ."""

_VALUE = re.compile(r"(?=[\w.:+@-]*\d)[\w.:+@-]*\w|[A-Za-z0-9_-]{16,}")
"""A word that can be a value of a run: with a digit, or long."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[num\u00b5]?s)?")
_SEPARATOR = re.compile(r"[^0-9A-Za-z]")
_CLOCK = re.compile(get_type_pattern("clock"))
_DAY = re.compile(get_type_pattern("day"))
_RANDOM = re.compile(get_type_pattern("uuid"))
_NO_CHANGE: tuple["AnswerChange", ...] = ()


class AnswerChange(Struct, frozen=True):
    """One value in which a live answer differs from the recorded one."""

    kind: ChangeKind
    where: str
    """Path of the field, as a divergence prints it."""
    was: str
    now: str
    nth: int = 0
    """Number of the value among those of its field."""
    proved: bool = False
    """Whether its form alone shows that it is of the run: a time of today, a random id."""

    @property
    def name(self) -> str:
        """The name of the field that holds the value, without indices."""
        return re.sub(r"\[\d+\]", "", self.where).rpartition(".")[2]


class RunDays(Struct, frozen=True):
    """The days of the recording and of this run, anywhere on Earth."""

    recorded: AbstractSet[date]
    now: AbstractSet[date]


def find_answer_changes(
    recorded: Response, live: Response, rules: MatchRules, days: RunDays
) -> tuple[AnswerChange, ...]:
    """Return all values in which two answers differ, without those that the rules leave out.

    Redacted values are equal: each run has its secrets.
    """
    if recorded.status != live.status:
        return (AnswerChange("other", "status", str(recorded.status), str(live.status)),)
    old, new = _read_leaves(recorded, rules), _read_leaves(live, rules)
    changes = list[AnswerChange]()
    for where in [*old, *(where for where in new if where not in old)]:
        if old.get(where) != new.get(where):
            changes += _compare_leaf(where, old.get(where), new.get(where), days)
    return tuple(changes)


def read_answer_texts(exchange: Exchange, rules: MatchRules) -> dict[str, str]:
    """Return the fields of a complete answer as texts, by path, without those of the rules."""
    return {where: leaf.text for where, leaf in _read_leaves(read_answer(exchange), rules).items()}


def compare_texts(where: str, was: str, now: str, days: RunDays) -> tuple[AnswerChange, ...]:
    """Return the values in which two texts of one field differ."""
    return tuple(_compare_leaf(where, _Leaf(was, is_text=True), _Leaf(now, is_text=True), days))


def find_values(text: str) -> tuple[list[str], str]:
    """Return the words of a text that can be values, and the text with a NUL for each."""
    return _VALUE.findall(text), _VALUE.sub("\0", text)


def read_answer(exchange: Exchange) -> Response:
    """Return the answer of an exchange: of MCP the response alone, without ids and headers."""
    answer = exchange.response
    assert answer is not None
    if not mcp.has_mcp_response(exchange):
        return answer
    chunk = Chunk(at=answer.at, data=mcp.to_canonical_response(exchange) or b"")
    return replace(answer, headers=(), chunks=(chunk,))


def has_common_value(recorded: Response, live: Response, rules: MatchRules) -> bool:
    """Return whether anything in two answers is the same; if nothing is, the change is the task."""
    old, new = _read_leaves(recorded, rules), _read_leaves(live, rules)
    if any(new.get(where) == leaf for where, leaf in old.items()):
        return True
    return any(
        _VALUE.sub("", leaf.text).strip() for leaf in old.values() if leaf.is_text and len(old) == 1
    )


class _Leaf(Struct, frozen=True):
    text: str
    is_text: bool


def _read_leaves(answer: Response, rules: MatchRules) -> dict[str, _Leaf]:
    text = decode_content_or_raw(answer.headers, answer.body) if rules.has_body else b""
    text = PLACEHOLDER.sub(b"REDACTED", text)
    if not text:
        return {}
    try:
        body = rules.normalize_body(None, parse_exact_json(text))
    except (ValueError, RecursionError):
        text = rules.normalize_text(text)
        return {"body": _Leaf(text.decode("utf-8", "backslashreplace"), is_text=True)}
    return {where or "body": _to_leaf(value) for where, value in iter_leaf_values("", body)}


def _to_leaf(value: object) -> _Leaf:
    if isinstance(value, bytes):
        return _Leaf(value.decode(), is_text=False)
    return _Leaf(value if isinstance(value, str) else repr(value), is_text=isinstance(value, str))


def _compare_leaf(
    where: str, old: _Leaf | None, new: _Leaf | None, days: RunDays
) -> Iterator[AnswerChange]:
    was, now = ("(absent)" if each is None else each.text for each in (old, new))
    pairs = None if old is None or new is None or old.is_text != new.is_text else _pair(was, now)
    if pairs is None:
        yield AnswerChange("other", where, was, now)
        return
    for nth, (a, b) in enumerate(pairs):
        kind = _find_kind(a, b)
        yield AnswerChange(kind, where, a, b, nth, proved=_is_proved(kind, a, b, days))


def _pair(was: str, now: str) -> list[tuple[str, str]] | None:
    """Return the values in which two texts differ; None if anything else differs."""
    if _VALUE.split(was) != _VALUE.split(now):
        return None
    values = zip(_VALUE.findall(was), _VALUE.findall(now), strict=True)
    return [(a, b) for a, b in values if a != b]


def _find_kind(was: str, now: str) -> ChangeKind:
    both = was, now
    if all(_CLOCK.fullmatch(each) or _DAY.fullmatch(each) for each in both):
        return "clock"
    if all(_NUMBER.fullmatch(each) for each in both):
        return "number"
    return "id" if _SEPARATOR.findall(was) == _SEPARATOR.findall(now) else "other"


def _is_proved(kind: ChangeKind, was: str, now: str, days: RunDays) -> bool:
    if kind == "clock":
        return bool(
            parse_possible_days(was) & days.recorded and parse_possible_days(now) & days.now
        )
    return kind == "id" and bool(_RANDOM.search(was) and _RANDOM.search(now))
