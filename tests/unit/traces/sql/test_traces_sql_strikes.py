"""`strikes`: one row per fault of a fork, however often it struck, and none for a replay."""

import pytest

from tests.support.stores.in_memory_relations import (
    answers,
    empty,
    fill,
    one,
)
from traces.store.sql import run_question

RUN = {"trajectory_id": "t", "parent_id": "a", "model": "m", "ended": "final", "source": "fork"}
STRUCK = {"trajectory_id": "t", "op": "http_status", "consumed": True, "sham": False}
VERDICT = {"class": "recovered", "noticed": True, "baseline_valid": True, "judge_version": 1}


@pytest.mark.gate
@pytest.mark.parametrize(
    ("source", "repeats", "fired"), [("fork", 0, 1), ("fork", 4, 1), ("replay", 0, 0)]
)
def test_a_fault_of_a_fork_counts_once(source: str, repeats: int, fired: int) -> None:
    ids = [f"t/{n}" for n in range(1, repeats + 2)]
    firsts = [None] + ["t/1"] * repeats
    with empty() as sql:
        fill(sql, "trajectories", [RUN | {"source": source}])
        struck = zip(ids, firsts, strict=True)
        fill(sql, "injections", [STRUCK | {"injection_id": i, "repeat_of": r} for i, r in struck])
        fill(sql, "outcomes", [VERDICT | {"injection_id": id} for id in ids])
        found = one(
            sql, "SELECT count(*) AS n, count(*) FILTER (judged) AS judged FROM judged_injections"
        )
        assert found == {"n": fired, "judged": fired}
        assert one(sql, "SELECT sum(fired) AS n FROM recovery")["n"] == (fired or None)


@pytest.mark.gate
@pytest.mark.parametrize("ended", ["harness", "diverged", "replay_miss"])
def test_a_run_that_was_cut_off_is_censored_and_not_a_failure(ended: str) -> None:
    """Its agent had no chance to do anything about the fault."""
    with empty() as sql:
        fill(sql, "trajectories", [RUN | {"ended": ended, "world": "recorded"}])
        fill(sql, "injections", [STRUCK | {"injection_id": "t/1"}])
        fill(sql, "outcomes", [VERDICT | {"injection_id": "t/1", "class": "crashed"}])
        facts = one(sql, "SELECT state, judged, settled FROM judged_injections")
        assert facts == {"state": "consumed", "judged": False, "settled": False}
        rates = one(sql, "SELECT fired, judged, excluded, handled_rate FROM recovery")
        assert rates == {"fired": 1, "judged": 0, "excluded": 1, "handled_rate": None}


def test_the_outcome_of_several_faults_in_one_run_is_charged_to_none_of_them() -> None:
    """A delay is not to blame for what a wrong digit did; a sham and a repeat are no second one."""
    ops = {"t/1": "delay", "t/2": "digit", "u/1": "digit", "u/2": "digit", "u/3": "sham"}
    with empty() as sql:
        fill(sql, "trajectories", [RUN | {"trajectory_id": id} for id in "tu"])
        fill(
            sql,
            "injections",
            [
                STRUCK
                | {"injection_id": id, "trajectory_id": id[0], "op": op, "sham": op == "sham"}
                | {"repeat_of": "u/1" if id == "u/2" else None}
                for id, op in ops.items()
            ],
        )
        verdict = VERDICT | {"class": "silent_wrong", "noticed": False}
        fill(sql, "outcomes", [verdict | {"injection_id": id} for id in ops])
        found = answers(
            sql, "SELECT op, fired, judged, silent_rate, several_faults FROM recovery ORDER BY op"
        )
        reasons = answers(
            sql, "SELECT DISTINCT excluded FROM judged_injections WHERE several_faults"
        )
    assert found == [
        {"op": "delay", "fired": 1, "judged": 0, "silent_rate": None, "several_faults": 1},
        {"op": "digit", "fired": 2, "judged": 1, "silent_rate": 1.0, "several_faults": 1},
    ]
    assert reasons == [{"excluded": "several_faults"}]


def test_several_faults_have_one_outcome_together() -> None:
    ops = {"t/1": "delay", "t/2": "digit"}
    with empty() as sql:
        fill(sql, "trajectories", [RUN])
        fill(sql, "injections", [STRUCK | {"injection_id": id, "op": op} for id, op in ops.items()])
        fill(
            sql,
            "outcomes",
            [
                VERDICT | {"injection_id": "t/1", "class": "unreached", "noticed": None},
                VERDICT | {"injection_id": "t/2", "class": "silent_wrong", "noticed": False},
            ],
        )
        answer = run_question(sql, "fault_sets")
        names = [column[0] for column in answer.description or ()]
        [row] = [dict(zip(names, values, strict=True)) for values in answer.fetchall()]
    assert (row["faults"], row["class"], row["runs"]) == (["delay", "digit"], "silent_wrong", 1)


