"""A miss explains itself: the nearest recorded request, and where the two part."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from os.path import commonprefix
from urllib.parse import parse_qsl, urlsplit

from replay.alike import blind
from replay.match import BUILT_IN, Match
from replay.rules import Rules
from traces.dialects import lens
from traces.encoding import legible
from traces.model import Exchange, Headers, Request, Response
from traces.redact import PLACEHOLDER
from traces.tape import over

_WINDOW = 40
_MOST = 8
_COMPARED = 1 << 22
"""Bytes of recorded requests that are compared with one that has no answer."""
_SAID = ("messages", "input", "system", "instructions", "contents", "prompt", "tools")
"""The fields of a model request that hold the conversation, in whatever dialect."""


def nearest(
    request: Request, recorded: Iterable[Exchange], rules: Rules = BUILT_IN
) -> Exchange | None:
    """The recorded exchange whose request has the fewest fields that differ.

    Of large ones only those nearest in size are compared, since an agent waits for this.
    """
    path, now, near = request.url.partition("?")[0], _asked(request, rules), tuple(recorded)
    same = [x for x in near if x.request.url.partition("?")[0] == path] or near
    same = [x for x in same if x.request.method == request.method] or same

    def apart(x: Exchange) -> int:
        fields = sum(1 for _ in _parting(_asked(x.request, rules), now))
        url = rules.url(x.request.url) != rules.url(request.url)
        return fields + (x.request.method != request.method) + url

    return min(_of_its_size(same, len(request.body)), key=apart, default=None)


def _of_its_size(recorded: Sequence[Exchange], size: int) -> list[Exchange]:
    """Those nearest in size, one at least, in the order of the recording."""
    sizes = [len(x.request.body) for x in recorded]
    places = sorted(range(len(sizes)), key=lambda place: abs(sizes[place] - size))
    sums = accumulate(sizes[place] for place in places)
    few = [place for place, sum in zip(places, sums, strict=True) if sum <= _COMPARED]
    return [recorded[place] for place in sorted(few or places[:1])]


def explain(request: Request, recorded: Iterable[Exchange], rules: Rules = BUILT_IN) -> str:
    """Why nothing recorded answers this request, in a few lines for a person.

    What the rules pass over is no difference.
    """
    head = f"nothing recorded for {request.method} {request.url}"
    near = nearest(request, recorded, rules)
    if near is None:
        return f"{head}: the recording holds nothing more"
    lines = [f"{head}; nearest is exchange {near.seq}:"]
    found = list(differences(near.request, request, rules))
    for where, was, now in found[:_MOST]:
        lines += [f"  {where}", f"    - {was}", f"    + {now}"]
    if len(found) > _MOST:
        lines.append(f"  and {len(found) - _MOST} more")
    if not found:
        lines.append(f"  no difference: {_no_answer(near)}")
    passing = [rule_for(near.request, request, where) for where, _, _ in found]
    if passing and len(passing) <= _MOST and all(passing):
        said = " ".join(dict.fromkeys(f"--match '{rule}'" for rule in passing))
        lines.append(f"  to let it pass: {said}")
    return "\n".join(lines)


def _no_answer(recorded: Exchange) -> str:
    """Why an exchange that asks the same does not answer it."""
    if over(recorded):
        return "it was asked more often than the recording holds"
    why = recorded.error or "the recording ended before it did"
    return f"its answer is not whole on the tape ({why}), and is not guessed"


def rule_for(was: Request, now: Request, where: str) -> str | None:
    """The rule that would pass over a difference; None where it would pass over what was said.

    What stands in a conversation is what the agent did: a rule for that would let anything pass.
    """
    if where == "method":
        return None
    if where == "url":
        one, two = urlsplit(was.url), urlsplit(now.url)
        old, new = dict(parse_qsl(one.query)), dict(parse_qsl(two.query))
        names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        same = (one.netloc, one.path) == (two.netloc, two.path)
        return f"ignore:query.{names[0]}" if same and len(names) == 1 else None
    top = re.split(r"[.\[]", where, maxsplit=1)[0]
    if where == "body" or (lens(now) is not None and top in _SAID):
        return None
    return "ignore:body." + re.sub(r"\[\d+\]", ".*", where)


def matching(asked: Iterable[Exchange], matched: Mapping[int, Match]) -> Iterator[str]:
    """A line for each request: what it was answered with, and what of it was the same."""
    for exchange in asked:
        request, match = exchange.request, matched.get(exchange.seq)
        head = f"{exchange.seq:4} {request.method} {request.url}"
        if match is None:
            yield f"{head}: {exchange.answered_by}, matched nothing"
            continue
        found = f"{head}: exchange {match.exchange.seq}, same {match.how}"
        apart = [] if match.how == "bytes" else beyond(match.exchange.request, request)
        if match.of is not None:
            found += ", that of its call" if match.of == "call" else ", the next of several"
        more = f" and {len(apart) - _MOST} more" if len(apart) > _MOST else ""
        yield f"{found} but for {', '.join(apart[:_MOST])}{more}" if apart else found


def beyond(was: Request, now: Request) -> list[str]:
    """Where two requests that were matched differ all the same: what rules passed over."""
    raw = changes(fields(was.headers, was.body), fields(now.headers, now.body))
    paths = [path for path, _, _ in raw]
    return ["url", *paths] if was.url != now.url else paths


def differences(was: Request, now: Request, rules: Rules) -> Iterator[tuple[str, str, str]]:
    """(where, recorded, asked) for each field that differs, long texts cut to the difference."""
    if was.method != now.method:
        yield "method", was.method, now.method
    if rules.url(was.url) != rules.url(now.url):
        yield "url", *_window(was.url, now.url)
    yield from changes(_asked(was, rules), _asked(now, rules))


def answer_differences(was: Response, now: Response) -> Iterator[tuple[str, str, str]]:
    """(where, recorded, live) for each field of an answer that differs."""
    if was.status != now.status:
        yield "status", str(was.status), str(now.status)
    yield from changes(fields(was.headers, was.body), fields(now.headers, now.body))


def changes(one: dict[str, str], two: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """(path, this, that) for each path at which two flattened bodies differ."""
    for path in _parting(one, two):
        yield path, *_window(one.get(path, "(absent)"), two.get(path, "(absent)"))


def _parting(one: dict[str, str], two: dict[str, str]) -> Iterator[str]:
    for path in [*one, *(path for path in two if path not in one)]:
        if one.get(path) != two.get(path):
            yield path


def _asked(request: Request, rules: Rules) -> dict[str, str]:
    """The fields of a request's body that count; what secret stood somewhere does not."""
    text = blind(legible(request.headers, request.body))
    try:
        return dict(_flatten("", rules.body(lens(request), json.loads(text)))) if text else {}
    except (ValueError, RecursionError):
        return {"body": text.decode("utf-8", "backslashreplace")}


def fields(headers: Headers, body: bytes) -> dict[str, str]:
    """JSON path to value as JSON; a body that is no JSON is one field, an empty one none.

    What stands where a secret stood is the same, whichever secret of a run it was.
    """
    text = PLACEHOLDER.sub(b"REDACTED", legible(headers, body))
    try:
        return dict(_flatten("", json.loads(text))) if text else {}
    except (ValueError, RecursionError):
        return {"body": text.decode("utf-8", "backslashreplace")}


def _flatten(path: str, value: object) -> Iterator[tuple[str, str]]:
    match value:
        case dict() if value:
            for key, item in value.items():
                yield from _flatten(f"{path}.{key}" if path else str(key), item)
        case list() if value:
            for index, item in enumerate(value):
                yield from _flatten(f"{path}[{index}]", item)
        case _:
            yield path or "body", json.dumps(value, ensure_ascii=False)


def _window(was: str, now: str) -> tuple[str, str]:
    start = max(0, len(commonprefix([was, now])) - _WINDOW // 2)
    return _cut(was, start), _cut(now, start)


def _cut(text: str, start: int) -> str:
    part = text[start : start + 2 * _WINDOW]
    return ("…" if start else "") + part + ("…" if start + 2 * _WINDOW < len(text) else "")
