"""What a fork does with live answers before its fault."""

import pytest

from replay.live_prefix import AnswerControls, LivePrefix
from replay.matching.rules import MatchRules
from traces.model import Chunk, Exchange, Request, Response

ASKED = Request(method="POST", url="http://shop.test/order")


def make_exchange(body: bytes | None, error: str | None = None) -> Exchange:
    answer = None
    if body is not None:
        answer = Response(status=200, chunks=(Chunk(at=1.0, data=body),), at=1.0, ended=1.0)
    return Exchange(seq=3, request=ASKED, response=answer, error=error, started=0.0)


def make_prefix(stops: list[str]) -> LivePrefix:
    return LivePrefix(
        AnswerControls(),
        rules=MatchRules(()),
        recorded_at=0.0,
        redact=lambda x: x,
        stop=stops.append,
    )


@pytest.mark.parametrize("error", ["refused", "tls: certificate verify failed", "timeout", "dns"])
def test_a_request_without_an_answer_stays_expected(error: str) -> None:
    stops = list[str]()
    prefix, recorded = make_prefix(stops), make_exchange(b"{}")
    prefix.expect(3, recorded)
    dead = make_exchange(None, error)
    assert prefix.holds(dead)
    assert prefix.response(dead) is dead
    assert prefix.take_expected(3) is recorded, "so that its end is compared"


def test_an_answer_that_came_is_compared_once() -> None:
    stops = list[str]()
    prefix = make_prefix(stops)
    prefix.expect(3, make_exchange(b'{"price": 1}'))
    prefix.response(make_exchange(b'{"price": 2}'))
    assert prefix.take_expected(3) is None
    [why] = stops
    assert "price" in why
