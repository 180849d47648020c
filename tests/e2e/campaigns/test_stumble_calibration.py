"""The judge against what really happened, in small; `python -m
tests.support.stores.judge_calibration` is all of it."""

from pathlib import Path

import pytest

from tests.support.stores.judge_calibration import (
    AGREE,
    SHAMS,
    calibrate,
)


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_the_judge_says_what_the_model_wrote_down(tmp_path: Path) -> None:
    found = calibrate(tmp_path, small=True)
    assert len(found.struck) == 2 * 2 * 3 * 2
    assert found.agreement >= AGREE, "\n".join(found.details())
    assert found.sham_notice <= SHAMS
    assert {"recovered", "silent_wrong", "noticed_wrong"} <= set(found.counts)
