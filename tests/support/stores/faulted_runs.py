"""Faulted runs of a store, described by one word each: the injection and the outcome."""

from tests.support.stores.in_memory_relations import (
    Sql,
    fill,
)

type Strike = dict[str, object]


def strike(**told: object) -> Strike:
    """Return a fault that was consumed and recovered from, with these fields changed."""
    usual = {"op": "e1", "trace": "a", "model": "m", "world": "fresh", "consumed": True}
    usual |= {"class": "recovered", "noticed": True, "baseline_valid": True, "ended": "final"}
    return usual | told


def absorbed(**told: object) -> Strike:
    return strike(consumed=False, unreached_reason="absorbed", **{"class": "unreached"}) | told


def store(sql: Sql, injections: list[Strike]) -> None:
    """Write one faulted run per strike."""
    ids = [{"injection_id": f"i{k}", "trajectory_id": f"t{k}"} for k in range(len(injections))]
    told = [each | ids[k] for k, each in enumerate(injections)]
    injection = (
        "injection_id",
        "trajectory_id",
        "op",
        "place",
        "persist",
        "detect",
        "sham",
        "step",
    )
    ending = ("consumed", "unreached_reason")
    outcome = (
        "injection_id",
        "class",
        "noticed",
        "baseline_valid",
        "judge_version",
        "passed",
        "claims_success",
        "told_wrong",
        "noticeable",
        "first_use_step",
        "steps_after",
    )
    run = (
        "trajectory_id",
        "model",
        "world",
        "ended",
        "condition",
        "passed",
        "task",
        "scenario",
        "verifier",
    )
    fill(sql, "injections", [only(each, injection + ending) for each in told])
    fill(sql, "outcomes", [{"judge_version": 1} | only(each, outcome) for each in told])
    fill(sql, "trajectories", [only(each, run) | {"parent_id": each["trace"]} for each in told])


def only(told: Strike, names: tuple[str, ...]) -> Strike:
    return {name: told[name] for name in names if name in told}
