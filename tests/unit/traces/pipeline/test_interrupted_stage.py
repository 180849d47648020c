"""What an interrupted pipeline run had spent at the stage that it was interrupted in."""

import pytest

from traces.model import RunEvent
from traces.pipeline.interrupted_stage import measure_interrupted_stage
from traces.pipeline.stages import ModelCharge

BILLS = [
    ModelCharge(at=1.0, tokens=5, dollars=0.5),
    ModelCharge(at=11.0, tokens=10, dollars=1.0),
    ModelCharge(at=21.0, tokens=20, dollars=2.0),
]
EARLIER = {"calls": 7, "tokens": 70, "cost_usd": 0.25, "seconds": 100.0}


def event(at: float, name: str, **data: object) -> RunEvent:
    return RunEvent(at=at, name=name, data={"stage": "T1", **data})


def test_attempts_count_and_the_grading_between_them_does_not() -> None:
    marks = [
        event(0.0, "graded", stage="T0"),
        event(10.0, "stage", attempted=True),
        event(13.0, "agent"),
        event(20.0, "attempt"),
    ]
    spent = {"calls": 2, "tokens": 30, "cost_usd": 3.0, "seconds": 3.0 + 5.0}
    assert measure_interrupted_stage(marks, BILLS, 25.0) == ("T1", spent)
    ended = [*marks, event(22.0, "agent")]
    assert measure_interrupted_stage(ended, BILLS, 25.0) == ("T1", {**spent, "seconds": 5.0})


@pytest.mark.parametrize("unknown", ["calls", "tokens", "cost_usd", "seconds"])
def test_a_run_that_was_interrupted_twice_has_both_parts(unknown: str) -> None:
    began = event(20.0, "stage", attempted=True, before=EARLIER)
    whole = {"calls": 8, "tokens": 90, "cost_usd": 2.25, "seconds": 105.0}
    assert measure_interrupted_stage([began], BILLS, 25.0) == ("T1", whole)
    began = event(20.0, "stage", attempted=True, before={**EARLIER, unknown: None})
    assert measure_interrupted_stage([began], BILLS, 25.0) == ("T1", {**whole, unknown: None})


def test_between_stages_nothing_was_spent() -> None:
    assert measure_interrupted_stage([event(5.0, "graded")], BILLS, 9.0) is None
    assert measure_interrupted_stage([], [], 0.0) is None
