"""Thousands of simulated stores with a known truth: what the queries say of them, and how surely.

The repetitions are the agents of one store. Where numpy computes what the queries compute, it
answers for all of them, and the queries have to give the same for the first ones.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from tests.support.stores.clustered_rates import rates_over_clusters
from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
    near,
    one,
)
from tests.support.stores.simulated_stores import (
    Numbers,
    emptied,
    put,
    rates,
    struck,
)
from tests.support.stores.survival_of_runs import Runs, observe, survive
from traces.store.sql import run_question

pytestmark = pytest.mark.many(2)

REPETITIONS = 2000
CHANCE = 0.0038
"""One standard error of a share of .97 of so many. By 60,000 repetitions the lowest coverage from
20 traces on is .935 (30 traces, icc .2, rate .05), the highest .969 (20, icc 0, rate .05)."""
ASKED = 25
"""Repetitions that the queries answer for as well."""
EACH = 10
"""Injections per trace."""
SEED = 6


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def covered(lo: Numbers, hi: Numbers, truth: float) -> float:
    """The share of intervals that hold the truth, of those that are there."""
    is_there = ~np.isnan(lo)
    return float(np.mean((lo <= truth)[is_there] & (hi >= truth)[is_there]))


def check_equal(sql: Sql, query: str, *columns: Numbers) -> None:
    """The rows of a query are the first ones of these columns."""
    rows = np.array(sql.execute(query).fetchall(), float)
    np.testing.assert_allclose(rows, np.column_stack(columns)[:ASKED], atol=1e-9)


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("icc", [0.0, 0.2])
@pytest.mark.parametrize("traces", [20, 30])
def test_intervals_hold_the_truth_as_often_as_they_say(
    sql: Sql, traces: int, icc: float, rate: float
) -> None:
    rng = np.random.default_rng([SEED, traces, int(10 * icc), int(100 * rate)])
    chances = rates(rng, rate, icc, REPETITIONS, traces)
    silent = rng.random((*chances.shape, EACH)) < chances[:, :, None]
    found = rates_over_clusters(silent.sum(axis=2), np.full(chances.shape, EACH))
    struck(sql, silent[:ASKED])
    asking = "SELECT silent_rate_lo, silent_rate_hi FROM recovery ORDER BY agent::INT"
    check_equal(sql, asking, found.lo, found.hi)
    assert not np.isnan(found.lo).any()
    share = covered(found.lo, found.hi, rate)
    print(f"{traces} traces, icc {icc}, rate {rate}: {share}")
    assert share >= 0.93 - CHANCE  # what covers more says so: test_intervals.py


LIVES = 500
STEPS = 20


def lived(sql: Sql, died: Numbers, cap: Numbers | int) -> None:
    """Clean runs: agents x tasks x runs, each crashing at its fatal step, or done at its cap."""
    agents, tasks, runs = died.shape
    emptied(sql)
    put(
        sql,
        "trajectories",
        "SELECT i AS trajectory_id, agent, task, 'clean' AS condition,"
        " least(died, cap) AS n_steps, died > cap AS passed,"
        " if(died > cap, 'final', 'crash') AS ended",
        i=np.arange(died.size),
        agent=np.repeat(np.arange(agents), tasks * runs),
        task=np.tile(np.repeat(np.arange(tasks), runs), agents),
        died=died.ravel(),
        cap=np.broadcast_to(cap, died.shape).ravel(),
    )


def many(hazard: float) -> Numbers:
    """The fatal steps of 30,000 runs of one agent, which all have this hazard per step."""
    return np.random.default_rng(SEED).geometric(hazard, (1, 300, 100))


@pytest.mark.parametrize("hazard", [0.02, 0.05, 0.1])
def test_kaplan_and_meiers_interval_holds_the_truth_under_censoring(
    sql: Sql, hazard: float
) -> None:
    caps = np.random.default_rng(SEED).integers(5, 19, (LIVES, 80, 1))
    died = np.random.default_rng(SEED).geometric(hazard, caps.shape)
    runs = Runs(np.minimum(died, caps), died <= caps, np.ones(caps.shape, dtype=bool), True)
    found, survival = observe(runs, 12), survive(runs, 12)
    lived(sql, died[:ASKED], caps[:ASKED])
    right = "FROM kaplan_meier WHERE curve = 'ends_right' AND step = 12 ORDER BY agent::INT"
    check_equal(sql, f"SELECT lo, hi, survival {right}", found.lo, found.hi, survival)
    truth = (1 - hazard) ** 12
    share = covered(found.lo, found.hi, truth)
    print(f"Kaplan-Meier at 12 steps, hazard {hazard}: {share}")
    assert share >= 0.92
    assert np.mean(survival) == pytest.approx(truth, abs=0.006)


def test_tasks_that_differ_outlive_what_one_hazard_implies(sql: Sql) -> None:
    """A hundred runs of each task, whose hazards are spread over the quantiles of a beta."""
    tasks = 300
    hazards = stats.beta.ppf((np.arange(tasks) + 0.5) / tasks, 0.5, 9.5)[None, :, None]
    died = np.random.default_rng(SEED).geometric(np.broadcast_to(hazards, (1, tasks, 100)))
    lived(sql, died, 60)
    km = one(sql, "SELECT survival AS s FROM kaplan_meier WHERE curve = 'ends_right' AND step = 50")
    assert km["s"] == pytest.approx(0.395, abs=0.01)
    lived(sql, died, 10)
    [table] = [row for row in run_question(sql, "compounding").fetchall() if row[2] == 50]
    sound, observed = table[11], table[13]
    assert sound == pytest.approx(0.153, abs=0.01)
    assert observed is None


WORLDS = [
    (0.05, 0.8, 0.0, 0.817),
    (0.05, 0.8, 0.01, 0.668),
    (0.05, 0.0, 0.0, 0.358),
    (0.005, 0.8, 0.02, 0.656),
    (0.20, 0.98, 0.0, 0.923),
]
"""Error rate, recovery, other hazard per step, and the chance to get through twenty steps."""


@pytest.mark.parametrize(("e", "r", "u", "truth"), WORLDS)
def test_the_chance_of_twenty_steps_is_recovered_from_its_parts(
    sql: Sql, e: float, r: float, u: float, truth: float
) -> None:
    died = many(max(u, 1e-12))
    lived(sql, died, STEPS)
    rng = np.random.default_rng(SEED)
    put_beside(sql, rng.random(died.size) < r)
    answer = run_question(sql, "p_eff", e=e)
    names = [column[0] for column in answer.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    [found] = [row for row in rows if row["curve"] == "ends_right" and row["p_eff"] is not None]
    p_eff, naive = found["p_eff"], found["naive"]
    assert p_eff**STEPS == pytest.approx(truth, abs=0.012)
    assert p_eff == pytest.approx(1 - e * (1 - r) - u, abs=0.0008)
    assert naive == near(1 - e)


def put_beside(sql: Sql, handled: Numbers) -> None:
    """Faulted forks of clean runs of agent 0, a hundred to a trace."""
    shape = {"i": np.arange(len(handled)), "handled": handled}
    sql.register("drawn", pa.table(shape))
    for insert in (
        "trajectories BY NAME SELECT 'f' || i AS trajectory_id, '0' AS agent,"
        " i // 100 AS parent_id, 'fault' AS condition",
        "injections BY NAME SELECT i AS injection_id, 'f' || i AS trajectory_id, 'e1' AS op,"
        " 'D0' AS detect, true AS consumed",
        "outcomes BY NAME SELECT i AS injection_id, 1 AS judge_version, true AS baseline_valid,"
        " CASE WHEN handled THEN 'recovered' ELSE 'crashed' END AS class, handled AS noticed",
    ):
        sql.execute(f"INSERT INTO {insert} FROM drawn")
    sql.unregister("drawn")


@pytest.mark.parametrize(("e", "r", "u", "truth"), WORLDS)
def test_the_same_chance_is_seen_in_runs_that_err_by_themselves(
    sql: Sql, e: float, r: float, u: float, truth: float
) -> None:
    lived(sql, many(e * (1 - r) + u), STEPS)
    [found] = run_question(sql, "half_life").fetchall()
    assert found[6] ** STEPS == pytest.approx(truth, abs=0.012)
    assert found[7] <= 1 - e * (1 - r) - u <= found[8]


FUNNEL = {"recovered": 0.41, "noticed_wrong": 0.09, "honest_fail": 0.064, "crashed": 0.022}
FUNNEL |= {"silent_wrong": 0.364, "masked": 0.05}


def test_the_funnel_recovers_its_truth(sql: Sql) -> None:
    classes = list(FUNNEL)
    drawn = np.random.default_rng(SEED).choice(6, (1, 300, EACH), p=list(FUNNEL.values()))
    struck(sql, drawn == classes.index("silent_wrong"))
    fill = np.array(classes)[drawn].ravel()
    put(
        sql,
        "outcomes",
        "SELECT i AS injection_id, 1 AS judge_version, true AS baseline_valid, class,"
        " class NOT IN ('silent_wrong', 'masked') AS noticed",
        **{"i": np.arange(fill.size), "class": fill},
    )
    answer = run_question(sql, "funnel")
    names = [column[0] for column in answer.description or ()]
    found = dict(zip(names, answer.fetchall()[0], strict=True))
    notice = 1 - FUNNEL["silent_wrong"] - FUNNEL["masked"]
    claimed = sum(FUNNEL[c] for c in ("recovered", "masked", "silent_wrong", "noticed_wrong"))
    for name, truth in {
        "notice_rate": notice,
        "recovery_given_notice": FUNNEL["recovered"] / notice,
        "silent_rate": FUNNEL["silent_wrong"],
    }.items():
        assert found[f"{name}_lo"] <= truth <= found[f"{name}_hi"]
        assert found[name] == pytest.approx(truth, abs=0.03)
    assert found["wrong_given_claimed"] == pytest.approx(0.454 / claimed, abs=0.03)
