"""How often intervals of survival hold the truth, if tasks differ and runs of a task are alike.

The hazard of each task is drawn from a beta with a mean of .05 and a spread that halves the chance
of twenty steps between tasks. Numpy answers for all stores, and the views have to give the same for
the first ones, which are the agents of one store.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import beta

from tests.statistical.grids.cells import Cell
from tests.statistical.grids.steps import clean_runs
from tests.support.stores.clustered_rates import rates_over_clusters
from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
)
from tests.support.stores.simulated_stores import (
    Numbers,
    emptied,
    put,
)
from tests.support.stores.survival_of_runs import (
    Interval,
    Runs,
    chance_per_step,
    imply,
    observe,
)
from traces.store.sql import run_question

pytestmark = [pytest.mark.many(2), pytest.mark.timeout(900)]

STORES = 1000
ASKED = 25
"""Stores that the views answer for as well."""
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


def simulated(died: Numbers, is_dated: bool) -> Runs:
    """The same runs as numpy takes them."""
    crashed = died <= CAP
    steps = np.where(crashed & is_dated, died, CAP)
    return Runs(steps, crashed, np.ones(died.shape, dtype=bool), is_dated)


def check(found: Interval, value: float) -> tuple[int, float]:
    """How many intervals are printed, and the share of them that holds the value."""
    is_printed = ~np.isnan(found.lo)
    if not is_printed.any():
        return 0, np.nan
    covered = ((found.lo <= value) & (found.hi >= value))[is_printed].mean()
    assert covered >= COVERED
    assert covered <= MOST or found.is_wide[is_printed].mean() >= SAYING
    return int(is_printed.sum()), float(covered)


@pytest.mark.parametrize("is_dated", [True, False])
@pytest.mark.parametrize(("tasks", "runs"), SHAPES)
def test_the_observed_curve_is_covered(sql: Sql, tasks: int, runs: int, is_dated: bool) -> None:
    died = deaths(tasks, runs)
    lived(sql, died[:ASKED], is_dated)
    sql.execute(
        "CREATE OR REPLACE TEMP TABLE found AS FROM kaplan_meier WHERE curve = 'ends_right'"
    )
    for step in (3, 10, 12):
        found = observe(simulated(died, is_dated), step)
        at = f"SELECT lo, hi, reason IS NOT NULL FROM found WHERE step = {step} ORDER BY agent::INT"
        check_equal(sql.execute(at).fetchall(), found)
        printed, covered = check(found, truth(step))
        print(f"{tasks} tasks x {runs}, dated {is_dated}, {step} steps: {printed} {covered}")
    assert printed > 0.5 * STORES


@pytest.mark.parametrize("is_dated", [True, False])
@pytest.mark.parametrize(("tasks", "runs"), SHAPES)
def test_the_implied_chance_is_covered_and_its_bound_is_one(
    sql: Sql, tasks: int, runs: int, is_dated: bool
) -> None:
    traces, errors, died = 10, 0.01, deaths(tasks, runs)
    lived(sql, died[:ASKED], is_dated, traces)
    sql.execute(
        "CREATE OR REPLACE TEMP TABLE found AS FROM survival WHERE basis = 'model'"
        f" AND e = {errors} AND curve = 'ends_right' AND class = 'loud' AND e_from = 'assumed'"
    )
    lives, ones = simulated(died, is_dated), np.ones((STORES, traces))
    handled = rates_over_clusters(ones, ones)
    hazard = lives.died.sum(axis=(1, 2)) / lives.steps.sum(axis=(1, 2))
    for n in (10, 20, 50):
        model = f"FROM found WHERE n = {n}"
        found, survival = imply(lives, handled, errors, n, reach=CAP), (1 - hazard) ** n
        asking = f"SELECT lo, hi, reason IS NOT NULL, survival {model} ORDER BY agent::INT"
        check_equal(sql.execute(asking).fetchall(), found, survival)
        _, covered = check(found, truth(n))
        mean = survival.mean()
        [(minimum, most)] = sql.execute(
            f"SELECT avg((bound = 'at_least')::INT), avg((bound = 'at_most')::INT) {model}"
        ).fetchall()
        print(f"{tasks} tasks x {runs}, dated {is_dated}, {n} steps: {covered}, mean {mean}")
        if minimum > 0.9:
            assert mean <= truth(n) + 0.02
        if most > 0.9:
            assert mean >= truth(n) - 0.02


@pytest.mark.parametrize("is_dated", [True, False])
def test_numpy_gives_what_sql_gives(sql: Sql, is_dated: bool) -> None:
    runs = clean_runs(Cell(20, "uneven", 0.2, 0.5, ASKED), np.random.default_rng(SEED), is_dated)
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


def check_equal(rows: list[tuple[float, ...]], interval: Interval, *others: Numbers) -> None:
    """The rows of the first stores; those of three columns or more have what numpy calls wide."""
    columns = [interval.lo, interval.hi, interval.is_wide, *others]
    found = np.array(rows, dtype=float)
    expected = np.column_stack(columns)[:ASKED, : found.shape[1]]
    np.testing.assert_allclose(found, expected, atol=1e-9)
