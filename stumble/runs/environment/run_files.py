"""Keep what a run left in its folder, for `stumble why`, `diff` and the pages."""

from collections.abc import Iterable
from pathlib import Path

from scenarios.workspace.blobs import BlobStore
from scenarios.workspace.left_files import (
    FolderAtStart,
    FoundEntry,
    collect_left_files,
    list_differing_entries,
    list_folder_entries,
    save_left_files,
)
from scenarios.workspace.manifest import SnapshotManifest
from stumble.runs.environment.workspaces import RunLocation
from stumble.user_data.known_secrets import find_known_secrets
from traces.redaction.secret_scan import SecretFileScanner


def keep_files_of_copy(run: str, place: RunLocation, blobs: BlobStore) -> None:
    """Keep what a run left in its copy. Raises OSError or ValueError if that cannot be read."""
    if place.copied is not None and place.at_start is not None:
        entries = list_folder_entries(place.copied, place.at_start.hidden)
        _keep_files(run, place.copied, place.at_start, entries, blobs)


def keep_files_of_recording(
    run: str, folder: Path, tape: Path, snapshot: str, after: SnapshotManifest, blobs: BlobStore
) -> None:
    """Keep what a recording left in its folder, which is now as in `after`; not its tape."""
    folder, hidden = folder.resolve(), frozenset({tape.resolve()})
    before = blobs.load_manifest(snapshot)
    if before is None:
        raise ValueError(f"the manifest {snapshot} is gone from {blobs.root}")
    start = FolderAtStart(snapshot=snapshot, manifest=before, hidden=hidden)
    entries = list_differing_entries(folder, before, after, hidden)
    _keep_files(run, folder, start, entries, blobs)


def _keep_files(
    run: str, folder: Path, start: FolderAtStart, entries: Iterable[FoundEntry], blobs: BlobStore
) -> None:
    def make_scanner() -> SecretFileScanner:
        return SecretFileScanner(find_known_secrets())

    save_left_files(blobs, collect_left_files(run, folder, start, entries, blobs, make_scanner))
