"""The recorded request that a miss is explained by."""

import json

import pytest

from replay.difference import answer_differences, explain, nearest
from replay.rules import Rules, bind
from traces.model import Chunk, Exchange, Request, Response
from traces.redact import Redactor


def asked(seq: int, size: int, note: str) -> Exchange:
    body = json.dumps({"text": "x" * size, "note": note, "more": note}).encode()
    return Exchange(seq=seq, request=Request(method="POST", url="http://shop/v1", body=body))


def test_the_nearest_is_the_one_with_the_fewest_fields_that_differ() -> None:
    recorded = [asked(seq, 10, note) for seq, note in enumerate(("a", "b", "c"))]
    near = nearest(asked(9, 11, "b").request, recorded)
    assert near is recorded[1]
    assert "nearest is exchange 1" in explain(asked(9, 11, "b").request, recorded)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_of_large_ones_those_nearest_in_size_are_compared(size: int) -> None:
    recorded = [asked(mb, mb << 20, str(mb)) for mb in range(1, 7)]
    near = nearest(asked(9, size << 20, "another").request, recorded)
    assert near is recorded[size - 1]


def test_nothing_is_nearest_where_nothing_is_left() -> None:
    assert nearest(asked(0, 1, "a").request, []) is None


def test_what_a_rule_passes_over_is_no_difference_and_no_secret_is_one() -> None:
    def said(run: str, key: str, of: str) -> Request:
        body = json.dumps({"run": run, "key": key, "of": of}).encode()
        return Request(method="POST", url=f"http://h/?run={run}", body=body)

    redactor = Redactor()
    was = redactor.request(said("1", "sk-ant-0123456789abcdef0123", "a"))
    now = redactor.request(said("2", "sk-ant-" + "9876" * 10, "b"))
    rules = Rules([bind("ignore:body.run"), bind("ignore:query.run")])
    why = explain(now, [Exchange(seq=3, request=was)], rules)
    assert [line.strip() for line in why.splitlines()[1:]] == [
        "of",
        '- "a"',
        '+ "b"',
        "to let it pass: --match 'ignore:body.of'",
    ]


def test_bodies_that_cannot_be_read_are_told_apart_by_their_bytes() -> None:
    odd = (("content-encoding", "aws-chunked"),)
    deep = b"[" * 200_000 + b"]" * 200_000
    for headers, one, two in ((odd, b"one", b"two"), ((), deep, deep[:-1])):
        was = Exchange(seq=3, request=Request(method="PUT", url="/", headers=headers, body=one))
        now = Request(method="PUT", url="/", headers=headers, body=two)
        assert explain(now, [was]).splitlines()[1] == "  body"
        answers = [
            Response(status=200, headers=headers, chunks=(Chunk(at=0, data=each),))
            for each in (one, two)
        ]
        assert [where for where, _, _ in answer_differences(*answers)] == ["body"]
