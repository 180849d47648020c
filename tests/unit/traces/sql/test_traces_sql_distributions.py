"""Distributions, tests and sample sizes in SQL, against scipy and statsmodels."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
    near,
)
from tests.support.tiers import examples

DRAWN = 3000


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def values(sql: Sql, expression: str) -> tuple[object, ...]:
    [found] = sql.execute(f"SELECT {expression}").fetchall()
    return found


def computed(sql: Sql, expression: str, **columns: np.ndarray) -> np.ndarray:
    """The expression over rows that are the columns given."""
    sql.register("drawn", pa.table(columns))
    try:
        return np.ma.filled(sql.execute(f"SELECT {expression} AS y FROM drawn").fetchnumpy()["y"])
    finally:
        sql.unregister("drawn")


def close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def rng() -> np.random.Generator:
    return np.random.default_rng(6)


def around(rng: np.random.Generator, a: np.ndarray) -> np.ndarray:
    near_mean = np.abs(a + 4 * rng.normal(size=len(a)) * np.sqrt(a))
    return np.where(rng.random(len(a)) < 0.5, near_mean, a * 10 ** rng.uniform(-1, 1, len(a)))


@pytest.mark.gate
def test_incomplete_gamma(sql: Sql, rng: np.random.Generator) -> None:
    a = 10 ** rng.uniform(-1, 4, DRAWN)
    x = around(rng, a)
    close(computed(sql, "gamma_p(a, x)", a=a, x=x), scipy.special.gammainc(a, x))
    close(computed(sql, "gamma_q(a, x)", a=a, x=x), scipy.special.gammaincc(a, x))


def test_incomplete_beta(sql: Sql, rng: np.random.Generator) -> None:
    a, b = 10 ** rng.uniform(-1, 4, DRAWN), 10 ** rng.uniform(-1, 4, DRAWN)
    x = rng.beta(a, b)
    close(computed(sql, "beta_i(a, b, x)", a=a, b=b, x=x), scipy.special.betainc(a, b, x))


@pytest.mark.gate
def test_chi_squared(sql: Sql, rng: np.random.Generator) -> None:
    df = rng.integers(1, 200, DRAWN).astype(float)
    x = around(rng, df)
    close(computed(sql, "chi2_cdf(x, df)", x=x, df=df), scipy.stats.chi2.cdf(x, df))
    close(computed(sql, "chi2_sf(x, df)", x=x, df=df), scipy.stats.chi2.sf(x, df))


@pytest.mark.gate
def test_normal(sql: Sql, rng: np.random.Generator) -> None:
    z, p = rng.uniform(-8, 8, DRAWN), scipy.stats.norm.cdf(rng.uniform(-7, 7, DRAWN))
    close(computed(sql, "norm_cdf(z)", z=z), scipy.stats.norm.cdf(z))
    close(computed(sql, "norm_ppf(p)", p=p), scipy.stats.norm.ppf(p))
    np.testing.assert_allclose(computed(sql, "norm_sf(z)", z=z), scipy.stats.norm.sf(z), rtol=1e-9)


@pytest.mark.gate
def test_students_t(sql: Sql, rng: np.random.Generator) -> None:
    df = np.floor(10 ** rng.uniform(0, 4, DRAWN))
    x, p = 1.5 * rng.standard_t(df), rng.uniform(0.0001, 0.9999, DRAWN)
    close(computed(sql, "t_cdf(x, df)", x=x, df=df), scipy.stats.t.cdf(x, df))
    close(computed(sql, "t_sf(x, df)", x=x, df=df), scipy.stats.t.sf(x, df))
    close(computed(sql, "t_ppf(p, df)", p=p, df=df), scipy.stats.t.ppf(p, df))


def test_the_edges_of_distributions(sql: Sql) -> None:
    assert values(sql, "norm_ppf(0), norm_ppf(1), norm_ppf(0.5), norm_cdf(0)") == (
        float("-inf"),
        float("inf"),
        0,
        0.5,
    )
    assert (
        values(sql, "norm_ppf(-0.1), norm_ppf(1.1), norm_cdf(NULL), t_ppf(0.9, 0)") == (None,) * 4
    )
    assert values(sql, "t_ppf(0.5, 7), t_cdf(0, 7), t_ppf(0.975, 'inf'::DOUBLE)") == (
        0,
        0.5,
        near(1.959963984540054),
    )
    assert values(sql, "chi2_sf(0, 3), chi2_sf(-1, 3), chi2_sf(1, 0), gamma_q(1, NULL)") == (
        1,
        None,
        None,
        None,
    )


@pytest.mark.gate
@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (1, 500), (499, 500), (47, 282)])
def test_the_exact_interval_is_clopper_and_pearsons(sql: Sql, k: int, n: int) -> None:
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(k, n, method="beta")
    low, high = (0 if k == 0 else low), (1 if k == n else high)
    assert values(sql, f"exact_lo({k}, {n}, 0.95), exact_hi({k}, {n}, 0.95)") == (
        near(low),
        near(high),
    )
    assert values(sql, "exact_lo(0, 0, 0.95), exact_hi(NULL, 3, 0.95)") == (None, None)


@pytest.mark.gate
@pytest.mark.parametrize("n", [30, 50, 100, 199])
@pytest.mark.parametrize(("p1", "p2"), [(0.8, 0.9), (0.02, 0.05), (0.5, 0.5), (0.9, 0.6)])
def test_power_is_that_of_two_proportions(sql: Sql, p1: float, p2: float, n: int) -> None:
    from statsmodels.stats.proportion import power_proportions_2indep

    expected = power_proportions_2indep(p1 - p2, p2, n, alpha=0.05).power
    assert values(sql, f"rates_power({p1}, {p2}, {n}, 0.05)") == (near(expected),)


@pytest.mark.parametrize(
    ("sum", "expected"),
    [
        ("rates_needed(.80, .90, .05, .8)", 199),
        ("rates_needed(.80, .90, .05, .9)", 266),
        ("rates_needed(.85, .90, .05, .8)", 686),
        ("rates_needed(.90, .95, .05, .8)", 435),
        ("rates_needed(.60, .80, .05, .8)", 82),
        ("rates_needed(.02, .05, .05, .8)", 588),
        ("pairs_needed(.10, .10, .05, .8)", 77),
        ("pairs_needed(.10, .14, .05, .8)", 108),
        ("pairs_needed(.10, .20, .05, .8)", 155),
        ("pairs_needed(.10, .26, .05, .8)", 202),
        ("one_sample_needed(.90, .80, .05, .8)", 108),
        ("design_effect(10, .2)", 2.8),
        ("rates_needed(.8, .8, .05, .8)", None),
    ],
)
def test_sample_sizes_are_those_of_the_book(sql: Sql, sum: str, expected: float | None) -> None:
    assert values(sql, sum) == (near(expected) if expected else None,)


FAMILY = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@pytest.mark.gate
@settings(max_examples=examples(6), deadline=None)
@given(families=st.lists(FAMILY, min_size=1, max_size=30))
def test_holm_adjusts_a_family(sql: Sql, families: list[list[float]]) -> None:
    from statsmodels.stats.multitest import multipletests

    sql.register("drawn", pa.table({"ps": pa.array(families, pa.list_(pa.float64()))}))
    found = sql.execute("SELECT holm(ps) FROM drawn").fetchall()
    sql.unregister("drawn")
    for [adjusted], ps in zip(found, families, strict=True):
        assert adjusted == near(list(multipletests(ps, method="holm")[1]))


def test_holm_passes_over_what_is_unknown(sql: Sql) -> None:
    assert values(sql, "holm([0.01, NULL, 0.04]), holm([]::DOUBLE[])") == ([0.02, None, 0.04], [])


LABELS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1)


@pytest.mark.gate
@settings(max_examples=examples(60), deadline=None)
@given(labels=LABELS)
def test_kappa_is_cohens(sql: Sql, labels: list[tuple[str, str]]) -> None:
    from statsmodels.stats.inter_rater import cohens_kappa

    pairs = Counter(labels)
    table = np.array([[pairs[a, b] for b in "abc"] for a in "abc"])
    said, also = ([pair[k] for pair in labels] for k in (0, 1))
    [found] = values(sql, f"kappa({said}, {also})")
    if (table.sum(0) * table.sum(1)).sum() == len(labels) ** 2:
        assert found is None
    else:
        assert found == near(float(cohens_kappa(table, return_results=False)))


def test_detection_and_correction(sql: Sql) -> None:
    expected = scipy.stats.norm.ppf(0.8) - scipy.stats.norm.ppf(0.1)
    assert values(sql, "d_prime(0.8, 0.1), d_prime(1, 0.1), d_prime(NULL, 0.1)") == (
        near(expected),
        None,
        None,
    )
    assert values(sql, "rogan_gladen(.58, .90, .96), rogan_gladen(.01, .9, .96)") == (
        near(0.54 / 0.86),
        0,
    )
    assert values(sql, "rogan_gladen(.58, .5, .5), rogan_gladen(NULL, .9, .9)") == (None, None)
    assert values(sql, "kappa([]::VARCHAR[], []::VARCHAR[]), youden(.8, .1)") == (None, near(0.7))
