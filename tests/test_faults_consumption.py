"""A fault was consumed only if what it did is in what the model was told."""

import pytest

from faults.consumption import consumption
from tests.told_runs import BENT, FAILED, ORDER, Telling, struck


@pytest.mark.parametrize(
    ("family", "mutated", "run", "consumed", "why"),
    [
        ("E", FAILED, Telling().calls(FAILED), True, "the error is the result"),
        ("E", FAILED, Telling().calls(FAILED, ORDER), False, "absorbed"),
        ("V", BENT, Telling().calls(BENT), True, "the bent text is the result"),
        ("V", BENT, Telling().calls(BENT, told="It was 1259.4 in all."), True, "1259.4"),
        ("V", BENT, Telling().calls(BENT, ORDER), False, "absorbed"),
        ("V", BENT, Telling().calls(BENT, told="I have the order."), None, "undecidable"),
        ("sham", ORDER, Telling().calls(ORDER), True, "clean result is there"),
    ],
)
def test_what_the_model_was_told_decides(
    family: str, mutated: str, run: Telling, consumed: bool | None, why: str
) -> None:
    told = run.says("DONE").over()
    found = consumption(struck(family, mutated), told.story, told.tape.exchanges)
    assert found.consumed is consumed
    assert why in found.why


def test_a_run_that_was_over_before_the_model_was_told_consumed_nothing() -> None:
    told = Telling().calls(FAILED).over(ended="crash")
    found = consumption(struck("E", FAILED), told.story, told.tape.exchanges)
    assert (found.consumed, found.why) == (False, "ended_before")
