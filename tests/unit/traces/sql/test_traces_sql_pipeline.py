"""`pipeline_runs`, `efficiency` and `completion`: pipeline scores by the published rules."""

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


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def test_a_bonus_is_lost_after_the_first_stage_that_is_not_full(sql: Sql) -> None:
    board(sql, [100, 100, 80, 100, 50, 0])
    found = one(sql, "FROM pipeline_runs")
    full, rest = 1.2 * (1 + 2 + 2), 3 + 3 + 4
    earned = 1.2 * (100 * 1 + 100 * 2 + 80 * 2) + 100 * 3 + 50 * 3
    assert found["mr"] == near(earned / (full + rest))
    assert found["pass_score"] == near(100 * (1.5 * 3 + 1) / 9)
    assert (found["pl"], found["tier"]) == (near(430 / 6), 1)
    assert found["e2e_strict"] == near(200 / 6)


def test_the_other_weights_are_those_of_the_code(sql: Sql) -> None:
    board(sql, [100, 100, 80, 100, 50, 0])
    found = one(sql, "FROM pipeline_runs")
    earned = 1.2 * (100 * 1 + 100 * 4 + 80 * 4) + 100 * 3 + 50 * 6
    assert found["mr_a"] == near(earned / (1.2 * 9 + 11))
    assert (found["mr_told"], found["mr_a_told"], found["pass_score_told"]) == (None, None, None)


def test_a_run_may_tell_itself_where_its_bonus_is_lost(sql: Sql) -> None:
    flags = [False, True, False, False, False, False]
    board(sql, [100, 100, 80, 100, 50, 0], stages=[{"resurrected": flag} for flag in flags])
    found = one(sql, "FROM pipeline_runs")
    bonused, plain = 100 + 80 * 4 + 100 * 3 + 50 * 6, 100 * 4
    assert found["mr_a_told"] == near((1.2 * bonused + plain) / (1.2 * 16 + 4))
    assert found["mr_told"] == near((1.2 * (100 + 80 * 2 + 300 + 150) + 200) / (1.2 * 13 + 2))
    assert found["pass_score_told"] == near(100 * (1.5 * 3 + 1) / 9)


def test_a_golden_artifact_costs_the_bonus_of_all_that_follows(sql: Sql) -> None:
    given: list[Known] = [{"provenance": word} for word in ["own"] * 2 + ["golden"] + ["own"] * 3]
    board(sql, [100, 50, 100, 100, 100, 100], stages=given)
    found = one(sql, "FROM pipeline_runs")
    assert found["mr_told"] == near((1.2 * (100 + 50 * 2) + 100 * 12) / (1.2 * 3 + 12))
    assert found["mr"] == near((1.2 * (100 + 50 * 2) + 100 * 12) / (1.2 * 3 + 12))
    assert found["pass_score_told"] == near(100 * (1.5 + 4) / 9)


def test_a_perfect_run_is_a_hundred_in_everything(sql: Sql) -> None:
    board(sql, [100] * 6)
    found = one(sql, "FROM pipeline_runs")
    figures = ("pl", "mr", "mr_a", "pass_score", "e2e_strict")
    assert [found[name] for name in figures] == [near(100)] * 5
    assert (found["tier"], found["zero_shot_pass"]) == (5, True)


def test_the_last_stage_may_fall_short_and_the_fourth_need_only_pass(sql: Sql) -> None:
    board(sql, [100, 100, 100, 100, 68.4, 100])
    assert one(sql, "SELECT e2e_strict FROM pipeline_runs")["e2e_strict"] == near(568.4 / 6)


def test_a_stage_that_was_not_run_scores_nothing(sql: Sql) -> None:
    board(sql, [100, 100, 30])
    found = one(sql, "FROM pipeline_runs")
    assert (found["pl"], found["zero_shot_pass"]) == (near(230 / 6), False)
    assert found["mr"] == near(1.2 * (100 + 200 + 60) / (1.2 * 5 + 10))
    assert found["mr_a"] == near(1.2 * (100 + 400 + 120) / (1.2 * 9 + 11))


def test_a_stage_that_was_passed_over_ends_the_row(sql: Sql) -> None:
    board(sql, [100] * 6)
    sql.execute("DELETE FROM stages WHERE stage = 'T1'")
    found = one(sql, "FROM pipeline_runs")
    assert (found["tier"], found["e2e_strict"]) == (0, near(100 / 6))
    assert found["mr"] == near((1.2 * 100 + 100 * 12) / (1.2 * 1 + 14))
    assert found["pass_score"] == near(100 * (1.5 + 4) / 9)


