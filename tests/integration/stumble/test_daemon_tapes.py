"""Finished tapes of a daemon, which its successor may find at the same time."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stumble.daemon.conversation_tape import INCOMING, keep_tape, recover_tapes
from stumble.daemon.metrics import DaemonMetrics
from stumble.daemon.retention import DAY, TapeBudget
from stumble.daemon.rules import DaemonRules
from traces.model import RunEnding, Trajectory
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter

AT_ONCE = 8


def write_tape(root: Path, name: str) -> Path:
    path = root / INCOMING / f"{name}.tape"
    path.parent.mkdir(parents=True, exist_ok=True)
    with TapeWriter(path, Trajectory(id=name, recorded_at=0.0)) as tape:
        tape.write_ending(RunEnding(ended="final", at=1.0))
    return path


def test_a_daemon_and_its_successor_keep_each_tape_once(tmp_path: Path) -> None:
    paths = [write_tape(tmp_path, f"t{n}") for n in range(20)]
    ready = threading.Barrier(AT_ONCE)

    def keep(number: int) -> list[int]:
        ready.wait(timeout=10)
        if number % 2:
            return [len(recover_tapes(tmp_path, print)) and 0]
        return [keep_tape(tmp_path, path) for path in paths]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        sizes = list(pool.map(keep, range(AT_ONCE)))
    kept = sorted((tmp_path / "tapes").glob("*.tape"))
    assert [path.stem for path in kept] == sorted(path.stem for path in paths)
    assert all(read_tape(path).ending for path in kept)
    assert not list((tmp_path / INCOMING).glob("*.tape"))
    assert all(size > 0 for found in sizes[::2] for size in found)


def test_a_tape_that_is_still_written_stays_with_its_daemon(tmp_path: Path) -> None:
    folder = tmp_path / INCOMING
    folder.mkdir(parents=True)
    with TapeWriter(folder / "open.tape", Trajectory(id="open", recorded_at=0.0)):
        assert recover_tapes(tmp_path, print) == []
    assert [path.name for path in recover_tapes(tmp_path, print)] == ["open.tape"]


@pytest.mark.parametrize("jump", [-400, 400], ids=["back", "ahead"])
def test_a_clock_that_is_set_deletes_no_tape_and_a_tape_of_its_age_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    (tmp_path / "tapes").mkdir()
    metrics, real = DaemonMetrics(), time.time
    names = ["old.tape", "new.tape"]
    for name in names:
        (tmp_path / "tapes" / name).write_bytes(b"tape")
    os.utime(tmp_path / "tapes/old.tape", (real() - 31 * DAY,) * 2)
    (tmp_path / "daemon.tapes").write_text("".join(f"{name}\n" for name in names))
    budget = TapeBudget(tmp_path, metrics)
    monkeypatch.setattr(time, "time", lambda: real() + jump * DAY)
    later = tmp_path / "tapes/later.tape"
    later.write_bytes(b"tape")
    budget.announce(later)
    budget.add(later, 4)
    budget.enforce(DaemonRules())
    kept = {path.name for path in tmp_path.glob("tapes/*.tape")}
    assert kept == {"new.tape", "later.tape"} | ({"old.tape"} if jump < 0 else set())
    monkeypatch.undo()
    budget.enforce(DaemonRules())
    kept = {path.name for path in tmp_path.glob("tapes/*.tape")}
    assert kept == {"new.tape", "later.tape"}
    assert metrics.counts["tapes_deleted_total", 'limit="age"'] == 1
