"""Pipeline runs built by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from tests.support.stores.in_memory_relations import (
    Sql,
    fill,
)
from traces.store.schema import make_relation_row, make_relation_table
from traces.store.trace_store import TraceStore

type Known = dict[str, object]

STAGES = tuple(f"T{k}" for k in range(6))


def board(
    sql: Sql,
    *scores: Sequence[float | None],
    stages: Sequence[Mapping[str, object]] = ({},) * 6,
    told: Mapping[str, object] = MappingProxyType({}),
    workload: str = "ramp",
) -> None:
    """Write one clean pipeline run per list of scores, all in one cohort, each of another model."""
    usual = {
        "agent": "a",
        "condition": "clean",
        "cohort": "c",
        "world": "fresh",
        "seconds": 10.0,
        "cost_usd": 1.0,
        "tokens": 100,
    }
    each: list[Known] = [
        usual | {"trajectory_id": f"p{k}", "model": f"m{k}"} | dict(told)
        for k in range(len(scores))
    ]
    fill(sql, "trajectories", each)
    fill(
        sql,
        "stages",
        [
            {"trajectory_id": f"p{k}", "stage": stage, "score": score, "workload": workload, **more}
            for k, run in enumerate(scores)
            for stage, score, more in zip(STAGES, run, stages, strict=False)
        ],
    )


def stored(root: Path) -> TraceStore:
    """Return a store of one agent's guided and faulted runs, a run with a failed grader, and a
    starter's.
    """
    store = TraceStore(root)
    runs: Mapping[str, tuple[str, str, Sequence[float | None], float | None]] = {
        "one": ("shop/agent", "model-a", [100, 100, 90, 70, 40, 0], 0.40),
        "two": ("shop/agent", "model-a", [100, 100, 95, 30, 40, 10], 0.55),
        "three": ("shop/agent", "model-a", [100, 100, 100, 80, 65, 60], 0.90),
        "four": ("other", "model-b", [100, 80, None, 20, 30, 0], None),
    }
    for id, (agent, model, scores, cost) in runs.items():
        store.write(id, _run(id, agent, model, scores, cost))
    store.write(
        "struck", _run("struck", "shop/agent", "model-a", [100, 100, 20, 0, 0, 0], 0.2, struck=True)
    )
    store.write("idle", _run("idle", "starter", None, [100, 20, 20, 0, 30, 0], 0.0))
    return store


def _run(
    id: str,
    agent: str,
    model: str | None,
    scores: Sequence[float | None],
    cost: float | None,
    *,
    struck: bool = False,
) -> Mapping[str, pa.Table]:
    trajectory: Known = {
        "trajectory_id": id,
        "agent": agent,
        "model": model,
        "task": id,
        "condition": "fault" if struck else "clean",
        "world": "none",
        "seconds": 900.0,
        "cost_usd": cost,
        "tokens": 200_000,
        "prompt_tokens": 180_000,
        "cached_tokens": 90_000,
        "completion_tokens": 20_000,
        "reasoning_tokens": 0,
        "source": "fork" if struck else "record",
        "parent_id": "one" if struck else None,
        "forked_at": "x" if struck else None,
        "ended": "final",
    }
    stages = [
        {
            "trajectory_id": id,
            "stage": stage,
            "score": score,
            "passed": None if score is None else score >= 60,
            "provenance": "own",
            "outcome": "infrastructure_error" if score is None else "pass",
            "mode": "guided",
            "arm": "resurrect",
            "workload": "embedded",
            "failure": None
            if score is not None and score >= 60
            else "infrastructure"
            if score is None
            else "reasoning"
            if stage < "T4"
            else "context",
        }
        for stage, score in zip(STAGES, scores, strict=True)
    ]
    found = {
        "trajectories": make_relation_table(
            "trajectories", [make_relation_row("trajectories", trajectory)]
        ),
        "stages": make_relation_table(
            "stages", [make_relation_row("stages", each) for each in stages]
        ),
    }
    if struck:
        injection = {"injection_id": "i", "trajectory_id": id, "op": "e1", "consumed": True}
        verdict = {
            "injection_id": "i",
            "class": "recovered",
            "baseline_valid": True,
            "noticed": True,
        }
        found["injections"] = make_relation_table(
            "injections", [make_relation_row("injections", injection)]
        )
        found["outcomes"] = make_relation_table(
            "outcomes", [make_relation_row("outcomes", verdict)]
        )
    return found
