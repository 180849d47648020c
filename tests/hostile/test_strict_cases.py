"""A hundred thousand changed requests: none that says something else gets a recorded answer."""

from pathlib import Path

import pytest

from tests.support.strict_property import wrong_answers


@pytest.mark.many(1)
@pytest.mark.parametrize("seed", range(4))
def test_no_changed_request_gets_the_recorded_answer(seed: int, tmp_path: Path) -> None:
    assert list(wrong_answers(tmp_path, 25_000, seed)) == []
