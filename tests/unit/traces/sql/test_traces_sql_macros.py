"""The numbers that all rates are made of, against other people's implementations."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
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

CLUSTERED = "SELECT unnest(clustered($hits::DOUBLE[], $cases::DOUBLE[]))"
AT = "SELECT unnest(clustered_at($hits::DOUBLE[], $cases::DOUBLE[], $confidence::DOUBLE))"


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def values(sql: Sql, expression: str) -> tuple[object, ...]:
    found = sql.execute(f"SELECT {expression}").fetchone()
    assert found is not None
    return found


def clustered(
    sql: Sql, hits: Sequence[float], cases: Sequence[float], confidence: float | None = None
) -> dict[str, float | str | None]:
    told: dict[str, object] = {"hits": list(hits), "cases": list(cases)}
    at = {"confidence": confidence} if confidence else {}
    answer = sql.execute(AT if at else CLUSTERED, told | at)
    names = [column[0] for column in answer.description or ()]
    return dict(zip(names, answer.fetchall()[0], strict=True))


@pytest.mark.parametrize("k", range(31))
def test_wilson_is_the_score_interval(sql: Sql, k: int) -> None:
    from statsmodels.stats.proportion import proportion_confint

    z = 1.959963984540054
    low, high = proportion_confint(k, 30, method="wilson")
    assert values(sql, f"wilson_lo({k}, 30, {z}), wilson_hi({k}, 30, {z})") == (
        near(low),
        near(high),
    )


def test_wilson_of_nothing_is_nothing(sql: Sql) -> None:
    assert values(sql, "wilson_lo(0, 0, 2), wilson_hi(0, 0, 2)") == (None, None)
    assert values(sql, "wilson_lo(NULL, 3, 2), wilson_hi(1, NULL, 2)") == (None, None)


@pytest.mark.parametrize("df", [*range(1, 61), 99, 120, 1000, 99_999])
def test_the_quantile_that_intervals_use_is_that_of_t(sql: Sql, df: int) -> None:
    assert values(sql, f"t975({df})") == (near(scipy.stats.t.ppf(0.975, df)),)


def test_t_has_no_quantile_without_freedom(sql: Sql) -> None:
    assert values(sql, "t975(0), t975(NULL), t975('inf'::DOUBLE)") == (
        None,
        None,
        near(1.959963984540054),
    )


@pytest.mark.parametrize(("n", "c", "k"), [(8, 5, 3), (4, 4, 4), (4, 0, 1), (10, 3, 4), (7, 1, 1)])
def test_pass_hat_k_counts_subsets(sql: Sql, n: int, c: int, k: int) -> None:
    hat, at = values(sql, f"pass_hat_k({n}, {c}, {k}), pass_at_k({n}, {c}, {k})")
    assert hat == near(scipy.special.comb(c, k) / scipy.special.comb(n, k))
    assert at == near(1 - scipy.special.comb(n - c, k) / scipy.special.comb(n, k))


def test_pass_hat_k_of_more_than_there_is_is_unknown(sql: Sql) -> None:
    assert values(sql, "pass_hat_k(1, 1, 2), pass_at_k(1, 0, 2)") == (None, None)


@pytest.mark.parametrize(("b", "c"), [(0, 0), (5, 1), (3, 3), (12, 4), (0, 7)])
def test_mcnemar_is_exact(sql: Sql, b: int, c: int) -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    exact, midp = values(sql, f"mcnemar_exact({b}, {c}), mcnemar_midp({b}, {c})")
    assert exact == near(mcnemar([[0, b], [c, 0]], exact=True).pvalue if b + c else 1.0)
    if b + c:
        minimum = scipy.stats.binomtest(min(b, c), b + c).pvalue
        assert midp == near(minimum - scipy.stats.binom.pmf(min(b, c), b + c, 0.5))


@pytest.mark.parametrize(("k", "p"), [(0, 0.3), (4, 0.3), (9, 0.9), (10, 0.2), (3, 0.0), (3, 1.0)])
def test_the_binomial_distribution(sql: Sql, k: int, p: float) -> None:
    assert values(sql, f"binom_cdf({k}, 10, {p}::DOUBLE)") == (
        near(scipy.stats.binom.cdf(k, 10, p)),
    )


def anova_rho(hits: np.ndarray, each: int) -> float:
    """The intraclass correlation of equal clusters, from scipy's analysis of variance."""
    outcomes = [np.repeat([1.0, 0.0], [h, each - h]) for h in hits]
    ratio = float(scipy.stats.f_oneway(*outcomes).statistic)
    return (ratio - 1) / (ratio + each - 1)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_a_clustered_rate_has_the_error_of_its_clusters(sql: Sql, confidence: float) -> None:
    hits, each = np.array([3, 0, 5, 1, 4, 0, 2, 6]), 6
    clusters, cases = len(hits), 6 * len(hits)
    rho, rate = anova_rho(hits, each), hits.sum() / cases
    moments = cases / (1 + (each - 1) * rho)
    informing = 6.0
    n_eff = np.exp((informing * np.log(moments) + 3 * np.log(clusters)) / (informing + 3))
    x, quantile = rate * n_eff, scipy.stats.t.ppf((1 + confidence) / 2, 2 * (clusters - 1))
    found = clustered(sql, [int(h) for h in hits], [each] * clusters, confidence)
    assert 0 < rho < 1
    assert (found["rate"], found["effective"], found["df"]) == (near(rate), clusters, near(14))
    assert found["n_eff"] == near(n_eff)
    assert found["lo"] == near(wilson((x - 0.5 / x) / n_eff, n_eff, quantile)[0])
    misses = n_eff - x
    assert found["hi"] == near(1 - wilson((misses - 0.5 / misses) / n_eff, n_eff, quantile)[0])
    if confidence == 0.95:
        usual = clustered(sql, [int(h) for h in hits], [each] * clusters)
        assert (found["lo"], found["hi"]) == (near(usual["lo"]), near(usual["hi"]))


