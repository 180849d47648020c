"""Learn matching rules for volatile values from requests that should have been equal.

Two recordings of one agent, or a recording and a replay that diverged from it, give pairs of
requests at the same position. If two of them differ only in typed values
(`replay.matching.typed_values`) that no answer gave the agent, these are the agent's own clock, ids
or counts: a rule for that type at that place ignores them. A pair with any other difference yields
no rule.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import replace
from itertools import combinations
from os.path import commonprefix
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from replay.matching.body_path import generalize_path, iter_leaf_values
from replay.matching.request_comparison import RequestComparison
from replay.matching.rules import MatchRule, MatchRules, parse_match_rule
from replay.matching.surrounding_text import SurroundingText
from replay.matching.typed_values import TypedValue, pair_differing_values
from traces.bodies.canonical_json import parse_exact_json
from traces.bodies.content_encoding import decode_content_or_raw
from traces.conversation.volatile_fields import VOLATILE_TEXT
from traces.dialects import find_dialect
from traces.model import Exchange, Request
from traces.redaction.placeholder import PLACEHOLDER

DEFAULT_RULES = MatchRules()
CONTEXT_CHARS = 24
"""Characters on each side of a value that are stored to locate it."""

_SIGNATURE = re.compile(r"(?i)(?:signature|credential|\bsig)\Z")
"""A parameter whose value is made of the time and of the rest of a URL, which is compared."""
REFUSAL_STATUSES = frozenset(("422", "503"))
"""What a replay answers to requests without a recorded answer: no values of the agent's."""
MIN_COMMON_LETTERS = 8
"""Letters that two places have around their values, so that a rule for all places is learnt."""
_INDEX = re.compile(r"(?<=\[)(\d+)(?=\])")
WHOLE_VALUE_CHARS = 8
"""Length from which a value that an answer gave is looked for in longer words too."""
_WORD_START = r"(?:(?<![0-9A-Za-z])|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
"""Also after an escape of JSON or of a URL."""
_WORD_END = r"(?=[A-Za-z]{0,3}(?![0-9A-Za-z]))"
"""Also before a unit."""


class RequestDifference(Struct, frozen=True):
    """A place at which two requests differ, and the rules that would ignore the difference."""

    where: str
    was: str
    now: str
    rules: tuple[MatchRule, ...] = ()
    """Empty if anything except typed values differs, or if an answer gave the value."""
    why: str = "differs in more than a day, clock, id or count"
    """Why there is no rule."""


type GivenCheck = Callable[[str], bool]
"""Returns whether an earlier answer gave a text to the agent."""


def _is_never_given(text: str) -> bool:
    return False


def find_learnable_differences(
    was: Request,
    now: Request,
    comparison: RequestComparison,
    rules: MatchRules,
    given: GivenCheck = _is_never_given,
) -> list[RequestDifference]:
    """Return all differences between two requests that the rules do not ignore."""
    differences = (
        list(_find_url_differences(was.url, now.url, rules)) if was.method == now.method else []
    )
    if was.method != now.method:
        differences.append(RequestDifference("method", was.method, now.method))
    recorded = Exchange(seq=0, request=was, started=0.0)
    for name in comparison.find_differing_fields(recorded, now):
        name = name.partition(" ")[0]
        texts = _read_header_field(was, name), _read_header_field(now, name)
        differences.append(make_typed_difference("header", name, f"header.{name}", *texts, given))
    old_leaves, new_leaves = (
        dict(iter_request_leaves(was, rules)),
        dict(iter_request_leaves(now, rules)),
    )
    for where in [*old_leaves, *(where for where in new_leaves if where not in old_leaves)]:
        if old_leaves.get(where) != new_leaves.get(where):
            texts = old_leaves.get(where, "(absent)"), new_leaves.get(where, "(absent)")
            differences.append(make_typed_difference("body", where, where, *texts, given))
    return differences


