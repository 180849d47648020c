"""The runs of a check as the store has them."""

from stumble.check.behaviour import describe_run
from stumble.check.findings import FaultCell, build_cells
from stumble.store.judged_rows import load_judged_injection
from traces.store.trace_store import TraceStore

_INJECTIONS_SQL = """
    SELECT trajectory_id, injection_id FROM injections JOIN trajectories USING (trajectory_id)
    WHERE campaign = $name AND condition = 'fault' AND repeat_of IS NULL ORDER BY recorded_at
"""
_CLEAN_SQL = """
    SELECT count(*) FILTER (ended != 'final' OR NOT coalesce(passed, true)), count(*)
    FROM trajectories WHERE campaign = $name AND condition = 'clean'
    AND source IN ('record', 'fork') AND ended IN ('final', 'crash', 'budget')
"""


def load_cells(store: TraceStore, name: str) -> tuple[FaultCell, ...]:
    """Judge the faulted runs of a check, by call and fault; the store must be indexed."""
    with store.open_locked() as connection:
        rows = connection.execute(_INJECTIONS_SQL, {"name": name}).fetchall()
    return build_cells([describe_run(load_judged_injection(store, *row)) for row in rows])


def count_clean_runs(store: TraceStore, name: str) -> tuple[int, int]:
    """Return how many runs without a fault failed, and how many there are."""
    with store.open_locked() as connection:
        [(failed, total)] = connection.execute(_CLEAN_SQL, {"name": name}).fetchall()
    return int(failed), int(total)
