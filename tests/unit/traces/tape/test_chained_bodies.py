"""A body of a tape is its parent and what is new, and is restored while it is read."""

from copy import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.bodies import chained_body
from traces.bodies.body_delta import BodyDelta, BodyDeltaEncoder
from traces.bodies.chained_body import ChainedBody, measure_body, read_body
from traces.model import Request


@given(st.lists(st.tuples(st.integers(0, 9000), st.binary(max_size=400)), max_size=150))
def test_a_chained_body_is_read_as_it_was_encoded(changes: list[tuple[int, bytes]]) -> None:
    body, encoder, kept = bytes(range(256)) * 20, BodyDeltaEncoder(), list[bytes | ChainedBody]()
    bodies = list[bytes]()
    for seq, (place, new) in enumerate([(0, b""), *changes]):
        body = body[:place] + new + body[place:]
        bodies.append(body)
        encoded = encoder.encode(seq, body)
        kept.append(
            ChainedBody(kept[encoded.parent], encoded.pieces)
            if isinstance(encoded, BodyDelta)
            else encoded
        )
    assert [*map(measure_body, kept)] == [*map(len, bodies)]
    for chained, whole in [*zip(kept, bodies, strict=True)][::-1]:
        assert read_body(chained) == whole


def test_restored_bodies_that_are_kept_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    restored = chained_body._RestoredBodies(10_000)
    monkeypatch.setattr(chained_body, "_restored", restored)
    body: bytes | ChainedBody = b"x" * 3_000
    for _ in range(500):
        body = ChainedBody(body, ((0, 3_000), b"y"))
        assert read_body(body) == b"x" * 3_000 + b"y"
        assert sum(map(len, restored._bodies.values())) <= 10_000
    large = ChainedBody(b"", (b"z" * 20_000,))
    assert large.read() is large.read()
    assert len(restored._bodies) == 1


@pytest.mark.parametrize("piece", [(0, 6), (3, 2), (-1, 2), (0.0, 2.0), ("a", "b"), 7, (1, 2, 3)])
def test_a_piece_that_does_not_fit_is_refused_unread(piece: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        ChainedBody(b"12345", (piece,))  # type: ignore[arg-type]


def test_a_request_with_a_chained_body_is_as_one_with_its_bytes() -> None:
    chained = ChainedBody(b'{"a": 1}', ((0, 6), b"2}"))
    request = Request(method="POST", url="http://x/", body=chained)  # type: ignore[arg-type]
    whole = Request(method="POST", url="http://x/", body=b'{"a": 2}')
    assert request == whole
    assert hash(request) == hash(whole)
    assert repr(request) == repr(whole)
    assert replace(request, url="http://y/") == replace(whole, url="http://y/")
