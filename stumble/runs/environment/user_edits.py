"""Edits of the user since a recording: what tells them from what the agent wrote, and their place.

A replay runs the recorded workspace with these edits in it. The recording's own end says what the
agent had written by then; a recording without one (of an older version, or one that was killed)
leaves it unknown whose a difference is, and its workspace is used as it was recorded.
"""

import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from scenarios.workspace.blobs import BlobStore, HashOnlyStore, RecordingSnapshots
from scenarios.workspace.edits import RecordedFolder, apply_edits, find_edits, name_edits
from scenarios.workspace.manifest import ManifestEntry, SnapshotManifest
from scenarios.workspace.snapshot import FolderSnapshot, SnapshotLimits
from stumble.packs.read_pack import is_pack
from stumble.runs.environment.workspaces import open_store_blobs, take_folder_snapshot
from stumble.user_data.known_secrets import load_user_secrets
from traces.model import Trajectory
from traces.reachable_paths import is_reachable_folder
from traces.redaction.secret_scan import SecretFileScanner
from traces.store.store_dir import StoreDirectory
from traces.tape.frames import MAGIC

COMPARE_LIMITS = SnapshotLimits(bytes=1 << 34, files=1_000_000)
"""Wider than the limits of a recording, since files may have grown; few of them are read again."""


class UserEdits(Struct, frozen=True, kw_only=True):
    """The user's edits of a recorded folder, or why they are not known."""

    manifest: SnapshotManifest
    """The folder with the edits in it; as recorded if they are not known."""
    names: tuple[str, ...] = ()
    """The files that the user edited, added or removed; of unknown ones, all that differ."""
    unknown: str | None = None


def save_end_snapshot(
    store: StoreDirectory, folder: Path, id: str, before: str
) -> SnapshotManifest:
    """Keep the digests of a recording's folder; ValueError if the folder cannot be read."""
    taken = _snapshot_digests(store, folder.resolve())
    end = RecordingSnapshots(id=id, at=time.time_ns(), before=before, after=taken.name)
    open_store_blobs(store).save_recording(folder.resolve(), end)
    return taken.manifest


def find_user_edits(
    trajectory: Trajectory, store: StoreDirectory, recorded: SnapshotManifest
) -> UserEdits:
    """What the user edited in the recorded folder since; nothing if that folder is not here."""
    here = open_store_blobs(store)
    folder = Path(trajectory.workspace or ".")
    if not is_reachable_folder(folder):
        return UserEdits(manifest=recorded)
    try:
        now = _snapshot_digests(store, folder).manifest
    except ValueError as error:
        return UserEdits(manifest=recorded, unknown=f"the folder cannot be compared: {error}")
    ended = _find_later_recordings(trajectory, here.load_recordings(folder))
    if not ended:
        names = name_edits(recorded, now)
        return UserEdits(manifest=recorded, names=names, unknown="what it left there was not kept")
    try:
        return _build_user_edits(
            here, folder, recorded, find_edits(_load_edit_spans(here, ended), now)
        )
    except ValueError as error:
        return UserEdits(manifest=recorded, unknown=str(error))


def _build_user_edits(
    here: BlobStore,
    folder: Path,
    recorded: SnapshotManifest,
    found: Mapping[str, ManifestEntry | None],
) -> UserEdits:
    ours = {path for path in found if found[path] and _is_recording(folder / path)}
    edited = apply_edits(recorded, {path: found[path] for path in found if path not in ours})
    names = name_edits(recorded, edited)
    _store_edited_contents(here, folder, edited, names)
    return UserEdits(manifest=edited, names=names)


def _is_recording(path: Path) -> bool:
    """Whether a file is a tape or a pack, which no agent has seen in its folder."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC or is_pack(path)
    except OSError:
        return False


def _store_edited_contents(
    here: BlobStore, folder: Path, edited: SnapshotManifest, names: Sequence[str]
) -> None:
    """Store the contents of edited files. Raises ValueError if one changes meanwhile."""
    entries = {entry.path: entry for entry in edited.entries if entry.kind == "file"}
    for entry in (entries[name] for name in names if name in entries):
        if here.has_blob(entry.target):
            continue
        try:
            name = _store_content(here, folder / entry.path)
        except OSError as error:
            raise ValueError(f"{entry.path} cannot be read: {error.strerror}") from None
        if name != entry.target:
            raise ValueError(f"{entry.path} changes while it is read")


def _store_content(here: BlobStore, path: Path) -> str:
    """Store the content of a file, a source file's with placeholders; return its name."""
    scanner = SecretFileScanner(load_user_secrets(), here.load_redactions())
    data = path.read_bytes()
    clean = scanner.redact_source(path.name, data) if scanner.has_secret(path.name, data) else None
    here.save_redactions(scanner.records)
    name = here.put_bytes(data if clean is None else clean)
    if clean is not None:
        here.mark_redacted(name)
    return name


def _find_later_recordings(
    trajectory: Trajectory, found: Sequence[RecordingSnapshots]
) -> Sequence[RecordingSnapshots]:
    """The recording that a run goes back to, and those made in its folder after it."""
    for id in (trajectory.id, trajectory.parent):
        for n, each in enumerate(found):
            if each.id == id:
                return found[n:]
    return ()


def _load_edit_spans(here: BlobStore, ended: Sequence[RecordingSnapshots]) -> list[RecordedFolder]:
    load = cache(lambda name: _load_manifest(here, name))
    return [RecordedFolder(before=load(each.before), after=load(each.after)) for each in ended]


def _load_manifest(here: BlobStore, name: str) -> SnapshotManifest:
    found = here.load_manifest(name)
    if found is None:
        raise ValueError(f"the manifest {name} is gone from {here.root}")
    return found


def _snapshot_digests(store: StoreDirectory, folder: Path) -> FolderSnapshot:
    """What is in a folder now; no content of it is kept."""
    into = HashOnlyStore(open_store_blobs(store).root)
    return take_folder_snapshot(folder, store, COMPARE_LIMITS, lambda done, of: None, into=into)
