"""How often 95 % intervals of clustered rates hold the truth, over a thousand stores for each cell.

A cell is a number of root recordings, injections in each, intraclass correlation and rate. Numpy
answers for all stores of a cell, and SQL has to give the same for some.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from tests.statistical.grids.cells import ICCS, RATES, ROOTS, SIZES, Cell
from tests.statistical.grids.rates import counts_of_operators, operator_hits, standardise
from tests.support.stores.clustered_rates import rates_over_clusters
from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
)
from tests.support.stores.simulated_stores import (
    Numbers,
    rates,
    struck,
)

pytestmark = pytest.mark.many(2)

STORES = 1000
ASKED = 50
"""Stores that the view answers for as well."""
LEAST, MOST = 0.92, 0.985
"""What every printed interval covers, and above what it says that it is conservative."""
SAYING = 0.8
"""The share of rows that say so, in a cell above it; the rows differ by what was drawn."""
SEED = 11


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def counts(roots: int, sizes: tuple[int, ...], icc: float, rate: float) -> tuple[Numbers, Numbers]:
    """Hits and cases, both stores x roots."""
    rng = np.random.default_rng([SEED, roots, *sizes, int(10 * icc), int(100 * rate)])
    cases = np.broadcast_to(np.resize(sizes, roots), (STORES, roots))
    return rng.binomial(cases, rates(rng, rate, icc, STORES, roots)), cases


INTERVALS = """
    SELECT lo, hi, reason
    FROM (
        SELECT unnest(clustered(list(hits ORDER BY root), list(cases ORDER BY root)))
        FROM drawn GROUP BY store ORDER BY store
    )
"""


def drawn(hits: Numbers, cases: Numbers) -> pa.Table:
    stores, roots = hits.shape
    return pa.table(
        {
            "store": np.repeat(np.arange(stores), roots),
            "root": np.tile(np.arange(roots), stores),
            "hits": hits.ravel().astype(float),
            "cases": cases.ravel().astype(float),
        }
    )


def test_numpy_gives_what_sql_gives(sql: Sql) -> None:
    """A store of each cell, in one query; tests/statistical/test_grids.py has the thousands."""
    tables: list[pa.Table] = []
    bounds: list[tuple[float, float, bool]] = []
    for roots, size, icc, rate in itertools.product(ROOTS, SIZES, ICCS, RATES):
        hits, cases = (each[:1] for each in counts(roots, SIZES[size], icc, rate))
        store = pa.array([len(tables)] * roots)
        tables.append(drawn(hits, cases).set_column(0, "store", store))
        expected = rates_over_clusters(hits, cases)
        bounds.append((expected.lo[0], expected.hi[0], expected.is_conservative[0]))
    sql.register("drawn", pa.concat_tables(tables))
    asking = f"SELECT lo, hi, coalesce(reason = 'conservative', false) FROM ({INTERVALS})"
    found = np.array(sql.execute(asking).fetchall(), float)
    np.testing.assert_allclose(found, np.array(bounds, float), atol=1e-9)


@pytest.mark.parametrize(("roots", "icc", "rate"), [(8, 0.5, 0.05), (20, 0.5, 0.5)])
def test_the_view_prints_the_same_intervals(sql: Sql, roots: int, icc: float, rate: float) -> None:
    rng = np.random.default_rng([SEED, roots])
    chances = rates(rng, rate, icc, STORES, roots)
    silent = rng.random((*chances.shape, 10)) < chances[:, :, None]
    hits, cases = silent.sum(axis=2), np.full(chances.shape, 10)
    struck(sql, silent[:ASKED])
    sql.register("drawn", drawn(hits[:ASKED], cases[:ASKED]))
    view = """
        SELECT silent_rate_lo, silent_rate_hi, silent_rate_reason
        FROM recovery ORDER BY agent::INT
    """
    found = rates_over_clusters(hits, cases)
    expected = np.column_stack((found.lo, found.hi, found.is_conservative))[:ASKED]
    for query in (view, INTERVALS):
        rows = sql.execute(query).fetchall()
        assert all(lo is not None or reason for lo, _, reason in rows)
        bounds = [(lo, hi, reason == "conservative") for lo, hi, reason in rows]
        np.testing.assert_allclose(np.array(bounds, float), expected, atol=1e-9)
    is_printed = ~np.isnan(found.lo)
    covered = ((found.lo <= rate) & (found.hi >= rate))[is_printed].mean()
    assert covered >= LEAST
    assert covered <= MOST or found.is_conservative[is_printed].mean() >= SAYING


@pytest.mark.parametrize("others", [4, 5, 6, 7])
def test_a_dominated_store_prints_none(others: int) -> None:
    sizes = (60, *([1] * others))
    for icc, rate in itertools.product(ICCS, RATES):
        found = rates_over_clusters(*counts(len(sizes), sizes, icc, rate))
        assert np.isnan(found.lo).all()


def test_weighted_cases_are_those_of_the_grids(sql: Sql) -> None:
    """Fifty recordings of sixty injections of five operators, the rarest of which weighs most."""
    cell = Cell(50, "60", 0.5, 0.05, stores=6)
    cases = counts_of_operators(cell, 5)
    hits, _ = operator_hits(cell, cell.rng("weighted"), cases)
    mix = np.array([8, 4, 2, 1, 1]) / 16
    each = (mix / cases.sum(axis=1))[:, None]
    columns = {
        "store": np.repeat(np.arange(6), 50),
        "root": np.tile(np.arange(50), 6),
        "hits": (hits * each).sum(axis=1).ravel(),
        "cases": np.tile((cases * each).sum(axis=0), 6),
        "squares": np.tile((cases * each**2).sum(axis=0), 6),
    }
    sql.register("drawn", pa.table(columns))
    lists = ", ".join(f"list({name} ORDER BY root)" for name in ("hits", "cases", "squares"))
    found = sql.execute(
        f"SELECT unnest(weighted_at({lists}, 0.95)) FROM drawn GROUP BY store ORDER BY store"
    )
    names = [column[0] for column in found.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    expected = standardise(hits, cases, (8, 4, 2, 1, 1))
    for name, column in (("lo", expected.lo), ("hi", expected.hi), ("n_eff", expected.n_eff)):
        np.testing.assert_allclose([row[name] for row in rows], column, atol=1e-9)