def collect_learnt_rules(found: Iterable[RequestDifference]) -> tuple[MatchRule, ...]:
    """Return the rules for all differences of a pair; none if one difference has no rule."""
    differences = tuple(found)
    if not all(difference.rules for difference in differences):
        return ()
    return tuple(dict.fromkeys(rule for difference in differences for rule in difference.rules))


def generalize_rules(rules: Iterable[MatchRule]) -> Iterator[MatchRule]:
    """Yield rules for every item of a list, where a value differs in the same text of two items.

    An agent that tells how long each of its commands took has such a value in each result; one
    replay shows no more than the first, because the request with it is refused.
    """
    groups = dict[tuple[str, str], list[MatchRule]]()
    for rule in rules:
        if rule.is_learnt and rule.place == "body" and rule.around is not None:
            groups.setdefault((rule.kind, generalize_path(rule.where)), []).append(rule)
    for group in groups.values():
        for one, two in combinations(group, 2):
            around = _find_common_text(one, two)
            if around is not None and one.where != two.where:
                yield replace(
                    one, where=_star_differing_indexes(one.where, two.where), around=around
                )


def _find_common_text(one: MatchRule, two: MatchRule) -> SurroundingText | None:
    """Return what stands around both values; None if that names nothing."""
    assert one.around is not None
    assert two.around is not None
    before = commonprefix([one.around.before[::-1], two.around.before[::-1]])[::-1]
    after = commonprefix([one.around.after, two.around.after])
    letters = sum(each.isalpha() for each in before + after)
    return SurroundingText(before, after) if letters >= MIN_COMMON_LETTERS else None


def _star_differing_indexes(one: str, two: str) -> str:
    """Return a path with `[*]` for each index in which two paths of one form differ."""
    parts = zip(_INDEX.split(one), _INDEX.split(two), strict=True)
    return "".join(a if a == b else "*" for a, b in parts)


def learn_from_twins(
    one: Sequence[Exchange], two: Sequence[Exchange], rules: MatchRules = DEFAULT_RULES
) -> tuple[MatchRule, ...]:
    """Return the rules that two recordings of one agent yield, comparing requests by position.

    A value that an answer of the recording gave the agent yields no rule.
    """
    comparison = RequestComparison(one, rules, None)
    learnt = dict[MatchRule, None]()
    for number, (a, b) in enumerate(zip(one, two, strict=False)):
        was_given = make_given_check(one[:number])
        known = MatchRules((*rules.all, *learnt))
        learnt |= dict.fromkeys(
            collect_learnt_rules(
                find_learnable_differences(a.request, b.request, comparison, known, was_given)
            )
        )
    return tuple(learnt)


def make_given_check(before: Sequence[Exchange]) -> GivenCheck:
    """Return a check whether an earlier answer contains a text; it decodes on first use.

    A short text has to be a whole word or number there: `191` is in many a random id.
    """
    texts = list[str]()

    def is_given(text: str) -> bool:
        if not texts:
            answers = (each.response for each in before)
            texts.extend(
                decode_content_or_raw(each.headers, each.body).decode("utf-8", "replace")
                for each in answers
                if each is not None
            )
        if len(text) >= WHOLE_VALUE_CHARS:
            return any(text in each for each in texts)
        whole = re.compile(_WORD_START + re.escape(text) + _WORD_END)
        return any(whole.search(each) for each in texts)

    return is_given


def make_typed_difference(
    place: str, where: str, shown: str, was: str, now: str, given: GivenCheck = _is_never_given
) -> RequestDifference:
    """Return the difference of two texts at one place, with a rule for each typed value."""
    pairs = pair_differing_values(was, now)
    if not pairs or any(given(a.text) or b.text in REFUSAL_STATUSES for a, b in pairs):
        return RequestDifference(shown, was, now)
    made_rules = tuple(
        MatchRule(kind=a.type, place=place, where=where, around=around)  # type: ignore[arg-type]
        for (a, _), around in zip(
            pairs, _find_surrounding_texts(was, [a for a, _ in pairs]), strict=True
        )
    )
    can_be_written = all(map(_is_parsed_alike, made_rules))
    return RequestDifference(shown, was, now, made_rules if can_be_written else ())


