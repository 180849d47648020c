"""Boundaries of a group-sequential test, against tables that others published."""

import itertools
import math
from statistics import NormalDist

import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from stumble.experiments.noninferiority.decision import count_fewest_roots
from stumble.experiments.seals.alpha_spending import (
    SPENDINGS,
    Spending,
    check_looks,
    compute_boundaries,
    compute_look_levels,
    compute_spent_alpha,
)


def even(looks: int) -> tuple[float, ...]:
    return tuple((number + 1) / looks for number in range(looks))


@pytest.mark.gate
@pytest.mark.parametrize(
    ("spending", "published"),
    [
        ("obrien-fleming", (2.9626, 1.9686)),
        ("obrien-fleming", (3.7103, 2.5114, 1.9930)),
        ("obrien-fleming", (4.3326, 2.9631, 2.3590, 2.0141)),
        ("obrien-fleming", (4.8769, 3.3569, 2.6803, 2.2898, 2.0310)),
        ("pocock", (2.1570, 2.2010)),
        ("pocock", (2.4380, 2.4268, 2.4101, 2.3966, 2.3859)),
    ],
)
def test_boundaries_at_level_025_are_those_of_the_tables(
    spending: Spending, published: tuple[float, ...]
) -> None:
    """DeMets and Lan (1994), Statistics in Medicine 13, 1341-1352; the programs of Reboussin,
    DeMets, Kim and Lan, which print them with four places."""
    found = compute_boundaries(even(len(published)), 0.025, spending)
    assert found == pytest.approx(published, abs=1.5e-4)


def test_nominal_levels_at_level_05_are_those_of_seqbounds() -> None:
    """The example of the Julia package SeqBounds."""
    published = (8.85754e-5, 0.00554366, 0.0218979, 0.0427037)
    assert compute_look_levels(even(4), 0.05, "obrien-fleming") == pytest.approx(
        published, rel=2e-3
    )


@pytest.mark.parametrize("spending", SPENDINGS)
def test_two_looks_spend_what_the_bivariate_normal_says(spending: Spending) -> None:
    first, second = compute_boundaries((0.4, 1.0), 0.05, spending)
    both = scipy.stats.multivariate_normal([0, 0], [[1, math.sqrt(0.4)], [math.sqrt(0.4), 1]])
    assert 1 - both.cdf([first, second]) == pytest.approx(0.05, abs=1e-4)
    assert 1 - NormalDist().cdf(first) == pytest.approx(
        compute_spent_alpha(0.4, 0.05, spending), rel=1e-6
    )


@pytest.mark.parametrize("spending", SPENDINGS)
def test_one_look_has_all_of_alpha(spending: Spending) -> None:
    assert compute_look_levels((1.0,), 0.05, spending) == pytest.approx((0.05,))
    assert (compute_spent_alpha(0, 0.05, spending), compute_spent_alpha(1, 0.05, spending)) == (
        0,
        0.05,
    )


@pytest.mark.gate
@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.integers(1, 19), min_size=1, max_size=3, unique=True),
    st.sampled_from(SPENDINGS),
    st.sampled_from([0.01, 0.05, 0.1]),
)
def test_no_look_has_more_than_alpha_and_the_last_less_than_without_the_others(
    at: list[int], spending: Spending, alpha: float
) -> None:
    fractions = (*(each / 20 for each in sorted(at)), 1.0)
    found = compute_look_levels(fractions, alpha, spending)
    assert all(0 <= level <= compute_spent_alpha(t, alpha, spending) + 1e-9 or spending == "pocock"
               for level, t in zip(found, fractions, strict=True))  # fmt: skip
    assert max(found) <= alpha + 1e-9
    assert sum(found) >= alpha - 1e-6  # else less than alpha could be spent in all
    used = [compute_spent_alpha(t, alpha, spending) for t in fractions]
    assert all(a < b for a, b in itertools.pairwise(used))


@pytest.mark.parametrize(
    ("fractions", "alpha"),
    [((), 0.05), ((0.5, 0.5, 1.0), 0.05), ((0.0, 1.0), 0.05), ((1.2,), 0.05), ((1.0,), 0.5)],
)
def test_looks_that_cannot_be_are_refused(fractions: tuple[float, ...], alpha: float) -> None:
    with pytest.raises(ValueError, match=r"looks are rising|alpha is above"):
        check_looks(fractions, alpha)


def test_a_look_that_comes_too_early_decides_nothing() -> None:
    assert compute_look_levels((0.01, 1.0), 0.05, "obrien-fleming")[0] == 0


@pytest.mark.parametrize(("margin", "roots"), [(0.05, 59), (0.1, 29), (0.2, 14), (0.5, 5)])
def test_so_many_roots_it_takes_for_a_margin(margin: float, roots: int) -> None:
    assert count_fewest_roots(margin, 0.05) == roots
    assert count_fewest_roots(1e-9, 0.05) is None
