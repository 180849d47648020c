"""A text is found where it is, whatever bodies were searched before."""

from hypothesis import example, given
from hypothesis import strategies as st

from traces.bodies.repeated_search import MAX_BODIES, SMALL, RepeatedSearch

TEXT = b"needle"
edits = st.tuples(
    st.integers(0, 3 * SMALL), st.sampled_from([b"", TEXT, b"need", b"le", b"xx"]), st.booleans()
)


@given(st.lists(edits, max_size=30))
@example([(2 * SMALL, b"need", False), (2 * SMALL + 4, b"le", False), (2 * SMALL, b"", True)])
@example([(2 * SMALL, TEXT, False), (2 * SMALL + 1, b"xx", False), (2 * SMALL + 3, b"xx", False)])
def test_the_first_place_is_found(changes: list[tuple[int, bytes, bool]]) -> None:
    search, body = RepeatedSearch(TEXT), b"." * (3 * SMALL)
    for place, new, cuts in changes:
        body = body[:place] + new + body[place:]
        body = body[:place] if cuts else body
        assert search(body) == body.find(TEXT)
        assert len(search._known) <= MAX_BODIES
