"""Another distribution or a file of the user may have the name of a package of ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stumble.__main__ import PACKAGES, find_hidden_package
from stumble.errors import ExitCode


def test_nothing_is_hidden_here() -> None:
    assert find_hidden_package() is None


@pytest.mark.parametrize("name", PACKAGES)
def test_a_file_of_the_user_is_named_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("VALUES = [1]\n")
    done = subprocess.run(
        [sys.executable, "-m", "stumble", "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == ExitCode.HARNESS
    assert done.stderr.count("\n") == 1
    assert f"another module {name!r}" in done.stderr
    assert "pipx install" in done.stderr


def test_a_package_of_another_distribution_is_named_too(tmp_path: Path) -> None:
    (tmp_path / "stumble").mkdir()
    hidden = find_hidden_package(beside=tmp_path)
    assert hidden is not None
    assert "uv tool install" in hidden
