"""How one fork's wrong ends stand beside those of its twins, which the fault did not touch."""

import pytest
import scipy

from stumble.verdicts.excess_failures import compare_ends


@pytest.mark.gate
@pytest.mark.parametrize(
    ("faulted", "twins"),
    [
        ([False], [True, True, True]),
        ([False, False, True], [True, False, True]),
        ([True], [False, False, True]),
        ([False] * 5, [True] * 5),
    ],
)
def test_the_chance_is_that_of_fishers_exact_test(faulted: list[bool], twins: list[bool]) -> None:
    found = compare_ends(faulted, twins)
    assert found is not None
    wrong, others = faulted.count(False), twins.count(False)
    table = [[wrong, len(faulted) - wrong], [others, len(twins) - others]]
    assert found.p == pytest.approx(scipy.stats.fisher_exact(table, alternative="greater").pvalue)
    assert found.excess == pytest.approx(wrong / len(faulted) - others / len(twins))


def test_ends_that_nobody_knows_are_left_out() -> None:
    found = compare_ends([False, None], [True, None, True, True])
    assert found is not None
    assert found.to_line() == (
        "ends wrong: 1 of 1 with the fault, 0 of 3 clean twins "
        "(p = 0.25 if the fault had no effect)"
    )
    assert compare_ends([None], [True, True, True]) is None
    assert compare_ends([False], [None]) is None
