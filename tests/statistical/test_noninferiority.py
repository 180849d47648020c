"""How often `stumble gate --against` is wrong: simulated roots of a known difference.

A candidate that is worse by exactly the margin is passed in at most alpha of the repetitions, also
with several looks, whatever the size and likeness of roots; and one that is as good is passed.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from stumble.experiments.seals.alpha_spending import SPENDINGS, Spending, compute_look_levels
from stumble.experiments.seals.plan_progress import compute_look_sizes
from tests.statistical.grids.cells import QUANTILES
from tests.support.stores.difference_bounds import (
    Bounds,
    compute_paired_bounds,
    compute_unpaired_bounds,
)
from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
)
from tests.support.stores.simulated_stores import Numbers

REPETITIONS = 1000
ALPHA = 0.05
CHANCE = (ALPHA * (1 - ALPHA) / REPETITIONS) ** 0.5
"""One standard error of a share of alpha."""
MOST = ALPHA + 3.5 * CHANCE
"""A share that one of some hundred cells exceeds by chance in one of forty suites."""
SEED = 15

COMPUTED: Mapping[str, Callable[..., Bounds]] = {
    "paired_bounds": compute_paired_bounds,
    "unpaired_bounds": compute_unpaired_bounds,
}
COMPARED = 20
"""Rows of each list that the SQL has to give alike."""

pytestmark = [pytest.mark.many(2), pytest.mark.timeout(900)]
"""A cell is a few seconds of processor time, of which a busy machine has little."""


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


@dataclass
class Bounding:
    """Gives bounds by numpy, and keeps some of the rows to hold the SQL against them."""

    kept: dict[str, list[tuple[object, ...]]] = field(default_factory=lambda: defaultdict(list))

    def __call__(self, name: str, level: float, *lists: Numbers) -> Bounds:
        """Lower and upper bounds, one of each for every row of the lists."""
        lower, upper = COMPUTED[name](*lists, level)
        columns = [each[:COMPARED].tolist() for each in lists]
        levels = itertools.repeat(level)
        self.kept[name] += zip(*columns, levels, lower, upper, strict=False)
        return lower, upper


@pytest.fixture
def bounds(sql: Sql) -> Iterator[Bounding]:
    """One query of each macro for all levels: to plan one takes .7 s, a row hardly anything."""
    found = Bounding()
    yield found
    for name, rows in found.kept.items():
        *arguments, lower, upper = zip(*rows, strict=True)
        columns = {f"c{number}": each for number, each in enumerate(arguments)}
        sql.register("drawn", pa.table(columns))
        each = f"{name}({', '.join(columns)})"
        said = sql.execute(f"SELECT b.lower, b.upper FROM (SELECT {each} AS b FROM drawn)")
        computed = np.column_stack((lower, upper))
        np.testing.assert_allclose(np.array(said.fetchall(), float), computed, rtol=0, atol=1e-7)
        sql.unregister("drawn")


def sizes(roots: int, cells: Sequence[int]) -> Numbers:
    return np.resize(np.array(cells), roots)


def chances(quantiles: Numbers, rate: float, icc: float) -> Numbers:
    """The rate of each root, beta about the mean, at these quantiles: linear between 4,001 of them.

    The mean is then off by some 1e-5, which is nothing beside margins of .05 and more.
    """
    if icc == 0 or rate in (0, 1):
        return np.full(quantiles.shape, rate)
    spread = (1 - icc) / icc
    at: Numbers = stats.beta.ppf(QUANTILES, rate * spread, (1 - rate) * spread)
    found: Numbers = np.interp(quantiles, QUANTILES, at)
    return found


def shares(rng: np.random.Generator, cells: Numbers, rates: Numbers) -> Numbers:
    """The share of good cells of each root."""
    found: Numbers = rng.binomial(cells, rates) / cells
    return found


SIZES = ((5,), (10,), (60,), (1, 2, 5, 40))


@pytest.mark.parametrize("icc", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("roots", [8, 20, 50])
@pytest.mark.parametrize("paired", [True, False])
def test_what_is_worse_by_the_margin_rarely_passes(
    bounds: Bounding, paired: bool, roots: int, icc: float
) -> None:
    """`silent` at .02 and .05 is the arm's rate of .98 and .95; the margins are .05 and .2."""
    rng = np.random.default_rng([SEED, paired, roots, int(10 * icc)])
    passed, failed = [], []
    for each in SIZES:
        for rate, margin in ((0.95, 0.05), (0.5, 0.05), (0.98, 0.2), (0.22, 0.2)):
            at = rng.random((REPETITIONS, roots))
            apart = rng.random((REPETITIONS, roots)) if not paired else at
            cells = sizes(roots, each)
            candidate = shares(rng, cells, chances(at, rate - margin, icc))
            baseline = shares(rng, cells, chances(apart, rate, icc))
            lower, upper = (
                bounds("paired_bounds", ALPHA, candidate - baseline)
                if paired
                else bounds("unpaired_bounds", ALPHA, candidate, baseline)
            )
            passed.append(float(np.mean(lower > -margin + 1e-9)))
            failed.append(float(np.mean(upper < -margin - 1e-9)))
    print(f"paired {paired}, {roots} roots, icc {icc}: passed {passed}, failed {failed}")
    assert max(passed) <= MOST
    assert max(failed) <= MOST
    assert np.mean(passed) <= ALPHA


