"""Whether a sealed campaign is complete, or decided."""

from scenarios.toml_reader import ScenarioError
from stumble.errors import UsageError
from stumble.experiments.gate_comparison import GateRequest, compare_candidates
from stumble.experiments.noninferiority.arm_pairs import ArmFilter
from stumble.experiments.noninferiority.comparison import combine_answers
from stumble.experiments.seals.plan_progress import (
    describe_missing_runs,
    find_plan_units,
    load_planned_campaign,
)
from traces.store.trace_store import TraceStore


def describe_missing_plan(store: TraceStore, campaign: str) -> str | None:
    """Describe the missing runs of a campaign; None if it is complete or decided."""
    go_on = f"go on with stumble campaign {campaign}"
    try:
        planned = load_planned_campaign(store, campaign)
        missing = describe_missing_runs(find_plan_units(planned, store)) if planned else None
    except (ScenarioError, UsageError, OSError) as error:
        return f"the plan of the sealed campaign {campaign} cannot be read here: {error}"
    if missing is None or _is_decided(store, campaign):
        return None
    return f"the sealed campaign {campaign} is not finished: {missing}; {go_on}"


def _is_decided(store: TraceStore, campaign: str) -> bool:
    """Whether one of its looks has decided, which ends a sealed campaign early."""
    try:
        comparisons = compare_candidates(store, GateRequest(wanted=ArmFilter(campaign=campaign)))
    except (ScenarioError, UsageError):
        return False
    return combine_answers(comparisons) in ("pass", "fail")
