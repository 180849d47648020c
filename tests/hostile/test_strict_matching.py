"""Pairs of requests that differ in one thing: a strict replay never takes one for the other.

Each pair is recorded in one order and asked in the other. Each request gets its own answer, and
the one that was not recorded gets none.
"""

import gzip
import json
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from replay.matching.rules import MatchRules, parse_match_rule
from tests.support.strict_replay import (
    StrictReplay,
    asked,
    recorded,
    secrets_of,
)
from traces.model import Headers, Request

CHAT = "http://m/v1/chat/completions"
CLAUDE = "http://m/v1/messages"
CODEX = "http://m/v1/responses"
GEMINI = "http://m/v1beta/models/g:generateContent"
MCP = "http://tools/mcp"
JSON: Headers = (("content-type", "application/json"),)
FORM: Headers = (("content-type", "application/x-www-form-urlencoded"),)
LONG = "reports-2025-00000001"
UUID, OTHER = "3f2b8f0e-7c1d-4a53-9a64-1f0c2d3e4b5a", "9d8c7b6a-5f4e-4d3c-8b2a-190817263545"

type Pair = tuple[Request, Request]


def urls(*pairs: tuple[str, str]) -> list[Pair]:
    return [(asked("GET", f"http://h{a}"), asked("GET", f"http://h{b}")) for a, b in pairs]


def bodies(url: str, *pairs: tuple[str, str], headers: Headers = JSON) -> list[Pair]:
    return [(asked("POST", url, a, headers), asked("POST", url, b, headers)) for a, b in pairs]


def fields(name: str, *values: tuple[str, str]) -> list[Pair]:
    url = "http://h/object"
    return [
        (asked("GET", url, b"", ((name, a),)), asked("GET", url, b"", ((name, b),)))
        for a, b in values
    ]


def turns(*pairs: tuple[str, str]) -> list[Pair]:
    url = "wss://h/socket"
    return [(asked("TEXT", url, a), asked("TEXT", url, b)) for a, b in pairs]


def call(**said: object) -> Request:
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"} | said
    return asked("POST", MCP, json.dumps(body), JSON)


def tool(name: str = "get", arguments: object = None, meta: object = None) -> Request:
    params = {"name": name, "arguments": {} if arguments is None else arguments}
    return call(params=params if meta is None else params | {"_meta": meta})


def stdio(text: str) -> Request:
    return asked("MESSAGE", "stdio://shop/", text)


def multipart(key: str, limit: str = "XX", of: str = "file") -> Request:
    body = f'--{limit}\r\ncontent-disposition: form-data; name="{of}"\r\n\r\n{key}\r\n--{limit}--'
    return asked(
        "POST", "http://h/up", body, (("content-type", f"multipart/form-data; boundary={limit}"),)
    )


def model(url: str, **said: object) -> Request:
    return asked("POST", url, json.dumps(said), JSON)


def chat(text: str = "go", **more: object) -> Request:
    return model(CHAT, model="m", messages=[{"role": "user", "content": text}], **more)


def claude(text: str = "go", **more: object) -> Request:
    said = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    return model(CLAUDE, model="m", max_tokens=9, messages=said, **more)


def codex(text: str = "go", **more: object) -> Request:
    said = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]
    return model(CODEX, model="m", input=said, **more)


def codex_output(output: str) -> Request:
    said = {"type": "function_call_output", "call_id": "c1", "output": output}
    return model(CODEX, model="m", input=[said])


def gemini(text: str = "go", **more: object) -> Request:
    return model(GEMINI, contents=[{"role": "user", "parts": [{"text": text}]}], **more)


