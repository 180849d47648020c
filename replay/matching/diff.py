"""Explain a miss: the nearest recorded request, and where the two differ."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from os.path import commonprefix
from urllib.parse import parse_qsl, urlsplit

from replay.matching.body_path import iter_leaf_values
from replay.matching.canonical_key import PlaceholderNormalizer
from replay.matching.headers import find_uncounted_fields
from replay.matching.index import BUILT_IN_RULES, RequestMatch
from replay.matching.request_comparison import RequestComparison
from replay.matching.rules import RULE_PLACES, MatchRules, parse_match_rule
from traces.bodies.canonical_json import parse_exact_json
from traces.bodies.content_encoding import decode_content_or_raw
from traces.dialects import find_dialect
from traces.model import Exchange, Headers, Request, Response
from traces.redaction.placeholder import PLACEHOLDER
from traces.tape.table_of_contents import is_complete_exchange

_INDEX = re.compile(r"\[\d+\]")
_WINDOW_CHARS = 40
_MAX_DIFFERENCES = 8
_MAX_EDITED_FIELDS = 3
"""A person edits a prompt or two; an agent that goes another way changes more."""
_MAX_COMPARED_BYTES = 1 << 22
"""Maximum total size of recorded requests compared with one that has no answer, in bytes."""
_DEFAULT_COMPARISON = RequestComparison((), BUILT_IN_RULES, ())
_CONVERSATION_FIELDS = (
    "messages",
    "input",
    "system",
    "instructions",
    "contents",
    "prompt",
    "tools",
)
"""The fields of a model request that contain the conversation, in any dialect."""


def find_nearest_exchange(
    request: Request,
    recorded: Iterable[Exchange],
    rules: MatchRules = BUILT_IN_RULES,
    comparison: RequestComparison = _DEFAULT_COMPARISON,
) -> Exchange | None:
    """Return the recorded exchange whose request has the fewest differing fields.

    Of large ones, only those nearest in size are compared, because an agent waits for this.
    """
    path, candidates, normalize = request.url.partition("?")[0], tuple(recorded), comparison.blind
    now = _flatten_request_body(request, rules, normalize)
    similar = [x for x in candidates if x.request.url.partition("?")[0] == path] or candidates
    similar = [x for x in similar if x.request.method == request.method] or similar

    def count_differences(x: Exchange) -> int:
        fields = sum(
            1
            for _ in _iter_differing_paths(_flatten_request_body(x.request, rules, normalize), now)
        )
        url = _to_comparable_url(x.request, rules, normalize) != _to_comparable_url(
            request, rules, normalize
        )
        head = len(comparison.find_differing_fields(x, request))
        return fields + (x.request.method != request.method) + url + head

    return min(
        _filter_nearest_in_size(similar, len(request.body)), key=count_differences, default=None
    )


def _filter_nearest_in_size(recorded: Sequence[Exchange], size: int) -> list[Exchange]:
    """Return the exchanges nearest in size, at least one, in recorded order."""
    sizes = [len(x.request.body) for x in recorded]
    order = sorted(range(len(sizes)), key=lambda place: abs(sizes[place] - size))
    sums = accumulate(sizes[place] for place in order)
    selected = [place for place, sum in zip(order, sums, strict=True) if sum <= _MAX_COMPARED_BYTES]
    return [recorded[place] for place in sorted(selected or order[:1])]


def explain_miss(
    request: Request,
    recorded: Iterable[Exchange],
    rules: MatchRules = BUILT_IN_RULES,
    comparison: RequestComparison = _DEFAULT_COMPARISON,
    conflict: str | None = None,
) -> str:
    """Explain why nothing recorded answers this request, in a few lines for a person.

    Parts that the rules ignore are no difference. `conflict` is why a value of the client may not
    stand for the recorded one.
    """
    head = f"nothing recorded for {request.method} {request.url}"
    nearest = find_nearest_exchange(request, recorded, rules, comparison)
    if nearest is None:
        return f"{head}: the recording holds nothing more"
    lines = [f"{head}; nearest is exchange {nearest.seq} (- recorded, + now):"]
    differences = list(find_request_differences(nearest, request, rules, comparison))
    for path, old, new in differences[:_MAX_DIFFERENCES]:
        lines += [f"  {path}", f"    - {old}", f"    + {new}"]
    if len(differences) > _MAX_DIFFERENCES:
        lines.append(f"  and {len(differences) - _MAX_DIFFERENCES} more")
    if not differences:
        why = None if conflict else _explain_no_answer(nearest)
        lines += [f"  no difference: {why}"] if why else []
    if conflict:
        lines.append(f"  {conflict}")
    if options := _find_passing_rules(nearest, request, differences, rules, comparison):
        lines.append("  to let it pass: " + " ".join(f"--match '{rule}'" for rule in options))
    elif options := _find_edit_rules(nearest, request, differences, rules, comparison):
        lines.append(
            "  after an edit, record again (stumble accept TAPE --record); else leave it out: "
            + " ".join(f"--match '{rule}'" for rule in options)
        )
    return "\n".join(lines)


def _find_passing_rules(
    nearest: Exchange,
    request: Request,
    differences: Sequence[tuple[str, str, str]],
    rules: MatchRules,
    comparison: RequestComparison,
) -> tuple[str, ...]:
    """Return rules with which the requests match, each tried before it is offered; () if none."""
    if len(differences) > _MAX_DIFFERENCES:
        return ()
    paths = [path for path, _, _ in differences]
    for forms in (paths, [_INDEX.split(path, maxsplit=1)[0] or path for path in paths]):
        texts = [find_passing_rule(nearest.request, request, path) for path in forms]
        found = tuple(dict.fromkeys(text for text in texts if text is not None))
        if None in texts or not found:
            return ()
        try:
            wider = MatchRules((*rules.all, *map(parse_match_rule, found)))
        except ValueError:  # a key that no rule can name
            return ()
        left = find_request_differences(nearest, request, wider, comparison)
        if all(f"ignore:{path}" in found for path, _, _ in left):  # fields of the header
            return found
    return ()


def _find_edit_rules(
    nearest: Exchange,
    request: Request,
    differences: Sequence[tuple[str, str, str]],
    rules: MatchRules,
    comparison: RequestComparison,
) -> tuple[str, ...]:
    """Return rules that ignore the changed messages alone, by index; () if they are not enough.

    Unlike the rules of `_find_passing_rules` they ignore what the agent said, and only there.
    """
    if len(differences) > _MAX_EDITED_FIELDS:
        return ()
    found = tuple(f"ignore:{path}" for path, _, _ in differences)
    try:
        wider = MatchRules((*rules.all, *map(parse_match_rule, found)))
    except ValueError:  # the method, or a key that no rule can name
        return ()
    left = next(find_request_differences(nearest, request, wider, comparison), None)
    return found if left is None else ()


def _explain_no_answer(recorded: Exchange) -> str:
    """Explain why an exchange with an equal request does not answer it."""
    if is_complete_exchange(recorded):
        return "it was asked more often than the recording holds"
    reason = recorded.error or "the recording ended before it did"
    return f"its answer is not whole on the tape ({reason}), and is not guessed"


def find_passing_rule(was: Request, now: Request, where: str) -> str | None:
    """Return the rule that would ignore a difference; None if it would ignore the conversation.

    The content of a conversation is the agent's behaviour: a rule for that would ignore any change.
    """
    if where == "method":
        return None
    if where.startswith("header."):
        return f"ignore:{where}"
    if where == "url":
        old_url, new_url = urlsplit(was.url), urlsplit(now.url)
        old_query, new_query = dict(parse_qsl(old_url.query)), dict(parse_qsl(new_url.query))
        names = [
            name
            for name in {**old_query, **new_query}
            if old_query.get(name) != new_query.get(name)
        ]
        same_path = (old_url.netloc, old_url.path) == (new_url.netloc, new_url.path)
        return f"ignore:query.{names[0]}" if same_path and len(names) == 1 else None
    top = re.split(r"[.\[]", where, maxsplit=1)[0]
    if where == "body" or (find_dialect(now) is not None and top in _CONVERSATION_FIELDS):
        return None
    return "ignore:body." + _INDEX.sub(".*", where.removeprefix("body.")).removeprefix(".")


def describe_matches(
    exchanges: Iterable[Exchange], matched: Mapping[int, RequestMatch]
) -> Iterator[str]:
    """Yield a line per redacted request: its answer, and which parts of it matched."""
    for exchange in exchanges:
        request, match = exchange.request, matched.get(exchange.seq)
        head = f"{exchange.seq:4} {request.method} {request.url}"
        if match is None:
            yield f"{head}: {exchange.answered_by}, matched nothing"
        else:
            yield f"{head}: {describe_match(request, match)}"


def describe_match(request: Request, match: RequestMatch) -> str:
    """Return which exchange a redacted request matched, and in what the two differ nevertheless."""
    was, line = match.exchange.request, f"exchange {match.exchange.seq}, same {match.kind}"
    if match.choice is not None:
        line += ", that of its call" if match.choice == "call" else ", the next of several"
    line += "".join(f", {now} for {was}" for was, now in match.renamed)
    is_exact = was.headers == request.headers and match.kind == "bytes"
    ignored = [] if is_exact else find_ignored_differences(was, request)
    more = len(ignored) - _MAX_DIFFERENCES
    rest = f" and {more} more" if more > 0 else ""
    return f"{line} but for {', '.join(ignored[:_MAX_DIFFERENCES])}{rest}" if ignored else line


def find_ignored_differences(was: Request, now: Request) -> list[str]:
    """Return where two matched requests differ nevertheless: the parts that rules ignored."""
    differences = find_changed_fields(
        flatten_body(was.headers, was.body), flatten_body(now.headers, now.body)
    )
    paths = [path for path, _, _ in differences]
    fields = [f"header.{name}" for name in find_uncounted_fields(was.headers, now.headers)]
    return [*(["url"] if was.url != now.url else []), *fields, *paths]


def find_request_differences(
    near: Exchange,
    now: Request,
    rules: MatchRules,
    comparison: RequestComparison = _DEFAULT_COMPARISON,
) -> Iterator[tuple[str, str, str]]:
    """Yield (where, recorded, asked) per differing field; long texts are cut to the difference."""
    was, normalize = near.request, comparison.blind
    if was.method != now.method:
        yield "method", was.method, now.method
    if _to_comparable_url(was, rules, normalize) != _to_comparable_url(now, rules, normalize):
        yield "url", *cut_to_difference(was.url, now.url)
    for name in comparison.find_differing_fields(near, now):
        field = name.partition(" ")[0]
        yield (
            f"header.{field}",
            _join_header_values(was.headers, field),
            _join_header_values(now.headers, field) + comparison.explain_field(near, name),
        )
    for path, old, new in find_changed_fields(
        _flatten_request_body(was, rules, normalize), _flatten_request_body(now, rules, normalize)
    ):
        is_ambiguous = re.split(r"[.\[]", path, maxsplit=1)[0] in (*RULE_PLACES, "url", "method")
        yield f"body.{path}" if is_ambiguous and path != "body" else path, old, new


def _to_comparable_url(request: Request, rules: MatchRules, blind: PlaceholderNormalizer) -> bytes:
    return blind(rules.normalize_url(request.url).encode("utf-8", "surrogatepass"))


def _join_header_values(headers: Headers, name: str) -> str:
    values = [value for field, value in headers if field.lower() == name]
    return ", ".join(values) if values else "(absent)"


def find_answer_differences(was: Response, now: Response) -> Iterator[tuple[str, str, str]]:
    """Yield (where, recorded, live) for each field in which two answers differ."""
    if was.status != now.status:
        yield "status", str(was.status), str(now.status)
    yield from find_changed_fields(
        flatten_body(was.headers, was.body), flatten_body(now.headers, now.body)
    )


def find_changed_fields(one: dict[str, str], two: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (path, this, that) for each path at which two flattened bodies differ."""
    for path in _iter_differing_paths(one, two):
        yield path, *cut_to_difference(one.get(path, "(absent)"), two.get(path, "(absent)"))


