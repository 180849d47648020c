"""Double and lost actions: what a ledger lists after a run, against its clean twins."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.judging.effects import judge_effects
from traces.model import RunEnding


def listed(keys: str, *, of: str = "ledger", unknown: str | None = None) -> RunEnding:
    """A run after which a ledger lists an effect for each letter."""
    return RunEnding(
        ended="final", effects=dict(Counter(keys)), effects_of=of, effects_unknown=unknown
    )


@pytest.mark.parametrize(
    ("own", "twins", "double", "lost"),
    [
        ("a", ["a", "a", "a"], False, False),
        ("aa", ["a", "a", "a"], True, False),
        ("", ["a", "a", "a"], False, True),
        ("aa", ["aa", "aa", "aa"], False, False),  # the task asks for two equal effects
        ("aaa", ["aa", "aa", "aa"], True, False),
        ("a", ["aa", "aa", "aa"], False, True),
        ("bb", ["a", "a", "a"], True, True),  # another amount, twice
        ("b", ["a", "a", "a"], False, True),
        ("a", ["a", "", "a"], False, False),  # a twin does without it
        ("", ["a", "", "a"], False, False),
        ("aa", ["a", "aa", "a"], False, False),  # a clean run does it twice as well
        ("", ["", "", ""], False, False),
        ("aa", ["", "", ""], True, False),
        ("d", ["a", "b", "c"], None, None),  # a time or a random id is part of the key
        ("da", ["xa", "ya", "za"], None, None),
        ("daa", ["xa", "ya", "za"], True, None),
    ],
)
def test_effects_count_against_those_of_clean_twins(
    own: str, twins: list[str], double: bool | None, lost: bool | None
) -> None:
    found = judge_effects(listed(own), [listed(each) for each in twins])
    assert (found.double, found.lost) == (double, lost)
    assert bool(found.changes) == bool(double or lost)
    assert bool(found.why) == (None in (double, lost))


def test_what_no_ledger_told_is_unknown_and_said() -> None:
    twins = [listed("a")] * 3
    assert judge_effects(RunEnding(ended="final"), twins).double is None
    broken = judge_effects(listed("aa", unknown="the effect ledger exited 1: down"), twins)
    assert (broken.double, broken.lost) == (None, None)
    assert broken.why == "the effect ledger exited 1: down"
    few = judge_effects(listed("aa"), [*twins[:2], listed("", unknown="no JSON")])
    assert (few.double, few.why) == (None, "2 of 3 clean twins have a ledger; no JSON")
    assert judge_effects(listed("aa"), [listed("a", of="other")] * 3).double is None


KEYS = st.lists(st.sampled_from("abc"), max_size=6).map("".join)


@given(KEYS, st.lists(KEYS, min_size=3, max_size=4), st.randoms())
def test_a_ledger_in_another_order_is_the_same(own: str, twins: list[str], shuffle: Random) -> None:
    mixed = list(own)
    shuffle.shuffle(mixed)
    straight = judge_effects(listed(own), [listed(each) for each in twins])
    crooked = judge_effects(listed("".join(mixed)), [listed(each) for each in twins[::-1]])
    assert (straight.double, straight.lost) == (crooked.double, crooked.lost)


@given(st.lists(KEYS, min_size=3, max_size=4))
def test_no_clean_twin_is_accused(twins: list[str]) -> None:
    for own in twins:
        found = judge_effects(listed(own), [listed(each) for each in twins])
        assert (found.double, found.lost) == (False, False)
