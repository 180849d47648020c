"""Values of one run in a recording: nothing that the agent was given explains them.

A random id, a time, a process number, a port or a fraction of a second, in a request, that neither
the agent's command nor an earlier answer contains, may be another in the next run. Only a second
run can prove that (`replay.matching.rule_learning`); these values show that one is worth making.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import parse_qsl, unquote, urlsplit

from replay.matching.clock_rules import find_clock_rules
from replay.matching.headers import (
    find_drawn_values,
    is_default_field,
    select_counted_fields,
)
from replay.matching.rule_learning import iter_request_leaves, make_given_check
from replay.matching.rules import MatchRules, parse_match_rule
from replay.matching.typed_values import (
    TypedValue,
    find_typed_values,
    list_days_on_earth,
    parse_possible_days,
)
from replay.value_renaming import is_id_name
from traces.bodies.generated_values import IDENTITY_VALUE
from traces.conversation.classify import classify_request
from traces.model import Exchange, Request, Trajectory

_DURATION = re.compile(r"\d+\.\d+ ?(?:m?s|sec(?:ond)?s?)\b")
_FILE_CONTENT = re.compile(r"(?:data:[^,\s]{0,200},)?[A-Za-z0-9+/_-]{64,}={0,2}")
"""Bytes of a file in base64, such as an image; a part of them may look like an id."""
_TEMPORARY = re.compile(r"/(?:tmp|var/folders)/|/proc/\d|tmp[._-]")
_TIME_OF_DAY = re.compile(r"\d{1,2}:(\d\d)")
MINUTES_AROUND = 2
"""How far from the run a time of day may be, by which a tool tells of what the run wrote."""
MIN_ID_DIGITS = 5
"""Digits of a number in a field of ids that may be drawn: smaller ones count."""
_DIGITS_OF_ID = re.compile(r"\d{8}")
"""Of 50 random ids of eight hexadecimal digits one has no letter."""
MAX_LOOKUPS = 2000
"""Values that are looked up in the answers; a recording with more has one that is of the run."""
MAX_SEARCHED_BYTES = 32 << 20
"""Of request bodies, from the first on."""


def find_run_values(
    recorded: Sequence[Exchange], run: Trajectory
) -> Iterator[tuple[str, TypedValue]]:
    """Yield the values, each with the path at which the first request has it."""
    clock = find_clock_rules(recorded, run)
    rules = MatchRules((*map(parse_match_rule, run.rules), *clock), volatile=run.volatile)
    may_differ = _make_form_check(recorded, run)
    command, seen, lookups, searched = "\n".join(run.command), set[str](), 0, 0
    for number, exchange in enumerate(recorded):
        searched += len(exchange.request.body)
        if searched > MAX_SEARCHED_BYTES:
            return
        if classify_request(exchange.request) == "other":
            continue
        was_given = make_given_check(recorded[:number])
        for where, text in _iter_request_texts(exchange.request, rules):
            if text in seen or _FILE_CONTENT.fullmatch(text):
                continue
            seen.add(text)
            for value in find_typed_values(text):
                is_number = text == value.text and value.type == "counter"
                is_long = len(text) >= MIN_ID_DIGITS and is_id_name(where)
                is_drawn = is_number and (is_long or _DIGITS_OF_ID.fullmatch(text))
                if not (is_drawn or may_differ(text, value)) or value.text in command:
                    continue
                lookups += 1
                if lookups > MAX_LOOKUPS or not was_given(value.text):
                    yield where, value


def _iter_request_texts(request: Request, rules: MatchRules) -> Iterator[tuple[str, str]]:
    """Yield each value of body, URL and header as text, with its place."""
    yield from iter_request_leaves(request, rules)
    url = urlsplit(rules.normalize_url(request.url))
    for name, value in parse_qsl(url.query):
        yield f"query.{name}", value
    for step in filter(None, url.path.split("/")):
        yield "the path of a URL", unquote(step)
    for name, value in select_counted_fields(request.headers).items():
        if not is_default_field(name) and not find_drawn_values(value):
            yield f"header.{name}", rules.normalize_field(name, value)


def _make_form_check(
    recorded: Sequence[Exchange], run: Trajectory
) -> Callable[[str, TypedValue], bool]:
    """Return a check whether a value has the form of one that is of this run."""
    began = run.recorded_at or 0.0
    ended = began + max((each.started for each in recorded), default=0.0)
    days = list_days_on_earth(began) | list_days_on_earth(ended)
    first, last = began // 60 - MINUTES_AROUND, ended // 60 + MINUTES_AROUND
    minutes = {int(each) % 60 for each in range(int(first), int(min(last, first + 59)) + 1)}
    folder = run.workspace or ""

    def may_differ(text: str, value: TypedValue) -> bool:
        match value.type:
            case "day":
                return bool(parse_possible_days(value.text) & days)
            case "clock":
                if possible := parse_possible_days(value.text):
                    return bool(possible & days)
                found = _TIME_OF_DAY.match(value.text)
                return found is None or int(found[1]) in minutes
            case "path":
                outside = not folder or not value.text.startswith(folder)
                is_of_run = _TEMPORARY.search(value.text) or IDENTITY_VALUE.search(value.text)
                return outside and is_of_run is not None
            case "counter":
                return _DURATION.match(text, value.start) is not None
            case _:
                return True

    return may_differ
