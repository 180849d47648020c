"""Join the stores of a campaign's shards into one; each cell's first result stays.

A part is a store, a folder with one, or a pack of the campaign's runs. Tapes, their snapshots and
plans are taken over, and the rows that would be the same here (`merge_rows`): all rows are those of
a campaign on one machine.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from scenarios.workspace.blobs import BlobStore, write_atomic_file
from stumble.campaigns.merge_rows import CopiedRuns
from stumble.errors import UsageError
from stumble.packs.pack_cache import open_packed_files
from stumble.packs.packed_snapshots import import_snapshot
from stumble.packs.read_pack import is_pack
from stumble.store.index import refresh_index
from traces.model import Trajectory
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape_lazily

PLAN_KEYS = ("surroundings", "shards", "experiment")
"""What all shards of a campaign have in common."""

type CellKey = tuple[str, str | None, str | None]
"""Campaign, recording and address of a run."""


@dataclass(kw_only=True)
class MergedCampaign:
    """What was merged of one campaign."""

    name: str
    shards: int | None = None
    begun: set[int] = field(default_factory=set)
    added: int = 0
    repeated: int = 0
    """Results of cells that had one already, left where they are."""
    present: int = 0
    """Results that were here before."""

    @property
    def missing(self) -> list[int]:
        """The shards of which no part was given."""
        return [n for n in range(1, (self.shards or 0) + 1) if n not in self.begun]

    @property
    def is_whole(self) -> bool:
        """Whether there is a part of each shard."""
        return not self.missing

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "campaign": self.name,
            "shards": self.shards,
            "missing": self.missing,
            "added": self.added,
            "repeated": self.repeated,
            "present": self.present,
        }

    def to_lines(self) -> Iterator[str]:
        """Format it as lines."""
        yield (
            f"campaign {self.name}: {self.added} runs added, {self.present} were here, "
            f"{self.repeated} left out as their cell has one"
        )
        if self.shards is not None:
            yield f"  {len(self.begun)} of {self.shards} shards"
        if self.missing:
            yield f"  no part of shard {', '.join(map(str, self.missing))}"
        else:
            yield f"  stumble report --campaign {self.name}"


def merge_shards(
    store: TraceStore, parts: Sequence[Path], report: Callable[[int, int], None]
) -> tuple[list[MergedCampaign], list[str]]:
    """Merge parts into a store; return what was merged, by campaign, and the tapes that were not.

    Of those it returns the path and the reason: damaged, cut off or of a newer version. Raises
    UsageError if a part is no store, or if parts of one campaign do not belong together.
    """
    if not parts:
        raise UsageError("nothing to merge: give folders with a store, or packs of a campaign")
    merged = dict[str, MergedCampaign]()
    with _lock_merges(store):
        sources = [_open_part(part) for part in parts]
        _merge_plans(store, sources, merged)
        tapes = [tape for source in sources for tape in source.tapes]
        refused = _add_tapes(store, sources, merged, _count_steps(tapes, report))
        refresh_index(store)
    return [merged[name] for name in sorted(merged)], refused


class _lock_merges:  # noqa: N801
    """Hold the lock of merges into a store: a second one waits."""

    def __init__(self, store: TraceStore) -> None:
        self._path = store.root / ".merge"

    def __enter__(self) -> None:
        self._file = self._path.open("a")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()


class _MergeSource(Struct, frozen=True, kw_only=True):
    """The files of one part."""

    part: Path
    store: Path | None
    """The folder of a store, if it is one."""
    tapes: Sequence[Path]
    plans: Mapping[str, Mapping[str, object]]
    blobs: Path


def _open_part(part: Path) -> _MergeSource:
    if part.is_file():
        if not is_pack(part):
            raise UsageError(f"{part}: no pack, and no folder with a store")
        opened = open_packed_files(part)
        plan = opened.folder / "plan.json"
        plans = {opened.manifest.main: json.loads(plan.read_bytes())} if plan.is_file() else {}
        named = {str(each["said"]["name"]): each for each in plans.values()}
        return _MergeSource(
            part=part, store=None, tapes=opened.tapes, plans=named,
            blobs=opened.folder.parent / "snapshots",
        )  # fmt: skip
    root = part / ".stumble" if (part / ".stumble").is_dir() else part
    if not (root / "tapes").is_dir():
        raise UsageError(f"{part}: there is no store (.stumble) in it")
    return _MergeSource(
        part=part,
        store=root if (root / "index").is_dir() else None,
        tapes=sorted((root / "tapes").glob("*.tape")),
        plans={
            path.parent.name: json.loads(path.read_bytes())
            for path in sorted((root / "campaigns").glob("*/plan.json"))
        },
        blobs=root / "snapshots",
    )


def _merge_plans(
    store: TraceStore, sources: Sequence[_MergeSource], merged: dict[str, MergedCampaign]
) -> None:
    """Check that all plans of a name belong together, and keep one. Raises UsageError."""
    for source in sources:
        for name, plan in source.plans.items():
            here = store.root / "campaigns" / name / "plan.json"
            known = json.loads(here.read_bytes()) if here.is_file() else plan
            for key in PLAN_KEYS:
                if known.get(key) != plan.get(key):
                    raise UsageError(
                        f"{source.part}: the campaign {name} has {key} {plan.get(key)!r} there, "
                        f"and {known.get(key)!r} in {here.parent if here.is_file() else 'others'}: "
                        "they are not parts of one campaign"
                    )
            started = {*_read_numbers(known), *_read_numbers(plan)}
            now = merged.setdefault(name, MergedCampaign(name=name))
            now.shards, now.begun = plan.get("shards"), now.begun | started  # type: ignore[assignment]
            here.parent.mkdir(parents=True, exist_ok=True)
            together = dict(known) | ({"begun": sorted(started)} if started else {})
            write_atomic_file(here, json.dumps(together, indent=1).encode())


def _read_numbers(plan: Mapping[str, object]) -> list[int]:
    numbers = plan.get("begun")
    return [int(each) for each in numbers] if isinstance(numbers, list) else []


def _add_tapes(
    store: TraceStore,
    sources: Iterable[_MergeSource],
    merged: dict[str, MergedCampaign],
    step: Callable[[], None],
) -> list[str]:
    """Copy all tapes that are whole; return the others, each with the reason."""
    taken, copied, refused = dict[CellKey, str](), CopiedRuns(), list[str]()
    for head in _read_whole_heads(store.tapes.glob("*.tape")):
        taken[_to_key(head)] = head.id
        copied.add(head, None)
    here = set(taken.values())
    target = BlobStore(store.root / "snapshots")
    for source in sources:
        for tape in source.tapes:
            step()
            try:
                head = _read_whole_head(tape)
            except ValueError as error:
                refused.append(str(error))
                continue
            now = merged.get(head.campaign or "")
            holder = taken.setdefault(_to_key(head), head.id) if now else head.id
            if now and holder != head.id:
                now.repeated += 1
                copied.add(head, None)
                continue
            if now:
                now.present += head.id in here
                now.added += head.id not in here
            if head.id not in here:
                here.add(head.id)
                copied.add(head, source.store)
                _copy_tape(tape, store.tapes / tape.name)  # over one that was cut off
            if head.snapshot and source.blobs.is_dir():
                _add_snapshot(head.snapshot, source.blobs, target, tape)
    if not refused:  # a store may have judged its runs beside one that is left out
        copied.copy_rows(store)
    return refused


def _read_whole_heads(paths: Iterable[Path]) -> Iterator[Trajectory]:
    """Yield the heads of the tapes that are whole: no other may keep a result from its cell."""
    for path in paths:
        with suppress(ValueError):
            yield _read_whole_head(path)


def _read_whole_head(path: Path) -> Trajectory:
    """Read a tape's head. Raises ValueError if it is damaged, cut off or of a newer version."""
    tape = read_tape_lazily(path)
    if tape.cut_at is not None:
        raise ValueError(f"{path}: it is still being written, or was cut off")
    return tape.trajectory


def _to_key(head: Trajectory) -> CellKey:
    """Return what only one run of a campaign may have; of other runs, their id."""
    if head.campaign is None or head.cell is None or head.parent is None:
        return head.id, None, None
    return head.campaign, head.parent, head.cell


def _copy_tape(tape: Path, copy: Path) -> None:
    aside = copy.with_name(f".{copy.name}.{os.getpid()}.part")
    shutil.copyfile(tape, aside)
    aside.replace(copy)


def _add_snapshot(name: str, origin: Path, target: BlobStore, tape: Path) -> None:
    if target.load_manifest(name) is not None:
        return
    try:
        import_snapshot(name, BlobStore(origin), target)
    except ValueError as error:
        raise UsageError(f"{tape}: {error}") from None


def _count_steps(tapes: Sequence[Path], report: Callable[[int, int], None]) -> Callable[[], None]:
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        report(done, len(tapes))

    return step
