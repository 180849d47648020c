"""A few hundred damaged tapes; `tests/hostile` has ten thousand."""

from pathlib import Path

import pytest

from tests.hostile.damaged import damaged
from tests.hostile.walked import walk


@pytest.mark.gate
def test_damaged_tapes_are_read_or_refused(tmp_path: Path) -> None:
    path, readable = tmp_path / "damaged.tape", 0
    for how, data in damaged(7, 150):
        path.write_bytes(data)
        try:
            readable += walk(path)
        except Exception as error:
            raise AssertionError(how) from error
    assert readable > 75
