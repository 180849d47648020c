"""Restore a folder from its snapshot: same contents, modes, links and times."""

import os
import shutil
from pathlib import Path

from scenarios.workspace.blobs import BlobStore
from scenarios.workspace.manifest import ManifestEntry, SnapshotManifest
from traces.reachable_paths import is_reachable, is_reachable_file


def restore_snapshot(
    manifest: SnapshotManifest, blobs: BlobStore, copy: Path, *, origin: Path, linked: bool = False
) -> tuple[ManifestEntry, ...]:
    """Fill the new folder `copy`; return the excluded entries that got a place in it.

    A file excluded for a secret in its content is copied from `origin`, and so is one that is
    stored with placeholders, if it is unchanged there. Any other excluded path
    becomes an empty mount point or, if `linked`, a symbolic link to the original. Paths that no
    longer exist are skipped. Raises ValueError if a content is missing or damaged, or an entry is
    outside of the folder.
    """
    _check_paths(manifest)
    placed = []
    for entry in manifest.entries:
        path = copy / entry.path
        match entry.kind:
            case "folder":
                path.mkdir(exist_ok=entry.path == ".", mode=0o700)
            case "file" if blobs.is_redacted(entry.target) and _is_unchanged(entry, origin):
                shutil.copy2(origin / entry.path, path)
            case "file":
                blobs.write_blob(entry.target, path)
                path.chmod(entry.mode)
                os.utime(path, ns=(entry.mtime, entry.mtime))
            case "link":
                path.symlink_to(entry.target)
                os.utime(path, ns=(entry.mtime, entry.mtime), follow_symlinks=False)
            case "out" if entry.target == "found" and is_reachable_file(origin / entry.path):
                shutil.copy2(origin / entry.path, path)
            case "out" if entry.target != "found" and is_reachable(origin / entry.path):
                _place_excluded(entry, path, origin if linked else None)
                placed.append(entry)
    for entry in reversed(manifest.entries):  # last, since filling a folder changes its mtime
        if entry.kind == "folder":
            (copy / entry.path).chmod(entry.mode)
            os.utime(copy / entry.path, ns=(entry.mtime, entry.mtime))
    return tuple(placed)


def _is_unchanged(entry: ManifestEntry, origin: Path) -> bool:
    if not is_reachable_file(origin / entry.path):
        return False
    status = (origin / entry.path).stat()
    return (status.st_size, status.st_mtime_ns) == (entry.size, entry.mtime)


def _place_excluded(entry: ManifestEntry, path: Path, origin: Path | None) -> None:
    if origin is not None:
        path.symlink_to(origin / entry.path)
    elif entry.folder:
        path.mkdir()
    else:
        path.touch()


def _check_paths(manifest: SnapshotManifest) -> None:
    """Raise ValueError if an entry is outside of the folder or reached through a link in it."""
    folders, seen = {"."}, set[str]()
    for entry in manifest.entries:
        parent, _, name = entry.path.rpartition("/")
        invalid = name in ("", "..") or (name == "." and parent) or "\0" in entry.path
        if invalid or (parent or ".") not in folders:
            raise ValueError(f"{entry.path!r} lies in no folder of it")
        if entry.path in seen:
            raise ValueError(f"{entry.path!r} is named twice")
        seen.add(entry.path)
        if entry.kind == "folder":
            folders.add(entry.path)
