"""A folder, kept and made again: the same to any program that looks."""

import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.workspace.blobs import PIECE_BYTES, BlobStore
from scenarios.workspace.ignore_rules import IgnoreRules
from scenarios.workspace.manifest import ManifestEntry, SnapshotManifest
from scenarios.workspace.restore import restore_snapshot
from scenarios.workspace.snapshot import (
    FolderSnapshot,
    SnapshotLimits,
    SnapshotSizeError,
    take_snapshot,
)
from tests.support.tiers import examples


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "store")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of an agent's, with all that there may be in one."""
    root = tmp_path / "folder"
    (root / "empty").mkdir(parents=True)
    (root / "src").mkdir()
    (root / "src" / "main.py").write_text("print(1)\n")
    (root / "src" / "large").write_bytes(os.urandom(3 * PIECE_BYTES + 7))
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "sealed").write_text("read only")
    (root / "sealed").chmod(0o400)
    (root / "link").symlink_to("src/main.py")
    (root / "dangling").symlink_to("nowhere")
    (root / os.fsdecode(b"not \xff text")).write_text("odd")
    for name in ("node_modules", ".git"):
        (root / name).mkdir()
        (root / name / "file").write_text(name)
    (root / ".env").write_text("KEY=sk-secret")
    for n, path in enumerate(sorted(root.rglob("*"), reverse=True)):
        os.utime(path, ns=(n, 1_700_000_000_123_456_789 + n), follow_symlinks=False)
    os.utime(root, ns=(1, 1_600_000_000_987_654_321))
    return root


