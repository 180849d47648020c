"""Packs opened for use: their tapes as files, and their snapshots for whichever store runs them.

They lie in `$XDG_CACHE_HOME/stumble/packs` (`~/.cache/stumble/packs`), below the pack's root hash,
and may be removed at any time: a pack is checked and opened anew by each command that names it.
"""

from pathlib import Path

from msgspec import Struct

from scenarios.workspace.blobs import BlobStore, write_atomic_file
from stumble.errors import HarnessError, UsageError
from stumble.packs.pack_manifest import PackManifest
from stumble.packs.packed_snapshots import BLOBS, MANIFESTS, check_snapshot_data, import_snapshot
from stumble.packs.read_pack import PackReader, open_pack
from stumble.user_data.paths import cache_folder


class OpenedPack(Struct, frozen=True, kw_only=True):
    """A pack, and the folder with its parts."""

    path: Path
    folder: Path
    manifest: PackManifest

    @property
    def main(self) -> Path:
        """The tape or the campaign's table to open."""
        return self.folder / self.manifest.main

    @property
    def main_tape(self) -> Path:
        """The tape to open. Raises UsageError if the pack holds a campaign."""
        if self.manifest.kind == "campaign":
            raise UsageError(
                f"{self.path} holds a campaign: `stumble campaign {self.path}` runs it"
            )
        return self.main

    @property
    def tapes(self) -> tuple[Path, ...]:
        """All tapes in it."""
        names = (each.name for each in self.manifest.parts)
        return tuple(self.folder / name for name in names if name.endswith(".tape"))

    @property
    def texts(self) -> tuple[Path, ...]:
        """Its tables and scenarios."""
        kept = (BLOBS, MANIFESTS)
        names = (each.name for each in self.manifest.parts if not each.name.startswith(kept))
        return tuple(self.folder / name for name in names if not name.endswith(".tape"))


def packs_folder() -> Path:
    """Return the user's folder of opened packs."""
    return cache_folder() / "packs"


def open_packed_files(path: Path) -> OpenedPack:
    """Check a pack and put its parts where runs find them.

    Raises UsageError if the pack is not sound, HarnessError if its parts cannot be written.
    """
    try:
        with open_pack(path) as reader:
            return _extract_parts(path, reader)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _extract_parts(path: Path, reader: PackReader) -> OpenedPack:
    manifest, root = reader.manifest, packs_folder()
    opened = OpenedPack(path=path, folder=root / manifest.root_hash[:32], manifest=manifest)
    blobs_root = root / "snapshots"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in manifest.parts:
            target = _place_part(part.name, opened.folder, blobs_root)
            data = reader.read_part(part.name)
            if target.is_file() and target.read_bytes() == data:
                continue
            if part.name.startswith(MANIFESTS):
                check_snapshot_data(target.name, data)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic_file(target, data)
    except OSError as error:
        raise HarnessError(
            f"{path}: it cannot be opened in {root}: {error.strerror}; set XDG_CACHE_HOME to a "
            "folder with room"
        ) from None
    return opened


def _place_part(name: str, folder: Path, blobs_root: Path) -> Path:
    if name.startswith((BLOBS, MANIFESTS)):
        return blobs_root / name.removeprefix("snapshots/")
    return folder / name


def find_packed_snapshot(name: str, target: BlobStore) -> bool:
    """Copy a snapshot of an opened pack to a store; False if no opened pack has it.

    Raises ValueError if the pack's snapshot is not sound.
    """
    root = packs_folder() / "snapshots"
    if not (root / "manifests" / name).is_file():
        return False
    return import_snapshot(name, BlobStore(root), target)
