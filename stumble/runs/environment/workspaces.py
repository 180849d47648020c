"""Where an agent works: its folder as it was recorded, made anew for each run, or itself.

A copy lies in a temporary folder and is shown at the recorded path, in a mount namespace of the
run's own. Where that cannot be had the agent works in the copy at its own path and is told so by
`STUMBLE_WORKSPACE`. A shell that waits for us to end removes the copy, so that nothing is left
of it even where we are killed.
"""

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from recorder.agent.isolation import (
    MountedCopy,
    explain_unmountable,
    find_missing_capabilities,
)
from recorder.agent.outside_files import OutsideFiles, plan_outside_files
from scenarios.workspace.blobs import BlobStore
from scenarios.workspace.left_files import FolderAtStart
from scenarios.workspace.manifest import ManifestEntry, SnapshotManifest
from scenarios.workspace.restore import restore_snapshot
from scenarios.workspace.stand_ins import (
    list_stand_ins,
    load_stand_ins,
    place_stand_ins,
    remove_stand_ins,
)
from scenarios.world import CommandWorld, World
from stumble.errors import HarnessError
from stumble.notices import print_notice
from stumble.packs.pack_cache import find_packed_snapshot
from stumble.packs.packed_snapshots import is_packed_snapshot
from stumble.terminal_progress import show_terminal_progress
from stumble.user_data.paths import prepare_ca_folder
from traces.model import Trajectory
from traces.reachable_paths import is_reachable_folder
from traces.redaction.placeholder import PLACEHOLDER
from traces.redaction.secret_scan import MAX_SCANNED_BYTES, is_source_file
from traces.store.store_dir import StoreDirectory

if TYPE_CHECKING:
    from scenarios.workspace.snapshot import FolderSnapshot, ProgressCallback, SnapshotLimits

WORKSPACE_VARIABLE = "STUMBLE_WORKSPACE"
"""Names the copy where it could not be shown at the recorded path."""

COPY_VARIABLE = "STUMBLE_COPY"
"""Names the folder in which a copy really is, for whoever does not see it at its path."""

REMOVE_COPY_SCRIPT = """
while read -r line; do :; done
rm -rf -- "$1" && exit
tries=0
until chmod -R u+rwx -- "$1"; rm -rf -- "$1" || test $((tries += 1)) -gt 100; do sleep 0.1; done
"""
"""What the shell does: wait for our end, and remove a folder in which somebody may still write."""
REMOVE_TIMEOUT = 60.0
MAX_NAMES_SHOWN = 5
"""How many files are named in a message."""


class RunLocation(Struct, frozen=True, kw_only=True):
    """Location of one run: folder, mounts and environment."""

    room: MountedCopy | None = None
    cwd: Path | None = None
    """None is the current folder."""
    env: Mapping[str, str] = field(default_factory=dict)
    kept: Path | None = None
    """The copy, where it is to stay."""
    copied: Path | None = None
    """The real folder of the copy."""
    at_start: FolderAtStart | None = None
    """What is in the copy before the run."""

    @property
    def start(self) -> Path | None:
        """The folder to start processes in, which then change to `cwd`."""
        return self.room.start_folder if self.room else self.cwd

    def bind_world(self, world: World | None) -> World | None:
        """The world, its commands run where the agent is."""
        if not isinstance(world, CommandWorld):
            return world
        world = world.with_values({"workspace": str(self.cwd or Path.cwd())})
        if self.cwd is None:
            return world
        return replace(
            world, prefix=self.room.build_command_prefix() if self.room else (), cwd=self.start
        )


IN_PLACE = RunLocation()


