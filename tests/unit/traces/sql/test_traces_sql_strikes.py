"""`strikes`: one row per fault of a fork, however often it struck, and none for a replay."""

import pytest

from tests.stored import answers, empty, fill, one

RUN = {"trajectory_id": "t", "parent_id": "a", "model": "m", "ended": "final", "source": "fork"}
STRUCK = {"trajectory_id": "t", "op": "http_status", "consumed": True, "sham": False}
VERDICT = {"class": "recovered", "noticed": True, "baseline_valid": True, "judge_version": 1}


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
        found = one(sql, "SELECT count(*) AS n, count(*) FILTER (judged) AS judged FROM strikes")
        assert found == {"n": fired, "judged": fired}
        assert one(sql, "SELECT sum(fired) AS n FROM recovery")["n"] == (fired or None)


@pytest.mark.parametrize("ended", ["harness", "diverged", "replay_miss"])
def test_a_run_that_was_cut_off_is_censored_and_not_a_failure(ended: str) -> None:
    """Its agent had no chance to do anything about the fault."""
    with empty() as sql:
        fill(sql, "trajectories", [RUN | {"ended": ended, "world": "recorded"}])
        fill(sql, "injections", [STRUCK | {"injection_id": "t/1"}])
        fill(sql, "outcomes", [VERDICT | {"injection_id": "t/1", "class": "crashed"}])
        facts = one(sql, "SELECT state, judged, settled FROM strikes")
        assert facts == {"state": "consumed", "judged": False, "settled": False}
        rates = one(sql, "SELECT fired, judged, excluded, handled_rate FROM recovery")
        assert rates == {"fired": 1, "judged": 0, "excluded": 1, "handled_rate": None}


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
