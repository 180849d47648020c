"""`leaderboard`: pipeline scores beside recovery, each agent and model once."""

from collections.abc import Iterator

import pytest

from tests.support.stores.in_memory_relations import (
    Sql,
    answers,
    empty,
    fill,
    near,
    one,
)
from tests.support.stores.pipeline_runs import (
    Known,
    board,
)


@pytest.fixture
def sql(filled: Sql) -> Sql:
    fill(filled, "injections", ())
    fill(filled, "outcomes", ())
    return filled


@pytest.fixture(scope="module")
def filled() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


@pytest.mark.gate
def test_one_run_has_its_figures_and_no_interval(sql: Sql) -> None:
    board(sql, [100, 100, 80, 100, 50, 0])
    found = one(sql, "FROM leaderboard")
    run = one(sql, "FROM pipeline_runs")
    figures = ("mr", "mr_a", "pl", "pass_score", "tier", "cost_usd", "seconds", "t2")
    assert {name: found[name] for name in figures} == {name: run[name] for name in figures}
    assert (found["mr_lo"], found["mr_hi"], found["mr_reason"]) == (None, None, "one_run")
    assert (found["tier_lo"], found["tier_hi"], found["runs"]) == (1, 1, 1)


@pytest.mark.gate
def test_several_runs_have_an_interval_over_runs(sql: Sql) -> None:
    board(sql, [100] * 6, [100] * 5 + [50], [100] * 4 + [50, 50], told={"model": "m"})
    found = one(sql, "FROM leaderboard")
    each = [float(str(row["mr"])) for row in answers(sql, "SELECT mr FROM pipeline_runs")]
    mean = sum(each) / 3
    error = (sum((x - mean) ** 2 for x in each) / 2 / 3) ** 0.5
    assert found["mr"] == near(mean)
    assert found["mr_lo"] == near(mean - 4.3026527297495 * error)
    assert found["mr_hi"] == 100
    assert (found["tier"], found["tier_lo"], found["tier_hi"]) == (4, 3, 5)
    assert (found["cost_usd"], found["cost_usd_lo"], found["cost_usd_reason"]) == (
        1,
        None,
        "all_alike",
    )


@pytest.mark.gate
def test_modes_and_cohorts_are_kept_apart(sql: Sql) -> None:
    board(sql, [100] * 6, [0] * 6, told={"model": "m"})
    sql.execute("UPDATE stages SET mode = 'guided' WHERE trajectory_id = 'p0'")
    assert [row["mr"] for row in answers(sql, "FROM leaderboard ORDER BY mode")] == [near(100), 0]


@pytest.mark.gate
@pytest.mark.parametrize("told", [{"source": "replay"}, {"condition": "clean", "forked_at": "x"}])
def test_a_replay_and_a_clean_twin_are_no_further_runs(sql: Sql, told: Known) -> None:
    board(sql, [100] * 6, told=told)
    assert answers(sql, "FROM leaderboard") == []


@pytest.mark.gate
def test_a_run_that_was_struck_is_told_apart(sql: Sql) -> None:
    board(sql, [100] * 6, [0] * 6, [50] * 6, [60] * 6, told={"model": "m"})
    sql.execute("UPDATE trajectories SET condition = 'fault' WHERE trajectory_id != 'p0'")
    sql.execute("UPDATE trajectories SET source = 'replay' WHERE trajectory_id = 'p3'")
    injected = [
        {"injection_id": f"i{k}", "trajectory_id": f"p{k}", "op": "e1", "consumed": True}
        for k in (1, 3)
    ]
    missed = {
        "injection_id": "i2",
        "trajectory_id": "p2",
        "op": "e1",
        "unreached_reason": "no_site",
    }
    fill(sql, "injections", [*injected, missed])
    found = one(sql, "FROM leaderboard")
    assert (found["mr"], found["runs"]) == (near(100), 1)
    assert (found["mr_faulted"], found["runs_faulted"]) == (0, 1), "no miss, and nothing twice"


@pytest.mark.gate
def test_the_index_is_against_the_own_cohort_with_its_maxima(sql: Sql) -> None:
    board(sql, [100, 100, 0, 0, 0, 0], [100] * 6)
    found = answers(sql, "FROM leaderboard ORDER BY model")
    assert [each["aei_cohort"] for each in found] == ["c", "c"]
    most = {"tier": 5, "mr": near(100), "seconds": 10, "cost_usd": 1, "tokens": 100}
    assert (found[0]["aei_runs"], found[0]["aei_most"]) == (2, most)
    mr = 1.2 * 300 / (1.2 * 5 + 10)
    assert [each["aei"] for each in found] == [near((100 * 1 / 5 + mr) / 5), near(40)]