class RecordedWorkspace(Struct, frozen=True, kw_only=True):
    """A recorded folder, of which any number of copies can be made."""

    path: Path
    snapshot: str
    manifest: SnapshotManifest
    blobs: BlobStore
    mapped: str | None
    """Why copies cannot be mounted at the recorded path; None if they can."""
    keep: bool = False
    edits: tuple[str, ...] = ()
    """The user's edits since the recording that are in the copies."""
    unknown: str | None = None
    """Why it is not known what of `differing` is an edit; None if it is."""
    stand_ins: tuple[ManifestEntry, ...] = ()
    """What the agent saw of the store and of the tape in its folder: names without contents."""
    differing: tuple[str, ...] = ()
    """What is otherwise in the folder now, as nobody knows whose edit; not in the copies."""
    unprotected: str | None = None
    """Why files outside of the copies are not protected; None if they are."""
    writable: tuple[Path, ...] = ()
    """Paths outside of the copies in which commands take effect."""

    @contextmanager
    def copy(self) -> Iterator[RunLocation]:
        """Yield a fresh copy for the block. Raises HarnessError if it cannot be made."""
        folder = Path(tempfile.mkdtemp(prefix="stumble-copy-")).resolve()
        with remove_afterwards(folder, keep=self.keep), self._plan_outside(folder) as outside:
            copy = folder / self.path.name if self.mapped else folder / "copy"
            copy.mkdir()
            linked = self.mapped is not None
            placed = self._restore(copy, linked)
            kept, at_start = copy if self.keep else None, self._describe_start(copy)
            if linked:
                env = {WORKSPACE_VARIABLE: str(copy), COPY_VARIABLE: str(copy), "PWD": str(copy)}
                yield RunLocation(cwd=copy, env=env, kept=kept, copied=copy, at_start=at_start)
                self._tidy_kept_copy(copy)
                return
            through = tuple(
                (entry.path, folder / f"layer-{n}" if entry.folder else None)
                for n, entry in enumerate(placed)
            )
            room = MountedCopy(path=self.path, copy=copy, through=through, outside=outside)
            env = {COPY_VARIABLE: str(copy), "PWD": str(self.path)}
            yield RunLocation(
                room=room, cwd=self.path, env=env, kept=kept, copied=copy, at_start=at_start
            )
            self._tidy_kept_copy(copy)

    @contextmanager
    def _plan_outside(self, folder: Path) -> Iterator[OutsideFiles | None]:
        """Yield how files outside of a copy in `folder` are protected; None if they are not."""
        layers = find_missing_capabilities().layers
        if self.unprotected is not None or self.mapped is not None or layers is None:
            yield None
        elif layers == folder.parent:
            yield plan_outside_files(folder / "outside", self.writable)
        else:
            elsewhere = Path(tempfile.mkdtemp(prefix="stumble-copy-", dir=layers))
            with remove_afterwards(elsewhere, keep=False):
                yield plan_outside_files(elsewhere, self.writable)

    def find_placeholders(self) -> tuple[str, ...]:
        """Return the texts that stand for secrets in the copies, which the agent may read."""
        is_packed = is_packed_snapshot(self.blobs, self.snapshot)
        found = dict[bytes, None]()
        for entry in self.manifest.entries:
            if entry.kind == "file" and (
                self.blobs.is_redacted(entry.target) or (is_packed and is_source_file(entry.path))
            ):
                data = self.blobs.read_blob(entry.target, MAX_SCANNED_BYTES)
                found |= dict.fromkeys(match[0] for match in PLACEHOLDER.finditer(data))
        return tuple(text.decode() for text in found)

    def _describe_start(self, copy: Path) -> FolderAtStart:
        return FolderAtStart(
            snapshot=self.snapshot,
            manifest=self.manifest,
            since=time.time_ns(),
            hidden=frozenset(copy / entry.path for entry in self.stand_ins),
        )

    def _tidy_kept_copy(self, copy: Path) -> None:
        """Take the names of the store out of a copy that a person looks into."""
        if self.keep:
            remove_stand_ins(self.stand_ins, copy)

    def _restore(self, copy: Path, linked: bool) -> tuple[ManifestEntry, ...]:
        try:
            placed = restore_snapshot(
                self.manifest, self.blobs, copy, origin=self.path, linked=linked
            )
            place_stand_ins(self.stand_ins, copy)
        except ValueError as error:
            raise HarnessError(f"no copy of {self.path} could be made: {error}") from None
        return placed


