"""Injections needed to distinguish two rates (two-sided, alpha 0.05).

Fleiss, Levin and Paik, Statistical Methods for Rates and Proportions, 3rd ed., eq. 4.14, without
continuity correction; several injections in one trace count for less, by the design effect
1 + (m - 1) ICC (Kish).
"""

import math
from statistics import NormalDist

from msgspec import Struct

ALPHA = 0.05
MIN_RECORDINGS = 5
"""Fewest recordings for an interval."""


class PlanTerms(Struct, frozen=True, kw_only=True):
    """What a campaign has to decide."""

    detect: float
    """Difference from `rate` to detect."""
    rate: float
    power: float
    icc: float
    max_silent: float | None = None
    """The limit of `gate --max-silent` to pass, at its default confidence; None for none."""


def count_recordings_to_pass(most: float) -> int | None:
    """Return the fewest recordings with which `gate --max-silent` can pass; None if none can.

    As the gate bounds a rate of 0: 1 - 0.05^(1 / recordings), with no silent and no unknown run.
    """
    if not 0 < most < 1:
        return None if most <= 0 else MIN_RECORDINGS
    return max(MIN_RECORDINGS, math.ceil(math.log(ALPHA) / math.log1p(-most) - 1e-9))


class SampleSize(Struct, frozen=True, kw_only=True):
    """The sample size that distinguishes `rate` from `other`."""

    rate: float
    other: float
    power: float
    icc: float
    per_trace: float
    """Injections in each trace."""
    independent: int
    """Injections in each arm, were they independent."""
    injections: int
    """Injections in each arm, with `per_trace` in each trace."""

    @property
    def traces(self) -> int:
        """Traces in each arm."""
        return math.ceil(self.injections / self.per_trace)


def compute_sample_size(
    rate: float, difference: float, *, power: float, icc: float, per_trace: float
) -> SampleSize:
    """Compute the sample size to see a difference from a rate.

    Raises ValueError if there is no rate at that difference.
    """
    other = rate + difference if rate + difference <= 1 else rate - difference
    if not 0 <= other <= 1 or not 0 <= rate <= 1 or not 0 < difference <= 1:
        raise ValueError(f"there is no rate {difference:g} away from {rate:g}")
    independent = count_independent_cases(rate, other, power)
    effect = 1 + (max(per_trace, 1.0) - 1) * icc
    return SampleSize(
        rate=rate,
        other=other,
        power=power,
        icc=icc,
        per_trace=max(per_trace, 1.0),
        independent=independent,
        injections=math.ceil(independent * effect),
    )


def count_independent_cases(one: float, two: float, power: float) -> int:
    """Return the number of independent cases in each of two arms."""
    normal, mean = NormalDist(), (one + two) / 2
    spread = normal.inv_cdf(1 - ALPHA / 2) * math.sqrt(2 * mean * (1 - mean))
    spread += normal.inv_cdf(power) * math.sqrt(one * (1 - one) + two * (1 - two))
    return math.ceil((spread / (one - two)) ** 2)
