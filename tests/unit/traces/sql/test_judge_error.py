"""The rate behind a judge that errs: its interval holds the truth, which what was read does not."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from tests.support.stores.in_memory_relations import Sql, empty

COVERAGE = """
WITH read AS (
    SELECT
        clustered(
            list_transform(range($cases), lambda each: (each < hits)::INT::DOUBLE),
            list_transform(range($cases), lambda each: 1::DOUBLE)
        ) AS apparent,
        {
            'positives': positives,
            'read_positive': read_positive,
            'negatives': negatives,
            'read_negative': read_negative
        } AS judge
    FROM draws
)

SELECT apparent.lo, apparent.hi, behind.lo, behind.hi
FROM (SELECT apparent, behind_judge(apparent, judge) AS behind FROM read)
"""


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def draw(sql: Sql, rate: float, sensitivity: float, specificity: float, cases: int) -> None:
    """Draw 1,000 studies of so many cases, with half as many labels, a fifth of them positive."""
    rng = np.random.default_rng(8)
    read = rate * sensitivity + (1 - rate) * (1 - specificity)
    labels = cases // 2
    positives = rng.binomial(labels, max(rate, 0.2), 1000)
    columns = {
        "hits": rng.binomial(cases, read, 1000),
        "positives": positives,
        "read_positive": rng.binomial(positives, sensitivity),
        "negatives": labels - positives,
        "read_negative": rng.binomial(labels - positives, specificity),
    }
    unnested = ", ".join(f"unnest(${name}::BIGINT[]) AS {name}" for name in columns)
    values = {name: column.tolist() for name, column in columns.items()}
    sql.execute(f"CREATE OR REPLACE TEMP TABLE draws AS SELECT {unnested}", values)


@pytest.mark.gate
@pytest.mark.parametrize(
    ("rate", "sensitivity", "specificity", "cases"),
    [(0.02, 0.9, 0.97, 100), (0.1, 0.9, 0.95, 100), (0.3, 0.8, 0.9, 80), (0.9, 0.95, 0.9, 60)],
)
def test_the_interval_holds_the_rate_behind_the_judge(
    sql: Sql, rate: float, sensitivity: float, specificity: float, cases: int
) -> None:
    draw(sql, rate, sensitivity, specificity, cases)
    found = np.array(sql.execute(COVERAGE, {"cases": cases}).fetchall(), float)
    lo, hi, behind_lo, behind_hi = found.T
    covered = np.mean((behind_lo <= rate) & (rate <= behind_hi))
    assert covered >= 0.93
    if rate < 0.2:
        assert np.mean((lo <= rate) & (rate <= hi)) < 0.9, "what was read does not hold it"
    assert np.median(behind_hi - behind_lo) >= np.median(hi - lo)


def test_a_judge_that_never_errs_changes_little_with_many_labels(sql: Sql) -> None:
    [(rate, lo, hi)] = sql.execute(
        "SELECT b.rate, b.lo, b.hi FROM (SELECT behind_judge({'rate': .3, 'n_eff': 100, 't': 1.96, "
        "'lo': .22, 'hi': .4}, {'positives': 90000, 'read_positive': 90000, 'negatives': 90000, "
        "'read_negative': 90000}) AS b)"
    ).fetchall()
    wilson = stats.binomtest(30, 100).proportion_ci(method="wilson")
    assert rate == pytest.approx(0.3)
    assert lo == pytest.approx(wilson.low, abs=0.01)
    assert hi == pytest.approx(wilson.high, abs=0.01)


def test_a_judge_no_better_than_a_coin_gives_no_rate(sql: Sql) -> None:
    [(found,)] = sql.execute(
        "SELECT behind_judge({'rate': .3, 'n_eff': 100, 't': 1.96, 'lo': .2, 'hi': .4}, "
        "{'positives': 10, 'read_positive': 4, 'negatives': 10, 'read_negative': 5})"
    ).fetchall()
    assert found is None
