"""What differs from run to run is learnt by its type and its place, and nothing beside."""

import json
from copy import replace

import pytest

from replay.matching.index import RecordingIndex
from replay.matching.rule_learning import generalize_rules, learn_from_twins
from replay.matching.rules import MatchRules, parse_match_rule
from traces.model import Chunk, Exchange, Headers, Request, Response

REST = "-7c1d-4a53-9a64-1f0c2d3e4b5a"
URL = "http://model/v1/chat/completions"


def chat(text: str, *more: str, url: str = URL, headers: Headers = ()) -> Request:
    messages = [{"role": "user", "content": each} for each in (text, *more)]
    return Request(
        method="POST",
        url=url,
        headers=(("content-type", "application/json"), *headers),
        body=json.dumps({"model": "m", "messages": messages}).encode(),
    )


def exchanges(*requests: Request, answer: bytes = b"fine") -> tuple[Exchange, ...]:
    told = Response(status=200, chunks=(Chunk(at=0.0, data=answer),), at=0.0, ended=0.0)
    return tuple(
        Exchange(seq=n, request=each, response=told, started=float(n))
        for n, each in enumerate(requests)
    )


def learnt(*pairs: tuple[Request, Request], answer: bytes = b"fine") -> tuple[str, ...]:
    one, two = (exchanges(*each, answer=answer) for each in zip(*pairs, strict=True))
    return tuple(map(str, learn_from_twins(one, two)))


def is_answered(was: Request, now: Request, rules: tuple[str, ...]) -> bool:
    return (
        RecordingIndex(exchanges(was), MatchRules(map(parse_match_rule, rules))).find(now)
        is not None
    )


@pytest.mark.parametrize(
    ("type", "was", "now", "third"),
    [
        ("day", "2026-11-22", "2026-11-23", "2031-01-02"),
        ("day", "Sunday, November 22, 2026", "Monday, November 23, 2026", "Friday, May 1, 2026"),
        ("day", "Sun Nov 22 2026", "Mon Nov 23 2026", "Tue Dec 01 2026"),
        ("day", "22 November 2026", "23 November 2026", "1 May 2027"),
        ("clock", "2026-11-22T20:40:11.123456Z", "2026-11-22T20:41:12.9Z", "2027-01-01T00:00:00Z"),
        ("clock", "9:05 PM", "10:15 AM", "11:59 PM"),
        ("clock", "1763843000", "1763843999", "1795379000.25"),
        ("uuid", f"3f2b8f0e{REST}", f"9d8c7b6a{REST}", f"00000000{REST}"),
        ("counter", "17", "18", "4096"),
        ("path", "/tmp/tmpab12cd/work", "/tmp/tmpxy98zz/work", "/srv/ann/work"),
    ],
)  # fmt: skip
def test_a_value_is_learnt_with_its_type_and_its_place(
    type: str, was: str, now: str, third: str
) -> None:
    text = "You are polite. It is {}, as you see."
    rules = learnt((chat(text.format(was)), chat(text.format(now))))
    assert rules == (f'{type}:body.messages[0].content "You are polite. It is {{}}, as you see."',)
    asked = chat(text.format(third))
    assert is_answered(chat(text.format(was)), asked, rules)
    assert not is_answered(chat(text.format(was)), asked, ())
    for changed in (
        text.format(third).replace("polite", "rude"),
        text.format("whenever"),
        text.format(third) + " Now.",
        text.format(f"{third} {third}"),
    ):
        assert not is_answered(chat(text.format(was)), chat(changed), rules), changed
    elsewhere = (chat("go", text.format(was)), chat("go", text.format(now)))
    assert not is_answered(*elsewhere, rules), "a rule holds for its own place"


@pytest.mark.parametrize(("before", "type"), [("pid ", "pid"), ("http://localhost:", "port")])
def test_a_number_is_called_what_it_is(before: str, type: str) -> None:
    (rule,) = learnt((chat(f"{before}4312"), chat(f"{before}4400")))
    assert rule == f'{type}:body.messages[0].content "{before}{{}}"'


