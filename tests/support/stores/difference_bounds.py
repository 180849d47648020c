"""The bounds of `stumble gate --against`, by numpy and scipy for thousands of cells at once.

A second implementation of traces/store/sql/macros/noninferiority.sql, which says where the formulas
come from: SQL takes two milliseconds a row, of which simulations need hundred thousands.
"""

import numpy as np
import scipy

from tests.support.stores.simulated_stores import Numbers

type Bounds = tuple[Numbers, Numbers]


def compute_paired_bounds(differences: Numbers, alpha: float) -> Bounds:
    """Lower and upper bound of each row, whose columns are roots (five or more)."""
    roots = differences.shape[1]
    total, squares = differences.sum(axis=1), (differences**2).sum(axis=1)
    error = np.sqrt((squares + 2 - total**2 / (roots + 2)) / (roots + 1) / (roots + 2))
    mean = total / roots
    losses = np.where(differences <= -0.5, -differences, 0).sum(axis=1)
    gains = np.where(differences >= 0.5, differences, 0).sum(axis=1)
    worse = _bound_loss(losses, roots, 1 + np.maximum(0, mean), alpha)
    better = _bound_loss(gains, roots, 1 + np.maximum(0, -mean), alpha)
    return _widen(mean, scipy.stats.t.ppf(1 - alpha, roots - 1) * error, worse, better)


def compute_unpaired_bounds(candidate: Numbers, baseline: Numbers, alpha: float) -> Bounds:
    """The same of rates of two arms, whose numbers of roots may differ."""
    error = np.sqrt(_squared_error(candidate) + _squared_error(baseline))
    freedom = min(candidate.shape[1], baseline.shape[1]) - 1
    worse = np.maximum(_arm_loss(candidate, alpha), _arm_loss(1 - baseline, alpha))
    better = np.maximum(_arm_loss(1 - candidate, alpha), _arm_loss(baseline, alpha))
    mean = candidate.mean(axis=1) - baseline.mean(axis=1)
    return _widen(mean, scipy.stats.t.ppf(1 - alpha, freedom) * error, worse, better)


def _widen(mean: Numbers, half: Numbers, worse: Numbers, better: Numbers) -> Bounds:
    lower = np.maximum(-1, mean - np.maximum(half, worse))
    return lower, np.minimum(1, mean + np.maximum(half, better))


def _squared_error(rates: Numbers) -> Numbers:
    roots, total = rates.shape[1], rates.sum(axis=1)
    squares = (rates**2).sum(axis=1)
    found: Numbers = (squares + 1 - (total + 1) ** 2 / (roots + 2)) / (roots + 1) / (roots + 2)
    return found


def _arm_loss(rates: Numbers, alpha: float) -> Numbers:
    """What an arm may have lost in roots that have at most half of its mean rate."""
    low = rates <= rates.mean(axis=1, keepdims=True) / 2 + 1e-9
    others = np.count_nonzero(~low, axis=1)
    rest = np.where(low, 0, rates).sum(axis=1) / np.maximum(others, 1)
    parts = np.where(low, 1 - rates / np.where(rest > 0, rest, 1)[:, None], 0)
    return _bound_loss(np.where(rest > 0, parts.sum(axis=1), 0), rates.shape[1], rest, alpha)


def _bound_loss(lost: Numbers, roots: int, worth: Numbers, alpha: float) -> Numbers:
    """What Clopper and Pearson leave open above the roots seen lost, times their worth."""
    all_lost = lost >= roots
    open_roots = np.where(all_lost, 1, roots - lost)
    most = np.where(all_lost, 1.0, scipy.stats.beta.ppf(1 - alpha, lost + 1, open_roots))
    found: Numbers = np.maximum(0, most - lost / roots) * worth
    return found
