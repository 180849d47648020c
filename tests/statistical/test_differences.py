"""False alarms of tests and gates where nothing differs, and coverage of differences.

A store has as many agents as repetitions, so that one query answers for all of them. What numpy
computes is held against the queries for the first ones.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.statistical.grids.cells import Cell
from tests.statistical.grids.differences import TWINS, compare_test, paired_test
from tests.statistical.grids.rates import with_exact
from tests.support.stores.clustered_rates import rates_over_clusters, weighted_rates
from tests.support.stores.gained_and_lost import gained_and_lost
from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
)
from tests.support.stores.simulated_stores import (
    Numbers,
    emptied,
    put,
    rates,
    struck,
)
from traces.store.sql import SqlValue, bind_question

pytestmark = pytest.mark.many(2)

STORES = 1000
ALARMS = 0.06
CHECKED = 12
"""Stores of which SQL and numpy have to give the same."""
BY_NAME = np.argsort(np.arange(CHECKED).astype(str))
"""Their order in an answer: the agents are their numbers."""
SEED = 12


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def asked(sql: Sql, question: str, where: str, *columns: str, **params: SqlValue) -> Numbers:
    """The rows of a question, in its order, as numbers (NULL: nan)."""
    text, values = bind_question(question, **params)
    asking = f"FROM ({text.rstrip().removesuffix(';')}) SELECT {', '.join(columns)} WHERE {where}"
    return np.array(sql.execute(asking, values).fetchall(), float)


def put_runs(sql: Sql, passed: Numbers) -> None:
    """Three twins of each root and the faulted runs after them: stores x roots x runs."""
    emptied(sql)
    stores, roots, each = passed.shape
    shape = {
        "i": np.arange(passed.size),
        "agent": np.repeat(np.arange(stores), roots * each),
        "trace": np.tile(np.repeat(np.arange(roots), each), stores),
        "faulted": np.tile(np.arange(each) >= TWINS, stores * roots),
        "passed": passed.ravel(),
    }
    put(
        sql,
        "trajectories",
        "SELECT i AS trajectory_id, agent, trace AS parent_id, passed, 'final' AS ended,"
        " if(faulted, 'fault', 'clean') AS condition, 'fork' AS source",
        **shape,
    )
    put(
        sql,
        "injections",
        "SELECT i AS injection_id, i AS trajectory_id, 'e1' AS op, true AS consumed",
        i=shape["i"][shape["faulted"]],
    )


@pytest.mark.parametrize(("roots", "runs", "rate"), [(8, 1, 0.5), (20, 5, 0.95), (12, 10, 0.05)])
def test_paired_is_what_the_grids_simulate(sql: Sql, roots: int, runs: int, rate: float) -> None:
    rng = np.random.default_rng([SEED, roots])
    chances = rates(rng, rate, 0.2, CHECKED, roots)
    passed = rng.random((CHECKED, roots, TWINS + runs)) < chances[:, :, None]
    put_runs(sql, passed)
    found = asked(sql, "paired", "op IS NOT NULL", "lo", "hi", "p")
    clean, faulted = passed[:, :, :TWINS].sum(axis=2), passed[:, :, TWINS:].sum(axis=2)
    struck = np.full(clean.shape, runs)
    lo, hi, _ = gained_and_lost(clean / TWINS - faulted / runs, np.minimum(struck, TWINS))
    columns = np.column_stack((lo, hi, paired_test(clean, faulted, struck)))
    np.testing.assert_allclose(found, columns[BY_NAME], atol=1e-9)


@pytest.mark.parametrize(("roots", "rate", "icc"), [(8, 0.5, 0.5), (20, 0.2, 0.2)])
def test_a_gate_at_its_limit_passes_and_fails_seldom(
    sql: Sql, roots: int, rate: float, icc: float
) -> None:
    rng = np.random.default_rng([SEED, roots, int(10 * icc)])
    chances = rates(rng, rate, icc, STORES, roots)
    silent = rng.random((*chances.shape, 10)) < chances[:, :, None]
    found = rates_over_clusters(silent.sum(axis=2), np.full(chances.shape, 10))
    struck(sql, silent[:CHECKED])
    bounds = asked(sql, "gate", "measure = 'silent' ORDER BY agent::INT", "lo", "hi")
    np.testing.assert_allclose(bounds, np.column_stack((found.lo, found.hi))[:CHECKED], atol=1e-9)
    passed, failed = np.mean(found.hi <= rate), np.mean(found.lo > rate)
    print(f"gate, {roots} roots, icc {icc}, rate {rate}: passes {passed}, fails {failed}")
    assert passed <= 0.05
    assert failed <= ALARMS


def test_a_part_of_a_gate_has_the_bounds_that_the_grids_simulate(sql: Sql) -> None:
    """Fifteen operators, five injections in each of twenty recordings: a few cases of each."""
    cell = Cell(20, "5", 0.2, 0.05, stores=3)
    rng, ops = cell.rng("gate"), 15
    silent = rng.random((3, 20, 5)) < cell.chances(rng)[:, :, None]
    struck(sql, silent, ops)
    where = "measure = 'silent' ORDER BY agent::INT, part[2:]::INT"
    found = asked(sql, "gate", where, "lo", "hi", by="op").reshape(3, ops, 2)
    which = np.arange(silent.size).reshape(silent.shape) % ops
    for op in range(ops):
        cases = (which == op).sum(axis=2).astype(float)
        hits = (silent & (which == op)).sum(axis=2)
        bounds = with_exact(weighted_rates(hits, cases, cases, 1 - 0.05 / ops), 0.05 / ops)
        np.testing.assert_allclose(found[:, op], np.column_stack(bounds), atol=1e-9)


def put_campaigns(sql: Sql, silent: Numbers, sizes: Numbers) -> None:
    """Two campaigns, each a store to a family: so many cells of each of its traces."""
    emptied(sql)
    _, stores, cells = silent.shape
    shape = {
        "i": np.arange(silent.size),
        "b": np.repeat([False, True], stores * cells),
        "store": np.tile(np.repeat(np.arange(stores), cells), 2),
        "task": np.tile(np.repeat(np.arange(len(sizes)), sizes), 2 * stores),
        "cell": np.tile(np.arange(cells), 2 * stores),
        "silent": silent.ravel(),
    }
    put(
        sql,
        "trajectories",
        "SELECT i AS trajectory_id, if(b, 'b', 'a') AS campaign, task, 'final' AS ended,"
        " store || '/' || cell AS cell",
        **shape,
    )
    put(
        sql,
        "injections",
        "SELECT i AS injection_id, i AS trajectory_id, 'e1' AS op, store AS family,"
        " true AS consumed",
        **shape,
    )
    put(
        sql,
        "outcomes",
        "SELECT i AS injection_id, 1 AS judge_version, true AS baseline_valid,"
        " NOT silent AS noticed, if(silent, 'silent_wrong', 'recovered') AS class",
        **shape,
    )


@pytest.mark.parametrize(("roots", "rate", "icc"), [(8, 0.5, 0.5), (20, 0.05, 0.0)])
def test_compare_is_what_the_grids_simulate(sql: Sql, roots: int, rate: float, icc: float) -> None:
    """Traces of 1, 1, 2 and 8 pairs."""
    rng, sizes = np.random.default_rng([SEED, roots, 2]), np.resize([1, 1, 2, 8], roots)
    chances = np.repeat(rates(rng, rate, icc, CHECKED, roots), sizes, axis=1)
    silent = rng.random((2, *chances.shape)) < chances
    put_campaigns(sql, silent, sizes)
    where = "measure = 'silent' AND part != 'all'"
    found = asked(sql, "compare", where, "lo", "hi", "p", "delta", "rate_b - rate_a", a="a", b="b")
    x, y = np.add.reduceat(silent, np.cumsum(sizes) - sizes, axis=2) / sizes
    lo, hi, _ = gained_and_lost(y - x, np.broadcast_to(sizes, x.shape))
    mean = (y - x).mean(axis=1)
    columns = np.column_stack((lo, hi, compare_test(y - x), mean, mean))
    np.testing.assert_allclose(found, columns[BY_NAME], atol=1e-9)