def test_tries_of_shrink_enter_no_rate() -> None:
    """They were chosen because they break the run."""
    with empty() as sql:
        runs = {"t": "fault", "u": "shrink"}
        fill(
            sql,
            "trajectories",
            [RUN | {"trajectory_id": id, "condition": said} for id, said in runs.items()],
        )
        ids = {id: f"{id}/1" for id in runs}
        fill(
            sql,
            "injections",
            [STRUCK | {"trajectory_id": id, "injection_id": ids[id]} for id in runs],
        )
        fill(sql, "outcomes", [VERDICT | {"injection_id": id} for id in ids.values()])
        assert answers(sql, "SELECT trajectory_id FROM judged_injections") == [
            {"trajectory_id": "t"}
        ]
        assert one(sql, "SELECT fired, judged FROM recovery") == {"fired": 1, "judged": 1}


@pytest.mark.gate
@pytest.mark.parametrize(
    ("told", "ended", "handled"),
    [({}, "final", 1.0), ({"passed": False}, "final", 0.0), ({}, "budget", 0.0)],
)
def test_a_retry_that_pays_twice_or_never_ends_handled_nothing(
    told: dict[str, object], ended: str, handled: float
) -> None:
    """The client hid the fault from the model, and the run ended wrong for it."""
    absorbed = {"consumed": False, "unreached_reason": "absorbed", "injection_id": "t/1"}
    with empty() as sql:
        fill(sql, "trajectories", [RUN | {"ended": ended}])
        fill(sql, "injections", [STRUCK | absorbed])
        fill(sql, "outcomes", [VERDICT | {"injection_id": "t/1", "class": "unreached"} | told])
        assert one(sql, "SELECT handled_rate FROM recovery") == {"handled_rate": handled}


@pytest.mark.gate
@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({}, None),
        ({"baseline_valid": None, "twins": [*"ab"]}, "few_twins"),
        ({"noticed": None, "class": None, "twins": [*"ab"]}, "few_twins"),
        ({"baseline_valid": None, "twins": [*"abc"]}, "baseline_unknown"),
        ({"baseline_valid": False, "twins": [*"ab"]}, "baseline_failed"),
        ({"class": None}, "no_verdict"),
    ],
)
def test_what_no_rate_counts_has_its_reason(told: dict[str, object], reason: str | None) -> None:
    with empty() as sql:
        fill(sql, "trajectories", [RUN])
        fill(sql, "injections", [STRUCK | {"injection_id": "t/1"}])
        fill(sql, "outcomes", [VERDICT | {"injection_id": "t/1", "twins": [*"abc"]} | told])
        assert one(sql, "SELECT excluded FROM judged_injections") == {"excluded": reason}


def test_worlds_are_never_pooled() -> None:
    with empty() as sql:
        worlds = {"t": "fresh", "u": "recorded"}
        fill(
            sql,
            "trajectories",
            [RUN | {"trajectory_id": id, "world": world} for id, world in worlds.items()],
        )
        fill(
            sql,
            "injections",
            [STRUCK | {"trajectory_id": id, "injection_id": f"{id}/1"} for id in worlds],
        )
        fill(sql, "outcomes", [VERDICT | {"injection_id": f"{id}/1"} for id in worlds])
        for view in ("recovery", "recovery_by_site"):
            found = answers(sql, f"SELECT world, fired FROM {view} ORDER BY world")
            assert found == [{"world": "fresh", "fired": 1}, {"world": "recorded", "fired": 1}]


def test_defect_4_nothing_of_nothing_is_unknown_and_so_is_more_than_there_is() -> None:
    """0/0 was published as a recovery of 1.0, and passing 5 of 3 times as 0."""
    with empty() as sql:
        fill(sql, "trajectories", [RUN])
        fill(sql, "injections", [STRUCK | {"injection_id": "t/1", "consumed": False}])
        rates = one(sql, "SELECT recovery_rate, silent_rate, recovery_given_notice FROM recovery")
        assert set(rates.values()) == {None}
        assert one(sql, "SELECT pass_hat_k(3, 3, 5) AS hat, pass_at_k(3, 3, 5) AS any_of") == {
            "hat": None,
            "any_of": None,
        }
