"""Repeated trials of tasks: `reliability`, the chance that k recordings of a task all pass."""

from collections.abc import Iterator

import numpy as np
from scipy import special

from tests.statistical.grids.cells import Cell
from tests.statistical.grids.outcome import Outcome, covering
from tests.support.stores.clustered_rates import rates_of_equal_traces

KS = (1, 2, 5)


def reliability(cell: Cell) -> Iterator[Outcome]:
    """Tasks whose recordings pass with one chance each; those with fewer than k are left out."""
    rng, trials = cell.rng("reliability"), cell.cases
    passed = rng.binomial(trials, cell.chances(rng))
    for k in KS:
        has = trials[0] >= k
        n, c = trials[:, has], passed[:, has]
        share = np.exp(_log_sets(c, k) - _log_sets(n, k))
        found = rates_of_equal_traces(share, n / k)
        says = found.is_conservative | (k > 1)
        yield covering(f"reliability, k = {k}", cell, found.lo, found.hi, says, cell.moment(k))


def _log_sets(n: np.ndarray, k: int) -> np.ndarray:
    """The logarithm of the number of sets of k of n."""
    with np.errstate(divide="ignore"):
        found: np.ndarray = np.where(
            n < k,
            -np.inf,
            special.gammaln(n + 1.0)
            - special.gammaln(np.maximum(n - k, 0) + 1.0)
            - special.gammaln(k + 1.0),
        )
    return found
