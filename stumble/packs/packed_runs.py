"""Packs of runs of a store: a run with its controls and its recording, or a whole campaign."""

import json
from collections.abc import Sequence
from pathlib import Path

from stumble.errors import UsageError
from stumble.packs.pack_contents import PackContents
from stumble.packs.pack_manifest import PackManifest, PlanOptions
from stumble.store.open_store import open_indexed_store
from traces.store.trace_store import TraceStore

_RELATED_SQL = """
    WITH chosen AS (SELECT * FROM trajectories WHERE trajectory_id = $run)
    SELECT DISTINCT t.trajectory_id
    FROM trajectories AS t, chosen AS c
    WHERE t.trajectory_id = c.parent_id
        OR (c.experiment IS NOT NULL AND t.experiment = c.experiment AND t.condition = 'clean'
            AND t.parent_id = c.parent_id AND t.forked_at = c.forked_at)
    ORDER BY t.trajectory_id
"""
_CAMPAIGN_SQL = """
    WITH runs AS (SELECT * FROM trajectories WHERE campaign = $campaign)
    SELECT trajectory_id FROM runs
    UNION SELECT parent_id FROM runs WHERE parent_id IS NOT NULL
    ORDER BY 1
"""


def pack_stored_runs(
    contents: PackContents,
    what: str,
    output: Path,
    plan: PlanOptions,
    scenario: str | None,
) -> PackManifest:
    """Pack a run by its id or prefix, or all runs of a campaign by its name.

    Raises UsageError if the store has neither.
    """
    store = open_indexed_store(contents.store)
    if (store.root / "campaigns" / what / "plan.json").is_file():
        return pack_campaign_runs(contents, store, what, output)
    run = _find_run(store, what)
    main = contents.add_tape(run)
    for id in _list_ids(store, _RELATED_SQL, {"run": run.stem}):
        if (path := store.tapes / f"{id}.tape").is_file():
            contents.add_tape(path)
    return contents.write(output, main, kind="tape", plan=plan, scenario=scenario)


def pack_campaign_runs(
    contents: PackContents, store: TraceStore, name: str, output: Path
) -> PackManifest:
    """Pack all finished runs of a campaign, and their recordings."""
    ids = _list_ids(store, _CAMPAIGN_SQL, {"campaign": name})
    parts = [
        contents.add_tape(path) for id in ids if (path := store.tapes / f"{id}.tape").is_file()
    ]
    if not parts:
        raise UsageError(f"the campaign {name} has no runs in {store.root}")
    plan = json.loads((store.root / "campaigns" / name / "plan.json").read_bytes())
    contents.add_table("plan.json", plan)
    return contents.write(output, parts[0], kind="runs")


def _list_ids(store: TraceStore, query: str, parameters: dict[str, object]) -> Sequence[str]:
    with store.open_locked() as connection:
        return [str(id) for (id,) in connection.execute(query, parameters).fetchall()]


def _find_run(store: TraceStore, what: str) -> Path:
    matches = sorted(each for each in store.tapes.glob("*.tape") if each.name.startswith(what))
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(
            f"{len(matches)} runs begin with {what}, as {matches[0].stem} and {matches[1].stem}"
        )
    raise UsageError(
        f"{what}: no file, and no run or campaign of {store.root}; a campaign file ends in .toml"
    )