@pytest.mark.parametrize("margin", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("roots", [20, 50, 100])
@pytest.mark.parametrize("paired", [True, False])
def test_whole_roots_that_are_lost_are_not_overlooked(
    bounds: Bounding, paired: bool, roots: int, margin: float
) -> None:
    """The candidate is as good as the baseline, but for a few roots in which it does nothing."""
    rng = np.random.default_rng([SEED, paired, roots, int(100 * margin)])
    cells = sizes(roots, (10,))
    good = np.full((REPETITIONS, roots), 0.95)
    lost = rng.random(good.shape) < margin / 0.95
    baseline = shares(rng, cells, good)
    candidate = np.where(lost, 0, baseline if paired else shares(rng, cells, good))
    lower, _ = (
        bounds("paired_bounds", ALPHA, candidate - baseline)
        if paired
        else bounds("unpaired_bounds", ALPHA, candidate, baseline)
    )
    assert np.mean(lower > -margin + 1e-9) <= MOST


def looks(
    bounds: Bounding, differences: Numbers, margin: float, count: int, spending: Spending
) -> tuple[float, float, float]:
    """The share that passes, and that fails, at any look, and the mean share of roots it takes."""
    roots = differences.shape[1]
    at = compute_look_sizes([(number + 1) / count for number in range(count)], roots)
    passed = failed = np.zeros(len(differences), dtype=bool)
    took = np.full(len(differences), roots)
    for size, level in zip(
        at, compute_look_levels([n / roots for n in at], ALPHA, spending), strict=True
    ):
        lower, upper = bounds("paired_bounds", level, differences[:, :size])
        done = passed | failed
        passed = passed | ~done & (lower > -margin + 1e-9)
        failed = failed | ~done & (upper < -margin - 1e-9)
        took = np.where(~done & (passed | failed), size, took)
    return float(passed.mean()), float(failed.mean()), float(took.mean() / roots)


@pytest.mark.parametrize("spending", SPENDINGS)
@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("rate", [0.95, 0.5])
def test_many_looks_spend_alpha_once(
    bounds: Bounding, rate: float, count: int, spending: Spending
) -> None:
    rng = np.random.default_rng([SEED, count, int(100 * rate)])
    cells, at, margin = sizes(60, (10,)), rng.random((REPETITIONS, 60)), 0.1
    candidate = shares(rng, cells, chances(at, rate - margin, 0.2))
    found = candidate - shares(rng, cells, chances(at, rate, 0.2))
    passed, failed, _ = looks(bounds, found, margin, count, spending)
    print(f"rate {rate}, {count} looks, {spending}: passed {passed}, failed {failed}")
    assert passed <= MOST
    assert failed <= MOST


def test_one_that_looks_without_spending_would_pass_too_often(bounds: Bounding) -> None:
    """What the boundaries are for: the same looks, each at alpha, at roots that are won or lost."""
    rng = np.random.default_rng(SEED)
    found = rng.choice([-1.0, 0.0, 1.0], (REPETITIONS, 200), p=[0.45, 0.3, 0.25])
    passed = np.zeros(REPETITIONS, dtype=bool)
    for size in (40, 80, 120, 160, 200):
        passed |= bounds("paired_bounds", ALPHA, found[:, :size])[0] > -0.2
    print(f"passed {passed.mean()}")
    assert passed.mean() > MOST


@pytest.mark.parametrize(
    ("roots", "margin", "power"), [(20, 0.2, 0.85), (50, 0.1, 0.85), (100, 0.05, 0.75)]
)
def test_one_that_is_as_good_passes(
    bounds: Bounding, roots: int, margin: float, power: float
) -> None:
    rng = np.random.default_rng([SEED, roots])
    cells, at = sizes(roots, (10,)), rng.random((REPETITIONS, roots))
    rates = chances(at, 0.8, 0.2)
    found = shares(rng, cells, rates) - shares(rng, cells, rates)
    passed, failed, took = looks(bounds, found, margin, 4, "obrien-fleming")
    print(f"{roots} roots, margin {margin}: passed {passed}, failed {failed}, took {took:.2f}")
    assert passed >= power
    assert failed == 0
    assert looks(bounds, found, margin, 1, "obrien-fleming")[0] >= passed - 0.02


def test_one_that_is_much_worse_fails_early(bounds: Bounding) -> None:
    rng = np.random.default_rng(SEED)
    cells, at = sizes(40, (10,)), rng.random((REPETITIONS, 40))
    candidate = shares(rng, cells, chances(at, 0.4, 0.2))
    found = candidate - shares(rng, cells, chances(at, 0.9, 0.2))
    passed, failed, took = looks(bounds, found, 0.1, 4, "pocock")
    assert passed == 0
    assert failed >= 0.99
    assert took < 0.7


def test_what_the_page_of_seals_promises_of_roots_and_repetitions() -> None:
    """A candidate that passes as often as the baseline, 80 % of its runs at every root."""

    def find_passed(roots: int, repetitions: int, margin: float, rate: float = 0.8) -> float:
        rng = np.random.default_rng([SEED, roots, repetitions])
        cells = np.full((REPETITIONS, roots), repetitions)
        candidate, baseline = (shares(rng, cells, np.full(cells.shape, rate)) for _ in range(2))
        lower, _ = compute_paired_bounds(candidate - baseline, ALPHA)
        return float(np.mean(lower > -margin))

    assert find_passed(14, 1, 0.2, rate=1.0) == find_passed(29, 1, 0.1, rate=1.0) == 1.0
    assert find_passed(13, 1, 0.2, rate=1.0) == 0.0
    assert 0.2 < find_passed(14, 1, 0.2) < 0.45  # a third of all plans
    assert 0.7 < find_passed(59, 1, 0.2) < 0.9  # four fifths
    assert find_passed(29, 10, 0.2) > 0.97  # nearly all
