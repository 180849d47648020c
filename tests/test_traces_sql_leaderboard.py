"""`leaderboard`: pipeline scores by the published rules, beside recovery."""

from collections.abc import Iterator

import pytest

from tests.stored import Sql, answers, empty, fill, near, one

type Known = dict[str, object]


@pytest.fixture
def sql(filled: Sql) -> Sql:
    fill(filled, "injections", ())
    fill(filled, "outcomes", ())
    return filled


@pytest.fixture(scope="module")
def filled() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def board(sql: Sql, *scores: list[float | None], **told: object) -> None:
    """One pipeline run per list of scores, all in one cohort."""
    usual: Known = {"agent": "a", "condition": "clean", "cohort": "c", "world": "fresh"}
    usual |= {"seconds": 10.0, "cost_usd": 1.0, "tokens": 100}
    each = [usual | {"trajectory_id": f"p{k}", "model": f"m{k}"} | told for k in range(len(scores))]
    fill(sql, "trajectories", each)
    stages = [
        {"trajectory_id": f"p{k}", "stage": f"T{number}", "score": score}
        for k, row in enumerate(scores)
        for number, score in enumerate(row)
    ]
    fill(sql, "stages", stages)


def test_a_bonus_is_lost_after_the_first_stage_that_is_not_full(sql: Sql) -> None:
    board(sql, [100, 100, 80, 100, 50, 0])
    found = one(sql, "FROM leaderboard")
    full, rest = 1.2 * (1 + 2 + 2), 3 + 3 + 4
    earned = 1.2 * (100 * 1 + 100 * 2 + 80 * 2) + 100 * 3 + 50 * 3
    assert found["mr"] == near(earned / (full + rest))
    assert found["pass_score"] == near(100 * (1.5 * 3 + 1) / 9)
    assert (found["pl"], found["tier"]) == (near(430 / 6), 1)
    assert found["e2e_strict"] == near(200 / 6)


def test_a_perfect_run_is_a_hundred_in_everything(sql: Sql) -> None:
    board(sql, [100] * 6)
    found = one(sql, "FROM leaderboard")
    assert [found[name] for name in ("pl", "mr", "pass_score", "e2e_strict")] == [near(100)] * 4
    assert (found["tier"], found["zero_shot_pass"]) == (5, True)


def test_the_last_stage_may_fall_short_and_the_fourth_need_only_pass(sql: Sql) -> None:
    board(sql, [100, 100, 100, 100, 68.4, 100])
    assert one(sql, "SELECT e2e_strict FROM leaderboard")["e2e_strict"] == near(568.4 / 6)


def test_a_stage_that_was_not_run_scores_nothing(sql: Sql) -> None:
    board(sql, [100, 100, 30])
    found = one(sql, "FROM leaderboard")
    assert (found["pl"], found["zero_shot_pass"]) == (near(230 / 6), False)
    assert found["mr"] == near(1.2 * (100 + 200 + 60) / (1.2 * 5 + 10))


def test_an_unknown_score_makes_the_means_unknown(sql: Sql) -> None:
    board(sql, [100, 100, 80, None, 50, 70])
    found = one(sql, "FROM leaderboard")
    assert [found[name] for name in ("pl", "mr", "pass_score", "aei")] == [None] * 4
    assert (found["pl_known"], found["tier"]) == (80, 1)


def test_efficiency_is_against_the_maxima_of_the_cohort(sql: Sql) -> None:
    board(sql, [100, 100, 0, 0, 0, 0], [100] * 6)
    fill(
        sql,
        "trajectories",
        [
            {"trajectory_id": "p0", "cohort": "c", "seconds": 5, "cost_usd": 2, "tokens": 0},
            {"trajectory_id": "p1", "cohort": "c", "seconds": 20, "cost_usd": 8, "tokens": 9},
        ],
    )
    mr = 1.2 * 300 / (1.2 * 5 + 10)
    found = answers(sql, "FROM leaderboard ORDER BY trajectory_id")
    assert found[0]["aei"] == near((100 * 1 / 5 + mr + 75 + 75 + 100) / 5)
    assert found[1]["aei"] == near(40)


@pytest.mark.parametrize("told", [{"cohort": None}, {"cost_usd": None}, {"tokens": None}])
def test_there_is_no_efficiency_without_a_cohort_or_a_cost(sql: Sql, told: Known) -> None:
    board(sql, [100] * 6, **told)
    found = one(sql, "FROM leaderboard")
    assert (found["aei"], found["mr"]) == (None, near(100))


def test_a_cohort_in_which_nobody_gets_anywhere_has_no_tier_to_share(sql: Sql) -> None:
    board(sql, [50, 0, 0, 0, 0, 0], [0] * 6)
    found = answers(sql, "SELECT tier, aei FROM leaderboard ORDER BY trajectory_id")
    assert [each["tier"] for each in found] == [-1, -1]
    assert [each["aei"] for each in found] == [near(100 / 5), 0]


def strike(sql: Sql, agents: str) -> None:
    """The model m0 recovers from one of two faults in each agent's hands."""
    had = sql.execute("SELECT * EXCLUDE recorded_at FROM trajectories").fetchall()
    names = [column[0] for column in sql.description or ()]
    runs: list[Known] = [dict(zip(names, each, strict=True)) for each in had]
    faults = [(f"{agent}{k}", agent, k) for agent in agents for k in range(2)]
    for name, agent, _ in faults:
        runs.append({"trajectory_id": name, "agent": agent, "model": "m0", "world": "fresh"})
    fill(sql, "trajectories", runs)
    fill(
        sql,
        "injections",
        [
            {"injection_id": i, "trajectory_id": i, "op": "e1", "consumed": True}
            for i, _, _ in faults
        ],
    )
    fill(
        sql,
        "outcomes",
        [
            {"injection_id": i, "class": ("recovered", "crashed")[k], "baseline_valid": True}
            for i, _, k in faults
        ],
    )


def test_recovery_of_the_same_model_stands_beside_its_scores(sql: Sql) -> None:
    board(sql, [100] * 6, [100] * 6)
    strike(sql, "a")
    found = answers(sql, "FROM leaderboard ORDER BY trajectory_id")
    assert [each["recovery_rate"] for each in found] == [0.5, None]
    assert [each["measured_in"] for each in found] == [["a in fresh"], None]


def test_recovery_in_two_agents_is_not_pooled(sql: Sql) -> None:
    board(sql, [100] * 6)
    strike(sql, "ab")
    found = one(sql, "FROM leaderboard")
    assert found["recovery_rate"] is None
    assert isinstance(found["measured_in"], list)
    assert sorted(found["measured_in"]) == ["a in fresh", "b in fresh"]
