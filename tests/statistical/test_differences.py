"""False alarms of tests and gates where nothing differs, and coverage of differences.

A store has as many agents as repetitions, so that one query answers for all of them.
"""

from collections.abc import Iterator

import numpy as np
import pytest

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

STORES = 1000
ALARMS, COVERED = 0.06, 0.92
SEED = 12


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def figures(sql: Sql, question: str, expressions: str, **params: SqlValue) -> list[float]:
    """Aggregates over all rows that a question answers."""
    text, values = bind_question(question, **params)
    asking = f"SELECT {expressions} FROM ({text.rstrip().removesuffix(';')})"
    [found] = sql.execute(asking, values).fetchall()
    return [float(each) for each in found]


def figure(sql: Sql, question: str, expression: str, **params: SqlValue) -> float:
    [found] = figures(sql, question, expression, **params)
    return found


def runs(sql: Sql, clean: Numbers, faulted: Numbers, twins: int, struck: int) -> None:
    """Twins and faulted runs of each root, whose chances to pass are stores x roots."""
    rng = np.random.default_rng([SEED, clean.shape[1], twins, struck])
    emptied(sql)
    sides = [np.repeat(each[:, :, None], n, 2) for each, n in ((clean, twins), (faulted, struck))]
    chances = np.concatenate(sides, axis=2)
    stores, roots, each = chances.shape
    shape = {
        "i": np.arange(chances.size),
        "agent": np.repeat(np.arange(stores), roots * each),
        "trace": np.tile(np.repeat(np.arange(roots), each), stores),
        "faulted": np.tile(np.arange(each) >= twins, stores * roots),
        "passed": (rng.random(chances.shape) < chances).ravel(),
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


@pytest.mark.parametrize(
    ("roots", "struck", "rate"),
    [
        (8, 1, 0.8),
        (20, 1, 0.95),
        (50, 1, 0.8),
        (50, 1, 0.95),
        (50, 2, 0.5),
        (100, 1, 0.8),
        (100, 2, 0.5),
        (200, 1, 0.8),
        (200, 2, 0.5),
    ],
)
def test_three_twins_against_fewer_faulted_runs_raise_no_false_alarms(
    sql: Sql, roots: int, struck: int, rate: float
) -> None:
    chances = np.full((STORES, roots), rate)
    runs(sql, chances, chances, 3, struck)
    alarms = figure(sql, "paired", "avg((p_holm < 0.05)::INT) FILTER (op IS NOT NULL)")
    print(f"paired, {roots} roots, 3 twins, {struck} faulted, rate {rate}: {alarms}")
    assert alarms <= ALARMS


@pytest.mark.parametrize("kept", [1.0, 0.5])
@pytest.mark.parametrize("spread", [0.0, 0.5])
@pytest.mark.parametrize(("roots", "rate"), [(8, 0.8), (20, 0.95), (50, 0.5)])
def test_the_difference_of_paired_rates_is_covered(
    sql: Sql, roots: int, rate: float, spread: float, kept: float
) -> None:
    rng = np.random.default_rng([SEED, roots])
    chances = rates(rng, rate, spread, STORES, roots)
    runs(sql, chances, kept * chances, 3, 1)
    truth = rate * (1 - kept)
    covered = figure(
        sql, "paired", f"avg((lo <= {truth} AND hi >= {truth})::INT) FILTER (op IS NOT NULL)"
    )
    print(f"paired, {roots} roots, rate {rate}, icc {spread}, kept {kept}: {covered}")
    assert covered >= COVERED


@pytest.mark.parametrize("icc", [0.0, 0.2, 0.5])
@pytest.mark.parametrize(("roots", "rate"), [(8, 0.5), (20, 0.2), (50, 0.05)])
def test_a_gate_at_its_limit_passes_and_fails_seldom(
    sql: Sql, roots: int, rate: float, icc: float
) -> None:
    rng = np.random.default_rng([SEED, roots, int(10 * icc)])
    chances = rates(rng, rate, icc, STORES, roots)
    struck(sql, rng.random((*chances.shape, 10)) < chances[:, :, None])
    silent = "FILTER (measure = 'silent')"
    passed = figure(sql, "gate", f"avg((coalesce(hi <= {rate}, false))::INT) {silent}")
    failed = figure(sql, "gate", f"avg((coalesce(lo > {rate}, false))::INT) {silent}")
    print(f"gate, {roots} roots, icc {icc}, rate {rate}: passes {passed}, fails {failed}")
    assert passed <= 0.05
    assert failed <= ALARMS


@pytest.mark.parametrize(("icc", "rate"), [(0.0, 0.2), (0.2, 0.5)])
def test_fifteen_operators_at_the_limit_seldom_fail_a_gate(
    sql: Sql, icc: float, rate: float
) -> None:
    rng = np.random.default_rng([SEED, 15])
    stores, roots, ops = STORES // 4, 20, 15
    chances = rates(rng, rate, icc, stores, roots)
    struck(sql, rng.random((*chances.shape, 2 * ops)) < chances[:, :, None], ops)
    failing = "count(DISTINCT agent) FILTER (measure = 'silent' AND lo > {}) / {}"
    failed = figure(sql, "gate", failing.format(rate, stores), by="op")
    print(f"gate by op, icc {icc}, rate {rate}: {failed} fail")
    assert failed <= ALARMS


def campaigns(sql: Sql, rng: np.random.Generator, chances: Numbers, sizes: Numbers) -> None:
    """Two campaigns, in each of which a store is a family: so many cells of each of its traces."""
    emptied(sql)
    stores, cells = len(chances), int(sizes.sum())
    chance = np.tile(np.repeat(chances, sizes, axis=1), (2, 1, 1))
    shape = {
        "i": np.arange(chance.size),
        "b": np.repeat([False, True], stores * cells),
        "store": np.tile(np.repeat(np.arange(stores), cells), 2),
        "task": np.tile(np.repeat(np.arange(len(sizes)), sizes), 2 * stores),
        "cell": np.tile(np.arange(cells), 2 * stores),
        "silent": (rng.random(chance.shape) < chance).ravel(),
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


@pytest.mark.parametrize(
    ("roots", "rate", "icc"), [(8, 0.5, 0.5), (20, 0.05, 0.0), (20, 0.8, 0.5), (50, 0.2, 0.2)]
)
def test_two_alike_are_seldom_told_apart(sql: Sql, roots: int, rate: float, icc: float) -> None:
    """Traces of 1, 1, 2 and 8 pairs; a query takes two hundred stores."""
    rng = np.random.default_rng([SEED, roots, 2])
    silent = "FILTER (measure = 'silent' AND part != 'all')"
    conditions = ("p < 0.05", "lo <= 0 AND hi >= 0", "delta * (rate_b - rate_a) >= 0")
    shares = []
    for _ in range(STORES // 200):
        campaigns(sql, rng, rates(rng, rate, icc, 200, roots), np.resize([1, 1, 2, 8], roots))
        expressions = ", ".join(f"avg(({each})::INT) {silent}" for each in conditions)
        shares.append(figures(sql, "compare", expressions, a="a", b="b"))
    alarms, covered, of_one_sign = np.mean(shares, axis=0)
    print(f"compare, {roots} roots, rate {rate}, icc {icc}: alarms {alarms}, covered {covered}")
    assert of_one_sign == 1
    assert alarms <= ALARMS
    assert covered >= COVERED
