"""Put the parts of an opened pack into a store, or into a folder with a store of its own."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from scenarios.workspace.blobs import BlobStore, write_atomic_file
from stumble.errors import HarnessError, UsageError
from stumble.packs.pack_cache import OpenedPack, find_packed_snapshot
from traces.store.store_dir import StoreDirectory
from traces.tape.reader import read_tape


def unpack_into_store(opened: OpenedPack, store: StoreDirectory) -> list[Path]:
    """Add tapes and snapshots to a store; return the new tapes.

    Raises UsageError if the store has another tape of the same name, or a snapshot is damaged.
    """
    _add_snapshots(opened.tapes, store)
    return _copy_files(opened.path, {each: store.tapes / each.name for each in opened.tapes})


def unpack_into_folder(opened: OpenedPack, folder: Path) -> list[Path]:
    """Write tapes, campaign and scenario into a folder, and the snapshots into its store."""
    folder.mkdir(parents=True, exist_ok=True)
    _add_snapshots(opened.tapes, StoreDirectory(folder / ".stumble"))
    others = (each.name for each in opened.manifest.parts)
    plain = [opened.folder / name for name in others if not name.startswith("snapshots/")]
    return _copy_files(opened.path, {each: folder / each.name for each in plain})


def _add_snapshots(tapes: Sequence[Path], store: StoreDirectory) -> None:
    blobs = BlobStore(store.root / "snapshots")
    for tape in tapes:
        name = read_tape(tape).trajectory.snapshot
        if name is None:
            continue
        try:
            if blobs.load_manifest(name) is None:
                find_packed_snapshot(name, blobs)
        except ValueError as error:
            raise UsageError(f"{tape.name}: {error}") from None


def _copy_files(pack: Path, targets: dict[Path, Path]) -> list[Path]:
    written = []
    for source, target in targets.items():
        data = source.read_bytes()
        if target.exists():
            if target.read_bytes() != data:
                raise UsageError(
                    f"{pack}: {target} exists already, and is another one; nothing of it was "
                    "overwritten: use -o with a new folder"
                )
            continue
        try:
            write_atomic_file(target, data)
            shutil.copymode(source, target)
        except OSError as error:
            raise HarnessError(f"{target} could not be written: {error.strerror}") from None
        written.append(target)
    return written
