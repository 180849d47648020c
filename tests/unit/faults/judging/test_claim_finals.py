"""Claims of real agents, which others labelled: how often they are read right."""

from pathlib import Path

import pytest

from faults.judging.calibration import Agreement, agreement
from stumble.calibrating import calibrate


@pytest.fixture(scope="module")
def found(shared: Path) -> Agreement:
    return calibrate(shared / "finals" / "finals.jsonl").all


def test_few_are_left_unknown(found: Agreement) -> None:
    assert (found.unknown.rate or 0) <= 0.30


def test_what_is_not_delivered_is_seldom_called_so(found: Agreement) -> None:
    assert (found.false_delivered.rate or 0) <= 0.10


def test_what_is_decided_is_right(found: Agreement) -> None:
    assert (found.right.rate or 0) >= 0.92
    assert (found.right_delivered.rate or 0) >= 0.92


def test_nothing_agrees_with_nothing() -> None:
    assert agreement(()).right.rate is None
