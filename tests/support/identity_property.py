"""The property of identity: who asks counts, in every place that can carry it, and in any order.

`is_allowed` is written from the table in docs/matching.md and shares nothing with the matcher.
"""

import re
from collections.abc import Iterator, Sequence
from copy import replace
from pathlib import Path
from random import Random

from replay.matching.diff import describe_matches
from tests.support.request_mutations import Change, changed, same, tree
from tests.support.strict_property import is_same, requests
from tests.support.strict_replay import StrictReplay, asked, recorded, secrets_of
from traces.model import Exchange, Headers, Request
from traces.tape.reader import Tape

A, B = "3f2b8f0e-7c1d-4a53-9a64-1f0c2d3e4b5a", "9d8c7b6a-5f4e-4d3c-8b2a-190817263545"
JSON: Headers = (("content-type", "application/json"), ("user-agent", "agent/1.0"))
FORM: Headers = (("content-type", "application/x-www-form-urlencoded"),)
CHAT = '{"model": "m", "messages": [{"role": "user", "content": "of %s"}]}'
BASES: tuple[Request, ...] = (
    asked("GET", "http://shop-1/me", b"", cookie="user=ann; lang=de; sid=0123456789abcdef"),
    asked("GET", "http://shop-2/me", b"", cookie="is_admin=0; cart=17", x_tenant="one"),
    asked("GET", f"http://shop-3/of/{A}?at=1795812345", b"", authorization="Bearer short"),
    asked("POST", "http://shop-4/pay", f'{{"tenant": "{A}", "n": 1}}', JSON, x_api_key="k1"),
    asked("POST", "http://shop-5/pay", '{"from": 17, "to": 18}', JSON, x_session_id=A),
    asked("POST", "http://shop-6/login", "user=ann&pin=1&token=abc", FORM, cookie="step=1"),
    asked("POST", "http://shop-7/soap", f"<e><id>urn:uuid:{A}</id><to>ann</to></e>", x_run_as=A),
    asked("POST", "http://m-1/v1/chat/completions", CHAT % "ann", JSON, x_session_id=A),
    asked("POST", "http://m-2/v1/chat/completions", CHAT % A, JSON, x_tenant_id=A, x_org="o"),
    asked("POST", "http://m-3/v1/chat/completions", CHAT % "bob", JSON, x_request_id=A),
    asked("DELETE", "http://shop-8/of/17", b"", idempotency_key=f"retry-{A}", x_user="17"),
)
LOGINS, SESSION_COOKIE = ("authorization", "x-api-key"), "sid"
CONNECTION = ("user-agent", "traceparent")
OF_THE_RUN = ("x-session-id", "x-request-id", "idempotency-key")
_DRAWN = re.compile(
    r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{32}\b|\b1[5-9]\d{8}\b"
)
_TIME = re.compile(r"\b1[5-9]\d{8}\b")
_ID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b1[5-9]\d{8}\b")


def cookie(chance: Random, request: Request) -> Request:
    """Change, drop, add or rename one cookie, or write them in another order."""
    jar = [pair for name, text in request.headers if name == "cookie" for pair in text.split("; ")]
    at = chance.randrange(len(jar) + 1)
    if at == len(jar):
        jar.append(chance.choice(("user=bob", "sid=ffff456789abcdef", "tenant=two")))
    else:
        name, _, value = jar[at].partition("=")
        new = (f"{name}={value}1", f"{name}=", f"{name}x={value}", "")
        jar[at] = chance.choice(new)
    chance.shuffle(jar)
    return _with_field(request, "cookie", "; ".join(filter(None, jar)))


def login(chance: Random, request: Request) -> Request:
    """Send another login, none, an empty one, or a second one."""
    name = chance.choice(LOGINS)
    return _with_field(request, name, chance.choice(("Bearer other", "Basic YTpi", "", "k2", None)))


