"""Unfinished sealed campaigns, whose rates would be of an arbitrary part of the plan."""

from collections.abc import Mapping

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
    if not sealed:
        return {}
    # It loads what runs campaigns: a second, which a store without a seal does not need.
    from stumble.experiments.plan_completion import describe_missing_plan

    unfinished: dict[AgentKey, str] = {}
    missing: dict[str, str | None] = {}
    for name, agent, model, world in sealed:
        if name not in missing:
            missing[name] = describe_missing_plan(store, name)
        if why := missing[name]:
            unfinished[agent, model, world] = why
    return unfinished
