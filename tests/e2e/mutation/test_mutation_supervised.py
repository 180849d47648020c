"""What is forked under supervision ends in time, with all that it started."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mutation.supervised import PAST_LIMIT, fork_supervised


def ending(work: Callable[[], int], output: Path, limit: float = 30) -> int:
    pid = fork_supervised(work, output, limit)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def start_sleeper() -> int:
    """The process id of one in a session of its own."""
    asleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    return subprocess.Popen(asleep, start_new_session=True).pid


def test_it_exits_and_prints_as_its_work_does(tmp_path: Path) -> None:
    def work() -> int:
        os.write(1, b"three ")
        return subprocess.call(["sh", "-c", "echo passed; exit 3"])

    assert ending(work, tmp_path / "output") == 3
    assert (tmp_path / "output").read_text() == "three passed\n"


def test_an_error_is_in_the_output(tmp_path: Path) -> None:
    def work() -> int:
        raise LookupError("no such tree")

    assert ending(work, tmp_path / "output") == 70
    assert "LookupError: no such tree" in (tmp_path / "output").read_text()


@pytest.mark.parametrize("hangs", [False, True])
def test_what_it_started_does_not_outlive_it(tmp_path: Path, hangs: bool) -> None:
    notes = tmp_path / "notes"

    def work() -> int:
        notes.write_text(str(start_sleeper()))
        if hangs:
            time.sleep(60)
        return 0

    assert ending(work, tmp_path / "output", limit=1 if hangs else 30) == (
        PAST_LIMIT if hangs else 0
    )
    assert not Path("/proc", notes.read_text()).exists()


def test_to_end_it_ends_what_it_started(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    def work() -> int:
        notes.write_text(str(start_sleeper()))
        time.sleep(60)
        return 0

    pid = fork_supervised(work, tmp_path / "output", 30)
    deadline = time.monotonic() + 20
    while not notes.exists() or not notes.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGTERM
    assert not Path("/proc", notes.read_text()).exists()
