"""The mutant runner, on a tree of two small files."""

import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parent / "run.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Half of the module is tested: `double` is, `half` is only called."""
    (tmp_path / "sums.py").write_text(
        "def double(n):\n    return n * 2\n\n\ndef half(n):\n    return n / 2\n"
    )
    (tmp_path / "tests" / "mutation" / "mutants").mkdir(parents=True)
    (tmp_path / "tests" / "test_sums.py").write_text(
        "import sums\n\n"
        "def test_double():\n    assert sums.double(3) == 6\n\n"
        "def test_half():\n    sums.half(3)\n\n"
        "def test_neither():\n    assert sums.half(3) == 2\n"
    )
    subprocess.run(["git", "init", "-q", tmp_path], check=True, timeout=30)
    return tmp_path


def plant(
    tree: Path, name: str, was: str, becomes: str, test: str, *, file: str = "sums.py"
) -> None:
    (tree / "tests" / "mutation" / "mutants" / f"{name}.toml").write_text(
        f'file = "{file}"\nwas = "{was}"\nbecomes = "{becomes}"\n'
        f'tests = ["test_sums.py::{test}"]\nwhy = "sums would be wrong"\n'
    )


def run(tree: Path, *names: str) -> tuple[int, list[str]]:
    command = [sys.executable, str(RUNNER), "--root", str(tree), *names]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert ran.stderr == ""
    return ran.returncode, ran.stdout.splitlines()


def test_without_mutants_there_is_nothing_to_kill(tree: Path) -> None:
    assert run(tree) == (0, ["mutants killed 0/0"])


def test_a_mistake_that_a_test_notices_is_killed(tree: Path) -> None:
    plant(tree, "tripled", "n * 2", "n * 3", "test_double")
    code, (killed, count) = run(tree)
    assert killed.startswith("killed    tripled (")
    assert (code, count) == (0, "mutants killed 1/1")
    assert "n * 2" in (tree / "sums.py").read_text()


def test_a_mistake_that_no_test_notices_survives(tree: Path) -> None:
    plant(tree, "tripled", "n * 2", "n * 3", "test_double")
    plant(tree, "thirds", "n / 2", "n / 3", "test_half")
    code, (*verdicts, count) = run(tree)
    assert sorted(verdict.split(" (")[0] for verdict in verdicts) == [
        "SURVIVED  thirds",
        "killed    tripled",
    ]
    assert (code, count) == (1, "mutants killed 1/2")


def test_a_mistake_that_cannot_be_planted_is_an_error(tree: Path) -> None:
    plant(tree, "moved", "n * 4", "n * 3", "test_double")
    plant(tree, "vague", "return", "yield", "test_double")
    assert run(tree, "moved") == (1, ["ERROR moved: sums.py holds `was` 0 times, not once"])
    assert run(tree, "vague") == (1, ["ERROR vague: sums.py holds `was` 2 times, not once"])


def test_the_file_of_a_test_may_be_moved_but_not_be_gone_or_be_there_twice(tree: Path) -> None:
    plant(tree, "tripled", "n * 2", "n * 3", "test_double")
    plant(tree, "thirds", "n / 2", "n / 3", "test_half")
    (tree / "tests" / "unit").mkdir()
    moved = (tree / "tests" / "test_sums.py").rename(tree / "tests" / "unit" / "test_sums.py")
    assert run(tree, "tripled")[1][-1] == "mutants killed 1/1"
    twin = tree / "tests" / "test_sums.py"
    twin.write_text(moved.read_text())
    assert "names ['tests/" in run(tree, "tripled")[1][0]
    twin.unlink()
    moved.unlink()
    assert run(tree) == (
        1,
        [
            "ERROR thirds: test_sums.py names no file under tests",
            "tripled: test_sums.py names no file under tests",
        ],
    )


def test_a_test_that_fails_anyway_proves_nothing(tree: Path) -> None:
    plant(tree, "tripled", "n * 2", "n * 3", "test_neither")
    code, said = run(tree)
    assert code == 1
    assert said[0] == "ERROR these tests do not pass unspoilt, or are skipped:"


def test_a_mistake_that_stops_the_tests_from_running_is_not_noticed_by_them(tree: Path) -> None:
    plant(tree, "broken", "def half(n)", "def half(n", "test_double")
    code, said = run(tree)
    assert code == 1
    assert said[0] == "ERROR     broken: its tests did not run"


def test_the_copy_comes_before_the_checkout_that_is_installed(tree: Path) -> None:
    (tree / "traces").mkdir()
    (tree / "traces" / "__init__.py").write_text("FLOOR = 1\n")
    (tree / "tests" / "test_sums.py").write_text(
        "import traces\n\ndef test_floor():\n    assert traces.FLOOR == 1\n"
    )
    plant(tree, "sunk", "FLOOR = 1", "FLOOR = 0", "test_floor", file="traces/__init__.py")
    assert run(tree)[1][-1] == "mutants killed 1/1"
