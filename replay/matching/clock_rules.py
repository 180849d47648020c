"""Find the day of the run in an agent's opening prompt, before any answer.

A text with it counts wherever a later request has the same text: clients move a prompt from a list
of parts into a plain string.

A date in an opening request that is the day of the recording, and is not in the agent's command, is
the agent's clock; a replay on another day has that day instead. Both are checked against the clock:
a recorded date of another day, or one of this run that is not today, does not count as a clock.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from itertools import islice, takewhile

from replay.matching.body_path import generalize_path
from replay.matching.rule_learning import CONTEXT_CHARS, iter_leaf_texts
from replay.matching.rules import MatchRule
from replay.matching.surrounding_text import SurroundingText
from replay.matching.typed_values import find_typed_values, list_days_on_earth, parse_possible_days
from traces.bodies.canonical_json import parse_exact_json
from traces.bodies.content_encoding import decode_content_or_raw
from traces.dialects import find_dialect
from traces.model import Exchange, Request, Trajectory

_SEARCHED_EXCHANGES = 32
"""How many exchanges of a recording are searched; its opening model requests are among them."""


def find_clock_rules(recorded: Sequence[Exchange], run: Trajectory) -> tuple[MatchRule, ...]:
    """Return a rule for each place where an opening model request contains the recording's day."""
    if run.recorded_at is None:
        return ()
    days, command = list_days_on_earth(run.recorded_at), "\n".join(run.command)
    rules, dated = dict[MatchRule, None](), set[str]()
    has_answer = False
    for exchange in islice(recorded, _SEARCHED_EXCHANGES):
        is_opening, texts = _read_texts(exchange.request, is_first=not has_answer)
        has_answer = has_answer or (bool(texts) and exchange.response is not None)
        for where, text in texts:
            if is_opening or text in dated:
                found = dict.fromkeys(_find_day_rules(where, text, days, command))
                dated |= {text} if found else set()
                rules |= found
    return tuple(rules)


def _find_day_rules(
    where: str, text: str, today: AbstractSet[date], given: str
) -> Iterator[MatchRule]:
    for each in find_typed_values(text):
        if (
            each.type in ("day", "clock")
            and each.text not in given
            and parse_possible_days(each.text) & today
        ):
            before = text[max(0, each.start - CONTEXT_CHARS) : each.start]
            around = SurroundingText(before, text[each.stop : each.stop + CONTEXT_CHARS])
            yield MatchRule(
                kind=each.type, place="body", where=generalize_path(where), around=around
            )


def _read_texts(request: Request, *, is_first: bool) -> tuple[bool, Iterable[tuple[str, str]]]:
    """Return whether a model request has no previous answers, and its texts with their paths.

    Some agents (qwen-code) begin with words of the model that it never said: of the first request
    of a recording, what precedes them has no previous answers.
    """
    dialect = find_dialect(request)
    if dialect is None:
        return False, ()
    try:
        body = parse_exact_json(decode_content_or_raw(request.headers, request.body))
    except (ValueError, RecursionError):
        return False, ()
    messages = body.get(dialect.MESSAGES_KEY) if isinstance(body, dict) else None
    items = messages if isinstance(messages, list) else []
    before = list(takewhile(lambda each: not _is_answer_item(each), items))
    if is_first and isinstance(body, dict) and len(before) < len(items):
        body = {**body, dialect.MESSAGES_KEY: before}
    return is_first or len(before) == len(items), iter_leaf_texts("", body)


def _is_answer_item(item: object) -> bool:
    if not isinstance(item, dict):
        return False
    return item.get("role") in ("assistant", "model", "tool", "function") or "call_id" in item
