"""A sequence that shares its beginning with others is the same as a tuple of its items."""

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traces.shared_sequence import SharedSequence

changes = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30), st.lists(st.integers(0, 3), max_size=4)),
    max_size=90,
)


@given(changes)
@example([(n, n, [n % 2, 1]) for n in range(80)])
@example([(n, max(0, 2 * n - 1), [n % 2, 1]) for n in range(80)])
def test_every_sequence_stays_as_it_was_made(made: list[tuple[int, int, list[int]]]) -> None:
    known: list[tuple[SharedSequence[int], tuple[int, ...]]] = [(SharedSequence(), ())]
    for number, keep, new in made:
        shared, plain = known[min(number, len(known) - 1)]
        keep = min(keep, len(plain))
        known.append((shared.first(keep).plus(new), (*plain[:keep], *new)))
        count = known[-1][0].count_shared(shared)
        assert known[-1][1][:count] == plain[:count]
    for shared, plain in known:
        assert tuple(shared) == plain
        assert shared == plain
        assert hash(shared) == hash(plain)
        assert [shared[n] for n in range(len(plain))] == list(plain)
        assert [shared[-n] for n in range(1, len(plain) + 1)] == list(plain[::-1])
        for start in range(len(plain)):
            assert shared[start:] == plain[start:]
            assert shared[: start + 1] == plain[: start + 1]
            assert shared[start::2] == plain[start::2]
        with pytest.raises(IndexError):
            shared[len(plain)]


@pytest.mark.parametrize("rewritten", [0, 1, 2])
def test_memory_depends_on_what_is_new(rewritten: int) -> None:
    known = [SharedSequence([object()])]
    for _ in range(2_000):
        kept = known[-1].first(len(known[-1]) - rewritten * (len(known[-1]) > rewritten))
        known.append(kept.plus([object() for _ in range(rewritten + 1)]))
    assert len(known[-1]) > 1_900
    lists = {id(each._own): sys.getsizeof(each._own) for each in known}
    assert sum(lists.values()) < 200 * len(known) + 8 * len(known[-1]) * len(known) // 60
    assert known[-1].count_shared(known[-2]) >= len(known[-2]) - rewritten
