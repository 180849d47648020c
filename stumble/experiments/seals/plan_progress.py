"""Completed roots of a plan, in the order of the plan.

An interim analysis takes the first roots of the plan with all their runs done; so its sample was
fixed before the first run, however often it is repeated.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from stumble.campaigns.completed_runs import CampaignFolder, CompletedRuns, find_completed_runs
from stumble.campaigns.run_matrix import build_run_matrix
from stumble.campaigns.spec import Campaign, TraceSource, parse_campaign
from traces.conversation.derived_steps import derive_tape_steps
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape


class PlanUnit(Struct, frozen=True, kw_only=True):
    """A root of the plan: a recording, or a source to be recorded."""

    root: str | None
    """The id of the root recording; None if not recorded yet."""
    task: str
    model: str | None
    wanted: int | None
    """Number of planned runs; None if unknown before it is recorded."""
    done: int = 0
    beyond: int = 0
    """Number of runs outside the plan."""

    @property
    def is_complete(self) -> bool:
        """Whether all of its runs are done."""
        return self.wanted is not None and self.done >= self.wanted


def find_plan_units(campaign: Campaign, store: TraceStore) -> tuple[PlanUnit, ...]:
    """Return the units of a campaign, one for each source, in their order."""
    done = find_completed_runs(store, campaign.name)
    with store.open_locked() as connection:
        roots = dict(connection.execute("SELECT trajectory_id, root_id FROM roots").fetchall())
    return tuple(_make_plan_unit(campaign, source, done, roots) for source in campaign.sources)


def load_planned_campaign(store: TraceStore, name: str) -> Campaign | None:
    """Load the campaign with the plan of its last session; None if the name is unknown."""
    plan = CampaignFolder.load_plan(store, name)
    return parse_campaign(*plan) if plan else None


def _make_plan_unit(
    campaign: Campaign, source: TraceSource, done: CompletedRuns, roots: Mapping[str, str]
) -> PlanUnit:
    path = source.tape or done.recordings.get(source.key)
    model = source.practice.model if source.practice else None
    if path is None:
        return PlanUnit(root=None, task=source.name, model=model, wanted=None)
    return _make_recording_unit(campaign, source, path, done, roots)


def _make_recording_unit(
    campaign: Campaign,
    source: TraceSource,
    path: Path,
    done: CompletedRuns,
    roots: Mapping[str, str],
) -> PlanUnit:
    tape = read_tape(path)
    run = tape.trajectory
    world = campaign.reset is not None or source.practice is not None
    cells = {
        cell.address
        for cell in build_run_matrix(campaign, tape, derive_tape_steps(tape), world=world).cells
    }
    run_cells = {cell for parent, cell in done.runs if parent == run.id}
    return PlanUnit(
        root=roots.get(run.id, run.parent or run.id),
        task=run.task or source.name,
        model=source.practice.model if source.practice else run.model,
        wanted=len(cells),
        done=len(cells & run_cells),
        beyond=len(run_cells - cells),
    )


def order_plan_roots(
    units: Iterable[PlanUnit], by_task: bool
) -> tuple[tuple[str | None, bool], ...]:
    """Return roots or tasks in the order of the plan, each with whether it is complete."""
    groups: dict[str, list[PlanUnit]] = {}
    for number, unit in enumerate(units):
        name = unit.task if by_task else unit.root or f"?{number}"
        groups.setdefault(name, []).append(unit)
    return tuple((name, all(u.is_complete for u in group)) for name, group in groups.items())


def count_leading_complete(order: Sequence[tuple[str | None, bool]]) -> int:
    """Count the complete ones before the first that is not."""
    return next((n for n, (_, complete) in enumerate(order) if not complete), len(order))


def compute_look_sizes(fractions: Sequence[float], planned: int) -> tuple[int, ...]:
    """Return the number of roots at each look, rising; looks at the same number are one."""
    sizes = (max(1, math.ceil(fraction * planned - 1e-9)) for fraction in fractions)
    return tuple(dict.fromkeys(sizes)) if planned else ()


def describe_missing_runs(units: Sequence[PlanUnit]) -> str | None:
    """Describe the missing runs of a plan; None if it is complete."""
    unrecorded = sum(unit.wanted is None for unit in units)
    counts = Counter[str]()
    for unit in units:
        counts["wanted"] += unit.wanted or 0
        counts["done"] += unit.done
    missing = counts["wanted"] - counts["done"]
    if not unrecorded and not missing:
        return None
    text = f"{counts['done']:,} of {counts['wanted']:,} runs are done"
    return text + (f", and {unrecorded} traces are not recorded yet" if unrecorded else "")
