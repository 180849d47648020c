"""Index of a store: rows of tapes from `traces`, with verdicts from `faults`.

The index can always be rebuilt from `.stumble/tapes/` (files, or links to tapes recorded elsewhere)
and `.stumble/imports/`; it contains no other information.
"""

from collections.abc import Iterable
from pathlib import Path

from stumble.store.store_errors import report_write_errors
from traces.model import ENDINGS_UNKNOWN, IMPORT_SOURCES, JUDGE_VERSION
from traces.store.query_signals import restore_interrupts
from traces.store.schema import SCHEMAS
from traces.store.trace_store import TraceStore


def find_unindexed_tapes(store: TraceStore) -> tuple[Path, ...]:
    """Return the tapes without rows, or with stale rows, or without an end reason.

    Imports never have an end reason.
    """
    with store.open_locked() as connection:
        ended = (
            "select trajectory_id from trajectories where ended is not null or source in $imports"
        )
        done = {
            id for (id,) in connection.execute(ended, {"imports": list(IMPORT_SOURCES)}).fetchall()
        }
        stale = {
            id
            for (id,) in connection.execute(_STALE_RUNS_SQL, _build_stale_parameters()).fetchall()
        }
    done -= stale & set(store.segments())  # rows of a batch cannot be replaced one by one
    paths = sorted(store.tapes.glob("*.tape"))
    return tuple(path for path in paths if path.exists() and path.stem not in done)


_STALE_RUNS_SQL = """
    with judged as (
        select trajectory_id, max(judge_version) as judge, max_by(twins, judge_version) as twins
        from outcomes join injections using (injection_id)
        group by trajectory_id
    ),
    later as (
        select t.trajectory_id
        from judged
        join trajectories as t using (trajectory_id)
        join trajectories as c
            on c.control_group = t.control_group and c.condition = 'clean'
            and (coalesce(len(t.controls), 0) = 0 or list_contains(t.controls, c.cell))
        where c.ended not in $unknown and not list_contains(judged.twins, c.trajectory_id)
    )
    select trajectory_id from judged where judge < $version
    union
    select trajectory_id from later
    union
    select trajectory_id from trajectories where forked_at is not null and control_group is null
    union
    select trajectory_id
    from trajectories
    where condition = 'clean' and passed_reason like '% clean twins have an end state'
        and control_group in (
            select control_group from trajectories
            where condition = 'clean' and state is not null and ended = 'final'
            group by control_group having count(*) >= 3
        )
"""
"""Runs with a verdict by an older judge, or from before all their clean twins had ended; and forks
with rows by an older version."""


def _build_stale_parameters() -> dict[str, object]:
    return {"version": JUDGE_VERSION, "unknown": list(ENDINGS_UNKNOWN)}


def refresh_index(store: TraceStore) -> list[str]:
    """Write the missing rows; return a line for each tape that could not be read.

    Raises KeyboardInterrupt after a signal; what is missing is written by the next call.
    """
    with report_write_errors(store), restore_interrupts():
        refused: dict[Path, str] = {}
        # A second pass, as a twin may have ended after a run whose control it is.
        for _ in range(2):
            if not (unindexed := find_unindexed_tapes(store)):
                break
            _index_tapes(store, unindexed, refused)
        # After the tapes: an export of one of them that was imported is known by its run.
        _restore_imports(store)
        store.compact()
    return [*_describe_lost_tapes(store), *refused.values()]


def _index_tapes(store: TraceStore, paths: Iterable[Path], refused: dict[Path, str]) -> None:
    """Write the rows of these tapes; the judge is loaded only if there are any."""
    from stumble.store.tape_rows import write_tapes

    write_tapes(store, paths, refused)


def _restore_imports(store: TraceStore) -> None:
    """Write the rows of imports that the index lacks; the importers are loaded only for these."""
    if not store.imports():
        return
    from stumble.llm.prices import compute_token_cost
    from traces.importers.run_merge import restore_imports

    restore_imports(store, compute_token_cost)


def _describe_lost_tapes(store: TraceStore) -> list[str]:
    """Return a line for each link to a tape that no longer exists."""
    links = [path for path in store.tapes.glob("*.tape") if not path.exists()]
    return [f"{path.stem}: its tape {path.readlink()} is gone" for path in sorted(links)]


def list_relations() -> tuple[str, ...]:
    """Return the names of all relations."""
    return tuple(SCHEMAS)
