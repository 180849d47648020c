"""Fisher's exact test, one-sided: whether one group shows an event more often than another."""

from math import comb


def fisher_greater(shown: int, of: int, control_shown: int, control_of: int) -> float:
    """Return the probability of at least `shown` of `of` if both groups have the same rate.

    R. A. Fisher, Statistical Methods for Research Workers (1934), section 21.02: conditional on the
    margins the count is hypergeometric. 1.0 if a group is empty.
    """
    total, hits = of + control_of, shown + control_shown
    if not of or not control_of:
        return 1.0
    most = min(of, hits)
    ways = sum(comb(hits, k) * comb(total - hits, of - k) for k in range(shown, most + 1))
    return ways / comb(total, of)