@contextmanager
def remove_afterwards(folder: Path, *, keep: bool) -> Iterator[None]:
    """Remove a folder after the block, or after our death, whichever comes first."""
    if keep:
        yield
        return
    janitor = subprocess.Popen(
        ["/bin/sh", "-c", REMOVE_COPY_SCRIPT, "sh", str(folder)],
        env={"PATH": os.defpath},  # of the user's own commands one may be broken
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert janitor.stdin is not None
    assert janitor.stdout is not None
    with janitor.stdout as its_end:  # a wait with a timeout would poll, at last every 50 ms
        try:
            yield
        finally:
            janitor.stdin.close()
            select.select([its_end], [], [], REMOVE_TIMEOUT)
            janitor.wait(timeout=1)


def open_store_blobs(store: StoreDirectory) -> BlobStore:
    """Return the blob store of a store's snapshots."""
    return BlobStore(store.root / "snapshots")


def take_folder_snapshot(
    folder: Path,
    store: StoreDirectory,
    limits: "SnapshotLimits",
    progress: "ProgressCallback",
    *,
    into: BlobStore | None = None,
) -> "FolderSnapshot":
    """What is in a folder now, kept in the store; ValueError says why it is not."""
    from scenarios.workspace.snapshot import take_snapshot
    from stumble.user_data.known_secrets import load_user_secrets
    from traces.redaction.secret_scan import SecretFileScanner

    folder, temporary = folder.resolve(), Path(tempfile.gettempdir()).resolve()
    if temporary.is_relative_to(folder):
        raise ValueError(f"it holds {temporary}, where copies would be made")
    hidden, blobs = _list_hidden_folders(folder, store), open_store_blobs(store)
    return take_snapshot(
        folder,
        into or blobs,
        hidden=hidden,
        limits=limits,
        progress=progress,
        scanner=SecretFileScanner(load_user_secrets(), blobs.load_redactions()),
    )


def _list_hidden_folders(folder: Path, store: StoreDirectory) -> frozenset[Path]:
    return frozenset({store.root, folder / ".stumble", prepare_ca_folder().parent})


def list_visible_store(
    folder: Path, store: StoreDirectory, tape: Path
) -> tuple[ManifestEntry, ...]:
    """Return what an agent that starts now sees of the store and of its tape in its folder."""
    folder = folder.resolve()
    return list_stand_ins(folder, {*_list_hidden_folders(folder, store), tape.resolve()})


def snapshot_current_folder(store: StoreDirectory) -> str | None:
    """The name of a snapshot of this folder; None, said with the reason, if none can be taken."""
    from scenarios.workspace.snapshot import SnapshotLimits

    try:
        with show_terminal_progress("keeping the workspace") as seen:
            taken = take_folder_snapshot(Path.cwd(), store, SnapshotLimits(), seen)
        report_secret_files(taken.manifest)
        return taken.name
    except ValueError as error:
        print_notice(f"workspace not kept: {error}")
        return None


def describe_snapshot(taken: "FolderSnapshot") -> Iterator[str]:
    """What a user should know of a snapshot: what is not in it, and what may be wrong in it."""
    for why, said in LEFT_OUT.items():
        names = [entry.path for entry in taken.manifest.excluded if entry.target == why]
        if names:
            yield f"{format_first_names(names)} not kept ({said})"
    if taken.redacted:
        yield f"{format_first_names(taken.redacted)} kept with placeholders for secrets in it"
    if taken.special:
        yield f"{format_first_names(taken.special)} not kept (no files, or not ours to read)"
    if taken.changed:
        yield f"{format_first_names(taken.changed)} changed while being kept"


LEFT_OUT = {
    "secret": "by name it holds secrets; a replay shows it from where it is",
    "cache": "a cache; a replay shows it from where it is",
    "rule": ".stumbleignore; a replay shows it from where it is",
}


def format_first_names(names: Sequence[str]) -> str:
    """The first three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def find_recorded_workspace(
    trajectory: Trajectory, store: StoreDirectory, *, keep: bool
) -> RecordedWorkspace | str:
    """Return the workspace of a recording, or the reason why it is not available."""
    if trajectory.workspace is None or trajectory.snapshot is None:
        return "the recording has no snapshot"
    here = open_store_blobs(store)
    try:
        manifest = here.load_manifest(trajectory.snapshot)
        if manifest is None or _list_lost_contents(manifest, here):
            find_packed_snapshot(trajectory.snapshot, here)
            manifest = here.load_manifest(trajectory.snapshot)
        stand_ins = load_stand_ins(here, trajectory.id) or load_stand_ins(
            here, trajectory.parent or ""
        )
    except ValueError as error:
        return str(error)
    if manifest is None:
        return f"its snapshot is not in {store.root}"
    if lost := _list_lost_contents(manifest, here):
        return f"its snapshot in {store.root} lacks the content of {format_first_names(lost)}"
    path = Path(trajectory.workspace)
    return RecordedWorkspace(
        path=path,
        snapshot=trajectory.snapshot,
        manifest=manifest,
        blobs=here,
        mapped=_explain_mapping(path),
        keep=keep,
        stand_ins=stand_ins,
    )


def _list_lost_contents(manifest: SnapshotManifest, here: BlobStore) -> list[str]:
    return [
        entry.path
        for entry in manifest.entries
        if entry.kind == "file" and not here.has_blob(entry.target)
    ]


def explain_missing_copy(trajectory: Trajectory, store: StoreDirectory, why: str) -> str:
    """Why a run without a copy does not start, and the two ways out of that."""
    again = "record it again with its workspace (`stumble record` says why none is kept)"
    if trajectory.workspace is not None and trajectory.snapshot is not None:
        held = Path(trajectory.workspace) / ".stumble"
        kept = (held / "snapshots" / "manifests" / trajectory.snapshot).is_file()
        again = f"use the store that has it: STUMBLE_STORE={held if kept else 'FOLDER/.stumble'}"
    return (
        f"no copy of the agent's workspace can be made: {why}; without one, recorded commands "
        f"would really run in {Path.cwd()}. Either {again}, or allow that with --in-place "
        "(in_place = true in a campaign file)"
    )


def _explain_mapping(path: Path) -> str | None:
    if (why := find_missing_capabilities().room) is not None:
        return why
    if not is_reachable_folder(path) and (why := explain_unmountable(path)) is not None:
        return why
    if Path(tempfile.gettempdir()).resolve().is_relative_to(path):
        return "it holds the folder for temporary files"
    return None


def report_secret_files(manifest: SnapshotManifest) -> None:
    """Name the files that were not kept because a secret was found in them."""
    found = [entry.path for entry in manifest.excluded if entry.target == "found"]
    if found:
        more = f" and {len(found) - MAX_NAMES_SHOWN} more" if len(found) > MAX_NAMES_SHOWN else ""
        named = ", ".join(found[:MAX_NAMES_SHOWN])
        print_notice(f"secrets found, so not kept in the snapshot: {named}{more}")
