"""What the questions say of real runs that others recorded: correlations, counted right."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy

from tests.support.stores.in_memory_relations import (
    Sql,
    answers,
    empty,
    near,
    one,
)
from traces.importers import read_run_tables
from traces.store.sql import list_questions, run_question

type Known = dict[str, object]


def imported(path: Path) -> Sql:
    connection = empty()
    for name, rows in read_run_tables(path).items():
        connection.register("arriving", rows)
        connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS FROM arriving')
        connection.unregister("arriving")
    return connection


@pytest.fixture(scope="module")
def tau(shared: Path) -> Iterator[Sql]:
    with imported(shared / "tau" / "gpt-4o-airline.json.gz") as connection:
        yield connection


@pytest.fixture(scope="module")
def coding(shared: Path) -> Iterator[Sql]:
    with imported(shared / "coding" / "mini_swe_gemini3pro_500.jsonl.gz") as connection:
        yield connection


def asked(sql: Sql, name: str) -> list[Known]:
    answer = run_question(sql, name)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, values, strict=True)) for values in answer.fetchall()]


def test_tau_passes_one_to_four_times_in_a_row(tau: Sql) -> None:
    found = [round(float(str(each["pass_hat_k"])), 3) for each in asked(tau, "pass_hat_k")]
    assert found == [0.42, 0.273, 0.22, 0.20]


def test_tau_runs_with_an_error_pass_less_often(tau: Sql) -> None:
    without, with_error = asked(tau, "error_effect")
    assert (with_error["runs"], with_error["pass_rate"]) == (36, 0.25)
    assert (without["runs"], without["pass_rate"]) == (164, near(75 / 164))
    assert round(75 / 164, 3) == 0.457
    assert {without["limits"], with_error["limits"]} == {"association_only"}
    assert all(each["lo"] is not None or each["reason"] for each in (without, with_error))


def test_tau_errors_are_got_over_and_the_task_is_lost(tau: Sql) -> None:
    [found] = asked(tau, "error_episodes")
    assert (found["episodes"], round(float(str(found["local_rate"])), 3)) == (54, 0.926)
    assert round(float(str(found["eventual_rate"])), 3) == 0.185


def fates(sql: Sql) -> tuple[np.ndarray, np.ndarray]:
    rows = answers(sql, "SELECT n_steps, passed, ended FROM trajectories")
    died = [not each["passed"] or each["ended"] == "budget" for each in rows]
    return np.array([each["n_steps"] for each in rows]), np.array(died)


@pytest.mark.gate
@pytest.mark.parametrize(("name", "runs"), [("tau", 200), ("coding", 500)])
def test_the_curve_of_real_runs(name: str, runs: int, request: pytest.FixtureRequest) -> None:
    """Nobody knows at which step they failed: the last is the latest, the first the earliest."""
    from lifelines import KaplanMeierFitter

    sql: Sql = request.getfixturevalue(name)
    steps, dead = fates(sql)
    assert len(steps) == runs
    found = [each for each in asked(sql, "survival_curve") if each["curve"] == "ends_right"]
    assert found[-1]["step"] == steps.max()
    for each in found:
        at = int(str(each["step"]))
        times, died = np.minimum(steps, at), dead
        latest = KaplanMeierFitter().fit(times, died).survival_function_.iloc[-1, 0]
        assert each["at_least"] == near(latest)
        assert each["at_most"] == near(1 - (dead & (steps <= at)).mean())
        assert each["survival"] is None or each["survival"] == near(latest)


@pytest.mark.gate
@pytest.mark.parametrize("name", ["tau", "coding"])
def test_the_hazard_of_real_runs_is_not_known(name: str, request: pytest.FixtureRequest) -> None:
    sql: Sql = request.getfixturevalue(name)
    steps, dead = fates(sql)
    found = asked(sql, "hazard")
    table = np.array([[each["deaths"], each["steps"]] for each in found], float)
    assert (table[:, 0].sum(), table[:, 1].sum()) == (dead.sum(), steps.sum())
    table[:, 1] -= table[:, 0]
    expected = scipy.stats.chi2_contingency(table, correction=False)
    assert found[0]["chi2"] == near(expected.statistic)
    assert (found[0]["p"], found[0]["reason"]) == (None, "interval_censored")
    whole = one(sql, "SELECT sum(died::INT) / sum(n_steps) AS h FROM unforced_runs")
    assert found[0]["pooled_hazard"] == near(whole["h"])


def test_what_is_no_more_than_a_correlation_says_so() -> None:
    told = {each.name: each.sql for each in list_questions()}
    for name in ("survival_curve", "hazard", "error_effect"):
        assert "correlation" in told[name] or "association" in told[name]


@pytest.mark.gate
def test_coding_steps_are_the_calls_of_its_source(coding: Sql, shared: Path) -> None:
    path = shared / "coding" / "mini_swe_gemini3pro_500.jsonl.gz"
    with gzip.open(path, "rt") as lines:
        told = [json.loads(line) for line in lines]
    found = one(coding, "SELECT count(*) n, count(*) FILTER (passed) passed FROM trajectories")
    assert (found["n"], found["passed"]) == (len(told), sum(each["resolved"] for each in told))
