"""What may differ between a request and the recorded one, as the user says."""

import json
from collections.abc import Iterable
from copy import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.matching.diff import explain_miss, find_passing_rule
from replay.matching.index import RecordingIndex
from replay.matching.rule_suggestions import find_idle_rules, suggest_rule
from replay.matching.rules import MatchRules, parse_match_rule
from traces.model import Chunk, Exchange, Request, Response


def post(url: str = "http://h/v1/runs", **body: object) -> Request:
    return Request(method="POST", url=url, body=json.dumps(body).encode())


def dotted(c: int) -> Request:
    return replace(post(), body=json.dumps({"a.b": [{"c": c}]}).encode())


def exchanges(requests: Iterable[Request]) -> list[Exchange]:
    return [
        Exchange(seq=seq, request=request, response=Response(status=200), started=seq)
        for seq, request in enumerate(requests)
    ]


def recorded(*requests: Request, rules: tuple[str, ...] = ()) -> RecordingIndex:
    return RecordingIndex(exchanges(requests), MatchRules(parse_match_rule(text) for text in rules))


@pytest.mark.parametrize(
    ("rule", "was", "now"),
    [
        ("ignore:body.run_id", post(run_id="a", x=1), post(run_id="b", x=1)),
        ("ignore:body.run_id", post(run_id="a", x=1), post(x=1)),
        ("ignore:body.items.*.at", post(items=[{"at": 1}, {"at": 2}]), post(items=[{"at": 3}, {}])),
        ("ignore:query.ts", post("http://h/x?a=1&ts=5"), post("http://h/x?a=1&ts=6")),
        ("ignore:path./v1/runs/*", post("http://h/v1/runs/a1"), post("http://h/v1/runs/b2")),
        ("map:path./v1/*/x", post("http://h/v1/a1/x"), post("http://h/v1/b2/x")),
    ],
)
def test_a_rule_lets_what_it_names_pass_and_nothing_else(
    rule: str, was: Request, now: Request
) -> None:
    assert recorded(was).find(now) is None
    match = recorded(was, rules=(rule,)).find(now)
    assert match is not None
    assert match.kind == "meaning"
    other = post(now.url, **json.loads(now.body), more=1)
    assert recorded(was, rules=(rule,)).find(other) is None


CHAT = "http://h/v1/chat/completions"


def said(*texts: str) -> Request:
    messages = [{"role": "user", "content": text} for text in texts]
    return post(CHAT, model="m", messages=messages)


@pytest.mark.parametrize(
    ("rule", "was", "now"),
    [
        ("ignore:messages[0].content", said("a", "b"), said("c", "b")),
        ("ignore:body.messages[0].content", said("a", "b"), said("c", "b")),
        ("ignore:body.messages.0.content", said("a", "b"), said("c", "b")),
        ("ignore:messages[*].content", said("a", "b"), said("c", "d")),
        ("ignore:messages[1]", said("a", "b"), said("a", "d")),
        ("ignore:list[1]", post(list=[1, 2, 3]), post(list=[1, 9, 3])),
        ("ignore:a.b[0].c", dotted(1), dotted(2)),
        ("ignore:query", post(query="a"), post(query="b")),
        ("ignore:body.path.x", post(path={"x": 1}), post(path={"x": 2})),
    ],
)
def test_a_path_reads_as_a_divergence_prints_it(rule: str, was: Request, now: Request) -> None:
    assert recorded(was).find(now) is None
    assert recorded(was, rules=(rule,)).find(now) is not None


def test_an_item_by_its_number_is_no_other_item() -> None:
    was, rules = said("a", "b", "c"), ("ignore:messages[1].content",)
    assert recorded(was, rules=rules).find(said("a", "x", "c")) is not None
    assert recorded(was, rules=rules).find(said("x", "b", "c")) is None
    assert recorded(was, rules=rules).find(said("a", "b", "x")) is None
    assert recorded(was, rules=("ignore:messages[9].content",)).find(said("a", "x", "c")) is None


