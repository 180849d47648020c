"""Snapshots that come in packs: nothing gets into a store that is not what its name promises."""

import sys
from copy import replace
from pathlib import Path

import pytest
import zstandard

from scenarios.workspace.blobs import BlobStore
from scenarios.workspace.manifest import SnapshotManifest
from scenarios.workspace.snapshot import take_snapshot
from stumble.packs.pack_needs import check_needs, find_needs
from stumble.packs.packed_snapshots import (
    import_snapshot,
    is_packed_snapshot,
    list_snapshot_files,
)


@pytest.fixture
def origin(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "origin")


@pytest.fixture
def snapshot(tmp_path: Path, origin: BlobStore) -> SnapshotManifest:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("some text")
    (folder / "b.txt").write_text("other text")
    (folder / "empty").touch()
    return take_snapshot(folder, origin, hidden=frozenset()).manifest


def blob(store: BlobStore, manifest: SnapshotManifest, path: str) -> Path:
    [entry] = [entry for entry in manifest.entries if entry.path == path]
    return store.root / "blobs" / entry.target[:2] / entry.target[2:]


def test_a_snapshot_is_copied_and_marked(
    tmp_path: Path, origin: BlobStore, snapshot: SnapshotManifest
) -> None:
    name, target = origin.save_manifest(snapshot), BlobStore(tmp_path / "target")
    assert import_snapshot(name, origin, target)
    assert is_packed_snapshot(target, name)
    assert not is_packed_snapshot(origin, name)
    assert (
        dict(list_snapshot_files(target, name)).keys()
        == dict(list_snapshot_files(origin, name)).keys()
    )
    assert import_snapshot(name, origin, target)
    assert not import_snapshot("0" * 40, origin, target)


def test_another_content_than_the_name_promises_is_refused(
    tmp_path: Path, origin: BlobStore, snapshot: SnapshotManifest
) -> None:
    name, target = origin.save_manifest(snapshot), BlobStore(tmp_path / "target")
    blob(origin, snapshot, "a.txt").write_bytes(zstandard.compress(b"SOME TEXT"))
    with pytest.raises(ValueError, match=r"a\.txt: its content \w+ is damaged"):
        import_snapshot(name, origin, target)
    assert target.load_manifest(name) is None


def test_a_bomb_is_not_unpacked(
    tmp_path: Path, origin: BlobStore, snapshot: SnapshotManifest
) -> None:
    name, target = origin.save_manifest(snapshot), BlobStore(tmp_path / "target")
    blob(origin, snapshot, "a.txt").write_bytes(zstandard.compress(bytes(1 << 28)))
    with pytest.raises(ValueError, match="of another length"):
        import_snapshot(name, origin, target)


def test_a_folder_that_fills_the_disk_is_refused(
    tmp_path: Path, origin: BlobStore, snapshot: SnapshotManifest
) -> None:
    entries = tuple(
        replace(entry, size=1 << 40) if entry.path == "a.txt" else entry
        for entry in snapshot.entries
    )
    name = origin.save_manifest(SnapshotManifest(entries=entries))
    with pytest.raises(ValueError, match="its workspace is over 16 GB"):
        import_snapshot(name, origin, BlobStore(tmp_path / "target"))


def test_a_content_outside_of_the_store_is_refused(
    tmp_path: Path, origin: BlobStore, snapshot: SnapshotManifest
) -> None:
    entries = tuple(
        replace(entry, target="../../../../etc/passwd") if entry.path == "a.txt" else entry
        for entry in snapshot.entries
    )
    name = origin.save_manifest(SnapshotManifest(entries=entries))
    with pytest.raises(ValueError, match="no name of a content"):
        import_snapshot(name, origin, BlobStore(tmp_path / "target"))


AGENT = b"""
import os, json
import msgpack
import helper
from zstandard import compress
key = os.environ["ORDER_KEY"]
limit = os.getenv("REFUND_LIMIT", "3")
"""


@pytest.mark.gate
def test_needs_are_read_from_the_agents_own_files() -> None:
    files = [
        ("agent.py", AGENT),
        ("helper.py", b"import json"),
        ("tool.js", b"process.env.SHOP_URL"),
    ]
    needs = find_needs((sys.executable, "agent.py"), files, variables=["KEY"])
    assert set(needs.packages) == {"msgpack", "zstandard"}
    assert needs.variables == ("KEY", "ORDER_KEY", "REFUND_LIMIT", "SHOP_URL")


def test_what_is_missing_here_is_named_without_any_value() -> None:
    program = "/nowhere/at/all/bin/python3"
    needs = replace(
        find_needs((program, "agent.py"), [("agent.py", AGENT)], left_out=["node_modules"]),
        interpreter="3.13.0",
        packages={"msgpack": "0.1", "not-to-be-had": "1.0"},
    )
    found = list(check_needs(needs, "/nowhere/at/all", {"ORDER_KEY": "value-of-it"}))
    here = {(each.what, each.name): each.here for each in found}
    assert here["variable", "ORDER_KEY"] is True
    assert here["variable", "REFUND_LIMIT"] is False
    assert here["package", "not-to-be-had 1.0"] is False
    assert here["path", "node_modules"] is False
    assert "value-of-it" not in repr(found)
