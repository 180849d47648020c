"""The clock of a check keeps time for its result."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stumble.check.setup import BudgetClock


@given(st.floats(1, 7200), st.floats(0, 10_000))
def test_no_run_begins_in_the_time_that_is_kept_for_the_result(budget: float, used: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: 50.0)
        clock = BudgetClock(budget)
        patch.setattr(time, "monotonic", lambda: 50.0 + used)
        kept = min(10.0, budget / 10)
        assert clock.used == pytest.approx(used)
        assert clock.left == pytest.approx(budget - kept - used)
