"""How often intervals of survival hold the truth, if tasks differ and runs of a task are alike.

A store has as many agents as repetitions. The hazard of each task is drawn from a beta with a mean
of .05 and a spread that halves the chance of twenty steps between tasks.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import beta

from tests.statistical.grids.cells import Cell
from tests.statistical.grids.steps import clean_runs
from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
)
from tests.support.stores.simulated_stores import (
    Numbers,
    emptied,
    put,
)
from tests.support.stores.survival_of_runs import Interval, chance_per_step, observe
from traces.store.sql import run_question

pytestmark = pytest.mark.timeout(900)

STORES = 1000
COVERED, MOST = 0.92, 0.985 + 0.0077
"""What every printed interval covers, and above what its row says that it is wide, with twice the
standard error of that share."""
SAYING = 0.8
A, B = 0.45, 8.55
SEED = 14
CAP = 12
"""Steps of a run that nothing ended before."""
SHAPES = [(50, 1), (20, 3), (50, 3), (20, 10), (5, 20)]
"""Tasks, and runs of each."""


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def truth(steps: int) -> float:
    """The mean over tasks of the chance to get through so many steps."""
    return float(beta(A, B + steps) / beta(A, B))


def deaths(tasks: int, runs: int) -> Numbers:
    """The fatal step of each run, however late: stores x tasks x runs."""
    rng = np.random.default_rng([SEED, tasks, runs])
    hazards = np.maximum(rng.beta(A, B, (STORES, tasks, 1)), 1e-12)
    died: Numbers = rng.geometric(np.broadcast_to(hazards, (STORES, tasks, runs)))
    return died


def lived(sql: Sql, died: Numbers, is_dated: bool, traces: int = 0) -> None:
    """Clean runs that crash at their fatal step, or else go on and are graded at the end.

    With so many traces there are as many loud faults beside, all of them recovered from.
    """
    stores, tasks, runs = died.shape
    emptied(sql)
    put(
        sql,
        "trajectories",
        "SELECT i AS trajectory_id, agent, task, 'clean' AS condition, died > cap AS passed,"
        " if(dated, least(died, cap), cap) AS n_steps,"
        " if(dated AND died <= cap, 'crash', 'final') AS ended",
        i=np.arange(died.size),
        agent=np.repeat(np.arange(stores), tasks * runs),
        task=np.tile(np.repeat(np.arange(tasks), runs), stores),
        died=died.ravel(),
        cap=np.full(died.size, CAP),
        dated=np.full(died.size, is_dated),
    )
    shape = {
        "i": np.arange(stores * traces),
        "agent": np.repeat(np.arange(stores), traces),
        "trace": np.tile(np.arange(traces), stores),
    }
    sql.register("drawn", pa.table(shape))
    for insert in (
        "trajectories BY NAME SELECT 'f' || i AS trajectory_id, agent, 'p' || trace AS parent_id,"
        " 'fault' AS condition, 'fresh' AS world",
        "injections BY NAME SELECT i AS injection_id, 'f' || i AS trajectory_id, 'e1' AS op,"
        " 'D0' AS detect, true AS consumed",
        "outcomes BY NAME SELECT i AS injection_id, 1 AS judge_version, true AS baseline_valid,"
        " 'recovered' AS class, true AS noticed",
    ):
        sql.execute(f"INSERT INTO {insert} FROM drawn")
    sql.unregister("drawn")


def check(sql: Sql, intervals: str, value: float) -> tuple[int, float]:
    """How many intervals are printed, and the share of them that holds the value."""
    [(printed, covered, reasons)] = sql.execute(
        f"SELECT count(lo), avg((lo <= {value} AND hi >= {value})::INT) FILTER (lo IS NOT NULL),"
        f" avg((reason IS NOT NULL)::INT) FILTER (lo IS NOT NULL) FROM ({intervals})"
    ).fetchall()
    if printed:
        assert covered >= COVERED
        assert covered <= MOST or reasons >= SAYING
    return printed, covered


@pytest.mark.parametrize("is_dated", [True, False])
@pytest.mark.parametrize(("tasks", "runs"), SHAPES)
def test_the_observed_curve_is_covered(sql: Sql, tasks: int, runs: int, is_dated: bool) -> None:
    lived(sql, deaths(tasks, runs), is_dated)
    sql.execute(
        "CREATE OR REPLACE TEMP TABLE found AS FROM kaplan_meier WHERE curve = 'ends_right'"
    )
    for step in (3, 10, 12):
        at = f"SELECT lo, hi, reason FROM found WHERE step = {step}"
        printed, covered = check(sql, at, truth(step))
        print(f"{tasks} tasks x {runs}, dated {is_dated}, {step} steps: {printed} {covered}")
    assert printed > 0.5 * STORES


@pytest.mark.parametrize("is_dated", [True, False])
@pytest.mark.parametrize(("tasks", "runs"), SHAPES)
def test_the_implied_chance_is_covered_and_its_bound_is_one(
    sql: Sql, tasks: int, runs: int, is_dated: bool
) -> None:
    lived(sql, deaths(tasks, runs), is_dated, traces=10)
    sql.execute(
        "CREATE OR REPLACE TEMP TABLE found AS FROM survival WHERE basis = 'model' AND e = 0.01"
        " AND curve = 'ends_right' AND class = 'loud' AND e_from = 'assumed'"
    )
    for n in (10, 20, 50):
        model = f"FROM found WHERE n = {n}"
        _, covered = check(sql, model, truth(n))
        [(mean, least, most)] = sql.execute(
            "SELECT avg(survival), avg((bound = 'at_least')::INT), avg((bound = 'at_most')::INT)"
            f" {model}"
        ).fetchall()
        print(f"{tasks} tasks x {runs}, dated {is_dated}, {n} steps: {covered}, mean {mean}")
        if least > 0.9:
            assert mean <= truth(n) + 0.02
        if most > 0.9:
            assert mean >= truth(n) - 0.02


@pytest.mark.parametrize("is_dated", [True, False])
def test_numpy_gives_what_sql_gives(sql: Sql, is_dated: bool) -> None:
    runs = clean_runs(Cell(20, "uneven", 0.2, 0.5, 40), np.random.default_rng(SEED), is_dated)
    store, task, run = np.nonzero(runs.is_there)
    emptied(sql)
    put(
        sql,
        "trajectories",
        "SELECT i AS trajectory_id, agent, task, 'clean' AS condition, NOT died AS passed,"
        " steps AS n_steps, if(died AND dated, 'crash', 'final') AS ended",
        i=np.arange(len(store)),
        agent=store,
        task=task,
        died=runs.died[store, task, run],
        steps=runs.steps[store, task, run],
        dated=np.full(len(store), is_dated),
    )
    by_store = "ORDER BY agent::INT"
    for step in (3, 10):
        found = f"FROM kaplan_meier WHERE curve = 'ends_right' AND step = {step} {by_store}"
        check_equal(sql.execute(f"SELECT lo, hi {found}").fetchall(), observe(runs, step))
    answer = run_question(sql, "half_life")
    agent, lo, hi = (
        [column[0] for column in answer.description or ()].index(name)
        for name in ("agent", "p_lo", "p_hi")
    )
    rows = sorted((int(row[agent]), row[lo], row[hi]) for row in answer.fetchall())
    check_equal([row[1:] for row in rows], chance_per_step(runs))


def check_equal(rows: list[tuple[float, float]], interval: Interval) -> None:
    expected = np.stack([interval.lo, interval.hi], axis=1)
    np.testing.assert_allclose(np.array(rows, dtype=float), expected, atol=1e-9)