ADDRESSES = urls(
    (f"/o?key={LONG}", "/o?key=reports-2025-00000099"),
    ("/o?token=next-page-0000000000001", "/o?token=next-page-0000000000002"),
    ("/o?code=PRODUCT-1234-ABCDEFGH", "/o?code=PRODUCT-1234-ABCDEFGX"),
    ("/o?k=warehouse-9-section-0004", "/o?k=warehouse-9-section-0005"),
    ("/o?auth=tenant-one-000000001", "/o?auth=tenant-two-000000001"),
    ("/login?password=right-one", "/login?password=wrong-two"),
    ("/login?password=right-one", "/login?password=right-onf"),
    ("/o?access_token=abcdefgh12345678ijkl", "/o?access_token=abcdefgh12345678ijkm"),
    ("/o?api_key=0123456789abcdefghij", "/o?api_key=0123456789abcdefghik"),
    ("/o?api_key=0123456789abcdefghij", "/o?api_key=0123456789abcdefghijk"),
    ("/o?sig=QUJDREVGR0g", "/o?sig=QUJDREVGR0h"),
    ("/flight/RDa1Z", "/flight/RDb22xxZ"),
    ("/flight/RDa1Z", "/flight/RDa1xZ"),
    ("/flight/REDACTEDk1Z", "/flight/REDACTEDk1xxZ"),
    ("/a", "/a?"),
    ("/a", "/a#"),
    ("/a?b=1+2", "/a?b=1%202"),
    ("/a?b=1&c=2", "/a?c=2&b=1"),
    ("/a%2Fb", "/a/b"),
    ("/A", "/a"),
    ("/a/", "/a"),
    ("/u?to=https%3A%2F%2Fjoe%3Apw-0001%40h", "/u?to=https%3A%2F%2Fjoe%3Apw-0002%40h"),
)
HEADERS = [
    *fields("range", ("bytes=0-9", "bytes=900-999")),
    *fields("x-amz-target", ("DynamoDB_20120810.GetItem", "DynamoDB_20120810.DeleteItem")),
    *fields("soapaction", ('"urn:get"', '"urn:delete"')),
    *fields("x-http-method-override", ("GET", "DELETE")),
    *fields("accept", ("application/json", "text/csv")),
    *fields("accept-language", ("de", "en")),
    *fields("content-type", ("text/plain", "text/html")),
    *fields("if-none-match", ('"a1"', '"a2"')),
    *fields("if-match", ('"a1"', '"a2"')),
    *fields(
        "if-modified-since", ("Sat, 04 Mar 2023 18:02:08 GMT", "Sat, 04 Mar 2023 18:02:09 GMT")
    ),
    *fields("x-tenant", ("one", "two")),
    *fields("x-tenant-id", (UUID, OTHER)),
    *fields("x-tenant-key", ("customer11", "customer22")),
    *fields("sort-key", ("name", "size")),
    *fields("x-api-version", ("1", "2")),
    *fields("prefer", ("return=minimal", "return=representation")),
    *fields("depth", ("0", "infinity")),
    *fields("destination", ("http://h/x", "http://h/y")),
    *fields("x-session-id", ("first", "second")),
    *fields("authorization", ("Bearer token-of-user-one-1", "Bearer token-of-user-two-2")),
    *fields("cookie", ("sid=session-of-user-1", "sid=session-of-user-2")),
    *fields("x-api-key", ("key-of-user-one-0001", "key-of-user-two-0002")),
    *fields("mcp-session-id", (UUID, OTHER)),
    *fields("mcp-name", ("get", "delete")),
    *fields("anthropic-version", ("2023-06-01", "2024-06-01")),
    *fields("openai-beta", ("assistants=v1", "assistants=v2")),
    *fields("sec-websocket-protocol", ("graphql-ws", "graphql-transport-ws")),
    *fields("x-partition-key", ("p1", "p2")),
    *fields("order-request-id", ("A1", "A2")),
    *fields("x-request-id", ("one", "two")),
    *fields("x-run-as", (UUID, OTHER)),
    *fields("baggage", ("tenant=one", "tenant=two")),
    *fields("upgrade", ("h2c", "websocket")),
]
COOKIES = [
    *fields(
        "Cookie", ("user=ann", "user=bob"), ("lang=de", "lang=en"), ("is_admin=0", "is_admin=1")
    ),
    *fields("Cookie", ("cart=1", "cart=2"), ("a=1; b=2", "a=1"), ("page=1", "seite=1")),
    *fields("Cookie", ("a=1; a=2", "a=3; a=2"), ("currency=eur", "currency=usd")),
]
ANY: Headers = (("accept", "*/*"),)
PRESENCE = [
    (
        asked("GET", "http://h/object", b"", (*ANY, (name, value))),
        asked("GET", "http://h/object", b"", ANY),
    )
    for name, value in (
        ("Authorization", "Bearer tok-0000000000000001"),
        ("Authorization", "Token 1"),
        ("Authorization", "AWS4-HMAC-SHA256 Credential=a/b, Signature=c"),
        ("Cookie", "user=ann"),
        ("Cookie", "sid=session-of-user-1"),
        ("api-key", "short"),
        ("X-Access-Key", "k"),
        ("X-Hub-Signature", "sha1=0123456789abcdef"),
    )
]
TWO_LOGINS = [
    *fields("authorization", ("Token 1", "Token 2"), ("Bearer a", "Bearer b")),
    *fields("authorization", ("Basic YTpi", "Basic YTpj"), ("Bearer x", "Token x")),
    *fields("api-key", ("short", "other"), ("k", "l")),
    *fields("x-access-key", ("1", "2")),
    *fields("cookie", ("session=1", "session=2")),
    *fields("user-agent", ("one", "two")),
]
NUMBERS = (
    ('{"a":1e400}', '{"a":null}'),
    ('{"a":1e400}', '{"a":1e500}'),
    ('{"a":0.1}', '{"a":0.10000000000000000001}'),
    ('{"a":1}', '{"a":1.0}'),
    ('{"a":1.0}', '{"a":1.00}'),
    ('{"a":1e2}', '{"a":100}'),
    ('{"a":-0}', '{"a":0}'),
    ('{"a":-0.0}', '{"a":0.0}'),
    ('{"a":9007199254740993}', '{"a":9007199254740992}'),
    ('{"a":123456789012345678901}', '{"a":123456789012345678902}'),
    ('{"a":NaN}', '{"a":null}'),
    ('{"a":NaN}', '{"a":{"NaN":{}}}'),
    ('{"a":Infinity}', '{"a":"Infinity"}'),
    ('{"a":1}', '{"a":"1"}'),
    ('{"a":true}', '{"a":1}'),
    ('{"a":null}', "{}"),
    ('{"a":[]}', '{"a":{}}'),
    ('{"a":[1,2]}', '{"a":[2,1]}'),
    ('{"a":1,"a":2}', '{"a":3,"a":2}'),
    ('{"a":1,"a":2}', '{"a":2}'),
    ('{"a":1,"a":2}', '{"a":2,"a":1}'),
    ('{"a":"é"}', '{"a":"e\u0301"}'),
    ('{"a":"x"}', '{"a":"x\\u0000"}'),
    ('{"a":"\\ud800"}', '{"a":"\\ud801"}'),
    ('{"flight":"RDa1Z"}', '{"flight":"RDb22Z"}'),
    ('{"a":"VOLATILE"}', '{"a":"REDACTED"}'),
    ('["a","b"]', '["a",["b"]]'),
)
TEXTS = (
    ('{"api_key":"0123456789abcdefghij"}', '{"api_key":"0123456789abcdefghix"}'),
    ('{"password":"right-one"}', '{"password":"wrong-two"}'),
    ('{"password":"hunter2hunter2"}', '{"password":"REDACTEDk1xxxZ"}'),
    ('{"password":"hunter22"}', '{"password":"RDk1xxxZ"}'),
    ('{"key":"sk-proj-AbCd0123456789AbCd0"}', '{"key":"sk-proj-AbCd0123456789AbCd1"}'),
    ('{"url":"postgres://app:pw-000001@db"}', '{"url":"postgres://app:pw-000002@db"}'),
    ("plain text 1", "plain text 2"),
    ("plain text", "plain  text"),
    ("\ufeff{}", "{}"),
    ("", "{}"),
)