def drawn(chance: Random, request: Request) -> Request:
    """Put another id or time in the place of one, in header, URL or body."""
    other = chance.choice((A, B, f"{chance.getrandbits(128):032x}", "1795812399"))
    places = chance.choice(("headers", "url", "body"))
    if places == "headers":
        fields = tuple((name, _DRAWN.sub(other, value)) for name, value in request.headers)
        return replace(request, headers=fields)
    if places == "url":
        return replace(request, url=_ID.sub(other.encode(), request.url.encode()).decode())
    return replace(request, body=_ID.sub(other.encode(), request.body))


def exchanged(chance: Random, request: Request) -> Request:
    """Let two fields of the header change places."""
    if len(request.headers) < 2:
        return cookie(chance, request)
    (one, a), (two, b) = chance.sample(request.headers, 2)
    return _with_field(_with_field(request, one, b), two, a)


def pair(chance: Random, request: Request) -> Request:
    """Change, drop or double one pair of a form or a query."""
    text = request.body.decode("latin-1")
    pairs = text.split("&")
    at = chance.randrange(len(pairs))
    pairs[at : at + 1] = chance.choice(([], [pairs[at]] * 2, [pairs[at] + "x"], ["user=bob"]))
    return replace(request, body="&".join(pairs).encode("latin-1"))


def _with_field(request: Request, name: str, value: str | None) -> Request:
    rest = tuple(each for each in request.headers if each[0] != name)
    return replace(request, headers=rest if value is None else (*rest, (name, value)))


IDENTITY_CHANGES: tuple[Change, ...] = (cookie, login, drawn, exchanged, pair)


