"""Retention: remove old runs from a store, without making a number of what stays wrong.

Runs belong together if one refers to another: a recording, its forks and replays, the clean twins
they were judged against, all runs of a campaign. They go together or stay together, since a part of
them would give other rates. What is removed are tapes, their rows, and the contents of workspaces
that no tape needs any more.
"""

import fcntl
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from msgspec import Struct, field

from scenarios.workspace.blobs import BlobStore
from scenarios.workspace.left_files import load_all_left_files
from traces.store.schema import SCHEMAS
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape_lazily

SNAPSHOT_GRACE_SECONDS = 86_400.0
"""Younger contents stay: a recording that goes on now may need them."""
_RUNS_SQL = """
    SELECT trajectory_id, parent_id, campaign, experiment, control_group, seal,
        epoch(recorded_at) AS recorded_at
    FROM trajectories
    ORDER BY recorded_at, trajectory_id
"""
_LINKS = ("parent_id", "campaign", "experiment", "control_group")


class RunGroup(Struct, frozen=True, kw_only=True):
    """Runs that belong together."""

    name: str
    """Its campaign, or the oldest run."""
    runs: tuple[str, ...]
    last: float | None
    """When the youngest was recorded, in seconds since the epoch; None if that is not known."""
    bytes: int
    stays: str | None
    """Why it must stay; None if it may go."""


class PrunePlan(Struct, frozen=True, kw_only=True):
    """What goes, and what stays although it is old."""

    going: Sequence[RunGroup]
    staying: Sequence[RunGroup]
    kept_tapes: Mapping[str, str] = field(default_factory=dict)
    """Runs of groups that go, with the reason why their own tapes stay."""

    @property
    def runs(self) -> list[str]:
        """The runs to remove."""
        return [run for group in self.going for run in group.runs if run not in self.kept_tapes]

    @property
    def bytes(self) -> int:
        """Bytes of their tapes."""
        return sum(group.bytes for group in self.going)


def plan_pruning(
    store: TraceStore, *, older_than: float | None, keep_bytes: int | None, now: float | None = None
) -> PrunePlan:
    """Choose groups older than so many seconds, or the oldest ones until the tapes fit.

    With both, a group goes if it is chosen by either.
    """
    now = time.time() if now is None else now
    groups = sorted(find_run_groups(store), key=lambda each: (each.last is None, each.last or 0.0))
    left = sum(group.bytes for group in groups)
    going, staying, kept = [], [], dict[str, str]()
    for group in groups:
        is_old = older_than is not None and group.last is not None and group.last < now - older_than
        if not is_old and (keep_bytes is None or left <= keep_bytes):
            continue
        if group.stays is not None:
            staying.append(group)
            continue
        elsewhere = dict(_find_tapes_elsewhere(store, group.runs))
        kept |= elsewhere
        if len(elsewhere) < len(group.runs):
            going.append(group)
            left -= group.bytes
    return PrunePlan(going=going, staying=staying, kept_tapes=kept)


def find_run_groups(store: TraceStore) -> Iterator[RunGroup]:
    """Yield the groups of all runs with a tape in the store."""
    with store.open_locked() as connection:
        names = [*(column[0] for column in connection.execute(_RUNS_SQL).description or ())]
        rows = [dict(zip(names, row, strict=True)) for row in connection.fetchall()]
    above = dict[str, str]()

    def find(name: str) -> str:
        root = name
        while (found := above.setdefault(root, root)) != root:
            root = found
        while above[name] != root:  # so that no chain of runs makes this slow
            above[name], name = root, above[name]
        return root

    for row in rows:
        own = f"run {row['trajectory_id']}"
        for link in _LINKS:
            if row[link] is not None:
                kind = "run" if link == "parent_id" else link
                above[find(own)] = find(f"{kind} {row[link]}")
    members = defaultdict[str, list[dict[str, object]]](list)
    for row in rows:
        if _tape_path(store, str(row["trajectory_id"])).is_file():
            members[find(f"run {row['trajectory_id']}")].append(row)
    for group in members.values():
        yield _make_group(store, group)


def _make_group(store: TraceStore, rows: Sequence[Mapping[str, object]]) -> RunGroup:
    times = [row["recorded_at"] for row in rows]
    known = [each for each in times if isinstance(each, float)]
    campaigns = list(dict.fromkeys(str(row["campaign"]) for row in rows if row["campaign"]))
    runs = tuple(str(row["trajectory_id"]) for row in rows)
    return RunGroup(
        name=f"campaign {', '.join(campaigns)}" if campaigns else runs[0],
        runs=runs,
        last=max(known) if len(known) == len(times) else None,
        bytes=sum(_tape_path(store, run).stat().st_size for run in runs),
        stays=_find_reason_to_stay(store, rows, campaigns),
    )


