"""The mutant runner, on a tree of two small files."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parents[2] / "mutation" / "run.py"
MODULE = """\
def double(n):
    return n * 2

def half(n):
    return n / 2

print("sums are loaded") if __name__ == "__main__" else None
"""
TESTS = """\
import os
import subprocess
import sys

import pytest

import sums

def test_double():
    assert sums.double(3) == 6

def test_half():
    sums.half(3)

def test_neither():
    assert sums.half(3) == 2

def test_process():
    assert os.environ["STUMBLE_TESTS"] == "all"
    ran = subprocess.run([sys.executable, "-m", "sums"], capture_output=True, timeout=30)
    assert ran.stdout == b"sums are loaded\\n"

def test_skipped():
    pytest.skip("there is no moon")
"""
SLEEPER = """\
import subprocess
import sys
import time
from pathlib import Path

import sums

def test_sleeper():
    asleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    Path({notes!r}).write_text(str(subprocess.Popen(asleep, start_new_session=True).pid))
    time.sleep(60)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Half of the module is tested: `double` is, `half` is only called."""
    root = tmp_path / "root"
    (root / "tests" / "mutation" / "mutants").mkdir(parents=True)
    (root / "sums.py").write_text(MODULE)
    (root / "tests" / "test_sums.py").write_text(TESTS)
    subprocess.run(["git", "init", "-q", root], check=True, timeout=30)
    return root


def plant(
    tree: Path, name: str, was: str, becomes: str, test: str, *, file: str = "sums.py"
) -> None:
    (tree / "tests" / "mutation" / "mutants" / f"{name}.toml").write_text(
        f'file = "{file}"\nwas = "{was}"\nbecomes = "{becomes}"\n'
        f'tests = ["{test}"]\nwhy = "sums would be wrong"\n'
    )


def start(tree: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(RUNNER), "--root", str(tree), *arguments]
    environment = {**os.environ, "TMPDIR": str(tree.parent)}
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def run(tree: Path, *arguments: str) -> tuple[int, list[str]]:
    """The exit code and the lines printed, less the time that anything took."""
    with start(tree, *arguments) as process:
        output, errors = process.communicate(timeout=100)
    assert errors == ""
    return process.returncode, re.sub(r" \([^()]*CPU[^()]*\)", "", output).splitlines()


def test_without_mutants_there_is_nothing_to_kill(tree: Path) -> None:
    assert run(tree) == (0, ["collected", "unspoilt  0 tests", "mutants killed 0/0"])


def test_a_mistake_that_a_test_or_what_it_starts_notices_is_killed(tree: Path) -> None:
    plant(tree, "tripled", "n * 2", "n * 3", "test_sums.py::test_double")
    plant(tree, "hushed", "sums are loaded", "", "test_sums.py::test_process")
    code, (_, *verdicts, unspoilt, count) = run(tree)
    assert sorted(verdicts) == ["noticed   hushed", "noticed   tripled"]
    assert (code, unspoilt, count) == (0, "unspoilt  2 tests", "mutants killed 2/2")
    assert (tree / "sums.py").read_text() == MODULE


def test_what_is_not_killed_is_explained(tree: Path) -> None:
    plant(tree, "tripled", "n * 2", "n * 3", "test_sums.py::test_double")
    plant(tree, "thirds", "n / 2", "n / 3", "test_sums.py::test_half")
    plant(tree, "wrong-already", "n * 2", "n * 3", "test_sums.py::test_neither")
    plant(tree, "not-tested", "n * 2", "n * 3", "test_sums.py::test_skipped")
    plant(tree, "broken", "def half(n)", "def half(n", "test_sums.py::test_double")
    code, lines = run(tree, "--slowest", "1")
    assert code == 1
    assert lines[-1] == "mutants killed 1/5"
    assert lines[-2] == "unspoilt  2 tests"
    assert lines[-3].startswith("CPU ")
    assert "noticed   tripled" in lines
    survived = lines.index("SURVIVED  thirds: sums would be wrong")
    assert lines[survived + 1 : survived + 3] == [
        "          passed: tests/test_sums.py::test_half",
        "          run it alone: python tests/mutation/run.py thirds",
    ]
    skipped = lines.index("SURVIVED  not-tested: sums would be wrong")
    assert lines[skipped + 1] == "          skipped: tests/test_sums.py::test_skipped"
    for error in (
        "wrong-already: in an unspoilt copy tests/test_sums.py::test_neither failed",
        "broken: its tests did not run (exit 4)",
    ):
        assert f"ERROR     {error}" in lines
    assert any("assert 1.5 == 2" in line for line in lines)
    assert any("SyntaxError" in line for line in lines)


@pytest.mark.thorough
def test_all_that_cannot_be_planted_is_listed(tree: Path) -> None:
    plant(tree, "moved", "n * 4", "n * 3", "test_sums.py::test_double")
    plant(tree, "vague", "return", "yield", "test_sums.py::test_double")
    plant(tree, "gone", "n * 2", "n * 3", "test_gone.py::test_double")
    assert run(tree) == (
        1,
        [
            "ERROR     gone: test_gone.py names no file under tests",
            "ERROR     moved: sums.py holds `was` 0 times, not once",
            "ERROR     vague: sums.py holds `was` 2 times, not once",
        ],
    )


@pytest.mark.thorough
def test_the_file_of_a_test_may_be_moved_but_must_be_the_only_one(tree: Path) -> None:
    plant(tree, "tripled", "n * 2", "n * 3", "test_sums.py::test_double")
    (tree / "tests" / "unit").mkdir()
    moved = (tree / "tests" / "test_sums.py").rename(tree / "tests" / "unit" / "test_sums.py")
    assert run(tree)[1][-1] == "mutants killed 1/1"
    (tree / "tests" / "test_sums.py").write_text(moved.read_text())
    assert "ERROR     tripled: test_sums.py names ['tests/" in run(tree)[1][0]
    plant(tree, "tripled", "n * 2", "n * 3", "unit/test_sums.py::test_double")
    assert run(tree)[1][-1] == "mutants killed 1/1"


@pytest.mark.thorough
def test_the_copy_comes_before_the_checkout_that_is_installed(tree: Path) -> None:
    (tree / "traces").mkdir()
    (tree / "traces" / "__init__.py").write_text("FLOOR = 1\n")
    (tree / "tests" / "test_sums.py").write_text(
        "import traces\n\ndef test_floor():\n    assert traces.FLOOR == 1\n"
    )
    floor = "test_sums.py::test_floor"
    plant(tree, "sunk", "FLOOR = 1", "FLOOR = 0", floor, file="traces/__init__.py")
    assert run(tree)[1][-1] == "mutants killed 1/1"


@pytest.mark.many(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_process(tree: Path, number: signal.Signals) -> None:
    notes = tree.parent / "notes"
    (tree / "tests" / "test_sums.py").write_text(SLEEPER.format(notes=str(notes)))
    plant(tree, "tripled", "n * 2", "n * 3", "test_sums.py::test_sleeper")
    with start(tree) as process:
        wait_for(lambda: notes.exists() and notes.read_text() != "")
        sleeper = Path("/proc", notes.read_text())
        assert sleeper.exists()
        process.send_signal(number)
        output, _ = process.communicate(timeout=30)
    wait_for(lambda: not sleeper.exists())
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert output.splitlines()[-1].startswith("interrupted (")
        assert list(tree.parent.glob("mutants-*")) == []


def wait_for(is_met) -> None:
    deadline = time.monotonic() + 30
    while not is_met():
        assert time.monotonic() < deadline
        time.sleep(0.05)
