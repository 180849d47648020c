"""The interval of rates over clusters, by numpy for thousands of stores at once.

A second implementation of traces/store/sql/macros/clustered.sql, which says where the formulas
come from: SQL takes a millisecond a row, of which the grids need millions.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from tests.support.stores.simulated_stores import Numbers


@dataclass(frozen=True)
class Rates:
    """One clustered rate of each store, and its interval (nan where there is none)."""

    rate: Numbers
    lo: Numbers
    hi: Numbers
    is_conservative: Numbers
    n_eff: Numbers
    hits: Numbers


def rates_over_clusters(hits: Numbers, cases: Numbers) -> Rates:
    """`clustered` of stores x clusters."""
    return weighted_rates(hits, cases, cases, 0.95)


def weighted_rates(hits: Numbers, cases: Numbers, squares: Numbers, confidence: float) -> Rates:
    """`weighted_at` of stores x clusters: sums of weights, and of their squares."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return _weighted_rates(hits.astype(float), cases.astype(float), squares, confidence)


def _weighted_rates(hits: Numbers, cases: Numbers, squares: Numbers, confidence: float) -> Rates:
    total, rate = cases.sum(axis=1), hits.sum(axis=1) / cases.sum(axis=1)
    cases2, square = (cases**2).sum(axis=1), squares.sum(axis=1)
    effective = total**2 / cases2
    rho = _correlation(hits, cases, squares, rate)
    moments = total**2 / (square + rho * (cases2 - square))
    informing = np.minimum(_informing(hits, cases, square), _informing(cases - hits, cases, square))
    drawn = np.exp(
        (informing * np.log(moments) + 3 * np.log(effective))
        / np.where(informing > 0, informing + 3, 3)
    )
    agree = informing == 0
    n_eff = np.where(agree, effective, drawn)
    freedom = _freedom(cases, squares, n_eff)
    is_printed = ((cases > 0).sum(axis=1) >= 5) & (effective >= 4) & (freedom >= 2)
    doubt = 1 - confidence
    t = t975(freedom) if confidence == 0.95 else scipy.stats.t.ppf((1 + confidence) / 2, freedom)
    lo = _wilson_lower(_continuous(rate * n_eff), n_eff, t)
    hi = 1 - _wilson_lower(_continuous((1 - rate) * n_eff), n_eff, t)
    exact = doubt ** (1 / effective)
    lo = np.where(agree, np.where(rate > 0.5, exact, 0), lo)
    hi = np.where(agree, np.where(rate > 0.5, 1, 1 - exact), hi)
    says = agree | (1.25 * n_eff < moments) | (np.minimum(rate, 1 - rate) * n_eff < 3)
    nothing = np.where(is_printed, 0, np.nan)
    return Rates(rate, lo + nothing, hi + nothing, says & is_printed, n_eff, hits.sum(axis=1))


def _informing(hits: Numbers, cases: Numbers, square: Numbers) -> Numbers:
    """Effective clusters with a hit; of unequal cases no more than the hits weigh."""
    found = _effective(cases, hits > 1e-9 * cases)
    weighed = _effective(np.maximum(0, hits), hits > 1e-9 * cases)
    is_weighted = np.abs(square - cases.sum(axis=1)) > 1e-9 * square
    return np.where(is_weighted, np.minimum(found, weighed), found)


def _effective(cases: Numbers, which: Numbers) -> Numbers:
    some = np.where(which, cases, 0)
    found: Numbers = np.nan_to_num(some.sum(axis=1) ** 2 / (some**2).sum(axis=1))
    return found


def _correlation(hits: Numbers, cases: Numbers, squares: Numbers, rate: Numbers) -> Numbers:
    total, square = cases.sum(axis=1), squares.sum(axis=1)
    cases2, cases3 = (cases**2).sum(axis=1), (cases**3).sum(axis=1)
    crossed = (squares * cases).sum(axis=1)
    spread = ((hits - rate[:, None] * cases) ** 2).sum(axis=1) / (rate * (1 - rate))
    above = spread * (1 - square / total**2) - square + 2 * crossed / total
    above -= cases2 * square / total**2
    below = cases2 - square - 2 * (cases3 - crossed) / total
    below += (cases2 + spread) * (cases2 - square) / total**2
    found = np.where((below == 0) | ~np.isfinite(above / below), 1, above / below)
    clipped: Numbers = np.clip(found, 0, 1)
    return clipped


def _freedom(cases: Numbers, squares: Numbers, n_eff: Numbers) -> Numbers:
    total, cases2, square = cases.sum(axis=1), (cases**2).sum(axis=1), squares.sum(axis=1)
    is_single = cases2 == square
    rho = np.where(
        is_single, 0, (total**2 / n_eff - square) / np.where(is_single, 1, cases2 - square)
    )
    apart = (1 - rho) ** 2 * (squares**2).sum(axis=1)
    mixed = 2 * rho * (1 - rho) * (squares * cases**2).sum(axis=1)
    alike = rho**2 * (cases**4).sum(axis=1)
    found: Numbers = 2 * ((total**2 / n_eff) ** 2 / (apart + mixed + alike) - 1)
    return found


def _continuous(hits: Numbers) -> Numbers:
    found: Numbers = np.maximum(0, hits - 0.5 / np.maximum(1, hits))
    return found


def _wilson_lower(k: Numbers, n: Numbers, z: Numbers) -> Numbers:
    middle = (k + z**2 / 2) / (n + z**2)
    half = z * np.sqrt(np.maximum(k * (n - k), 0) / n + z**2 / 4) / (n + z**2)
    found: Numbers = np.where(k == 0, 0, np.maximum(0, middle - half))
    return found


def t975(freedom: Numbers) -> Numbers:
    """The .975 quantile of Student's t, linear in 1 / df between two rows of a table up to 30."""
    whole = np.clip(np.floor(np.nan_to_num(freedom, nan=1)), 1, 30)
    above = np.minimum(30, whole + 1)
    lower, upper = scipy.stats.t.ppf(0.975, whole), scipy.stats.t.ppf(0.975, above)
    between = lower + (1 - whole / freedom) * (whole + 1) * (upper - lower)
    exact = scipy.stats.t.ppf(0.975, np.maximum(freedom, 1))
    found: Numbers = np.where(freedom < 1, np.nan, np.where(freedom <= 30, between, exact))
    return found


def rates_of_equal_traces(shares: Numbers, runs: Numbers) -> Rates:
    """`over_equal_traces`: every trace weighs the same, whatever number of runs its share is of."""
    return weighted_rates(shares, np.ones(shares.shape), 1 / runs, 0.95)