def test_an_unknown_score_makes_the_means_unknown(sql: Sql) -> None:
    board(sql, [100, 100, 80, None, 50, 70])
    found = one(sql, "FROM pipeline_runs")
    figures = ("pl", "mr", "mr_a", "pass_score", "gated_aei")
    assert [found[name] for name in figures] == [None] * 5
    assert (found["pl_known"], found["tier"]) == (80, 1)
    assert one(sql, "SELECT aei FROM efficiency") == {"aei": None}


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
    found = answers(sql, "FROM efficiency ORDER BY trajectory_id")
    assert found[0]["aei"] == near((100 * 1 / 5 + mr + 75 + 75 + 100) / 5)
    assert found[1]["aei"] == near(40)
    most = {"tier": 5, "mr": near(100), "seconds": 20, "cost_usd": 8, "tokens": 9}
    assert (found[0]["runs"], found[0]["most"]) == (2, most)


def test_a_run_of_another_cohort_moves_nothing_and_cannot_pass_its_ends(sql: Sql) -> None:
    board(sql, [100, 100, 0, 0, 0, 0], [100] * 6)
    fill(
        sql,
        "trajectories",
        [
            {"trajectory_id": "p0", "cohort": "c", "seconds": 5, "cost_usd": 2, "tokens": 100},
            {"trajectory_id": "p1", "seconds": 50, "cost_usd": 1, "tokens": 25},
        ],
    )
    found = answers(sql, "FROM efficiency ORDER BY trajectory_id")
    assert [(each["cohort"], each["is_member"]) for each in found] == [("c", True), ("c", False)]
    assert [each["aei"] for each in found] == [near(40), near((100 + 100 + 0 + 50 + 75) / 5)]


@pytest.mark.parametrize("told", [{"cost_usd": None}, {"tokens": None}, {"seconds": None}])
def test_there_is_no_efficiency_without_a_cost(sql: Sql, told: Known) -> None:
    board(sql, [100] * 6, told=told)
    found = one(
        sql, "SELECT aei, mr, gated_aei FROM efficiency JOIN pipeline_runs p USING (cohort)"
    )
    assert found == {"aei": None, "mr": near(100), "gated_aei": None}


def test_a_cohort_in_which_nobody_gets_anywhere_has_no_tier_to_share(sql: Sql) -> None:
    board(sql, [50, 0, 0, 0, 0, 0], [0] * 6)
    found = answers(sql, "SELECT aei FROM efficiency ORDER BY trajectory_id")
    assert [each["aei"] for each in found] == [near(100 / 5), 0]


def idle(sql: Sql, workload: str = "compiler", **told: object) -> dict[str, object]:
    """A run that hands in what it was given, beside one that does it all at half the budgets."""
    board(sql, [100, 20, 20, 0, 30, 0], [100] * 6, told={"cohort": None}, workload=workload)
    spent = {"seconds": 10_000, "cost_usd": 100, "tokens": 150_000_000}
    fill(
        sql,
        "trajectories",
        [
            {"trajectory_id": "p0", "agent": "starter", "seconds": 0},
            {"trajectory_id": "p1", "agent": "a", **spent, **told},
        ],
    )
    return one(sql, "FROM pipeline_runs WHERE agent = 'a'")


def test_the_gated_index_is_of_the_way_from_the_untouched_run_and_what_was_saved(sql: Sql) -> None:
    assert idle(sql)["gated_aei"] == near(100 * (1 + 0.5) / 2)
    assert idle(sql, tokens=0)["gated_aei"] == near(100 * (1 + 2 / 3) / 2)
    sql.execute("UPDATE trajectories SET agent = 'b' WHERE agent = 'starter'")
    assert {each["gated_aei"] for each in answers(sql, "FROM pipeline_runs")} == {None}


FREE = {"seconds": 0, "cost_usd": 0, "tokens": 0}


def test_who_does_nothing_saves_everything_and_scores_nothing(sql: Sql) -> None:
    nothing: list[float | None] = [100, 17.64, 20.55, 1.37, 35.1, 0]
    board(sql, nothing, told=FREE)
    assert one(sql, "FROM pipeline_runs")["gated_aei"] == near(0)
    board(sql, [0] * 6, told=FREE)
    assert one(sql, "FROM pipeline_runs")["gated_aei"] == 0


