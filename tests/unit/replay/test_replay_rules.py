"""What may differ between a request and the recorded one, as the user says."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.difference import explain, rule_for
from replay.match import Index
from replay.rules import Rules, bind
from traces.model import Exchange, Request, Response


def post(url: str = "http://h/v1/runs", **body: object) -> Request:
    return Request(method="POST", url=url, body=json.dumps(body).encode())


def recorded(*requests: Request, rules: tuple[str, ...] = ()) -> Index:
    exchanges = [
        Exchange(seq=seq, request=request, response=Response(status=200), started=seq)
        for seq, request in enumerate(requests)
    ]
    return Index(exchanges, Rules(bind(text) for text in rules))


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
    assert match.how == "meaning"
    other = post(now.url, **json.loads(now.body), more=1)
    assert recorded(was, rules=(rule,)).find(other) is None


@given(st.text(), st.text())
def test_a_path_rule_is_for_one_segment(one: str, other: str) -> None:
    rules = Rules([bind("ignore:path./runs/*")])
    same = rules.url(f"http://h/runs/{one}") == rules.url(f"http://h/runs/{other}")
    plain = all(text and not set(text) & set("/?#\n\r\t;[]") for text in (one, other))
    assert same or one != other
    if plain and one.isalnum() and other.isalnum():
        assert same
    assert rules.url("http://h/runs/a/b") != rules.url("http://h/runs/c/b")


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
    assert index.names == {"rec-1": "new-1", "rec-2": "new-2"}


@pytest.mark.parametrize(
    ("was", "now", "same"), [("aa", "bc", False), ("ab", "cc", False), ("aba", "cdc", True)]
)
def test_a_value_stands_for_one_also_within_one_request(was: str, now: str, same: bool) -> None:
    one, other = (post(items=[{"id": each} for each in ids]) for ids in (was, now))
    assert (recorded(one, rules=("map:body.items.*.id",)).find(other) is not None) is same


def test_a_body_too_deep_to_be_read_has_no_value_that_stands_for_another() -> None:
    deep = b'{"run": %b}' % (b"[" * 200_000 + b"]" * 200_000)
    request = Request(method="POST", url="http://h/", body=deep)
    index = Index([Exchange(seq=0, request=request)], Rules([bind("map:body.run")]))
    assert index.find(request) is not None
    assert index.names == {}


def test_exact_takes_a_place_off_the_built_in_list() -> None:
    def claude(user: str) -> Request:
        said = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        return post("http://h/v1/messages", **said, metadata={"user_id": user})

    assert recorded(claude("a")).find(claude("b")) is not None
    assert recorded(claude("a"), rules=("exact:body.metadata.user_id",)).find(claude("b")) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ignroe:body.x", "no class 'ignroe'; did you mean ignore?"),
        ("ignore", "a rule is CLASS:PLACE.WHERE"),
        ("", "a rule is CLASS:PLACE.WHERE"),
        ("ignore:bodi.x", "no place 'bodi'; did you mean body?"),
        ("ignore:body.", "a rule is CLASS:PLACE.WHERE"),
        ("exact:query.ts", "all of a URL counts already"),
        ("map:path.runs/*", "a path begins with /"),
        ("map:path./runs", "has a * for what may differ"),
    ],
)
def test_a_rule_that_is_none_is_told_so(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="'") as wrong:
        bind(text)
    assert why in str(wrong.value)


def test_a_miss_names_the_rule_that_would_let_it_pass() -> None:
    was = Exchange(seq=4, request=post(run={"id": "a"}, list=[{"at": 1}], x=1))
    why = explain(post(run={"id": "b"}, list=[{"at": 2}], x=1), [was])
    assert "to let it pass: --match 'ignore:body.run.id' --match 'ignore:body.list.*.at'" in why
    rules = ("ignore:body.run.id", "ignore:body.list.*.at")
    assert recorded(was.request, rules=rules).find(post(run={"id": "b"}, list=[{"at": 2}], x=1))


def test_no_rule_is_offered_for_what_was_said() -> None:
    def chat(said: str) -> Request:
        messages = [{"role": "user", "content": said}]
        return post("http://h/v1/chat/completions", model="m", messages=messages)

    assert rule_for(chat("a"), chat("b"), "messages[0].content") is None
    assert "to let it pass" not in explain(chat("a"), [Exchange(seq=0, request=chat("b"))])


def test_two_parameters_that_differ_need_a_look_of_a_person() -> None:
    one, two = post("http://h/?a=1&b=2"), post("http://h/?a=2&b=3")
    assert rule_for(one, two, "url") is None
    assert rule_for(one, post("http://h/?a=1&b=3"), "url") == "ignore:query.b"
