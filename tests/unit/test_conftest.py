"""What a skip may be for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKIPS = """
import pytest

def test_that_needs_data(shared):
    pass

@pytest.mark.skip(reason="REASON")
def test_that_is_marked():
    pass
"""


def run(folder: Path, text: str, ci: str) -> str:
    here, folder = Path(__file__).parents[1], folder / "checkout" / "tests"
    (folder / "support").mkdir(parents=True)
    for name in ("conftest.py", "support/tiers.py"):
        shutil.copy(here / name, folder / name)
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "."]
    environment = {**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ran = subprocess.run(
        command, cwd=folder.parent, env=environment, capture_output=True, text=True, timeout=60
    )
    return ran.stdout


def test_at_home_a_test_may_be_skipped(tmp_path: Path) -> None:
    assert "2 skipped in" in run(tmp_path, SKIPS.replace("REASON", "no network"), ci="")


def test_in_ci_only_the_data_beside_the_checkout_may_be_missing(tmp_path: Path) -> None:
    said = run(tmp_path, SKIPS.replace("REASON", "no network"), ci="true")
    assert "1 skipped, 1 error in" in said
    assert "no network (in CI nothing but 'a clone without ../shared' is skipped)" in said


@pytest.mark.gate
def test_the_reason_counts_to_the_letter(tmp_path: Path) -> None:
    text = SKIPS.replace("REASON", "a clone without ../shared")
    assert "2 skipped in" in run(tmp_path / "same", text, ci="true")
    assert "1 skipped, 1 error in" in run(
        tmp_path / "more", text.replace('shared"', 'shared!"'), ci="true"
    )


@pytest.mark.gate
def test_a_module_that_skips_itself_fails_in_ci(tmp_path: Path) -> None:
    text = 'import pytest\n\npytest.importorskip("a_module_nobody_has")\n'
    assert "1 skipped in" in run(tmp_path / "home", text, ci="")
    assert "1 error in" in run(tmp_path / "ci", text, ci="true")


@pytest.mark.gate
@pytest.mark.parametrize("ci", ["", "true"])
def test_an_expected_failure_is_not_a_skip(tmp_path: Path, ci: str) -> None:
    text = "import pytest\n\n@pytest.mark.xfail\ndef test_it():\n    assert False\n"
    assert "1 xfailed in" in run(tmp_path, text, ci)