def test_values_of_urls_headers_and_numbers_are_learnt_too() -> None:
    one = replace(chat("go", url=f"{URL}?run=17", headers=(("x-at", "2026-11-22"),)))
    two = replace(chat("go", url=f"{URL}?run=18", headers=(("x-at", "2026-11-23"),)))
    rules = learnt((one, two))
    assert rules == ("counter:query.run", "day:header.x-at")
    assert is_answered(one, two, rules)
    assert not is_answered(one, chat("go", url=f"{URL}?run=x", headers=one.headers[1:]), rules)


def test_what_differs_in_more_teaches_nothing() -> None:
    assert learnt((chat("at 10:00, go"), chat("at 10:01, stop"))) == ()
    assert learnt((chat("gpt-4o"), chat("gpt-4.1"))) == ()
    assert learnt((chat("a"), replace(chat("a"), method="PUT"))) == ()


def test_a_value_that_an_answer_gave_is_no_value_of_the_agent() -> None:
    pairs = ((chat("go"), chat("go")), (chat("go", "order 7100"), chat("go", "order 7200")))
    assert learnt(*pairs, answer=b'{"order": 7100}') == ()
    assert learnt(*pairs) != ()


def billing(checksum: str, prompt: str) -> Request:
    """As Claude Code sends it: a checksum, which the built-in list takes out, beside another id."""
    text = f"x-anthropic-billing-header: cch={checksum}; prompt_id={prompt}; cc_turn=1"
    body = {"model": "m", "max_tokens": 9, "messages": [], "system": [{"text": text}]}
    request = chat("", url="http://model/v1/messages")
    return replace(request, body=json.dumps(body).encode())


def test_a_value_beside_one_that_is_taken_out_is_learnt_too() -> None:
    was, now = billing("a1b2c", f"3f2b8f0e{REST}"), billing("00ff1", f"9d8c7b6a{REST}")
    rules = learnt((was, now))
    assert rules == ('uuid:body.system[0].text "; prompt_id={}; cc_turn=1"',)
    assert not is_answered(was, now, ())
    assert is_answered(was, billing("77777", f"00000000{REST}"), rules)
    assert not is_answered(was, billing("77777", "whichever"), rules)


def test_a_text_that_says_what_stands_for_a_value_is_another_text() -> None:
    rules = learnt((chat("at 10:00, go"), chat("at 10:01, go")))
    assert not is_answered(chat("at 10:00, go"), chat("at VOLATILE, go"), rules)
    assert not is_answered(chat("at VOLATILE, go"), chat("at 10:00, go"), rules)


def test_an_id_of_another_exchange_is_another_one() -> None:
    a, b, c = (f"id {n * 8}-7c1d-4a53-9a64-1f0c2d3e4b5a." for n in "123")
    rules = learnt((chat(a), chat(c)))
    index = RecordingIndex(exchanges(chat(a), chat(b)), MatchRules(map(parse_match_rule, rules)))
    found = index.find(chat(b))
    assert found is not None
    assert found.exchange.seq == 1
    assert index.find(chat(b)) is None, "the first one's answer is not for the second one's id"


@pytest.mark.parametrize(
    "text",
    [
        'day:body.messages[0].content "on {}, "',
        'clock:body.a "{{\\"at\\": {}}}"',
        "uuid:query.run",
        "uuid:path./v1/*/x",
        "day:header.x-at",
    ],
)
def test_a_learnt_rule_reads_as_it_was_written(text: str) -> None:
    assert str(parse_match_rule(text)) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('day:body.a "no place for it"', "has {} for it, once"),
        ('day:body.a "{} {}"', "has {} for it, once"),
        ("day:url", "query.NAME"),
        ("day:body", "has the text around it, in quotes"),
    ],
)
def test_a_learnt_rule_that_is_none_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_match_rule(text)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("3 passed in 0.12s", "3 passed in 0.34s"),
        ("took 34ms.", "took 9ms."),
        ("12KB of 40 free", "13KB of 40 free"),
    ],
)
def test_a_number_with_its_unit_is_a_counter_and_the_unit_has_to_be_equal(
    was: str, now: str
) -> None:
    rules = learnt((chat(was), chat(now)))
    assert [rule.partition(":")[0] for rule in rules] == ["counter"]
    assert is_answered(chat(was), chat(now), rules)
    assert not is_answered(chat(was), chat(now.translate(str.maketrans("sK", "hM"))), rules)