def test_a_rule_that_names_nothing_is_known() -> None:
    texts = (
        "ignore:body.run",
        "ignore:messages[0].content",
        "ignore:query.ts",
        "ignore:header.x-run",
        "map:path./runs/*",
        "exact:body.metadata.user_id",
    )
    rules = MatchRules(parse_match_rule(text) for text in texts)
    assert rules.find_unused_rules([]) == tuple(str(parse_match_rule(text)) for text in texts)
    asked = [post("http://h/runs/1?ts=5", run=1), post("http://h/?a=1")]
    assert rules.find_unused_rules(exchanges(asked)) == (
        "ignore:body.messages[0].content",
        "ignore:header.x-run",
        "exact:body.metadata.user_id",
    )


def test_a_url_keeps_what_no_rule_names() -> None:
    rules = MatchRules([parse_match_rule("ignore:query.ts")])
    assert (
        rules.normalize_url("http://h/a?x=1+2&ts=5&y=%20&ts=6#f?ts=1")
        == "http://h/a?x=1+2&y=%20#f?ts=1"
    )
    for url in ("http://h/a?", "http://h/a#", "http://h/a?x=1&&y", "HTTP://h/ a\t"):
        assert rules.normalize_url(url) == url


@given(st.text(), st.text())
def test_a_path_rule_is_for_one_segment(one: str, other: str) -> None:
    rules = MatchRules([parse_match_rule("ignore:path./runs/*")])
    same = rules.normalize_url(f"http://h/runs/{one}") == rules.normalize_url(
        f"http://h/runs/{other}"
    )
    plain = all(text and not set(text) & set("/?#\n\r\t;[]") for text in (one, other))
    assert same or one != other
    if plain and one.isalnum() and other.isalnum():
        assert same
    assert rules.normalize_url("http://h/runs/a/b") != rules.normalize_url("http://h/runs/c/b")


def test_a_mapped_value_stands_for_the_same_one_every_time() -> None:
    rules = ("map:body.session",)
    was = [post(session="rec-1", n=1), post(session="rec-1", n=2), post(session="rec-2", n=2)]
    index = recorded(*was, rules=rules)
    first, second = index.find(post(session="new-1", n=1)), index.find(post(session="new-1", n=2))
    assert first is not None
    assert second is not None
    assert [first.exchange.seq, second.exchange.seq] == [0, 1]
    assert index.find(post(session="new-1", n=2)) is None, "new-1 stands for rec-1 and not rec-2"
    third = index.find(post(session="new-2", n=2))
    assert third is not None
    assert third.exchange.seq == 2
    assert index.values.names == {"rec-1": "new-1", "rec-2": "new-2"}


@pytest.mark.parametrize(
    ("was", "now", "same"), [("aa", "bc", False), ("ab", "cc", False), ("aba", "cdc", True)]
)
def test_a_value_stands_for_one_also_within_one_request(was: str, now: str, same: bool) -> None:
    one, other = (post(items=[{"id": each} for each in ids]) for ids in (was, now))
    assert (recorded(one, rules=("map:body.items.*.id",)).find(other) is not None) is same


def test_a_body_too_deep_to_be_read_has_no_value_that_stands_for_another() -> None:
    deep = b'{"run": %b}' % (b"[" * 200_000 + b"]" * 200_000)
    request = Request(method="POST", url="http://h/", body=deep)
    index = RecordingIndex(
        [Exchange(seq=0, request=request)], MatchRules([parse_match_rule("map:body.run")])
    )
    assert index.find(request) is not None
    assert index.values.names == {}


