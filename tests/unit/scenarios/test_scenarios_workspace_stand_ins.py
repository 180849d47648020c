"""Stand-ins have names, sizes, modes, times and links, and no content."""

import os
from pathlib import Path

from scenarios.workspace.blobs import BlobStore
from scenarios.workspace.manifest import ManifestEntry
from scenarios.workspace.stand_ins import (
    list_stand_ins,
    load_stand_ins,
    place_stand_ins,
    save_stand_ins,
)


def looks(folder: Path) -> list[tuple[str, int, int, int]]:
    """Return path, mode, size of a file, and time of all that is in a folder."""
    found = [(path, path.lstat()) for path in sorted(folder.rglob("*"))]
    return [
        (str(path.relative_to(folder)), at.st_mode, path.is_file() and at.st_size, at.st_mtime_ns)
        for path, at in found
    ]


def test_a_copy_looks_like_the_folder(tmp_path: Path) -> None:
    real, copy = tmp_path / "real", tmp_path / "copy"
    (real / "store" / "tapes").mkdir(parents=True)
    (real / "store" / ".gitignore").write_text("*\n")
    (real / "store" / "tapes" / "a.tape").write_bytes(b"secret" * 1000)
    (real / "store" / "tapes" / "a.tape").chmod(0o400)
    (real / "store" / "last").symlink_to("tapes/a.tape")
    os.utime(real / "store" / "tapes", ns=(5, 7_000_000_001))
    copy.mkdir()
    names = list_stand_ins(real, {real / "store", real / "absent", tmp_path / "elsewhere", real})
    blobs = BlobStore(tmp_path / "blobs")
    save_stand_ins(blobs, "run/../1", names)
    assert load_stand_ins(blobs, "other") == ()
    place_stand_ins(load_stand_ins(blobs, "run/../1"), copy)
    assert looks(copy) == looks(real)
    assert (copy / "store" / ".gitignore").read_text() == "*\n"
    assert not (copy / "store" / "tapes" / "a.tape").read_bytes().strip(b"\0")


def test_names_lead_nowhere_outside_and_replace_nothing(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "notes.txt").write_text("mine")
    (copy / "out").symlink_to(tmp_path)
    absolute = str(tmp_path / "pwned")
    hostile = ("../pwned", "notes.txt", "out/pwned", "absent/pwned", absolute, "out")
    place_stand_ins(
        [ManifestEntry(path=str(each), kind="file", target="x", size=1) for each in hostile], copy
    )
    assert (copy / "notes.txt").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["copy", "notes.txt", "out"]
