"""`strikes`: one row per fault of a fork, however often it struck, and none for a replay."""

import pytest

from tests.stored import empty, fill, one

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