@pytest.mark.gate
def test_a_run_of_no_cohort_stands_beside_the_paper_or_has_no_index(sql: Sql) -> None:
    board(sql, [100] * 6, [100] * 6)
    sql.execute("UPDATE trajectories SET cohort = NULL WHERE trajectory_id = 'p0'")
    alone = one(sql, "FROM leaderboard WHERE model = 'm0'")
    assert (alone["aei"], alone["aei_reason"], alone["aei_cohort"]) == (None, "no_cohort", None)
    indexes = alone["indexes"]
    assert isinstance(indexes, list)
    assert [(each["cohort"], each["aei"]["mean"]) for each in indexes] == [("c", near(40))]
    sql.execute("UPDATE trajectories SET cohort = 'paper' WHERE cohort = 'c'")
    beside = one(sql, "FROM leaderboard WHERE model = 'm0'")
    assert (beside["aei"], beside["aei_cohort"], beside["aei_runs"]) == (near(40), "paper", 1)


def strike(sql: Sql, agents: str, worlds: str = "f") -> None:
    """The model m0 recovers from one of two faults in each agent's hands, in each world."""
    had = sql.execute("SELECT * EXCLUDE recorded_at FROM trajectories").fetchall()
    names = [column[0] for column in sql.description or ()]
    runs: list[Known] = [dict(zip(names, each, strict=True)) for each in had]
    faults = [(f"{a}{w}{k}", a, w, k) for a in agents for w in worlds for k in range(2)]
    for name, agent, world, _ in faults:
        runs.append({"trajectory_id": name, "agent": agent, "model": "m0", "world": world})
    fill(sql, "trajectories", runs)
    injected = [
        {"injection_id": i, "trajectory_id": i, "op": "e1", "detect": "D0", "consumed": True}
        for i, *_ in faults
    ]
    fill(sql, "injections", injected)
    classes = ("recovered", "crashed")
    fill(
        sql,
        "outcomes",
        [{"injection_id": i, "class": classes[k], "baseline_valid": True} for i, *_, k in faults],
    )


@pytest.mark.gate
def test_recovery_of_the_same_agent_and_model_stands_beside_its_scores(sql: Sql) -> None:
    board(sql, [100] * 6, [100] * 6)
    strike(sql, "a")
    found = answers(sql, "FROM leaderboard ORDER BY model")
    assert [each["recovery_rate"] for each in found] == [0.5, None]
    assert [each["silent_rate"] for each in found] == [0, None]
    assert [each["recovery_rate_reason"] for each in found] == ["few_traces", "not_faulted"]
    assert [each["measured_in"] for each in found] == [["a in f"], None]
    assert found[0]["survival_20_reason"] == "no_clean_runs"


@pytest.mark.gate
def test_another_agent_with_the_same_model_has_a_row_of_its_own(sql: Sql) -> None:
    board(sql, [100] * 6)
    strike(sql, "ab")
    found = answers(sql, "FROM leaderboard ORDER BY agent")
    assert [(each["agent"], each["mr"]) for each in found] == [("a", near(100)), ("b", None)]
    assert [each["recovery_rate"] for each in found] == [0.5, 0.5]
    assert (found[1]["mr_reason"], found[1]["runs"]) == ("no_pipeline", 0)


@pytest.mark.gate
def test_recovery_in_two_worlds_is_not_pooled(sql: Sql) -> None:
    board(sql, [100] * 6)
    strike(sql, "a", "fn")
    found = one(sql, "FROM leaderboard")
    assert (found["recovery_rate"], found["recovery_rate_reason"]) == (None, "several_worlds")
    assert found["measured_in"] == ["a in f", "a in n"]


@pytest.mark.gate
def test_runs_of_sandboxes_that_were_not_proved_are_ranked_apart(sql: Sql) -> None:
    board(sql, [100] * 6, [90] * 6, [80] * 6, [70] * 6, told={"model": "m"})
    sql.execute("UPDATE stages SET sandbox = 'process', seen = '[]', outcome = 'pass'")
    sql.execute("""UPDATE stages SET seen = '["x"]' WHERE trajectory_id = 'p1' AND stage = 'T3'""")
    sql.execute("UPDATE stages SET seen = NULL WHERE trajectory_id = 'p2' AND stage = 'T3'")
    sql.execute(
        "UPDATE stages SET seen = NULL, outcome = 'not_attempted' "
        "WHERE trajectory_id = 'p3' AND stage = 'T5'"
    )
    verified = answers(sql, "SELECT verified FROM pipeline_runs ORDER BY trajectory_id")
    assert [row["verified"] for row in verified] == [True, False, False, True]
    ranked = answers(sql, "SELECT verified, runs FROM leaderboard ORDER BY verified")
    assert [(row["verified"], row["runs"]) for row in ranked] == [(False, 2), (True, 2)]
