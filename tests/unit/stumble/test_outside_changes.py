"""What a run changed outside of its copy is named, and a login that it renewed is kept."""

import json
import os
from pathlib import Path

import pytest

from recorder.agent.isolation import MountedCopy
from recorder.agent.outside_files import OutsideFiles, read_mount_points
from stumble.runs.environment.outside_changes import settle_outside_changes
from stumble.runs.environment.workspaces import RunLocation

OLD = {"tokens": "old", "last_refresh": "2026-01-01"}
NEW = {"tokens": "new", "last_refresh": "2026-01-02"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunLocation:
    """A home with a login and notes, and a run that changed both."""
    home, upper = tmp_path / "home", tmp_path / "layers" / "0" / "up"
    for folder, login, notes in ((home, OLD, "mine"), (upper, NEW, "changed")):
        (folder / ".codex").mkdir(parents=True)
        (folder / ".codex" / "auth.json").write_text(json.dumps(login))
        (folder / "notes.txt").write_text(notes)
    os.utime(home / "notes.txt", (1, 1))
    os.utime(home / ".codex" / "auth.json", (1, 1))
    monkeypatch.setenv("HOME", str(home))
    outside = OutsideFiles(layers=tmp_path / "layers", folders=(home,), kept=())
    return RunLocation(room=MountedCopy(path=home / "w", copy=tmp_path, outside=outside))


def read_login(place: RunLocation) -> object:
    return json.loads((Path.home() / ".codex" / "auth.json").read_text())


def test_a_login_is_kept_after_a_live_run_alone(place: RunLocation) -> None:
    (line,) = settle_outside_changes(place, live=False)
    assert line.startswith(f"outside: changes of {Path.home() / 'notes.txt'} were thrown away")
    assert read_login(place) == OLD
    kept, _ = settle_outside_changes(place, live=True)
    assert kept == f"outside: the login in {Path.home() / '.codex/auth.json'} was renewed, and kept"
    assert read_login(place) == NEW
    assert (Path.home() / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("text", ["garbage", "{}", '{"tokens": "new"}', "[1]"])
def test_what_is_no_login_takes_no_place_of_one(place: RunLocation, text: str) -> None:
    assert place.room is not None
    assert place.room.outside is not None
    new = place.room.outside.find_layer_file(Path.home() / ".codex" / "auth.json")
    assert new is not None
    new.write_text(text)
    settle_outside_changes(place, live=True)
    assert read_login(place) == OLD


def test_mount_points_are_read_with_their_escapes() -> None:
    line = r"36 35 98:0 / /mnt/a\040b rw,noatime master:1 - ext3 /dev/root rw"
    assert list(read_mount_points(line)) == [Path("/mnt/a b")]
