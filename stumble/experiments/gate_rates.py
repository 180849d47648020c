"""The rates of a store that a gate compares with limits."""

from collections.abc import Mapping
from copy import replace

from msgspec import convert

from stumble.experiments.unfinished_plans import find_unfinished_plans
from stumble.gate.limits import GateRate
from stumble.report.model import AgentKey
from stumble.store.filter import fetch_question_rows
from stumble.verdicts.run_labels import check_label_ids
from traces.store.trace_store import TraceStore


def fetch_gate_rates(
    store: TraceStore,
    *,
    confidence: float,
    labels: str | None = None,
    which: Mapping[str, str | None],
) -> tuple[GateRate, ...]:
    """Ask the question `gate`; an agent whose sealed plan is not finished has no bounds.

    `which` are its other parameters by name.
    """
    with store.open_locked() as connection:
        if labels is not None:
            check_label_ids(connection, labels)
        rows = fetch_question_rows(
            connection, "gate", confidence=confidence, labels=labels, **which
        )
    unfinished = find_unfinished_plans(store, which.get("campaign"))
    return tuple(_blank_unfinished_bounds(convert(row, GateRate), unfinished) for row in rows)


def _blank_unfinished_bounds(rate: GateRate, unfinished: Mapping[AgentKey, str]) -> GateRate:
    why = unfinished.get((rate.agent, rate.model, rate.world))
    if why is None:
        return rate
    return replace(
        rate,
        lo=None,
        hi=None,
        known_lo=None,
        known_hi=None,
        judge_error=None,
        reason="unfinished_plan",
        next_step=why,
    )
