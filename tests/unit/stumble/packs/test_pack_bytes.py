"""The bytes of a pack: deterministic, readable by any zip tool, and every one of them checked."""

import stat
import struct
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stumble.packs.pack_manifest import PackManifest, PackNeeds
from stumble.packs.read_pack import open_pack
from stumble.packs.write_pack import PartSource, write_pack
from stumble.packs.zip_layout import check_member_name, is_member_name

PARTS: dict[str, PartSource] = {
    "tapes/a.tape": b"STUMBLE\x02" + bytes(range(40)),
    "snapshots/manifests/0123": b"entries",
    "snapshots/blobs/ab/cdef": b"",
}
MANIFEST = PackManifest(
    kind="tape",
    main="tapes/a.tape",
    parts=(),
    made_by="stumble 0.1.0",
    needs=PackNeeds(program="/usr/bin/python3", packages={"httpx": "1.0"}, variables=("KEY",)),
    plan={"texts": ["digit"], "reset": "python reset.py"},
)


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    write_pack(tmp_path / "a.stumble", MANIFEST, PARTS)
    return tmp_path / "a.stumble"


def test_what_was_packed_comes_out(pack: Path) -> None:
    with open_pack(pack) as reader:
        assert {part.name: reader.read_part(part.name) for part in reader.manifest.parts} == PARTS
        assert reader.manifest.plan == MANIFEST.plan
        assert reader.manifest.needs == MANIFEST.needs


def test_equal_contents_give_equal_bytes(pack: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(PARTS["tapes/a.tape"]))
    others = {name: PARTS[name] for name in reversed(PARTS)} | {"tapes/a.tape": tmp_path / "file"}
    write_pack(tmp_path / "b.stumble", MANIFEST, others)
    assert (tmp_path / "b.stumble").read_bytes() == pack.read_bytes()


def test_a_zip_tool_lists_and_tests_it(pack: Path) -> None:
    with zipfile.ZipFile(pack) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["manifest.json", *sorted(PARTS)]
        assert archive.read("tapes/a.tape") == PARTS["tapes/a.tape"]
        with open_pack(pack) as reader:
            assert archive.comment.decode().split()[-1] == reader.manifest.root_hash


def test_each_flipped_byte_is_refused(pack: Path, tmp_path: Path) -> None:
    whole, other = pack.read_bytes(), tmp_path / "flipped.stumble"
    for at in range(len(whole)):
        other.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with pytest.raises(ValueError, match=r"flipped\.stumble: "), open_pack(other):
            pass


def test_the_damaged_part_is_named(pack: Path) -> None:
    whole = pack.read_bytes()
    pack.write_bytes(whole.replace(b"entries", b"entrief"))
    with pytest.raises(ValueError, match="snapshots/manifests/0123 is damaged"), open_pack(pack):
        pass
    pack.write_bytes(whole.replace(b"python reset.py", b"python xeset.py"))
    with pytest.raises(ValueError, match=r"manifest\.json is damaged"), open_pack(pack):
        pass


def test_each_cut_is_refused(pack: Path) -> None:
    whole = pack.read_bytes()
    for length in range(0, len(whole), 7):
        pack.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"a\.stumble: "), open_pack(pack):
            pass


def test_what_is_appended_is_refused(pack: Path) -> None:
    pack.write_bytes(pack.read_bytes() + b"\0")
    with pytest.raises(ValueError, match="no pack of stumble"), open_pack(pack):
        pass


def forge(pack: Path, change: Callable[[zipfile.ZipFile, zipfile.ZipFile], None]) -> None:
    """Write the pack anew with another program, with the same comment."""
    aside = pack.with_suffix(".old")
    pack.rename(aside)
    with zipfile.ZipFile(aside) as old, zipfile.ZipFile(pack, "w") as new:
        new.comment = old.comment
        for name in old.namelist():
            new.writestr(zipfile.ZipInfo(name), old.read(name))
        change(old, new)


def plain(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = 0o100644 << 16
    return info


def test_names_outside_of_it_are_refused(pack: Path) -> None:
    forge(pack, lambda old, new: new.writestr(plain("../../outside"), b"x"))
    with pytest.raises(ValueError, match="no valid name|no plain file"), open_pack(pack):
        pass


def test_a_link_is_refused(pack: Path) -> None:
    link = zipfile.ZipInfo("tapes/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16

    def add(old: zipfile.ZipFile, new: zipfile.ZipFile) -> None:
        new.writestr(link, b"/etc/passwd")

    forge(pack, add)
    with pytest.raises(ValueError, match="link, or no plain file"), open_pack(pack):
        pass


def test_a_part_that_is_there_twice_is_refused(pack: Path) -> None:
    aside = pack.with_suffix(".old")
    pack.rename(aside)
    with zipfile.ZipFile(aside) as old, zipfile.ZipFile(pack, "w") as new:
        new.comment = old.comment
        for name in (*old.namelist(), "tapes/a.tape"):
            twice = name in new.namelist()
            with pytest.warns(UserWarning, match="Duplicate") if twice else nullcontext():
                new.writestr(plain(name), old.read(name))
    with pytest.raises(ValueError, match=r"tapes/a\.tape is in it twice"), open_pack(pack):
        pass


def test_a_bomb_is_refused_unopened(pack: Path) -> None:
    aside = pack.with_suffix(".old")
    pack.rename(aside)
    with zipfile.ZipFile(aside) as old, zipfile.ZipFile(pack, "w") as new:
        new.comment = old.comment
        info = plain("tapes/a.tape")
        info.compress_type = zipfile.ZIP_DEFLATED
        new.writestr(info, bytes(1 << 24))
    with pytest.raises(ValueError, match=r"tapes/a\.tape is compressed"), open_pack(pack):
        pass


def test_a_directory_that_promises_more_than_there_is_is_refused(pack: Path) -> None:
    whole = bytearray(pack.read_bytes())
    end = whole.rindex(b"PK\x05\x06")
    struct.pack_into("<HH", whole, end + 8, 60_000, 60_000)
    pack.write_bytes(bytes(whole))
    with pytest.raises(ValueError, match="cut off|damaged"), open_pack(pack):
        pass


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "/etc/passwd", "a//b", "a/../b", "a/..", ".hidden", "a\\b", "a\0", "ä",
     "a" * 300,
     "C:/x", "a/", "a b"],
)  # fmt: skip
def test_names_that_are_no_plain_paths(name: str) -> None:
    assert not is_member_name(name)
    with pytest.raises(ValueError, match="no valid name"):
        check_member_name(name)


NAMES = st.from_regex(r"[a-z0-9]{1,8}(/[a-z0-9._-]{0,8}[a-z])?", fullmatch=True).filter(
    is_member_name
)


@given(st.dictionaries(NAMES, st.binary(max_size=300), min_size=1, max_size=6))
def test_any_parts_come_out_as_they_went_in(
    tmp_path_factory: pytest.TempPathFactory, parts: dict[str, bytes]
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.stumble"
    parts = {name: data for name, data in parts.items() if name != "manifest.json"} or {"a": b"x"}
    manifest = PackManifest(kind="runs", main=min(parts), parts=(), made_by="it")
    written = write_pack(path, manifest, dict(parts))
    with open_pack(path) as reader, zipfile.ZipFile(path) as archive:
        assert reader.manifest == written
        for name, data in parts.items():
            assert reader.read_part(name) == archive.read(name) == data
