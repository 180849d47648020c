"""A store that cannot be written, as an archive or an artefact of CI, can be read."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from traces.tape.reader import read_tape

MOUNT = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'


def run_stumble(folder: Path, *words: str, mounted: bool) -> subprocess.CompletedProcess[str]:
    """Run a command, with the store mounted read-only in a mount namespace if `mounted`."""
    store = folder / "store"
    command = [sys.executable, "-m", "stumble", *words]
    if mounted:
        command = ["unshare", "--mount", "/bin/sh", "-ec", MOUNT, "sh", str(store), *command]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STUMBLE", "XDG"))}
    env = {**kept, "HOME": str(folder), "STUMBLE_STORE": str(store)}
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="a mount needs root"
)
@pytest.mark.programs
def test_runs_that_were_never_indexed_are_read_and_the_way_out_is_named(tmp_path: Path) -> None:
    agent = (sys.executable, "-c", "print('done')")
    recorded = run_stumble(tmp_path, "record", "--times", "1", "--", *agent, mounted=False)
    assert recorded.returncode == 0, recorded.stderr
    [tape] = (tmp_path / "store" / "tapes").glob("*.tape")
    run = read_tape(tape).trajectory.id

    for _ in range(2):
        query = ("sql", "--format", "csv", "select trajectory_id from trajectories")
        result = run_stumble(tmp_path, *query, mounted=True)
        assert (result.returncode, result.stdout.split()) == (0, ["trajectory_id", run]), (
            result.stderr
        )
    shown = run_stumble(tmp_path, "show", run, mounted=True)
    assert (shown.returncode, shown.stdout.startswith(run)) == (0, True), shown.stderr
    replayed = run_stumble(tmp_path, "replay", str(tape), mounted=True)
    assert replayed.returncode == 6
    assert "set STUMBLE_STORE to a folder that can be written" in replayed.stderr