def test_exact_takes_a_place_off_the_built_in_list() -> None:
    def claude(user: str) -> Request:
        said = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        return post("http://h/v1/messages", **said, metadata={"user_id": user})

    one, two = ("0123456789abcdef" * 2, "fedcba9876543210" * 2)
    assert recorded(claude(one)).find(claude(two)) is not None
    for where in ("exact:body.metadata.user_id", "exact:metadata.user_id"):
        assert recorded(claude(one), rules=(where,)).find(claude(two)) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ignroe:body.x", "no class 'ignroe'; did you mean ignore?"),
        ("ignore", "a rule is CLASS:PLACE.WHERE"),
        ("", "a rule is CLASS:PLACE.WHERE"),
        ("ignore:headers.x", "no place 'headers'; did you mean header? A field of a body"),
        ("ignore:bodi.x", "no place 'bodi'; did you mean body?"),
        ("ignore:body.", "a rule is CLASS:PLACE.WHERE"),
        ("exact:query.ts", "all of a URL counts already"),
        ("map:path.runs/*", "a path begins with /"),
        ("map:path./runs", "has a * for what may differ"),
    ],
)
def test_a_rule_that_is_none_is_told_so(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="'") as wrong:
        parse_match_rule(text)
    assert why in str(wrong.value)


def test_a_miss_names_the_rule_that_would_let_it_pass() -> None:
    was = Exchange(seq=4, request=post(run={"id": "a"}, list=[{"at": 1}], x=1))
    why = explain_miss(post(run={"id": "b"}, list=[{"at": 2}], x=1), [was])
    assert "to let it pass: --match 'ignore:body.run.id' --match 'ignore:body.list.*.at'" in why
    rules = ("ignore:body.run.id", "ignore:body.list.*.at")
    assert recorded(was.request, rules=rules).find(post(run={"id": "b"}, list=[{"at": 2}], x=1))


OFFERS = (
    (post(a=[1, 2]), post(a=[1, 2, 3]), "ignore:body.a"),
    (post(a=[{"b": 1}]), post(a=[{"b": 2}]), "ignore:body.a.*.b"),
    (replace(post(), body=b"[1, 2]"), replace(post(), body=b"[1, 3]"), "ignore:body.*"),
    (
        replace(post("http://h/?a=1"), body=b""),
        replace(post("http://h/?a=1&b=2"), body=b""),
        "ignore:query.b",
    ),
    (
        replace(post("http://h/?b=2"), body=b"x"),
        replace(post("http://h/"), body=b"x"),
        "ignore:query.b",
    ),
    (replace(post(), body=b'{"*": {"[0]": 1}}'), replace(post(), body=b'{"*": {"[0]": 2}}'), None),
    (replace(post(), body=b'{"": 1}'), replace(post(), body=b'{"": 2}'), None),
)


@pytest.mark.parametrize(("was", "now", "rule"), OFFERS)
def test_a_rule_is_offered_only_if_it_lets_the_request_pass(
    was: Request, now: Request, rule: str | None
) -> None:
    why = explain_miss(now, [Exchange(seq=0, request=was)])
    assert why.partition("to let it pass: ")[2] == (f"--match '{rule}'" if rule else "")
    if rule:
        assert recorded(was, rules=(rule,)).find(now) is not None


def test_no_rule_is_offered_for_what_was_said() -> None:
    def chat(text: str) -> Request:
        messages = [{"role": "user", "content": text}]
        return post("http://h/v1/chat/completions", model="m", messages=messages)

    assert find_passing_rule(chat("a"), chat("b"), "messages[0].content") is None
    assert "to let it pass" not in explain_miss(chat("a"), [Exchange(seq=0, request=chat("b"))])


def test_two_parameters_that_differ_need_a_look_of_a_person() -> None:
    one, two = post("http://h/?a=1&b=2"), post("http://h/?a=2&b=3")
    assert find_passing_rule(one, two, "url") is None
    assert find_passing_rule(one, post("http://h/?a=1&b=3"), "url") == "ignore:query.b"


PLAIN = replace(post("http://h/log"), body=b"at 12:00")


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (PLAIN, replace(PLAIN, body=b"at 12:01")),
        (post(a=1), post(a=2)),
        (said("one"), said("two")),
    ],
)
def test_all_of_a_body_may_differ_and_nothing_beside(was: Request, now: Request) -> None:
    assert recorded(was).find(now) is None
    assert recorded(was, rules=("ignore:body",)).find(now) is not None
    other = replace(now, url=f"{now.url}?more=1")
    assert recorded(was, rules=("ignore:body",)).find(other) is None


