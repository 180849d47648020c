"""A part of the cells of every grid; `python -m tests.statistical.grids` has all of them."""

import pytest

from tests.statistical.grids.__main__ import FIGURES
from tests.statistical.grids.cells import all_cells

pytestmark = pytest.mark.many(2)

PART = {
    "recovery": 1,
    "standardised": 4,
    "gate-by-op": 6,
    "kaplan_meier": 8,
    "survival": 8,
    "half_life": 4,
}
"""Each so many cells one, by figure: what costs more has fewer."""


@pytest.mark.parametrize("figure", FIGURES)
def test_what_is_printed_covers_and_alarms_are_rare(figure: str) -> None:
    step = PART.get(figure, 2)
    for cell in list(all_cells())[len(figure) % step :: step]:
        for outcome in FIGURES[figure](cell):
            assert outcome.misses() == [], outcome
