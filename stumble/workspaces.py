"""Where an agent works: its folder as it was recorded, made anew for each run, or itself.

A copy lies in a temporary folder and is shown at the recorded path, in a mount namespace of the
run's own. Where that cannot be had the agent works in the copy at its own path and is told so by
`STUMBLE_WORKSPACE`. A shell that waits for us to end removes the copy, so that nothing is left
of it even where we are killed.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from recorder.cage import Room, lacks
from scenarios.workspace.blobs import Blobs
from scenarios.workspace.copies import changed, restore
from scenarios.workspace.manifest import Entry, Manifest
from scenarios.world import CommandWorld, World
from stumble.exits import Failed
from stumble.home import authority
from traces.folder import Folder
from traces.model import Trajectory

if TYPE_CHECKING:
    from scenarios.workspace.snapshot import Limits, Progress, Taken

MAPPED = "STUMBLE_WORKSPACE"
"""Names the copy where it could not be shown at the recorded path."""

COPY = "STUMBLE_COPY"
"""Names the folder in which a copy really is, for whoever does not see it at its path."""

REMOVE = """
cat > /dev/null
tries=0
until chmod -R u+rwx -- "$1"; rm -rf -- "$1" || test $((tries += 1)) -gt 100; do sleep 0.1; done
"""
"""What the shell does: wait for our end, and remove a folder in which somebody may still write."""
REMOVING = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one run takes place."""

    room: Room | None = None
    cwd: Path | None = None
    """None is where we are."""
    env: Mapping[str, str] = field(default_factory=dict)
    kept: Path | None = None
    """The copy, where it is to stay."""

    def world(self, world: World | None) -> World | None:
        """The world, its commands run where the agent is."""
        if not isinstance(world, CommandWorld):
            return world
        world = world.filled({"workspace": str(self.cwd or Path.cwd())})
        if self.cwd is None:
            return world
        return replace(world, prefix=self.room.prefix() if self.room else (), cwd=self.cwd)


IN_PLACE = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A recorded folder, of which any number of copies can be made."""

    path: Path
    snapshot: str
    manifest: Manifest
    blobs: Blobs
    mapped: str | None
    """Why copies cannot be shown at the recorded path; None where they can."""
    keep: bool = False

    @contextmanager
    def copy(self) -> Iterator[Place]:
        """A fresh copy, for as long as the block runs; Failed where it cannot be made."""
        folder = Path(tempfile.mkdtemp(prefix="stumble-copy-")).resolve()
        with removed(folder, keep=self.keep):
            copy = folder / self.path.name if self.mapped else folder / "copy"
            copy.mkdir()
            linked = self.mapped is not None
            placed = self._restore(copy, linked)
            kept = copy if self.keep else None
            if linked:
                env = {MAPPED: str(copy), COPY: str(copy), "PWD": str(copy)}
                yield Place(cwd=copy, env=env, kept=kept)
                return
            through = tuple(
                (entry.path, folder / f"layer-{n}" if entry.folder else None)
                for n, entry in enumerate(placed)
            )
            room = Room(path=self.path, copy=copy, through=through)
            env = {COPY: str(copy), "PWD": str(self.path)}
            yield Place(room=room, cwd=self.path, env=env, kept=kept)

    def _restore(self, copy: Path, linked: bool) -> tuple[Entry, ...]:
        try:
            return restore(self.manifest, self.blobs, copy, origin=self.path, linked=linked)
        except ValueError as error:
            raise Failed(f"no copy of {self.path} could be made: {error}") from None

    def outdated(self, command: Sequence[str]) -> tuple[str, ...]:
        """The files that the agent's command names and that are no longer as recorded."""
        named = {os.path.normpath(word) for word in command if word and "\0" not in word}
        modules = [word for flag, word in zip(command, command[1:], strict=False) if flag == "-m"]
        paths = [module.replace(".", "/") for module in modules]
        named |= {*paths, *(f"{path}.py" for path in paths)}
        named |= {os.path.relpath(each, self.path) for each in named if each.startswith("/")}
        within = tuple(f"{path}/" for path in paths)
        now = changed(self.manifest, self.path)
        return tuple(name for name in now if name in named or name.startswith(within))


@contextmanager
def removed(folder: Path, *, keep: bool) -> Iterator[None]:
    """Remove a folder after the block, or after our death, whichever comes first."""
    if keep:
        yield
        return
    janitor = subprocess.Popen(
        ["/bin/sh", "-c", REMOVE, "sh", str(folder)],
        env={"PATH": os.defpath},  # of the user's own commands one may be broken
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        assert janitor.stdin is not None
        janitor.stdin.close()
        janitor.wait(timeout=REMOVING)


def blobs(store: Folder) -> Blobs:
    """Where a store keeps its snapshots."""
    return Blobs(store.root / "snapshots")


def snapshot(folder: Path, store: Folder, limits: "Limits", progress: "Progress") -> "Taken":
    """What is in a folder now, kept in the store; ValueError says why it is not."""
    from scenarios.workspace.snapshot import take

    folder, temporary = folder.resolve(), Path(tempfile.gettempdir()).resolve()
    if temporary.is_relative_to(folder):
        raise ValueError(f"it holds {temporary}, where copies would be made")
    hidden = frozenset({store.root, folder / ".stumble", authority()})
    return take(folder, blobs(store), hidden=hidden, limits=limits, progress=progress)


def notes(taken: "Taken") -> Iterator[str]:
    """What a user should know of a snapshot: what is not in it, and what may be wrong in it."""
    for why, said in LEFT_OUT.items():
        names = [entry.path for entry in taken.manifest.out if entry.target == why]
        if names:
            yield f"{_some(names)} not kept ({said})"
    if taken.special:
        yield f"{_some(taken.special)} not kept (no files, or not ours to read)"
    if taken.changed:
        yield f"{_some(taken.changed)} changed while being kept"


LEFT_OUT = {
    "secret": "by name it holds secrets; a replay shows it from where it is",
    "cache": "a cache; a replay shows it from where it is",
    "rule": ".stumbleignore; a replay shows it from where it is",
}


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def recorded(trajectory: Trajectory, store: Folder, *, keep: bool) -> Workspace | str:
    """The workspace of a recording, or why there is none."""
    if trajectory.workspace is None or trajectory.snapshot is None:
        return "the recording has no snapshot"
    here = blobs(store)
    try:
        manifest = here.manifest(trajectory.snapshot)
    except ValueError as error:
        return str(error)
    if manifest is None:
        return f"its snapshot is not in {store.root}"
    path = Path(trajectory.workspace)
    return Workspace(
        path=path,
        snapshot=trajectory.snapshot,
        manifest=manifest,
        blobs=here,
        mapped=_mapped(path),
        keep=keep,
    )


def _mapped(path: Path) -> str | None:
    if not path.is_dir():
        return "that path is not here"
    if Path(tempfile.gettempdir()).resolve().is_relative_to(path):
        return "it holds the folder for temporary files"
    return lacks().room
