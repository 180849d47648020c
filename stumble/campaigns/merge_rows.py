"""Rows of a shard that are taken over: those that would be made here from the same tapes.

A verdict follows from the tapes of a recording's runs. If all of them came from one store, and were
judged there by the judge of this version, its rows are copied; all others are made anew.
"""

from collections import defaultdict
from pathlib import Path

from stumble.store.index import find_unindexed_tapes
from traces.model import JUDGE_VERSION, Trajectory
from traces.store.trace_store import TraceStore

_JUDGED_RUNS_SQL = """
    with families as (
        select t.parent_id
        from trajectories as t
        join injections as i using (trajectory_id)
        join outcomes as o using (injection_id)
        where t.parent_id in $parents
        group by t.parent_id
        having min(o.judge_version) = $version and max(o.judge_version) = $version
    )
    select trajectory_id from trajectories
    where parent_id in (from families) and campaign not like '%@%' -- a name that holds there alone
"""


class CopiedRuns:
    """The runs of which a store has a tape, by recording and by the store they came from."""

    def __init__(self) -> None:
        self._origins = defaultdict[str, set[Path | None]](set)
        self._runs = defaultdict[Path, set[str]](set)

    def add(self, run: Trajectory, origin: Path | None) -> None:
        """Note that a run came from a store, or, without one, that it did not come from any."""
        if run.parent is not None:
            self._origins[run.parent].add(origin)
        if origin is not None:
            self._runs[origin].add(run.id)

    def copy_rows(self, store: TraceStore) -> int:
        """Copy the rows that are final; return the number of runs that have them now."""
        done = store.segments()
        return sum(self._copy_from(origin, store, set(done)) for origin in self._runs)

    def _copy_from(self, origin: Path, store: TraceStore, done: set[str]) -> int:
        parents = [parent for parent, origins in self._origins.items() if origins == {origin}]
        source = TraceStore(origin)
        segments = set(source.segments()) & self._runs[origin] - done
        if not parents or not segments:
            return 0
        with source.open_locked() as connection:
            given = {"parents": parents, "version": JUDGE_VERSION}
            judged = connection.execute(_JUDGED_RUNS_SQL, given).fetchall()
        ids = {id for (id,) in judged} & segments
        ids -= {path.stem for path in find_unindexed_tapes(source)}
        if ids:
            store.copy_segments(source, ids)
        return len(ids)
