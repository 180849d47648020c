"""What happens to a tape that a user named does not happen to the store's."""

import shutil
import sys
from pathlib import Path

from tests.support import warm_stumble
from tests.support.warm_stumble import CommandResult
from traces.tape.reader import read_tape


def run_stumble(folder: Path, *words: str) -> CommandResult:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "STUMBLE_STORE": str(folder / "store")}
    return warm_stumble.run_stumble(words, cwd=folder, env=env, timeout=120)


def test_a_run_of_the_store_outlives_what_is_done_to_its_named_tape(tmp_path: Path) -> None:
    ids = []
    for name in ("a", "b"):
        command = (sys.executable, "-c", f"print({name!r})")
        recorded = run_stumble(tmp_path, "record", "-o", f"{name}.tape", "--", *command)
        assert recorded.code == 0, recorded.err
        ids.append(read_tape(tmp_path / f"{name}.tape").trajectory.id)
    shutil.copyfile(tmp_path / "b.tape", tmp_path / "a.tape")
    (tmp_path / "b.tape").write_bytes(b"")

    for id, name in zip(ids, ("a", "b"), strict=True):
        assert id in run_stumble(tmp_path, "show", id).out
        assert (
            f"print('{name}')"
            in read_tape(tmp_path / "store" / "tapes" / f"{id}.tape").trajectory.command
        )
    rows = run_stumble(tmp_path, "sql", "--rebuild", "select trajectory_id from trajectories")
    assert all(id in rows.out for id in ids), rows.err
