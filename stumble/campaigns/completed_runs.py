"""The completed runs of a campaign, read from the tapes of the store.

A run writes its tape into the campaign's folder, and the complete tape is moved to the other tapes,
so each tape in the store is a completed run. Tapes in that folder while no session runs were left
by a session that was killed; they are deleted.
"""

import fcntl
import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

from stumble.campaigns.shards import CampaignShard
from stumble.errors import UsageError
from stumble.store.campaign_names import get_plan_experiment
from stumble.user_data.paths import new_experiment_id
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape

WORKER_EXIT_SECONDS = 30.0
"""Seconds to wait for workers of a session that was killed."""


class CompletedRuns(Struct, frozen=True, kw_only=True):
    """The completed runs of a campaign."""

    recordings: Mapping[tuple[str, str], Path]
    """Tapes by task and model."""
    runs: Mapping[tuple[str, str], str]
    """End reason by the id of the recording and the address of the cell."""
    cost: float
    """Known cost of recordings and runs in US dollars."""
    seconds: float = 0.0
    """Known time of the runs, added up."""


_CAMPAIGN_RUNS_SQL = """
    SELECT
        trajectory_id, parent_id, cell, task, ended, source, seconds,
        (
            SELECT CASE WHEN count(*) = count(u.cost_usd) THEN coalesce(sum(u.cost_usd), 0) END
            FROM usage AS u
            JOIN exchanges AS e ON e.trajectory_id = u.trajectory_id AND e.seq = u.seq
            WHERE u.trajectory_id = t.trajectory_id AND e.answered_by = 'live'
        ) AS cost_usd
    FROM trajectories AS t
    WHERE campaign = $campaign AND ended IS NOT NULL
    ORDER BY recorded_at, trajectory_id
"""


def find_completed_runs(store: TraceStore, campaign: str) -> CompletedRuns:
    """Find the completed runs of a campaign; the store must be indexed."""
    recordings, runs, spent, taken = {}, {}, 0.0, 0.0
    with store.open_locked() as connection:
        rows = connection.execute(_CAMPAIGN_RUNS_SQL, {"campaign": campaign}).fetchall()
    for id, parent, cell, task, ended, source, seconds, cost in rows:
        path = store.tapes / f"{id}.tape"
        if not path.exists():
            continue
        spent += cost or 0.0
        if source == "record":
            # If no model was given, the column has the model that answered; the key of a source
            # has the given one.
            recordings[task, read_tape(path).trajectory.model or ""] = path
        else:
            runs[parent, cell] = ended
            taken += seconds or 0.0
    return CompletedRuns(recordings=recordings, runs=runs, cost=spent, seconds=taken)


def merge_shard_numbers(
    name: str, before: Mapping[str, object] | None, shard: CampaignShard | None
) -> dict[str, object]:
    """Return how many shards a campaign has, and which were begun here; empty for none.

    Raises UsageError if it was begun in another number of them.
    """
    known = (before or {}).get("shards")
    count = shard.count if shard else None
    if before is not None and known != count:
        raise UsageError(
            f"the campaign {name} was begun here {_describe_shards(known)}, and cannot go on "
            f"{_describe_shards(count)}: use the same number, or another --name"
        )
    if shard is None:
        return {}
    started = (before or {}).get("begun")
    numbers = {*(started if isinstance(started, list) else ()), shard.number}
    return {"shards": shard.count, "begun": sorted(numbers)}


def _describe_shards(count: object) -> str:
    return "as a whole" if count is None else f"in {count} shards"


def name_shard_experiment(name: str, surroundings: str, shard: CampaignShard) -> str:
    """Return the experiment id that all shards of a campaign have in common."""
    text = f"{name}\0{surroundings}\0{shard.count}"
    return blake2b(text.encode(), digest_size=16).hexdigest()


class CampaignFolder:
    """The folder of a campaign in the store: its plan, and the tapes of unfinished runs."""

    def __init__(self, store: TraceStore, name: str) -> None:
        self._store = store
        self.root = store.root / "campaigns" / name
        self.root.mkdir(parents=True, exist_ok=True)
        self.runs = self.root / "runs"
        self.plan = self.root / "plan.json"
        self.progress = self.root / "progress.json"

    @contextmanager
    def lock_campaign(self) -> Iterator[None]:
        """Hold the lock of the campaign. Raises UsageError if another session holds it."""
        with (self.root / ".lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"the campaign {self.root.name} is being run by somebody else; wait for it, "
                    "or give this one another --name"
                ) from None
            with self._lock_workers(fcntl.LOCK_EX):
                shutil.rmtree(self.runs, ignore_errors=True)
                self.runs.mkdir()
            try:
                yield
            finally:
                with self._lock_workers(fcntl.LOCK_EX):
                    shutil.rmtree(self.runs, ignore_errors=True)

    @contextmanager
    def lock_worker(self) -> Iterator[None]:
        """Hold the shared lock of the workers; the next session waits for its release."""
        with self._lock_workers(fcntl.LOCK_SH):
            yield

    @contextmanager
    def _lock_workers(self, kind: int) -> Iterator[None]:
        deadline = time.monotonic() + WORKER_EXIT_SECONDS
        with (self.root / ".workers").open("a") as file:
            while True:
                try:
                    fcntl.flock(file, kind | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise UsageError(
                            f"workers of an earlier session of {self.root.name} have not ended"
                        ) from None
                    time.sleep(0.05)
            yield

    def save_plan(
        self,
        table: Mapping[str, object],
        folder: Path,
        common: str,
        shard: CampaignShard | None = None,
    ) -> None:
        """Write the plan. Raises UsageError if the campaign was begun in other surroundings, or in
        another number of shards. The store must be indexed.
        """
        before = _read_plan_file(self.plan)
        if before is not None and before["surroundings"] != common:
            raise UsageError(
                f"the campaign {self.root.name} was begun with another agent, world, host or "
                "budget, and its runs are not to be mixed with these: give this one another --name"
            )
        shards = merge_shard_numbers(self.root.name, before, shard)
        # A campaign begun by an older version has runs without an experiment, and stays without.
        experiment = before.get("experiment") if before else self._find_unplanned_experiment()
        if shard is not None:
            experiment = name_shard_experiment(self.root.name, common, shard)
        part = self.plan.with_suffix(".part")
        plan = {"surroundings": common, "beside": str(folder.absolute()), "said": table}
        part.write_text(json.dumps(plan | {"experiment": experiment} | shards, indent=1))
        part.replace(self.plan)

    def _find_unplanned_experiment(self) -> str:
        """Return the experiment of the runs that came here without their plan, else a new one."""
        query = (
            "SELECT DISTINCT experiment FROM trajectories"
            " WHERE campaign = $name AND experiment IS NOT NULL"
        )
        with self._store.open_locked() as connection:
            found = connection.execute(query, {"name": self.root.name}).fetchall()
        return str(found[0][0]) if len(found) == 1 else new_experiment_id()

    @property
    def experiment(self) -> str | None:
        """The experiment id that its runs of all sessions share."""
        return get_plan_experiment(_read_plan_file(self.plan))

    @classmethod
    def load_plan(cls, store: TraceStore, name: str) -> tuple[dict[str, object], Path] | None:
        """Return the last plan of this name and the file whose folder its paths start from."""
        plan = _read_plan_file(store.root / "campaigns" / name / "plan.json")
        if plan is None or not isinstance(table := plan["said"], dict):
            return None
        return table, Path(str(plan["beside"]))


def _read_plan_file(plan: Path) -> dict[str, object] | None:
    if not plan.exists():
        return None
    document: dict[str, object] = json.loads(plan.read_text())
    return document