def test_tokens_are_of_four_kinds_and_ramps_total_has_two_of_them_twice(sql: Sql) -> None:
    kinds = {"prompt_tokens": 90, "cached_tokens": 60, "completion_tokens": 10}
    board(sql, [100] * 6, told=kinds | {"reasoning_tokens": 4})
    found = one(sql, "FROM pipeline_runs")
    assert (found["tokens"], found["ramp_tokens"]) == (100, 164)
    assert {name: found[name] for name in kinds} == kinds


def test_completion_is_told_with_and_without_the_graders_own_failures(sql: Sql) -> None:
    board(sql, [100, 100, 59], [100, 60, 70], [100, 10, 80])
    sql.execute("UPDATE stages SET outcome = 'infrastructure_error' WHERE score = 10")
    found = answers(sql, "FROM completion ORDER BY stage")
    assert [each["passed"] for each in found] == [3, 2, 2, 0, 0, 0]
    assert [each["serial"] for each in found] == [3, 2, 1, 0, 0, 0]
    assert [each["full"] for each in found] == [3, 1, 0, 0, 0, 0]
    first = found[1]
    assert (first["rate"], first["rate_all"]) == (1, near(2 / 3))
    assert first["infrastructure_errors"] == 1
    assert found[2]["rate"] == near(2 / 3)
    assert found[2]["lo"] == near(0.20765960080204)


@pytest.mark.parametrize(
    "told",
    [{"condition": "fault"}, {"forked_at": "x"}, {"source": "replay"}, {"agent": "starter"}],
)
def test_only_whole_clean_runs_complete_anything(sql: Sql, told: Known) -> None:
    board(sql, [100] * 6, told=told)
    assert answers(sql, "FROM completion") == []


def test_a_run_that_was_gone_on_with_counts_once(sql: Sql) -> None:
    board(sql, [100, 100], [100] * 6)
    sql.execute("UPDATE trajectories SET parent_id = 'p0' WHERE trajectory_id = 'p1'")
    found = answers(sql, "SELECT whole FROM pipeline_runs ORDER BY trajectory_id")
    assert [each["whole"] for each in found] == [False, True]


def test_what_the_first_stages_are_given_is_no_help(sql: Sql) -> None:
    given: list[Known] = [{"provenance": word} for word in ["golden"] * 2 + ["own"] * 4]
    board(sql, [100] * 5 + [70], stages=given)
    found = one(sql, "FROM pipeline_runs")
    assert found["mr_told"] == found["mr"] == near((100 * 11 + 70 * 4) / 15)


def test_a_run_counts_once_for_each_cause_of_its_stages(sql: Sql) -> None:
    known: list[Known] = [{"passed": True}] * 3
    full: Known = {"passed": False, "failure": "context"}
    board(sql, [100, 80, 70, 0, 0, 0], [100] * 6, stages=[*known, full, full, {"passed": False}])
    sql.execute("UPDATE stages SET passed = true, failure = NULL WHERE trajectory_id = 'p1'")
    found = answers(sql, "FROM attribution ORDER BY cause NULLS LAST")
    assert [(each["cause"], each["cells"], each["runs"]) for each in found] == [
        ("context", 2, 1),
        (None, 1, 1),
    ]
    assert (found[0]["share"], found[0]["of_runs"]) == (0.5, 2)


def test_what_a_run_cost_that_was_gone_on_with_is_that_of_its_stages(sql: Sql) -> None:
    spent: list[Known] = [{"cost_usd": 2.0, "tokens": 50, "seconds": 7.0}] * 6
    board(sql, [100] * 6, stages=spent, told={"prompt_tokens": 10, "completion_tokens": 10})
    figures = "SELECT cost_usd, tokens, ramp_tokens, seconds, prompt_tokens FROM pipeline_runs"
    assert list(one(sql, figures).values()) == [1, 100, 20, 42, 10]
    sql.execute("UPDATE trajectories SET source = 'resume'")
    assert list(one(sql, figures).values()) == [12, 300, 300, 42, None]
    sql.execute("UPDATE stages SET cost_usd = NULL WHERE stage = 'T3'")
    assert one(sql, figures)["cost_usd"] is None
