"""`evolutionary_gain`: the arms of the pipeline held together, with scipy as the second opinion."""

from collections.abc import Iterator

import pytest
import scipy

from tests.support.stores.in_memory_relations import (
    Sql,
    answers,
    empty,
    fill,
    near,
)
from traces.store.sql import bind_question

GAIN, _ = bind_question("evolutionary_gain")
SCORES = {
    "resurrect": ([100, 40, 90], [100, 55, 80], [100, 35, 95]),
    "no-resurrection": ([100, 40, 10], [100, 30, 0], [100, 50, 20]),
    "from-golden": ([100, 60, 95], [100, 70, 90]),
}


@pytest.fixture
def sql() -> Iterator[Sql]:
    with empty() as connection:
        runs = [(arm, k, run) for arm, each in SCORES.items() for k, run in enumerate(each)]
        known = {"agent": "a", "model": "m", "condition": "clean", "world": "fresh"}
        fill(connection, "trajectories", [known | {"trajectory_id": f"{a}{k}"} for a, k, _ in runs])
        fill(
            connection,
            "stages",
            [
                {
                    "trajectory_id": f"{arm}{k}",
                    "stage": f"T{at}",
                    "score": score,
                    "arm": arm,
                    "mode": "guided",
                    "workload": "embedded",
                }
                for arm, k, run in runs
                for at, score in enumerate(run)
            ],
        )
        yield connection


def test_what_golden_artifacts_bring_and_what_was_out_of_reach(sql: Sql) -> None:
    rows = {row["stage"]: row for row in answers(sql, GAIN)}
    t2 = rows["T2"]
    aided, alone, golden = ([run[2] for run in SCORES[arm]] for arm in SCORES)
    assert (t2["runs_resurrect"], t2["runs_alone"], t2["runs_from_golden"]) == (3, 3, 2)
    for name, low, high, more in (
        ("gain", "lo", "hi", aided),
        ("out_of_reach", "reach_lo", "reach_hi", golden),
    ):
        welch = scipy.stats.ttest_ind(more, alone, equal_var=False).confidence_interval(0.95)
        assert t2[name] == near(sum(more) / len(more) - sum(alone) / len(alone))
        assert (t2[low], t2[high]) == (near(welch.low), near(welch.high))


def test_scores_that_are_all_alike_have_no_interval_and_the_mean_reward_has_a_row(
    sql: Sql,
) -> None:
    rows = {row["stage"]: row for row in answers(sql, GAIN)}
    assert (rows["T0"]["gain"], rows["T0"]["lo"]) == (0, None)
    assert list(rows) == ["T0", "T1", "T2", "all"]
    assert rows["all"]["gain"] is not None


def test_an_arm_that_was_not_run_is_unknown(sql: Sql) -> None:
    sql.execute("DELETE FROM stages WHERE arm = 'no-resurrection'")
    rows = answers(sql, GAIN)
    assert {(row["gain"], row["out_of_reach"], row["runs_alone"]) for row in rows} == {
        (None, None, 0)
    }
