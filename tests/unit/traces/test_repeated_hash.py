"""The hash of a body does not depend on the bodies before it, only the time does."""

from hashlib import blake2b

from hypothesis import example, given
from hypothesis import strategies as st

from traces.bodies import repeated_hash
from traces.bodies.repeated_hash import SMALL, RepeatedBodyHash

TEXT = bytes(range(251)) * 1200
edits = st.tuples(
    st.sampled_from([b"a", b"b"]),
    st.integers(0, 4 * SMALL),
    st.integers(0, 4 * SMALL),
    st.binary(max_size=9),
)


@given(st.lists(edits, max_size=20))
@example([(b"a", 4 * SMALL, 0, b""), (b"a", 4 * SMALL, 0, b"x"), (b"b", 4 * SMALL, 0, b"")])
@example([(b"a", n * SMALL, n, b"") for n in (4, 1, 3, 2, 4)])
def test_a_digest_is_that_of_all_bytes(changes: list[tuple[bytes, int, int, bytes]]) -> None:
    hashed = RepeatedBodyHash(16)
    for head, keep, skip, new in changes:
        body = TEXT[:keep] + new + TEXT[keep + skip :][: 4 * SMALL - keep]
        assert hashed(head, body) == blake2b(head + body, digest_size=16).digest()
        assert sum(len(each.body) for each in hashed._known[1:]) <= repeated_hash.MAX_BYTES


def test_a_beginning_is_hashed_once() -> None:
    hashed, body = RepeatedBodyHash(16), TEXT * 3
    for number in range(40):
        hashed(b"head", body + b"x" * number)
    assert len(hashed._known) == 1
    assert len({id(state) for each in hashed._known for state in each.states}) < 20