def mutate(chance: Random, request: Request) -> Request:
    """Return the request with one to three changes, one of them as a rule of identity."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        is_identity = chance.random() < 0.7
        request = (
            chance.choice(IDENTITY_CHANGES)(chance, request)
            if is_identity
            else changed(chance, request)
        )
    return request


def all_bases() -> list[Request]:
    """Return requests of each dialect and of each place for an identity."""
    return [*BASES, *requests()]


def is_allowed(was: Request, now: Request, known: Sequence[Request]) -> bool:
    """Return whether a row of the table lets the second request get the answer of the first."""
    if (was.method, was.url) != (now.method, now.url):
        return False
    old, new = _fields(was), _fields(now)
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if not all(_is_field_allowed(name, old, new, now, known) for name in names):
        return False
    there = replace(now, headers=was.headers)
    is_simple = was in BASES and "/chat/" not in was.url
    return same(was, there) if is_simple else is_same(was, there)


def _is_field_allowed(
    name: str, old: dict[str, str], new: dict[str, str], now: Request, known: Sequence[Request]
) -> bool:
    was, value = old.get(name), new.get(name)
    if name in CONNECTION:
        return True
    if was is None or value is None:
        if name == "cookie" and not (was or value):
            return True  # no cookie is in it
        pairs = str(value).split("; ")
        is_login = name in LOGINS or (
            name == "cookie" and all(p.lower().startswith("sid=") for p in pairs)
        )
        return is_login and not old  # none of its fields was recorded
    if name in LOGINS:
        return bool(was and value)
    if name == "cookie":
        one, two = _read_cookies(was), _read_cookies(value)
        others = {each for each in {**one, **two} if one.get(each) != two.get(each)}
        is_there = all(any(each.get(SESSION_COOKIE, ["x"])) for each in (one, two))
        return others <= {SESSION_COOKIE} and is_there
    is_of_run = name in OF_THE_RUN or ("/chat/" in now.url and name not in ("x-tenant-id", "x-org"))
    is_drawn = _DRAWN.sub("", was) == _DRAWN.sub("", value)
    is_drawn = is_drawn and _TIME.findall(was) == [] == _TIME.findall(value)
    is_elsewhere = any(value == text for each in known for n, text in each.headers if n == name)
    return is_of_run and is_drawn and not is_elsewhere


def _read_cookies(field: str) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    for pair in field.split("; "):
        name, _, value = pair.partition("=")
        found.setdefault(name, []).append(value)
    return found


def _fields(request: Request) -> dict[str, str]:
    found = dict[str, str]()
    for name, value in request.headers:
        name = name.lower()
        found[name] = f"{found[name]}, {value.strip()}" if name in found else value.strip()
    return found


def unprinted_places(was: Request, now: Request, line: str) -> list[str]:
    """Return where two requests differ without a word of it in the line that `-v` prints.

    An empty cookie field is no difference.
    """
    old, new = _fields(was), _fields(now)
    places = [f"header.{n}" for n in {**old, **new} if old.get(n, "") != new.get(n, "")]
    places += ["url"] if was.url != now.url else []
    if not same(was, replace(now, headers=was.headers, url=was.url)):
        places += ["but for"]
    return [] if " more" in line else [each for each in places if each not in line]


def find_wrong_answers(folder: Path, count: int, seed: int = 1) -> Iterator[str]:
    """Yield a line for each changed request that got an answer which no printed rule allows."""
    secrets, bases, chance = secrets_of(), all_bases(), Random(seed)
    tape = recorded(folder / "a.tape", bases, secrets)
    replay = StrictReplay(tape, secrets)
    for number in range(count):
        base = bases[number % len(bases)]
        request = mutate(chance, base)
        match = replay.find(request)
        if match is None:
            continue
        own = bases[match.exchange.seq]
        redacted = replay.redactor.redact_request(request)
        exchange = Exchange(seq=0, request=redacted, answered_by="recorded")
        (line,) = describe_matches([exchange], {0: match})
        replay = StrictReplay(tape, secrets)
        if not is_allowed(own, request, bases):
            yield f"allowed by no row: {own} {request}"
        if hidden := unprinted_places(own, request, line):
            yield f"not printed: {hidden} in {line}"


def find_swapped_answers(folder: Path, count: int, seed: int = 1) -> Iterator[str]:
    """Yield a line for each recorded request that got another answer than its own, in any order."""
    chance, bases, asked_count, refused = Random(seed), all_bases(), 0, 0
    while asked_count < count:
        variants = [each for each in bases for _ in range(4)]
        variants = [*bases, *(mutate(chance, each) for each in variants)]
        tape, distinct = _record_distinct(folder / f"{asked_count}.tape", variants)
        replay, order = StrictReplay(tape), list(range(len(distinct)))
        plain = {exchange.request.body for exchange in tape.exchanges}
        chance.shuffle(order)
        for seq in order:
            on_tape, redacted = tape.exchanges[seq].request, replay.redactor.redact_request
            is_unlike = _normalize(redacted(distinct[seq])) != _normalize(on_tape)
            if is_unlike or on_tape.body != distinct[seq].body in plain:
                refused += 1  # a value that is a secret in one of two requests alone
                continue
            found = replay.ask(distinct[seq])
            refused += found is None
            if found not in (seq, None):
                yield f"{seq} got {found}: {distinct[seq]}"
        asked_count += len(order)
    if refused > asked_count // 10:  # a placeholder that nobody gave, a secret that is a word
        yield f"{refused} of {asked_count} recorded requests were refused"


def _record_distinct(path: Path, variants: Sequence[Request]) -> tuple[Tape, list[Request]]:
    """Return a recording, and its requests without those that are the same after redaction."""
    different = list({_normalize(each): each for each in variants}.values())
    whole = recorded(path.with_suffix(".all"), different)
    seen = dict[object, Request]()
    for exchange, request in zip(whole.exchanges, different, strict=True):
        seen.setdefault(_normalize(exchange.request), request)
    distinct = list(seen.values())
    return recorded(path, distinct), distinct


def _normalize(request: Request) -> object:
    """Return what is equal for requests that no row of the table tells from each other.

    A message to a server of tools is known by what it says, since clients count them.
    """
    body: object = request.body
    if b'"jsonrpc"' in request.body:
        body = tree(re.sub(rb'"(?:id|progressToken)":\s*[^,}]*', b'"id":0', request.body))
    head = tuple(sorted((name.lower(), value.strip()) for name, value in request.headers))
    return request.method, request.url, head, repr(body)