@pytest.mark.parametrize("given", ["id-191", "x=191ms", '"took\\n191 s"', "%20191", "191.5 s"])
def test_a_short_value_that_an_answer_gave_is_not_learnt(given: str) -> None:
    pairs = ((chat("begin"), chat("begin")), (chat("took 191"), chat("took 203")))
    assert learnt(*pairs, answer=given.encode()) == ()


@pytest.mark.parametrize("given", ["call_5f191c02", "1910", "a191", "0191"])
def test_a_short_value_within_a_random_id_is_not_given(given: str) -> None:
    pairs = ((chat("begin"), chat("begin")), (chat("took 191"), chat("took 203")))
    assert len(learnt(*pairs, answer=given.encode())) == 1


def answered_calls(*results: tuple[str, str]) -> Request:
    """A request with parallel calls, and their results in the order in which they ended."""
    calls = [{"id": id, "function": {"name": "sh", "arguments": "{}"}} for id, _ in sorted(results)]
    told = [{"role": "tool", "tool_call_id": id, "content": text} for id, text in results]
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": calls}]
    body = {"model": "m", "messages": [*messages, *told]}
    return replace(chat(""), body=json.dumps(body).encode())


def test_a_value_in_one_of_several_results_is_learnt_in_whatever_order_they_end() -> None:
    was = answered_calls(("b", "wall time 0.014 s: south"), ("a", "wall time 0.02 s: north"))
    now = answered_calls(("a", "wall time 0.03 s: north"), ("b", "wall time 0.04 s: south"))
    rules = learnt((was, now))
    assert len(rules) == 2
    for third in (
        (("a", "wall time 0.7 s: north"), ("b", "wall time 0.8 s: south")),
        (
            ("b", "wall time 0.7 s: south"),
            ("a", "wall time 0.8 s: north"),
        ),
    ):
        assert is_answered(was, answered_calls(*third), rules)
    other = answered_calls(("a", "wall time 0.7 s: north"), ("b", "wall time 0.8 s: east"))
    assert not is_answered(was, other, rules)


def generalized(*rules: str) -> list[str]:
    return [*map(str, generalize_rules(map(parse_match_rule, rules)))]


def test_a_value_in_the_same_text_of_two_messages_is_learnt_for_all_of_them() -> None:
    rules = (
        'counter:body.messages[5].content "Wall time: {} seconds\\ntotal 8"',
        'counter:body.messages[8].content "Wall time: {} seconds\\nlamps 48"',
    )
    (rule,) = generalized(*rules)
    assert rule == 'counter:body.messages[*].content "Wall time: {} seconds\\n"'
    texts = ("Wall time: {} seconds\nnorth", "Wall time: {} seconds\nsouth")
    was, now = (chat(*(each.format(n) for each in texts)) for n in (1, 2))
    assert is_answered(was, now, (rule,))
    assert not is_answered(was, chat(*(each.format("no") for each in texts)), (rule,))
    assert not is_answered(was, chat(texts[0].format(2), "Wall time: 1 seconds\nwest"), (rule,))


@pytest.mark.parametrize(
    "other",
    [
        'counter:body.messages[8].content "lasted {} seconds"',
        'clock:body.messages[8].content "Wall time: {} seconds"',
        'counter:body.messages[5].name "Wall time: {} seconds"',
        'counter:body.messages[5].content "Wall time: {} seconds, again"',
    ],
)
def test_it_takes_the_same_text_and_type_at_two_places_of_a_list(other: str) -> None:
    assert generalized('counter:body.messages[5].content "Wall time: {} seconds"', other) == []