def seen(root: Path) -> dict[str, tuple[object, ...]]:
    """All that a program could tell of a folder, but inodes and times of access."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (root, *root.rglob("*")):
        info = path.lstat()
        content: object = None
        if path.is_symlink():
            content = path.readlink()
        elif path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(root))] = info.st_mode, info.st_mtime_ns, content
    return found


def test_a_copy_is_the_same_to_any_program(folder: Path, blobs: BlobStore, tmp_path: Path) -> None:
    taken = take_snapshot(folder, blobs)
    was = seen(folder)
    copy = tmp_path / "copy"
    copy.mkdir()
    manifest = blobs.load_manifest(taken.name)
    assert manifest == taken.manifest
    restore_snapshot(manifest, blobs, copy, origin=folder)

    left = {".env", "node_modules", "node_modules/file"}
    now = seen(copy)
    assert {k: v for k, v in now.items() if k not in left} == {
        k: v for k, v in was.items() if k not in left
    }
    assert (copy / "node_modules").is_dir()
    assert (copy / ".env").read_bytes() == b""


def test_what_is_left_out_is_linked_where_nothing_can_be_mounted(
    folder: Path, blobs: BlobStore, tmp_path: Path
) -> None:
    taken, copy = take_snapshot(folder, blobs), tmp_path / "copy"
    copy.mkdir()
    placed = restore_snapshot(taken.manifest, blobs, copy, origin=folder, linked=True)
    assert [entry.path for entry in placed] == [".env", "node_modules"]
    assert (copy / ".env").read_text() == "KEY=sk-secret"
    assert (copy / "node_modules" / "file").read_text() == "node_modules"


def test_what_is_left_out_and_gone_leaves_nothing(
    folder: Path, blobs: BlobStore, tmp_path: Path
) -> None:
    taken, copy = take_snapshot(folder, blobs), tmp_path / "copy"
    copy.mkdir()
    (folder / ".env").unlink()
    assert [e.path for e in restore_snapshot(taken.manifest, blobs, copy, origin=folder)] == [
        "node_modules"
    ]
    assert not (copy / ".env").exists()


def test_no_secret_file_is_in_the_store_and_only_its_owner_may_look(
    folder: Path, blobs: BlobStore
) -> None:
    taken = take_snapshot(folder, blobs)
    kept = [entry for entry in taken.manifest.entries if entry.kind == "file"]
    names = {path.parent.name + path.name for path in (blobs.root / "blobs").rglob("*/*")}
    assert names == {entry.target for entry in kept}
    assert b"sk-secret" not in b"".join(entry.path.encode("utf8", "replace") for entry in kept)
    assert {blobs.root.stat().st_mode & 0o777} == {0o700}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (".env", "secret"),
        (".env.local", "secret"),
        (".env.example", None),
        ("deep/down/server.pem", "secret"),
        ("id_ed25519", "secret"),
        ("id_ed25519.pub", None),
        ("id_map.py", None),
        (".netrc", "secret"),
        (".npmrc", "secret"),
        ("environment.py", None),
        ("src/cache.py", None),
    ],
)
def test_what_holds_secrets_is_known_by_its_name(name: str, why: str | None, tmp_path) -> None:
    assert IgnoreRules.from_folder(tmp_path).find_exclusion(name, folder=False) == why


def test_a_folder_has_rules_of_its_own(tmp_path: Path) -> None:
    (tmp_path / ".stumbleignore").write_text("*.bin\n!.env\n!node_modules/\ndata/\n")
    rules = IgnoreRules.from_folder(tmp_path)
    assert rules.find_exclusion("a.bin", folder=False) == "rule"
    assert rules.find_exclusion("data", folder=True) == "rule"
    assert rules.find_exclusion("data", folder=False) is None
    assert rules.find_exclusion(".env", folder=False) is None
    assert rules.find_exclusion("node_modules", folder=True) is None
    assert rules.find_exclusion("sub/.venv", folder=True) == "cache"


def test_git_is_kept_with_its_objects(folder: Path, blobs: BlobStore) -> None:
    assert ".git/file" in {entry.path for entry in take_snapshot(folder, blobs).manifest.entries}


def test_what_has_not_changed_is_not_read_twice(folder: Path, blobs: BlobStore) -> None:
    aged(folder)
    first = take_snapshot(folder, blobs)
    second = take_snapshot(folder, blobs)
    assert first.files_read == 6
    assert (second.files_read, second.name) == (0, first.name)
    (folder / "run.sh").write_text("#!/bin/sh\nexit\n")
    third = take_snapshot(folder, blobs)
    assert third.files_read == 1
    assert third.name != first.name


def test_a_change_that_keeps_size_and_time_is_seen(folder: Path, blobs: BlobStore) -> None:
    aged(folder)
    first, path = take_snapshot(folder, blobs), folder / "src" / "main.py"
    was = path.stat()
    path.write_text("print(2)\n")
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert take_snapshot(folder, blobs).name != first.name


def aged(folder: Path) -> None:
    """Wait until no file is so young that it would be read again anyway."""
    (folder / "now").touch()
    tick = (folder / "now").stat().st_ctime_ns
    (folder / "now").unlink()
    while True:  # the clock of the file system, not ours
        (folder.parent / "clock").touch()
        if (folder.parent / "clock").stat().st_ctime_ns > tick + 2_100_000_000:
            return
        threading.Event().wait(0.05)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (SnapshotLimits(bytes=PIECE_BYTES), "1 MB; most .* src"),
        (SnapshotLimits(files=3), "3 files"),
    ],
)
def test_a_folder_over_the_limit_is_not_read_at_all(
    limits: SnapshotLimits, said: str, folder: Path, blobs: BlobStore
) -> None:
    with pytest.raises(SnapshotSizeError, match=said):
        take_snapshot(folder, blobs, limits=limits)
    assert list((blobs.root / "blobs").iterdir()) == []


def test_what_is_no_file_is_named(folder: Path, blobs: BlobStore, tmp_path: Path) -> None:
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "sock"))
        assert take_snapshot(folder, blobs).special == ("pipe", "sock")


def test_what_changes_while_it_is_read_is_named(folder: Path, blobs: BlobStore) -> None:
    """A file grows, and one goes, between the walk that looks and the one that reads."""

    def change(done: int, total: int) -> None:
        if done == 0:
            (folder / "run.sh").write_text("something else, and longer")
            (folder / "sealed").unlink()

    taken: FolderSnapshot = take_snapshot(folder, blobs, progress=change)
    assert taken.changed == ("run.sh", "sealed")
    assert "sealed" not in {entry.path for entry in taken.manifest.entries}


def test_what_is_hidden_is_as_if_it_were_not_there(folder: Path, blobs: BlobStore) -> None:
    taken = take_snapshot(folder, blobs, hidden=frozenset({folder / "src"}))
    assert not [e for e in taken.manifest.entries if e.path.startswith("src")]


def test_a_damaged_or_lost_content_is_never_taken_for_the_file(
    folder: Path, blobs: BlobStore, tmp_path: Path
) -> None:
    taken = take_snapshot(folder, blobs)
    [entry] = [entry for entry in taken.manifest.entries if entry.path == "src/main.py"]
    [other] = [entry for entry in taken.manifest.entries if entry.path == "run.sh"]
    place = blobs.root / "blobs"
    path, wrong = (place / e.target[:2] / e.target[2:] for e in (entry, other))
    path.write_bytes(wrong.read_bytes())
    for number in range(2):
        copy = tmp_path / f"copy{number}"
        copy.mkdir()
        with pytest.raises(ValueError, match=r"main\.py: its content \w+ is (damaged|gone)"):
            restore_snapshot(taken.manifest, blobs, copy, origin=folder)
        path.unlink(missing_ok=True)


def test_a_damaged_manifest_is_never_taken_for_the_snapshot(folder: Path, blobs: BlobStore) -> None:
    name = take_snapshot(folder, blobs).name
    path = blobs.root / "manifests" / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="damaged"):
        blobs.load_manifest(name)
    assert blobs.load_manifest("0" * 40) is None


@pytest.mark.parametrize("path", ["../x", "a/b", "/tmp/x", "link/x", ".", "a/..", "x\0y"])
def test_nothing_is_made_outside_of_a_copy(path: str, blobs: BlobStore, tmp_path: Path) -> None:
    entries = (
        ManifestEntry(path=".", kind="folder", mode=0o755),
        ManifestEntry(path="link", kind="link", target=str(tmp_path)),
        ManifestEntry(path=path, kind="link", target="anywhere"),
    )
    (copy := tmp_path / "copy").mkdir()
    with pytest.raises(ValueError, match="lies in no folder of it|is named twice"):
        restore_snapshot(SnapshotManifest(entries=entries), blobs, copy, origin=tmp_path)
    assert list(copy.iterdir()) == []


names = st.binary(min_size=1, max_size=12).map(os.fsdecode)


@settings(max_examples=examples(50))
@given(
    st.lists(
        st.builds(
            ManifestEntry,
            path=names,
            kind=st.sampled_from(["folder", "file", "link", "out"]),
            mode=st.integers(0, 0o7777),
            mtime=st.integers(-(2**62), 2**62),
            target=names,
            size=st.integers(0, 2**50),
            folder=st.booleans(),
        )
    )
)
def test_a_manifest_is_what_was_written(entries: list[ManifestEntry]) -> None:
    manifest = SnapshotManifest(entries=tuple(entries))
    assert SnapshotManifest.decode(manifest.encode()) == manifest
