"""Unfinished sealed campaigns, whose rates would be of an arbitrary part of the plan."""

from collections.abc import Mapping

from scenarios.toml_reader import ScenarioError
from stumble.cli.exit_codes import UsageError
from stumble.experiments.gate_comparison import GateRequest, compare_candidates
from stumble.experiments.noninferiority.arm_pairs import ArmFilter
from stumble.experiments.noninferiority.comparison import combine_answers
from stumble.experiments.seals.plan_progress import (
    describe_missing_runs,
    find_plan_units,
    load_planned_campaign,
)
from stumble.report.model import AgentKey
from traces.store.trace_store import TraceStore

_SEALED_CAMPAIGNS_SQL = """
    SELECT DISTINCT campaign, agent, model, world
    FROM trajectories
    WHERE coalesce(seal, '') != '' AND ($campaign IS NULL OR campaign = $campaign)
    ORDER BY ALL
"""


def find_unfinished_plans(store: TraceStore, campaign: str | None = None) -> Mapping[AgentKey, str]:
    """Find the agents with an unfinished sealed plan, each with a description and a remedy.

    Of one campaign, or of all in the store. Connections must not be nested: each holds a lock.
    """
    with store.open_locked() as connection:
        sealed = connection.execute(_SEALED_CAMPAIGNS_SQL, {"campaign": campaign}).fetchall()
    unfinished: dict[AgentKey, str] = {}
    missing: dict[str, str | None] = {}
    for name, agent, model, world in sealed:
        if name not in missing:
            missing[name] = _describe_missing_plan(store, name)
        if why := missing[name]:
            unfinished[agent, model, world] = why
    return unfinished


def _describe_missing_plan(store: TraceStore, campaign: str) -> str | None:
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
