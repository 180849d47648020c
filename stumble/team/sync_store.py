"""Push a store's tapes and workspaces to a bucket, or pull them from it.

snapshots/blobs/<na>/<me>      a content, by its hash
snapshots/manifests/<name>     a snapshot, after its contents
campaigns/<name>/plan-<hash>.json
tapes/<id>.tape                after its snapshot: so a tape that is there has all that it needs

An object is written once, and whole. So a push that was cut off goes on, and of two at once each
adds what the other lacks. Pulling checks each content against its name.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from scenarios.workspace.blobs import BlobStore, write_atomic_file
from stumble.packs.packed_snapshots import import_snapshot
from stumble.store.campaign_names import (
    get_plan_experiment,
    name_campaign,
    read_plan_experiment,
)
from stumble.store.secret_scan import scan_files
from stumble.team.object_store import ObjectStore
from traces.store.store_dir import StoreDirectory
from traces.tape.reader import read_tape_lazily

TAPES, SNAPSHOTS = "tapes/", "snapshots/"

type ProgressCallback = Callable[[int, int], object]


@dataclass(kw_only=True)
class SyncResult:
    """What was copied, and what was not."""

    tapes: int = 0
    objects: int = 0
    present: int = 0
    """Objects that were there already."""
    refused: list[str] = field(default_factory=list)
    """Tapes that were not copied, each with the reason."""

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "tapes": self.tapes,
            "objects": self.objects,
            "present": self.present,
            "refused": self.refused,
        }


def push_store(
    store: StoreDirectory, remote: ObjectStore, known: Sequence[str], tell: ProgressCallback
) -> SyncResult:
    """Copy what the bucket lacks. Tapes in which a secret is found are refused."""
    result, there = SyncResult(), remote.list_sizes("")
    tapes = sorted(store.tapes.glob("*.tape"))
    pushed = set[str]()
    for number, tape in enumerate(tapes):
        tell(number, len(tapes))
        name = TAPES + tape.name
        if name in there:
            result.present += 1
            if there[name] != tape.stat().st_size:
                result.refused.append(f"{tape.stem}: another tape of this name is there")
            continue
        if why := find_push_refusal(tape, known):
            result.refused.append(f"{tape.stem}: {why}")
            continue
        for key, path in _list_workspace_objects(store, tape, pushed):
            if key not in there:
                result.objects += remote.put_new(key, path)
        result.tapes += remote.put_new(name, tape)
    for plan in sorted((store.root / "campaigns").glob("*/plan.json")):
        digest = sha256(plan.read_bytes()).hexdigest()[:16]
        key = f"campaigns/{plan.parent.name}/plan-{digest}.json"
        if key not in there:
            result.objects += remote.put_new(key, plan)
    return result


def find_push_refusal(tape: Path, known: Sequence[str]) -> str | None:
    """Return why a tape is not pushed; None if it is."""
    try:
        ending = read_tape_lazily(tape)
    except ValueError as error:
        return str(error)
    if ending.cut_at is not None:
        return "it is still being written, or was cut off"
    places = [where for each in scan_files((tape,), known) for where, _ in each.found]
    return f"a secret is in it, at {places[0]}" if places else None


def _list_workspace_objects(
    store: StoreDirectory, tape: Path, done: set[str]
) -> Iterator[tuple[str, Path]]:
    """Yield the objects of a tape's snapshot, its manifest last."""
    name = read_tape_lazily(tape).trajectory.snapshot
    root = store.root / "snapshots"
    if name is None or name in done or not (root / "manifests" / name).is_file():
        return
    done.add(name)
    manifest = BlobStore(root).load_manifest(name)
    for entry in manifest.entries if manifest else ():
        if entry.kind == "file":
            part = f"blobs/{entry.target[:2]}/{entry.target[2:]}"
            yield SNAPSHOTS + part, root / part
    yield f"{SNAPSHOTS}manifests/{name}", root / "manifests" / name


def pull_store(store: StoreDirectory, remote: ObjectStore, tell: ProgressCallback) -> SyncResult:
    """Copy the tapes that the store lacks, with their workspaces."""
    result, there = SyncResult(), remote.list_sizes(TAPES)
    blobs = BlobStore(store.root / "snapshots")
    for number, name in enumerate(sorted(there)):
        tell(number, len(there))
        target = store.tapes / Path(name).name
        if target.exists():
            result.present += 1
            continue
        with tempfile.TemporaryDirectory(dir=store.root, prefix=".pull-") as folder:
            aside = _download(remote, name, Path(folder) / target.name)
            try:
                ending = read_tape_lazily(aside)
                head = ending.trajectory
                if ending.cut_at is not None:
                    raise ValueError("the object is cut off: `push` wrote a whole tape")
                if f"{head.id}.tape" != target.name:
                    raise ValueError(f"it is the tape of {head.id}")
                if head.snapshot is not None:
                    result.objects += _pull_snapshot(remote, head.snapshot, blobs, Path(folder))
            except ValueError as error:
                result.refused.append(f"{target.stem}: {error}")
                continue
            aside.replace(target)
            result.tapes += 1
    _pull_plans(store, remote)
    return result


def _download(remote: ObjectStore, name: str, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        for piece in remote.read_pieces(name):
            file.write(piece)
    return path


def _pull_snapshot(remote: ObjectStore, name: str, target: BlobStore, aside: Path) -> int:
    """Copy a snapshot, each content checked; return how many objects were fetched."""
    if target.load_manifest(name) is not None:
        return 0
    origin = BlobStore(aside / "snapshots")
    if not remote.has_object(f"{SNAPSHOTS}manifests/{name}"):
        return 0  # pushed by somebody whose store lacked it
    _download(remote, f"{SNAPSHOTS}manifests/{name}", origin.root / "manifests" / name)
    manifest = origin.load_manifest(name)
    fetched = 1
    entries = manifest.entries if manifest else ()
    wanted = {entry.target for entry in entries if entry.kind == "file"}
    for content in sorted(wanted):
        if not target.has_blob(content):
            part = f"blobs/{content[:2]}/{content[2:]}"
            _download(remote, SNAPSHOTS + part, origin.root / part)
            fetched += 1
    import_snapshot(name, origin, target)
    return fetched


def _pull_plans(store: StoreDirectory, remote: ObjectStore) -> None:
    """Write the plan of each campaign that the store does not know, under its name there."""
    for key in sorted(remote.list_sizes("campaigns/")):
        _, name, _ = key.split("/", 2)
        if name in ("", ".", ".."):
            continue
        plan = b"".join(remote.read_pieces(key))
        experiment = get_plan_experiment(json.loads(plan))
        shown = name_campaign(name, experiment, read_plan_experiment(store.root, name))
        path = store.root / "campaigns" / shown / "plan.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic_file(path, plan)
