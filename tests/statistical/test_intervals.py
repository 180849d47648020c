"""How often 95 % intervals of clustered rates hold the truth, over a thousand stores for each cell.

A cell is a number of root recordings, injections in each, intraclass correlation and rate. The
stores of a cell are the groups of one query.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
)
from tests.support.stores.simulated_stores import (
    Numbers,
    rates,
    struck,
)

STORES = 1000
LEAST, MOST = 0.92, 0.985
"""What every printed interval covers, and above what it says that it is conservative."""
SAYING = 0.8
"""The share of rows that say so, in a cell above it; the rows differ by what was drawn."""
ROOTS = (8, 20, 50)
SIZES = {"5": (5,), "10": (10,), "60": (60,), "uneven": (1, 2, 5, 40)}
ICCS = (0.0, 0.2, 0.5)
RATES = (0.02, 0.05, 0.5, 0.95)
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
        FROM drawn GROUP BY store
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


def coverage(sql: Sql, query: str, truth: float) -> dict[str, float]:
    """Of the intervals that are printed: the share that holds the truth, and that is marked."""
    found = sql.execute(
        f"""
        SELECT
            count(lo) AS printed,
            avg((lo <= $t AND hi >= $t)::INT) FILTER (lo IS NOT NULL) AS covered,
            avg((reason = 'conservative')::INT) FILTER (lo IS NOT NULL) AS conservative,
            count(*) FILTER (lo IS NULL AND reason IS NULL) AS unexplained
        FROM ({query})
        """,
        {"t": truth},
    )
    names = [column[0] for column in found.description or ()]
    return dict(zip(names, found.fetchall()[0], strict=True))


def check(found: dict[str, float]) -> None:
    assert found["unexplained"] == 0
    if found["printed"]:
        assert found["covered"] >= LEAST
        assert found["covered"] <= MOST or found["conservative"] >= SAYING


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("roots", ROOTS)
def test_printed_intervals_cover(sql: Sql, roots: int, size: str) -> None:
    printed = 0.0
    for icc, rate in itertools.product(ICCS, RATES):
        sql.register("drawn", drawn(*counts(roots, SIZES[size], icc, rate)))
        found = coverage(sql, INTERVALS, rate)
        print(f"{roots} roots of {size}, icc {icc}, rate {rate}: {found}")
        check(found)
        printed += found["printed"]
    few = (roots, size) == (8, "uneven")
    assert printed == (0 if few else STORES * len(ICCS) * len(RATES))


@pytest.mark.parametrize(
    ("roots", "icc", "rate"), [(8, 0.5, 0.05), (20, 0.5, 0.5), (50, 0.2, 0.02)]
)
def test_the_view_prints_the_same_intervals(sql: Sql, roots: int, icc: float, rate: float) -> None:
    rng = np.random.default_rng([SEED, roots])
    chances = rates(rng, rate, icc, STORES, roots)
    silent = rng.random((*chances.shape, 10)) < chances[:, :, None]
    struck(sql, silent)
    sql.register("drawn", drawn(silent.sum(axis=2), np.full(chances.shape, 10)))
    view = """
        SELECT silent_rate_lo AS lo, silent_rate_hi AS hi, silent_rate_reason AS reason
        FROM recovery
    """
    found = coverage(sql, view, rate)
    assert found == coverage(sql, INTERVALS, rate)
    check(found)


@pytest.mark.parametrize("others", [4, 5, 6, 7])
def test_a_dominated_store_prints_none(sql: Sql, others: int) -> None:
    sizes = (60, *([1] * others))
    for icc, rate in itertools.product(ICCS, RATES):
        sql.register("drawn", drawn(*counts(len(sizes), sizes, icc, rate)))
        assert coverage(sql, INTERVALS, rate)["printed"] == 0