def both(make: Callable[..., Request], **values: tuple[object, object]) -> Pair:
    """Two requests of one kind that differ in these fields."""
    one, two = ({name: pair[n] for name, pair in values.items()} for n in (0, 1))
    return make(**one), make(**two)


def listed(method: str, **params: object) -> Request:
    return call(method=method, params=params)


def typed(n: str) -> Request:
    said = (
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":%s}}}'
    )
    return stdio(said % n)


IDS = ({"claudecode/toolUseId": "toolu_1"}, {"claudecode/toolUseId": "toolu_2"})
CALLS: list[Pair] = [
    both(tool, name=("get", "delete")),
    both(tool, arguments=({"n": 1}, {"n": 1.0})),
    both(tool, arguments=({"n": 1}, {"n": 2})),
    both(tool, meta=({"tenant": "one"}, {"tenant": "two"})),
    both(tool, meta=({"tenant": UUID}, {"tenant": OTHER})),
    both(tool, meta=IDS),
    both(tool, meta=({"tenant": "one"}, None)),
    both(tool, arguments=({"n": 1.5, "\ud83d": 1}, {"n": 1.50001, "\ud83d": 1})),
    both(tool, arguments=({"n": 1.5, "\ud83d": 1}, {"n": 1.5, "\ud83e": 1})),
    both(partial(listed, "tools/list"), cursor=("a", "b")),
    both(partial(listed, "resources/read"), uri=("a", "b")),
    both(partial(listed, "initialize"), protocolVersion=("2025-06-18", "2025-11-25")),
    both(partial(listed, "initialize"), capabilities=({"roots": {}}, {})),
    (typed("1e400"), typed("null")),
    (typed("9007199254740993"), typed("9007199254740992")),
]
FORMS = [
    *bodies("http://h/f", ("user=a&pin=1", "user=a&pin=2"), headers=FORM),
    *bodies("http://h/f", ("password=right-one", "password=wrong-two"), headers=FORM),
    *bodies("http://h/f", ("client_secret=abcdefgh1", "client_secret=abcdefgh2"), headers=FORM),
    (multipart("sk-proj-AbCd0123456789AbCd0"), multipart("sk-proj-AbCd0123456789AbCd1")),
    (multipart("secret-value-1", of="api_key"), multipart("secret-value-2", of="api_key")),
    (multipart("one"), multipart("two")),
    (multipart("one", of="a"), multipart("one", of="b")),
]
ZIPPED = {
    name: pack(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}')
    for name, pack in (("gzip", partial(gzip.compress, mtime=0)), ("deflate", zlib.compress))
}
PACKED: list[Pair] = [
    (asked("POST", MCP, data, headers), asked("POST", MCP, other, headers))
    for name, data in ZIPPED.items()
    for headers in [(*JSON, ("content-encoding", name))]
    for other in (data[:-1], data + b"\0", data + b"more")
]
SOCKETS = turns(
    ('{"op":"get","n":1}', '{"op":"get","n":2}'),
    ('{"op":"login","password":"right-one"}', '{"op":"login","password":"wrong-two"}'),
    ("1", "1.0"),
    ("ping", "pong"),
)
TIMED = "Wall time: %s seconds\nOutput:\n4\n"
DAY = "<system-reminder>\nToday's date is {}.\n</system-reminder>"
MARKED = {"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}
UNMARKED = {"type": "text", "text": "s"}
MODELS: list[Pair] = [
    both(chat, text=("go", "Go")),
    both(chat, text=("RDa1Z", "RDb1Z")),
    both(chat, temperature=(1, 1.0)),
    both(chat, seed=(1, 2)),
    both(chat, prompt_cache_key=("customer-1", "customer-2")),
    both(chat, prompt_cache_key=(UUID, OTHER)),
    both(chat, metadata=({"sessionId": "one"}, {"sessionId": "two"})),
    both(chat, user=("a", "b")),
    both(claude, text=("go", "go!")),
    both(claude, metadata=({"user_id": "customer-1"}, {"user_id": "customer-2"})),
    both(claude, system=([MARKED], [UNMARKED])),
    both(claude, text=("Today's date is 2025-01-01", "Today's date is 2025-01-02")),
    both(claude, text=(DAY.format("2025-01-01"), DAY.format("VOLATILE"))),
    both(codex, text=("go", "gone")),
    both(codex_output, output=(TIMED % "1.5", TIMED % "1.5.5")),
    both(codex, prompt_cache_key=("one", "two")),
    both(codex, client_metadata=({"tenant": "one"}, {"tenant": "two"})),
    both(codex, previous_response_id=("resp_1", "resp_2")),
    both(gemini, text=("go", "go ")),
    both(gemini, generationConfig=({"temperature": 1}, {"temperature": 1.0})),
    (
        asked("POST", f"{GEMINI}?key=AIza{'a' * 34}1", gemini().body, JSON),
        asked("POST", f"{GEMINI}?key=AIza{'a' * 34}2", gemini().body, JSON),
    ),
]
METHODS: list[Pair] = [
    (asked("GET", "http://h/a"), asked("HEAD", "http://h/a")),
    (asked("PUT", "http://h/a", "1"), asked("POST", "http://h/a", "1")),
    (asked("GET", "http://h/a"), asked("GET", "https://h/a")),
    (asked("GET", "http://h/a"), asked("GET", "http://h:80/a")),
    (asked("GET", "http://h/a"), asked("GET", "http://g/a")),
]
PAIRS = [
    *ADDRESSES,
    *HEADERS,
    *COOKIES,
    *PRESENCE,
    *bodies("http://h/tool", *NUMBERS, *TEXTS),
    *CALLS,
    *FORMS,
    *PACKED,
    *SOCKETS,
    *MODELS,
    *METHODS,
]


def named(pair: Pair) -> str:
    one, two = pair
    return f"{one.method} {one.url[:50]} {one.body[:40]!r} {one.headers[-1:]} / {two.body[:40]!r}"


OWN = [*PAIRS, *TWO_LOGINS]


@pytest.mark.parametrize("pair", OWN, ids=[f"{n}" for n in range(len(OWN))])
def test_a_request_gets_its_own_answer_and_never_that_of_another(
    pair: Pair, tmp_path: Path
) -> None:
    one, two = pair
    tape = recorded(tmp_path / "a.tape", [one, two])
    assert [StrictReplay(tape).ask(each) for each in (one, two)] == [0, 1], named(pair)
    replay = StrictReplay(tape)
    assert [replay.ask(each) for each in (two, one)] == [1, 0], f"swapped: {named(pair)}"


@pytest.mark.parametrize("pair", PAIRS, ids=[f"{n}" for n in range(len(PAIRS))])
def test_a_request_that_was_not_recorded_gets_no_answer(pair: Pair, tmp_path: Path) -> None:
    own = ("authorization", "cookie", "x-api-key")
    for number, (one, two) in enumerate((pair, pair[::-1])):
        if any(name in own for name, _ in one.headers):
            continue  # the only login of the recording stands for any
        if '"prompt_cache_key": "3f2b' in (one.body + two.body).decode("utf-8", "replace"):
            continue  # an id that a client draws for each run
        tape = recorded(tmp_path / f"{number}.tape", [one])
        assert StrictReplay(tape).ask(two) is None, named(pair)


SAME: list[Pair] = [
    *bodies("http://h/tool", ('{"a":1,"b":[1.0,"é"]}', '{ "b": [1.0, "\\u00e9"],\n"a" :1 }')),
    *fields("user-agent", ("python/3.13.0", "python/3.13.1")),
    *fields("traceparent", (f"00-{'a' * 32}-{'b' * 16}-01", f"00-{'c' * 32}-{'d' * 16}-01")),
    *fields("x-request-id", (UUID, OTHER)),
    *fields("baggage", (f"trace={UUID}", f"trace={OTHER}")),
    *fields("authorization", ("Token 1", "Bearer another-user-2"), ("Bearer a", "Bearer dummy")),
    *fields("api-key", ("short", "a-longer-dummy-key")),
    *fields("x-session-id", (UUID, OTHER)),
    *fields("idempotency-key", (f"retry-{UUID}", f"retry-{OTHER}")),
    *fields("authorization", ("Bearer of-one-user-000001", "Bearer of-another-user-2")),
    *fields("authorization", ("Basic am9lOmh1bnRlcjI=", "Basic YW5uOmh1bnRlcjM=")),
    *fields("cookie", ("sid=session-of-user-1", "sid=session-of-user-2")),
    *fields("x-api-key", (f"sk-ant-{'a1' * 20}", f"sk-ant-{'b2' * 25}")),
    (multipart("one", "limit-0001"), multipart("one", "limit-0002")),
    (tool("get", meta={"progressToken": 1}), tool("get", meta={"progressToken": 2})),
    (tool("get", meta={"threadId": UUID}), tool("get", meta={"threadId": OTHER})),
    (claude(DAY.format("2025-01-01")), claude(DAY.format("2025-01-02"))),
    both(codex, client_metadata=({"a": UUID, "b": "1"}, {"b": "1", "a": OTHER})),
]


@pytest.mark.parametrize("pair", SAME, ids=[f"{n}" for n in range(len(SAME))])
def test_what_says_nothing_is_no_difference(pair: Pair, tmp_path: Path) -> None:
    tape = recorded(tmp_path / "a.tape", [pair[0]])
    assert StrictReplay(tape).ask(pair[1]) == 0, named(pair)


MINE, YOURS = "sk-live-0123456789abcdef", "sk-proj-" + "aB3d" * 20
MY_PIN, YOUR_PIN = "pin-of-mine-1", "a-longer-pin-of-yours-22"


@pytest.mark.parametrize(
    "form",
    [
        asked("POST", "http://h/", '{"key": "KEY", "a": 1}', JSON),
        asked("POST", "http://h/", "plain text with KEY in it"),
        asked("GET", "http://h/?api_key=KEY&page=2"),
        asked("GET", "http://h/", x_api_key="KEY"),
        asked("POST", "http://h/", '{"url": "http://h/?q=KEY"}', JSON),
        chat("my key is KEY"),
    ],
    ids=["json", "text", "query", "header", "url in json", "model"],
)
def test_the_keys_of_another_user_are_told_apart_by_their_names(
    form: Request, tmp_path: Path
) -> None:
    """Whatever order they are met in: no key of one stands for another key of the other."""

    def put(value: str) -> Request:
        headers = tuple((name, text.replace("KEY", value)) for name, text in form.headers)
        body = form.body.replace(b"KEY", value.encode())
        return Request(
            method=form.method, url=form.url.replace("KEY", value), headers=headers, body=body
        )

    mine = secrets_of(API_KEY=MINE, SHOP_TOKEN=MY_PIN)
    yours = secrets_of(bytes([1]) * 32, API_KEY=YOURS, SHOP_TOKEN=YOUR_PIN)
    tape = recorded(tmp_path / "a.tape", [put(MINE), put(MY_PIN)], mine)
    assert MINE not in str(tape.exchanges)
    replay = StrictReplay(tape, yours)
    assert [replay.ask(put(YOUR_PIN)), replay.ask(put(YOURS))] == [1, 0]
    if not form.headers or form.method == "POST":
        assert StrictReplay(tape, yours).ask(put("sk-proj-" + "zZ9y" * 20)) is None


def test_a_weak_secret_is_known_again_by_its_user_alone(tmp_path: Path) -> None:
    login = asked("POST", "http://h/login", "password=hunter-22", FORM)
    tape = recorded(tmp_path / "a.tape", [login])
    assert b"hunter" not in (tmp_path / "a.tape").read_bytes()
    assert StrictReplay(tape).ask(login) == 0
    assert StrictReplay(tape, secrets_of(bytes([1]) * 32)).ask(login) is None
    rules = MatchRules([parse_match_rule("ignore:header.content-type")])
    assert StrictReplay(tape, rules=rules).ask(login) == 0


def test_a_value_whose_mark_cannot_be_compared_stands_for_the_only_one(tmp_path: Path) -> None:
    """Another key cannot tell `lang=de` from `lang=en`; of two, none is guessed."""
    url, elsewhere = "http://h/", secrets_of(bytes([1]) * 32)
    german, english, french = (
        asked("GET", url, cookie=f"lang={each}") for each in ("de", "en", "fr")
    )
    one = recorded(tmp_path / "one.tape", [german])
    assert StrictReplay(one, elsewhere).ask(german) == 0
    assert StrictReplay(one).ask(english) is None
    two = recorded(tmp_path / "two.tape", [german, english])
    assert StrictReplay(two, elsewhere).ask(german) is None
    assert StrictReplay(two).ask(english) == 1
    assert StrictReplay(two).ask(french) is None


def test_of_two_recorded_logins_the_mark_decides(tmp_path: Path) -> None:
    ann, bob, other = (
        asked("GET", "http://h/", authorization=f"Bearer {name}") for name in ("a1", "b2", "c3")
    )
    elsewhere = asked("GET", "http://g/", authorization="Bearer d4")
    tape = recorded(tmp_path / "a.tape", [ann, bob, elsewhere])
    replay = StrictReplay(tape)
    assert replay.ask(other) is None
    assert [replay.ask(each) for each in (bob, ann)] == [1, 0]
    assert replay.ask(asked("GET", "http://g/", authorization="Bearer dummy")) == 2


def test_a_token_that_an_answer_gave_is_no_second_login(tmp_path: Path) -> None:
    """A refreshed token comes from the tape; the dummy key of another home is the other login."""
    token = "abcdefgh12345678IJKL"
    first = asked("POST", "http://h/refresh", authorization="Bearer first-login-1")
    use = asked("GET", "http://h/me", authorization=f"Bearer {token}")
    answer = f'{{"access_token": "{token}"}}'.encode()
    tape = recorded(tmp_path / "a.tape", [first, use], answers=[answer])
    response = tape.exchanges[0].response
    assert response is not None
    document = json.loads(response.body)["access_token"]
    replay = StrictReplay(tape)
    assert replay.ask(asked("GET", "http://h/me", authorization="Bearer dummy")) is None
    assert replay.ask(asked("POST", "http://h/refresh", authorization="Bearer dummy")) == 0
    assert replay.ask(asked("GET", "http://h/me", authorization=f"Bearer {document}")) == 1


def test_a_strong_secret_is_known_again_on_any_machine(tmp_path: Path) -> None:
    said = chat("the example key of the manual is AKIAIOSFODNN7EXAMPL1")
    tape = recorded(tmp_path / "a.tape", [said])
    assert StrictReplay(tape, secrets_of(bytes([1]) * 32)).ask(said) == 0


def test_a_placeholder_that_an_answer_held_may_be_sent_back(tmp_path: Path) -> None:
    login = asked("POST", "http://h/login", "password=hunter-22", FORM)
    answer = b'{"your": "token", "Authorization": "Bearer abcdefgh12345678IJKL"}'
    use = asked("GET", "http://h/me?access_token=abcdefgh12345678IJKL")
    tape = recorded(tmp_path / "a.tape", [login, use], answers=[answer])
    given = tape.exchanges[0].response
    assert given is not None
    token = given.body.split()[-1].rstrip(b'"}').decode()
    assert token.startswith("REDACTED")
    assert StrictReplay(tape).ask(asked("GET", f"http://h/me?access_token={token}")) == 1


def test_a_rule_may_let_a_header_pass(tmp_path: Path) -> None:
    one, two = asked("GET", "http://h/", x_run="a"), asked("GET", "http://h/", x_run="b")
    tape = recorded(tmp_path / "a.tape", [one])
    assert StrictReplay(tape).ask(two) is None
    assert (
        StrictReplay(tape, rules=MatchRules([parse_match_rule("ignore:header.X-Run")])).ask(two)
        == 0
    )
    agents = [asked("GET", "http://h/", user_agent=each) for each in "ab"]
    tape = recorded(tmp_path / "b.tape", agents[:1])
    assert (
        StrictReplay(tape, rules=MatchRules([parse_match_rule("exact:header.user-agent")])).ask(
            agents[1]
        )
        is None
    )
