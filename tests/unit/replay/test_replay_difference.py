"""The recorded request that a miss is explained by."""

import json
import re
from pathlib import Path

import pytest

from replay.matching.diff import explain_miss, find_answer_differences, find_nearest_exchange
from replay.matching.request_comparison import RequestComparison
from replay.matching.rules import MatchRules, parse_match_rule
from tests.support.strict_replay import (
    recorded,
    secrets_of,
)
from traces.model import Chunk, Exchange, Request, Response
from traces.redaction.redactor import Redactor


def asked(seq: int, size: int, note: str) -> Exchange:
    body = json.dumps({"text": "x" * size, "note": note, "more": note}).encode()
    return Exchange(seq=seq, request=Request(method="POST", url="http://shop/v1", body=body))


def test_the_nearest_is_the_one_with_the_fewest_fields_that_differ() -> None:
    recorded = [asked(seq, 10, note) for seq, note in enumerate(("a", "b", "c"))]
    near = find_nearest_exchange(asked(9, 11, "b").request, recorded)
    assert near is recorded[1]
    assert "nearest is exchange 1" in explain_miss(asked(9, 11, "b").request, recorded)


@pytest.mark.gate
@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_of_large_ones_those_nearest_in_size_are_compared(size: int) -> None:
    recorded = [asked(mb, mb << 20, str(mb)) for mb in range(1, 7)]
    near = find_nearest_exchange(asked(9, size << 20, "another").request, recorded)
    assert near is recorded[size - 1]


def test_nothing_is_nearest_where_nothing_is_left() -> None:
    assert find_nearest_exchange(asked(0, 1, "a").request, []) is None


MINE, YOURS = "sk-ant-0123456789abcdef0123", "sk-ant-" + "9876" * 10


def test_what_a_rule_passes_over_is_no_difference_and_no_known_secret_is_one(
    tmp_path: Path,
) -> None:
    def said(run: str, key: str, of: str) -> Request:
        body = json.dumps({"run": run, "key": key, "of": of}).encode()
        return Request(method="POST", url=f"http://h/?run={run}", body=body)

    tape = recorded(tmp_path / "a.tape", [said("1", MINE, "a")], secrets_of(API_KEY=MINE))
    live = Redactor(secrets_of(API_KEY=YOURS), tape.redactions)
    now = live.redact_request(said("2", YOURS, "b"))
    rules = MatchRules([parse_match_rule("ignore:body.run"), parse_match_rule("ignore:query.run")])
    why = explain_miss(now, tape.exchanges, rules, RequestComparison((), rules, tape.redactions))
    assert [line.strip() for line in why.splitlines()[1:]] == [
        "of",
        '- "a"',
        '+ "b"',
        "to let it pass: --match 'ignore:body.of'",
    ]


def test_a_header_that_differs_is_named_with_its_values() -> None:
    was = Exchange(seq=3, request=Request(method="GET", url="/", headers=(("Range", "bytes=0-9"),)))
    now = Request(method="GET", url="/", headers=(("range", "bytes=5-9"), ("x-run", "1")))
    assert explain_miss(now, [was]).splitlines()[1:] == [
        "  header.range",
        "    - bytes=0-9",
        "    + bytes=5-9",
        "  header.x-run",
        "    - (absent)",
        "    + 1",
        "  to let it pass: --match 'ignore:header.range' --match 'ignore:header.x-run'",
    ]


def test_numbers_are_told_apart_as_they_are_written() -> None:
    one, two = (Request(method="POST", url="/", body=b'{"n": %b}' % n) for n in (b"1.0", b"1e0"))
    assert "- 1.0\n    + 1e0" in explain_miss(two, [Exchange(seq=3, request=one)])


def chat(*texts: str) -> Request:
    messages = [{"role": "user", "content": text} for text in texts]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    return Request(method="POST", url="http://h/v1/chat/completions", body=body)


def test_an_edited_prompt_has_a_legend_and_a_rule_for_that_message_alone() -> None:
    was, now = chat("Be kind.", "Pay."), chat("Be brief.", "Pay.")
    why = explain_miss(now, [Exchange(seq=3, request=was)])
    assert "nearest is exchange 3 (- recorded, + now):" in why
    [rule] = re.findall(r"else leave it out: --match '(.+)'$", why)
    assert rule == "ignore:messages[0].content"
    rules = MatchRules([parse_match_rule(rule)])
    for other in (chat("Be brief.", "Pay twice."), chat("Be brief.")):
        again = explain_miss(other, [Exchange(seq=3, request=was)], rules)
        assert "messages[1]" in again


def test_an_agent_that_goes_another_way_is_offered_no_rule() -> None:
    was, now = chat("a", "b", "c", "d"), chat("e", "f", "g", "h")
    assert "--match" not in explain_miss(now, [Exchange(seq=3, request=was)])


def test_a_field_named_like_a_place_is_told_with_its_body() -> None:
    one, two = (Request(method="POST", url="/", body=b'{"query": {"x": %d}}' % n) for n in (1, 2))
    why = explain_miss(two, [Exchange(seq=3, request=one)])
    assert "  body.query.x\n" in why
    assert "--match 'ignore:body.query.x'" in why


def test_bodies_that_cannot_be_read_are_told_apart_by_their_bytes() -> None:
    odd = (("content-encoding", "aws-chunked"),)
    deep = b"[" * 200_000 + b"]" * 200_000
    for headers, one, two in ((odd, b"one", b"two"), ((), deep, deep[:-1])):
        was = Exchange(seq=3, request=Request(method="PUT", url="/", headers=headers, body=one))
        now = Request(method="PUT", url="/", headers=headers, body=two)
        assert explain_miss(now, [was]).splitlines()[1] == "  body"
        answers = [
            Response(status=200, headers=headers, chunks=(Chunk(at=0, data=each),))
            for each in (one, two)
        ]
        assert [where for where, _, _ in find_answer_differences(*answers)] == ["body"]