def _iter_differing_paths(one: dict[str, str], two: dict[str, str]) -> Iterator[str]:
    for path in [*one, *(path for path in two if path not in one)]:
        if one.get(path) != two.get(path):
            yield path


def _flatten_request_body(
    request: Request, rules: MatchRules, blind: PlaceholderNormalizer
) -> dict[str, str]:
    """Return the fields of a request's body that count."""
    text = blind(decode_content_or_raw(request.headers, request.body)) if rules.has_body else b""
    try:
        return (
            dict(
                _flatten_json(
                    "", rules.normalize_body(find_dialect(request), parse_exact_json(text))
                )
            )
            if text
            else {}
        )
    except (ValueError, RecursionError):
        return {"body": rules.normalize_text(text).decode("utf-8", "backslashreplace")}


def flatten_body(headers: Headers, body: bytes) -> dict[str, str]:
    """Map JSON paths to values as JSON; a body that is not JSON is one field, an empty one none.

    All redacted secrets compare as equal.
    """
    text = PLACEHOLDER.sub(b"REDACTED", decode_content_or_raw(headers, body))
    try:
        return dict(_flatten_json("", json.loads(text))) if text else {}
    except (ValueError, RecursionError):
        return {"body": text.decode("utf-8", "backslashreplace")}


def _flatten_json(path: str, value: object) -> Iterator[tuple[str, str]]:
    for where, each in iter_leaf_values(path, value):
        text = each.decode() if isinstance(each, bytes) else json.dumps(each, ensure_ascii=False)
        yield where or "body", text


def cut_to_difference(was: str, now: str) -> tuple[str, str]:
    """Return both texts from shortly before their first difference, a few words long."""
    start = max(0, len(commonprefix([was, now])) - _WINDOW_CHARS // 2)
    return _cut_window(was, start), _cut_window(now, start)


def _cut_window(text: str, start: int) -> str:
    part = text[start : start + 2 * _WINDOW_CHARS]
    return ("…" if start else "") + part + ("…" if start + 2 * _WINDOW_CHARS < len(text) else "")