def _is_parsed_alike(rule: MatchRule) -> bool:
    """Return whether a rule is the same when a tape that holds its text is read."""
    try:
        return parse_match_rule(str(rule)) == rule
    except ValueError:
        return False


def _find_surrounding_texts(
    text: str, found: Sequence[TypedValue]
) -> Iterator[SurroundingText | None]:
    """Yield the text around each value, up to the next value that differs or was taken out.

    A rule is applied to a request as it was sent, in which nothing is taken out yet.
    """
    taken_out = [match.span() for match in re.finditer(VOLATILE_TEXT, text)]
    spans = [*taken_out, *((each.start, each.stop) for each in found)]
    for each in found:
        first = max(stop for _, stop in ((0, 0), *spans) if stop <= each.start)
        last = min(start for start, _ in ((len(text), 0), *spans) if start >= each.stop)
        before = text[max(first, each.start - CONTEXT_CHARS) : each.start]
        after = text[each.stop : min(last, each.stop + CONTEXT_CHARS)]
        yield SurroundingText(before, after) if before or after else None


def _find_url_differences(was: str, now: str, rules: MatchRules) -> Iterator[RequestDifference]:
    if rules.normalize_url(was) == rules.normalize_url(now):
        return
    old_url, new_url = urlsplit(was), urlsplit(now)
    old_query, new_query = parse_qsl(old_url.query), parse_qsl(new_url.query)
    if (old_url[:2], old_url.fragment) != (new_url[:2], new_url.fragment) or [
        n for n, _ in old_query
    ] != [n for n, _ in new_query]:
        yield RequestDifference("url", was, now)
        return
    for (name, a), (_, b) in zip(old_query, new_query, strict=True):
        if a != b:
            yield _to_url_part_difference("query", name, f"query.{name}", a, b)
    steps = old_url.path.split("/"), new_url.path.split("/")
    if len(steps[0]) != len(steps[1]):
        yield RequestDifference("url", was, now)
        return
    for number, (a, b) in enumerate(zip(*steps, strict=True)):
        if a != b:
            pattern = "/".join([*steps[0][:number], "*", *steps[0][number + 1 :]])
            yield _to_url_part_difference(
                "path", pattern, f"path.{pattern}", unquote(a), unquote(b)
            )


def _to_url_part_difference(
    place: str, where: str, shown: str, was: str, now: str
) -> RequestDifference:
    """Return the difference of a URL part, with a rule only if the entire part is one value."""
    if place == "query" and _SIGNATURE.search(where) and _are_redacted(was, now):
        rule = MatchRule(kind="signature", place="query", where=where)
        return RequestDifference(shown, was, now, (rule,))
    difference = make_typed_difference(place, where, shown, was, now, _is_never_given)
    if len(difference.rules) == 1 and difference.rules[0].around is None:
        return difference
    return RequestDifference(shown, was, now)


def _are_redacted(*values: str) -> bool:
    return all(PLACEHOLDER.fullmatch(each.encode("utf-8", "replace")) for each in values)


def _read_header_field(request: Request, name: str) -> str:
    return ", ".join(value for field, value in request.headers if field.lower() == name)


def iter_request_leaves(request: Request, rules: MatchRules) -> Iterator[tuple[str, str]]:
    """Yield each value of a body as text, with its path, without what the rules take out."""
    text = decode_content_or_raw(request.headers, request.body) if rules.has_body else b""
    try:
        yield from (
            iter_leaf_texts("", rules.normalize_body(find_dialect(request), parse_exact_json(text)))
            if text
            else ()
        )
    except (ValueError, RecursionError):
        yield "", rules.normalize_text(text).decode("utf-8", "backslashreplace")


def iter_leaf_texts(path: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield each value without children as text, with the path that a divergence prints."""
    for where, each in iter_leaf_values(path, value):
        yield where, each.decode() if isinstance(each, bytes) else _to_leaf_text(each)


def _to_leaf_text(value: object) -> str:
    return value if isinstance(value, str) else repr(value)
