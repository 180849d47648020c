"""What a run left in its folder: which paths count as changed, and what is stored of them."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scenarios.workspace.blobs import BlobStore
from scenarios.workspace.left_files import (
    MAX_LEFT_BYTES,
    MAX_LEFT_FILES,
    FolderAtStart,
    LeftFiles,
    collect_left_files,
    list_differing_entries,
    list_folder_entries,
    load_left_files,
    save_left_files,
)
from scenarios.workspace.restore import restore_snapshot
from scenarios.workspace.snapshot import take_snapshot
from stumble.verdicts.file_changes import RunFiles, compare_files, read_run_files
from traces.model import Trajectory
from traces.redaction.secret_scan import SecretFileScanner

SECRET = "hunter2-of-the-user"


@dataclass(slots=True, kw_only=True)
class Copy:
    """A copy of a recorded folder, in which a run takes place."""

    folder: Path
    start: FolderAtStart
    blobs: BlobStore
    scanners: list[SecretFileScanner] = field(default_factory=list)

    def left(self) -> LeftFiles:
        entries = list_folder_entries(self.folder, self.start.hidden)
        return collect_left_files("r", self.folder, self.start, entries, self.blobs, self.scanner)

    def scanner(self) -> SecretFileScanner:
        self.scanners.append(SecretFileScanner([SECRET]))
        return self.scanners[-1]

    def kinds(self) -> dict[str, str]:
        """Return what is stored of each changed path: `file`, or why its content is not."""
        entries = self.left().changed
        return {each.path: each.target if each.kind == "out" else each.kind for each in entries}

    def files(self) -> RunFiles:
        save_left_files(self.blobs, self.left())
        head = Trajectory(id="r", recorded_at=0.0, snapshot=self.start.snapshot)
        return read_run_files(self.blobs, head)


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    origin, folder = tmp_path / "origin", tmp_path / "copy"
    (origin / "src").mkdir(parents=True)
    for name, text in {"a.txt": "one\ntwo\n", "b.txt": "b\n", "src/c.py": "c = 1\n"}.items():
        (origin / name).write_text(text)
    (origin / "link").symlink_to("a.txt")
    blobs = BlobStore(tmp_path / "blobs")
    taken = take_snapshot(origin, blobs)
    folder.mkdir()
    restore_snapshot(taken.manifest, blobs, folder, origin=origin)
    start = FolderAtStart(snapshot=taken.name, manifest=taken.manifest, since=time.time_ns())
    time.sleep(0.02)  # longer than a tick of the clock of ctimes
    return Copy(folder=folder, start=start, blobs=blobs)


def test_a_folder_that_no_run_touched_has_nothing_and_is_not_read(copy: Copy) -> None:
    left = copy.left()
    assert (left.changed, left.removed, left.more, copy.scanners) == ((), (), 0, [])


def test_new_changed_and_removed_files_are_told_apart(copy: Copy) -> None:
    (copy.folder / "a.txt").write_text("one\n2\nthree\n")
    (copy.folder / "b.txt").unlink()
    (copy.folder / "src" / "d.py").write_text("d = 1\n")
    (copy.folder / "link").unlink()
    (copy.folder / "link").symlink_to("src")
    found = [each.describe() for each in copy.files().changes]
    assert found == [
        "changed a.txt (+2 -1)",
        "removed b.txt (+0 -1)",
        "changed link (+1 -1)",
        "added src/d.py (+1 -0)",
    ]


def test_a_change_with_its_old_size_and_mtime_is_found(copy: Copy) -> None:
    path = copy.folder / "b.txt"
    before = path.stat()
    path.write_text("B\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert copy.kinds() == {"b.txt": "file"}


def test_a_file_that_was_only_touched_is_unchanged(copy: Copy) -> None:
    (copy.folder / "b.txt").touch()
    (copy.folder / "a.txt").write_text("one\ntwo\n")
    assert copy.kinds() == {}
    (copy.folder / "a.txt").chmod(0o755)
    assert copy.kinds() == {"a.txt": "file"}


def test_contents_that_are_not_stored_are_named_with_the_reason(copy: Copy) -> None:
    blobs = sorted((copy.blobs.root / "blobs").rglob("*"))
    (copy.folder / "b.txt").write_text(f"{SECRET}\n")
    (copy.folder / ".env").write_text("KEY=1\n")
    (copy.folder / "big").write_bytes(bytes(MAX_LEFT_BYTES + 1))
    (copy.folder / ".git").mkdir()
    (copy.folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (copy.folder / "__pycache__").mkdir()
    (copy.folder / "__pycache__" / "c.pyc").write_bytes(b"\0")
    os.mkfifo(copy.folder / "pipe")
    found = {".env": "secret", ".git/HEAD": "repository", "b.txt": "found", "big": "large"}
    assert copy.kinds() == found
    assert sorted((copy.blobs.root / "blobs").rglob("*")) == blobs
    assert "a secret was found in it" in next(
        each.describe() for each in copy.files().changes if each.path == "b.txt"
    )


def test_more_files_than_are_listed_are_counted(copy: Copy) -> None:
    for n in range(MAX_LEFT_FILES + 3):
        (copy.folder / f"new-{n:05}").touch()
    left = copy.left()
    assert (len(left.changed), left.more) == (MAX_LEFT_FILES, 3)


def test_a_hidden_path_does_not_count(copy: Copy) -> None:
    (copy.folder / "a.txt").write_text("x")
    (copy.folder / "b.txt").unlink()
    hidden = frozenset({copy.folder / "a.txt", copy.folder / "b.txt"})
    copy.start = FolderAtStart(
        snapshot=copy.start.snapshot, manifest=copy.start.manifest, hidden=hidden
    )
    left = copy.left()
    assert (left.changed, left.removed) == ((), ())


def test_a_recording_is_compared_by_its_two_manifests(copy: Copy, tmp_path: Path) -> None:
    (copy.folder / "a.txt").write_text("other\n")
    (copy.folder / "run.tape").write_text("tape")
    after = take_snapshot(copy.folder, copy.blobs).manifest
    hidden = frozenset({copy.folder / "run.tape"})
    entries = list_differing_entries(copy.folder, copy.start.manifest, after, hidden)
    start = FolderAtStart(snapshot=copy.start.snapshot, manifest=copy.start.manifest)
    left = collect_left_files("r", copy.folder, start, entries, copy.blobs, copy.scanner)
    assert [each.path for each in left.changed] == ["a.txt"]


def test_it_comes_back_from_the_store_and_damage_is_found(copy: Copy) -> None:
    (copy.folder / os.fsdecode(b"\xff.txt")).write_text("odd name")
    left = copy.left()
    save_left_files(copy.blobs, left)
    assert load_left_files(copy.blobs, "r") == left
    assert load_left_files(copy.blobs, "other") is None
    [path] = (copy.blobs.root / "left").iterdir()
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match="damaged"):
        load_left_files(copy.blobs, "r")


def test_two_runs_are_compared_by_content(copy: Copy) -> None:
    (copy.folder / "a.txt").write_text("same\n")
    (copy.folder / "b.txt").write_text("true\n")
    clean = copy.files()
    (copy.folder / "b.txt").write_text("wrong\n")
    (copy.folder / "src" / "c.py").unlink()
    compared = compare_files(clean, copy.files())
    assert [(each.path, each.comparison) for each in compared] == [
        ("b.txt", "the clean twin otherwise"),
        ("src/c.py", "the clean twin did not"),
        ("a.txt", "so did the clean twin"),
    ]
    assert {each.comparison for each in compare_files(None, clean)} == {""}
