"""All tables of the published study, out of all its recordings: `make test-real`."""

import subprocess
import sys
from pathlib import Path

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results" / "real-model"
pytestmark = pytest.mark.timeout(1200)
MADE = ("rows.csv", "answers.csv", "rates.csv", "differences.csv", "rates.svg")


def test_everything_comes_out_of_the_recordings(tmp_path: Path) -> None:
    command = [sys.executable, str(RESULTS / "make.py"), str(tmp_path)]
    assert subprocess.run(command, timeout=1000, check=False).returncode == 0
    for name in MADE:
        assert (tmp_path / name).read_bytes() == (RESULTS / name).read_bytes(), name