def _find_reason_to_stay(
    store: TraceStore, rows: Sequence[Mapping[str, object]], campaigns: Sequence[str]
) -> str | None:
    if any(row["seal"] is not None for row in rows):
        return "a sealed campaign: its verdict has to be checkable"
    for name in campaigns:
        if _is_running(store.root / "campaigns" / name / ".lock"):
            return f"the campaign {name} is running"
    for row in rows:
        if read_tape_lazily(_tape_path(store, str(row["trajectory_id"]))).cut_at is not None:
            return f"{row['trajectory_id']} is being written, or was cut off"
    return None


def _is_running(lock: Path) -> bool:
    try:
        with lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _find_tapes_elsewhere(store: TraceStore, runs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield runs whose tape has a second name: there it needs the store's copy of its workspace."""
    for run in runs:
        if _tape_path(store, run).stat().st_nlink > 1:
            yield run, "the tape has a name outside of the store too"


def _tape_path(store: TraceStore, run: str) -> Path:
    return store.tapes / f"{run}.tape"


def prune_store(store: TraceStore, plan: PrunePlan) -> int:
    """Remove what the plan names; return how many bytes of workspaces went with it.

    Rows go first: a run that was cut off meanwhile is indexed again, and nothing of it is lost.
    """
    runs = set(plan.runs)
    _remove_rows(store, runs)
    for run in sorted(runs):
        _tape_path(store, run).unlink(missing_ok=True)
    return _remove_contents(store, runs)


def _remove_rows(store: TraceStore, runs: set[str]) -> None:
    """Remove the rows of runs; of a segment that has others too, the others stay as they are."""
    segments = set(store.find_segments(runs).values())
    with store.open_locked() as connection:
        ids = connection.execute("SELECT trajectory_id FROM trajectories").fetchall()
    places = store.find_segments(id for (id,) in ids if id not in runs)
    others = defaultdict[str, list[str]](list)
    for id, segment in places.items():
        if segment in segments:
            others[segment].append(id)
    kept = {segment: _read_rows(store, others[segment]) for segment in others}
    if kept:
        store.write_all(kept)
    if gone := segments - kept.keys():
        store.drop(*sorted(gone))


def _read_rows(store: TraceStore, runs: Sequence[str]) -> dict[str, pa.Table]:
    tables = dict[str, pa.Table]()
    with store.open_locked() as connection:
        for relation, schema in SCHEMAS.items():
            chosen = "trajectory_id IN (SELECT unnest($runs))"
            if relation == "outcomes":
                chosen = f"injection_id IN (SELECT injection_id FROM injections WHERE {chosen})"
            query = f"SELECT * FROM {relation} WHERE {chosen}"
            rows = connection.sql(query, params={"runs": list(runs)}).to_arrow_table()
            tables[relation] = rows.select(schema.names).cast(schema)
    return tables


def _remove_contents(store: TraceStore, gone: set[str]) -> int:
    """Remove snapshots that no tape needs, and contents that no snapshot needs."""
    blobs, before = BlobStore(store.root / "snapshots"), time.time() - SNAPSHOT_GRACE_SECONDS
    needed = {read_tape_lazily(tape).trajectory.snapshot for tape in store.tapes.glob("*.tape")}
    # By those before and after a recording, edits since then are found.
    for each in blobs.load_all_recordings():
        if each.id not in gone:
            needed |= {each.before, each.after}
    freed, contents = 0, set[str]()
    for path, left in load_all_left_files(blobs):
        if left.run in gone:
            freed += _remove_file(path)
            continue
        contents |= {entry.target for entry in left.changed if entry.kind == "file"}
    for path in sorted((blobs.root / "manifests").iterdir()):
        if path.name not in needed and path.stat().st_mtime < before:
            freed += _remove_file(path)
            (blobs.root / "packed" / path.name).unlink(missing_ok=True)
            continue
        manifest = blobs.load_manifest(path.name)
        for entry in manifest.entries if manifest else ():
            if entry.kind == "file":
                contents.add(entry.target)
    for path in sorted((blobs.root / "blobs").glob("*/*")):
        if path.parent.name + path.name not in contents and path.stat().st_mtime < before:
            freed += _remove_file(path)
    return freed


def _remove_file(path: Path) -> int:
    size = path.stat().st_size
    path.unlink()
    return size