def wilson(rate: float, n: float, z: float) -> tuple[float, float]:
    middle = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return middle - half, middle + half


def test_clusters_that_are_more_alike_than_chance_gain_nothing(sql: Sql) -> None:
    """A negative correlation is taken for none, and that is drawn to the ten clusters."""
    found = clustered(sql, [1] * 10, [2] * 10)
    assert found["n_eff"] == near(20 * (10 / 20) ** (3 / 13))


def test_one_hit_does_not_tell_how_alike_a_trace_is(sql: Sql) -> None:
    """The weight of its trace is one, against three for what is not known."""
    [none, one] = [clustered(sql, [*([0] * 29), k], [10] * 30) for k in (0, 1)]
    assert one["n_eff"] == pytest.approx(300**0.25 * 30**0.75, rel=1e-2)
    assert none["hi"] == near(1 - 0.05 ** (1 / 30))
    assert none["reason"] == one["reason"] == "conservative"


@pytest.mark.parametrize("others", [4, 7, 30])
def test_a_cluster_that_holds_most_cases_leaves_no_interval(sql: Sql, others: int) -> None:
    found = clustered(sql, [30, *([1, 0] * others)[:others]], [60, *([1] * others)])
    assert found["rate"] is not None
    assert (found["lo"], found["hi"], found["reason"]) == (None, None, "few_effective_traces")


def test_sizes_from_one_to_ten_thousand_are_weighed(sql: Sql) -> None:
    cases = [1, 10, 100, 1000, 10_000] * 6
    found = clustered(sql, [each // 2 for each in cases], cases)
    effective = sum(cases) ** 2 / sum(each**2 for each in cases)
    assert found["effective"] == near(effective)
    assert (found["reason"], found["n_eff"]) != (None, near(effective))
    assert found["lo"] is not None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_number_has_no_rate(sql: Sql, bad: float) -> None:
    for hits, cases in (([1.0, bad] * 4, [2.0, 2.0] * 4), ([1.0, 1.0] * 4, [2.0, bad] * 4)):
        found = clustered(sql, hits, cases)
        assert (found["rate"], found["lo"], found["reason"]) == (None, None, "not_a_number")


def test_weighted_cases_count_by_their_squares(sql: Sql) -> None:
    """Cases of weight two are half as many as those of one; all of another weight are no more."""
    asking = "SELECT (weighted_at($h::DOUBLE[], $c::DOUBLE[], $s::DOUBLE[], 0.95)).n_eff"
    hits, cases = [2.0, 1, 0, 3, 1, 2], [4.0] * 6

    def n_eff(scale: float, squares: float) -> object:
        told = {"h": [scale * h for h in hits], "c": [scale * c for c in cases]}
        row = sql.execute(asking, told | {"s": [squares * c for c in cases]}).fetchone()
        assert row
        return row[0]

    assert n_eff(3, 9) == near(n_eff(2, 4))
    assert n_eff(3, 9) <= n_eff(1, 1)  # type: ignore[operator]
    assert n_eff(1, 2) < n_eff(1, 1)  # type: ignore[operator]


@pytest.mark.parametrize("hits", [0, 4])
def test_where_all_agree_a_cluster_is_one_case(sql: Sql, hits: int) -> None:
    found = clustered(sql, [hits] * 6, [4] * 6)
    bound = 0.05 ** (1 / 6)
    assert (found["lo"], found["hi"]) == ((0, near(1 - bound)) if not hits else (near(bound), 1))
    assert found["n_eff"] == 6


def test_four_clusters_have_a_rate_and_no_interval(sql: Sql) -> None:
    found = clustered(sql, [1, 2, 0, 3, 0], [3, 3, 3, 3, 0])
    assert (found["rate"], found["lo"], found["hi"]) == (0.5, None, None)
    assert (found["clusters"], found["reason"]) == (4, "few_traces")
    assert clustered(sql, [0], [0])["reason"] == "no_cases"


@pytest.mark.parametrize("cases", [[], [0, 0, 0, 0, 0, 0]])
def test_no_cases_have_no_rate(sql: Sql, cases: list[int]) -> None:
    found = clustered(sql, [0] * len(cases), cases)
    assert (found["rate"], found["lo"], found["hi"]) == (None, None, None)


CLUSTER = st.integers(0, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.gate
@settings(max_examples=examples(150), deadline=None)
@given(clusters=st.lists(CLUSTER, min_size=1, max_size=30))
def test_an_interval_holds_its_rate(sql: Sql, clusters: list[tuple[int, int]]) -> None:
    found = clustered(sql, [hits for hits, _ in clusters], [cases for _, cases in clusters])
    numbers = [each for each in found.values() if isinstance(each, float)]
    assert not any(math.isnan(each) or math.isinf(each) for each in numbers)
    if found["lo"] is not None:
        low, rate, high = (found[name] for name in ("lo", "rate", "hi"))
        assert isinstance(low, float)
        assert isinstance(rate, float)
        assert isinstance(high, float)
        assert 0 <= low <= rate + 1e-12
        assert rate - 1e-12 <= high <= 1
