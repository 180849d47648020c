"""Changes that a person made in a folder since a recording ended, apart from the agents' writes.

A recording has a manifest of the folder before and after it. Between the end of one recording and
the start of the next, and after the last one, only people write; during a recording the agent does.
Contents are compared, never times: a fresh checkout of the same files is no edit.
"""

from collections.abc import Mapping, Sequence
from copy import replace
from pathlib import PurePosixPath

from msgspec import Struct

from scenarios.workspace.manifest import ManifestEntry, SnapshotManifest

OWNER_EXECUTE = 0o100


class RecordedFolder(Struct, frozen=True, kw_only=True):
    """The folder before and after one recording."""

    before: SnapshotManifest
    after: SnapshotManifest


def find_edits(
    spans: Sequence[RecordedFolder], now: SnapshotManifest
) -> Mapping[str, ManifestEntry | None]:
    """Return the paths that a person changed since the first span, with their new entries.

    None means removed. `spans` are the recordings made in the folder from the replayed one on, in
    order. If an agent wrote a file after its edit, the edit is the content the person left.
    """
    edits: dict[str, ManifestEntry | None] = {}
    states = [span.before for span in spans[1:]] + [now]
    for span, state in zip(spans, states, strict=True):
        old, new = _index_files(span.after), _index_files(state)
        excluded = {entry.path for entry in (*span.after.excluded, *state.excluded)}
        for path in sorted((old.keys() | new.keys()) - excluded):
            if _to_comparable_content(old.get(path)) != _to_comparable_content(new.get(path)):
                edits[path] = new.get(path)
    return edits


def apply_edits(
    manifest: SnapshotManifest, edits: Mapping[str, ManifestEntry | None]
) -> SnapshotManifest:
    """Return the manifest with the edits applied; an edit without a difference changes nothing."""
    entries = {entry.path: entry for entry in manifest.entries}
    for path, entry in edits.items():
        old = entries.get(path)
        if _to_comparable_content(old) == _to_comparable_content(entry):
            continue
        _remove_entry(entries, path)
        if entry is not None:
            _make_parents(entries, path)
            entries[path] = entry
    return SnapshotManifest(
        entries=tuple(entries[path] for path in sorted(entries, key=_to_path_parts))
    )


def name_edits(manifest: SnapshotManifest, edited: SnapshotManifest) -> tuple[str, ...]:
    """Return the paths of the files and links in which two folders differ."""
    old, new = _index_files(manifest), _index_files(edited)
    paths = sorted(old.keys() | new.keys())
    return tuple(
        path
        for path in paths
        if _to_comparable_content(old.get(path)) != _to_comparable_content(new.get(path))
    )


def _index_files(manifest: SnapshotManifest) -> dict[str, ManifestEntry]:
    return {each.path: each for each in manifest.entries if each.kind in ("file", "link")}


def _to_comparable_content(entry: ManifestEntry | None) -> tuple[str, str, int] | None:
    if entry is None:
        return None
    runs = entry.mode & OWNER_EXECUTE if entry.kind == "file" else 0
    return entry.kind, entry.target, runs


def _remove_entry(entries: dict[str, ManifestEntry], path: str) -> None:
    """Remove a path and all paths below it, since a file may replace a folder."""
    entries.pop(path, None)
    for below in [each for each in entries if each.startswith(f"{path}/")]:
        del entries[below]


def _make_parents(entries: dict[str, ManifestEntry], path: str) -> None:
    for parent in PurePosixPath(path).parents:
        name = str(parent)
        if name not in entries or entries[name].kind != "folder":
            below = replace(entries["."], path=name) if "." in entries else None
            entries[name] = below or ManifestEntry(path=name, kind="folder", mode=0o755)


def _to_path_parts(path: str) -> tuple[str, ...]:
    """Return a sort key that puts each folder before its contents, and the root first."""
    return () if path == "." else tuple(path.split("/"))
