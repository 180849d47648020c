"""Pipeline runs filled by hand."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tests.stored import Sql, fill

type Known = dict[str, object]

STAGES = tuple(f"T{k}" for k in range(6))


def board(
    sql: Sql,
    *scores: Sequence[float | None],
    stages: Sequence[Mapping[str, object]] = ({},) * 6,
    told: Mapping[str, object] = MappingProxyType({}),
    workload: str = "ramp",
) -> None:
    """One clean pipeline run per list of scores, all in one cohort, each of another model."""
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
