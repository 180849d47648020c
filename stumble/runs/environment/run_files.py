"""Keep what a run left in its folder, for `stumble why`, `diff` and the pages."""

import json
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from scenarios.workspace.blobs import BlobStore
from scenarios.workspace.left_files import (
    FolderAtStart,
    FoundEntry,
    LeftFiles,
    collect_left_files,
    list_differing_entries,
    list_folder_entries,
    save_left_files,
)
from scenarios.workspace.manifest import SnapshotManifest
from scenarios.world import EndState
from stumble.runs.environment.workspaces import RunLocation
from stumble.user_data.known_secrets import find_known_secrets
from traces.model import FILE_CHANGED, OBSERVED_STATE
from traces.redaction.secret_scan import SecretFileScanner


def keep_files_of_copy(run: str, place: RunLocation, blobs: BlobStore) -> LeftFiles | None:
    """Keep and return what a run left in its copy; None without a copy.

    Raises OSError or ValueError if that cannot be read.
    """
    if place.copied is None or place.at_start is None:
        return None
    entries = list_folder_entries(place.copied, place.at_start.hidden)
    return _keep_files(run, place.copied, place.at_start, entries, blobs)


def describe_end_of_files(left: LeftFiles, start: FolderAtStart | None) -> EndState:
    """Return the end state of a copy: a digest of each file that differs from the start.

    The digest of a file that was there at the start begins with FILE_CHANGED; a removed file has
    the digest null.
    """
    there = {each.path for each in start.manifest.entries} if start is not None else set()
    contents: dict[str, str | None] = {
        each.path: FILE_CHANGED * (each.path in there) + _hash_text(f"{each.kind} {each.target}")
        for each in left.changed
    }
    contents |= dict.fromkeys(left.removed)
    text = json.dumps(contents | {"": left.more} if left.more else contents, sort_keys=True)
    return EndState(digest=_hash_text(text), text=text, of=OBSERVED_STATE)


def _hash_text(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


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
) -> LeftFiles:
    def make_scanner() -> SecretFileScanner:
        return SecretFileScanner(find_known_secrets())

    left = collect_left_files(run, folder, start, entries, blobs, make_scanner)
    save_left_files(blobs, left)
    return left