@pytest.mark.parametrize("path", ["a", "a[0].b", "[0].c", "a.b[*].c", "body"])
def test_a_rule_is_written_as_a_divergence_prints_it(path: str) -> None:
    assert str(parse_match_rule(f"ignore:{path}")) == f"ignore:body.{path}".replace(
        "body.body", "body"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ignore:url", "query.NAME"),
        ("ignore:method", "body.method"),
        ("ignore:header.range: bytes", "no field of a header"),
        ("map:body", "all of a body can be ignored"),
        ("exact:body", "all of a body can be ignored"),
    ],
)
def test_what_no_rule_can_name_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_match_rule(text)


ASKED = (
    Request(
        method="POST",
        url="http://h/x?ts=5",
        headers=(("x-run", "a"),),
        body=b'{"run": {"id": 1}, "a": [{"b/c": 2}]}',
    ),
)


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("ignore:body./run/id", "ignore:body.run.id"),
        ("ignore:$.run.id", "ignore:body.run.id"),
        ("ignore:$['run']['id']", "ignore:body.run.id"),
        ("ignore:.a[].b/c", "ignore:body.a[*].b/c"),
        ("ignore:body./a/0/b~1c", "ignore:body.a.0.b/c"),
        ("ignore:body.ts", "ignore:query.ts"),
        ("ignore:query.x-run", "ignore:header.x-run"),
        ("ignore:header.run", "ignore:body.run"),
        ("ignore:body.nothing", None),
        ("ignore:path./y/*", None),
    ],
)
def test_a_rule_in_another_form_is_known_by_what_it_would_name(
    text: str, better: str | None
) -> None:
    (idle_one,) = find_idle_rules([parse_match_rule(text)], exchanges(ASKED))
    found = suggest_rule(idle_one, exchanges(ASKED))
    assert (found and str(found)) == better


def test_a_rule_that_names_something_is_not_idle() -> None:
    rules = [
        parse_match_rule(text)
        for text in ("ignore:run.id", "ignore:query.ts", "ignore:header.X-Run")
    ]
    assert find_idle_rules(rules, exchanges(ASKED)) == ()


@pytest.mark.parametrize(
    ("rule", "is_idle"),
    [
        ("ignore:body.at", False),
        ('clock:body.at "{}"', False),
        ("ignore:body", False),
        ("ignore:body.of", True),
        ("exact:body.at", True),
        ("map:body.at", True),
    ],
)
def test_a_rule_for_an_answer_of_a_tool_is_not_idle(rule: str, is_idle: bool) -> None:
    """Before a fork it applies to live answers; an answer of a model is never compared."""
    answer = Response(status=200, chunks=(Chunk(at=0.0, data=b'{"at": "12:01"}'),), ended=0.0)
    request = Request(method="GET", url="http://h/of")
    tool = Exchange(seq=0, request=request, response=answer)
    found = find_idle_rules([parse_match_rule(rule)], [tool])
    assert bool(found) is is_idle
    chat = Request(method="POST", url="http://h/v1/chat/completions", body=b'{"messages": []}')
    model = Exchange(seq=0, request=chat, response=answer)
    if rule != "ignore:body":
        assert find_idle_rules([parse_match_rule(rule)], [model])


def test_a_background_rule_names_an_endpoint() -> None:
    rules = MatchRules([parse_match_rule("background:POST https://t.example/v1/events")])
    assert str(rules.all[0]) == "background:POST https://t.example/v1/events"
    for url, background in (
        ("https://t.example/v1/events", True),
        ("https://t.example/v1/events?sent=3", True),
        ("https://t.example/v1/events/2", False),
        ("http://t.example/v1/events", False),
    ):
        assert rules.is_background(post(url, x=1)) is background
    assert not rules.is_background(replace(post("https://t.example/v1/events"), method="PUT"))


@pytest.mark.parametrize("where", ["", "https://t.example/", "POST /v1", "POST https://t/v1?a=1"])
def test_a_background_rule_without_method_and_address_is_refused(where: str) -> None:
    with pytest.raises(ValueError, match="background:METHOD URL"):
        parse_match_rule(f"background:{where}")
