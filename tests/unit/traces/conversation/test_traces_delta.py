"""A body is said by way of another one and comes back byte for byte."""

from hashlib import sha256

from hypothesis import example, given
from hypothesis import strategies as st

from traces.bodies.body_delta import BodyDelta, BodyDeltaEncoder, make_body_delta, restore_body

TOOLS = b'],"tools":[{"name":"get_order"}]}'
few = st.binary(max_size=40)


@given(head=few, was=few, now=few, tail=few)
@example(head=b"[1,", was=b"", now=b"2,", tail=TOOLS)
@example(head=b"aa", was=b"", now=b"a", tail=b"aa")
@example(head=b"", was=b"x" * 3_000, now=b"y" * 3_000, tail=b"z")
def test_a_body_comes_back_byte_for_byte_from_any_parent(
    head: bytes, was: bytes, now: bytes, tail: bytes
) -> None:
    parent, body = head + was + tail, head + now + tail
    assert restore_body(make_body_delta(body, parent, 0).pieces, parent) == body


def test_a_conversation_that_grows_before_its_tools_costs_only_what_is_new() -> None:
    bodies, parent = BodyDeltaEncoder(), b'{"messages":[' + b'{"content":"x"},' * 400 + TOOLS
    body = parent.replace(TOOLS, b'{"content":"new"},' + TOOLS)
    assert bodies.encode(0, parent) == parent
    said = bodies.encode(1, body)
    assert isinstance(said, BodyDelta)
    assert said.own_size <= len(b'{"content":"new"},')
    assert restore_body(said.pieces, parent) == body


def test_a_body_is_a_delta_to_the_one_that_is_most_like_it() -> None:
    encoder, lanes = BodyDeltaEncoder(), list[list[bytes]]()
    for lane in range(6):
        texts = (sha256(b"%d %d" % (lane, number)).hexdigest() for number in range(100))
        lanes.append([b'{"content":"%b"}' % text.encode() for text in texts])
        encoder.encode(lane, b"[%b]" % b",".join(lanes[lane]))
    for lane in (2, 5, 0, 3):
        items = [b'{"content":"a reminder before all others"}', *lanes[lane], b'{"content":"new"}']
        said = encoder.encode(10 + lane, b"[%b]" % b",".join(items))
        assert isinstance(said, BodyDelta)
        assert said.parent == lane
        assert said.own_size < 200
