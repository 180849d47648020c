"""Rates: `recovery` and all that has its interval, `standardised`, and `gate` with `by`."""

from collections.abc import Iterator

import numpy as np
from scipy import stats

from tests.statistical.grids.cells import QUANTILES, Cell
from tests.statistical.grids.outcome import Outcome, covering
from tests.support.stores.clustered_rates import Rates, rates_over_clusters, weighted_rates
from tests.support.stores.simulated_stores import Numbers

MIXES = {"equal weights": (1, 1, 1, 1, 1), "weights 8 4 2 1 1": (8, 4, 2, 1, 1)}
APART = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""How far the log odds of five operators lie from those of the rate of the cell."""
GATED = 15
"""Operators of a gate."""


def recovery(cell: Cell) -> Iterator[Outcome]:
    """The clustered rate, and a gate whose limit is the truth."""
    rng = cell.rng("recovery")
    found = rates_over_clusters(rng.binomial(cell.cases, cell.chances(rng)), cell.cases)
    yield covering(
        "recovery",
        cell,
        found.lo,
        found.hi,
        found.is_conservative,
        cell.rate,
        alarms=float(np.mean(found.lo > cell.rate)),
        passes=float(np.mean(found.hi <= cell.rate)),
    )


def counts_of_operators(cell: Cell, operators: int) -> Numbers:
    """Cases of each operator in each root: operators x roots; they take turns over the store."""
    sizes = cell.cases[0]
    turns = np.arange(sizes.sum()) % operators
    roots = np.repeat(np.arange(cell.roots), sizes)
    found = np.zeros((operators, cell.roots), dtype=int)
    np.add.at(found, (turns, roots), 1)
    return found


def standardise(hits: Numbers, cases: Numbers, mix: tuple[int, ...]) -> Rates:
    """The question `standardised`, of stores x operators x roots."""
    weights = np.array(mix) / sum(mix)
    each = (weights / cases.sum(axis=1))[:, None]
    shape = (len(hits), cases.shape[1])
    return weighted_rates(
        (hits * each).sum(axis=1),
        np.broadcast_to((cases * each).sum(axis=0), shape),
        np.broadcast_to((cases * each**2).sum(axis=0), shape),
        0.95,
    )


def operator_hits(cell: Cell, rng: np.random.Generator, cases: Numbers) -> tuple[Numbers, Numbers]:
    """Hits of five operators, stores x operators x roots, and the rate of each operator."""
    odds = np.log(cell.rate / (1 - cell.rate)) + np.array(APART)
    at = rng.random((cell.stores, cell.roots))
    hits, truths = [], []
    for place, rate in enumerate(1 / (1 + np.exp(-odds))):
        curve, truth = cell.curve(float(rate))
        chances = np.interp(at, QUANTILES, curve)
        hits.append(rng.binomial(np.broadcast_to(cases[place], at.shape), chances))
        truths.append(truth)
    return np.stack(hits, axis=1), np.array(truths)


def standardised(cell: Cell) -> Iterator[Outcome]:
    """Five operators whose rates differ, under two mixes."""
    rng, cases = cell.rng("standardised"), counts_of_operators(cell, len(APART))
    hits, truths = operator_hits(cell, rng, cases)
    for name, mix in MIXES.items():
        found = standardise(hits, cases, mix)
        truth = float(truths @ np.array(mix) / sum(mix))
        figure = f"standardised, {name}"
        yield covering(figure, cell, found.lo, found.hi, found.is_conservative, truth)


def with_exact(found: Rates, doubt: float) -> tuple[Numbers, Numbers]:
    """Bounds no nearer than Clopper and Pearson's of as many effective cases."""
    k = found.rate * found.n_eff
    lo = np.nan_to_num(stats.beta.ppf(doubt / 2, k, found.n_eff - k + 1))
    hi = np.nan_to_num(stats.beta.ppf(1 - doubt / 2, k + 1, found.n_eff - k), nan=1)
    return np.minimum(found.lo, lo), np.maximum(found.hi, hi)


def gate_by_operator(cell: Cell) -> Iterator[Outcome]:
    """Fifteen operators that are all at the limit: one that is not held fails the gate."""
    rng, cases = cell.rng("gate by op"), counts_of_operators(cell, GATED)
    chances = cell.chances(rng)
    failed, passed = np.zeros(cell.stores, dtype=bool), np.ones(cell.stores, dtype=bool)
    for each in cases:
        shape = (cell.stores, cell.roots)
        hits = rng.binomial(np.broadcast_to(each, shape), chances)
        all_cases = np.broadcast_to(each, shape).astype(float)
        found = weighted_rates(hits, all_cases, all_cases, 1 - 0.05 / GATED)
        lo, hi = with_exact(found, 0.05 / GATED)
        failed |= lo > cell.rate
        passed &= hi <= cell.rate
    yield Outcome("gate by op", cell, alarms=float(failed.mean()), passes=float(passed.mean()))
