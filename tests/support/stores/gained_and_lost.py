"""The interval of a mean difference of two shares of each root, by numpy for thousands of stores.

A second implementation of traces/store/sql/macros/gained_and_lost.sql.
"""

import numpy as np

from tests.support.stores.clustered_rates import rates_of_equal_traces
from tests.support.stores.simulated_stores import Numbers


def gained_and_lost(differences: Numbers, runs: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Lower and upper ends of stores x roots, and which rows say that they are conservative."""
    gained = rates_of_equal_traces(np.maximum(differences, 0), runs)
    lost = rates_of_equal_traces(np.maximum(-differences, 0), runs)
    mean, effective = gained.rate - lost.rate, [each.rate * each.n_eff for each in (gained, lost)]
    return (
        mean - np.hypot(gained.rate - gained.lo, lost.hi - lost.rate),
        mean + np.hypot(gained.hi - gained.rate, lost.rate - lost.lo),
        gained.is_conservative | lost.is_conservative | (np.minimum(*effective) < 4),
    )
