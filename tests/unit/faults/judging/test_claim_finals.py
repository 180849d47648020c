"""Claims of real agents, which others labelled: how often they are read right."""

from pathlib import Path

import pytest

from faults.judging.claims.calibration import LabelAgreement, measure_label_agreement
from stumble.verdicts.claim_calibration import calibrate_claims

pytestmark = pytest.mark.gate


@pytest.fixture(scope="module")
def found(shared: Path) -> LabelAgreement:
    return calibrate_claims(shared / "finals" / "finals.jsonl").all


def test_few_are_left_unknown(found: LabelAgreement) -> None:
    assert (found.unknown_rate.rate or 0) <= 0.30


def test_what_is_not_delivered_is_seldom_called_so(found: LabelAgreement) -> None:
    assert (found.false_delivered_rate.rate or 0) <= 0.10


def test_what_is_decided_is_right(found: LabelAgreement) -> None:
    assert (found.accuracy.rate or 0) >= 0.92
    assert (found.delivered_accuracy.rate or 0) >= 0.92


def test_nothing_agrees_with_nothing() -> None:
    assert measure_label_agreement(()).accuracy.rate is None
