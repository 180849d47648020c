"""Group-sequential boundaries: the level of each look at which an experiment may end early.

A test that is repeated as data arrive rejects too often unless the looks share its alpha. Lan and
DeMets (Biometrika 70, 1983, 659-663) give the alpha spent up to a fraction t of the information,
for a one-sided test at level alpha:

    obrien-fleming   2 - 2 Phi(z(1 - alpha / 2) / sqrt(t))     little early, nearly all at the end
    pocock           alpha ln(1 + (e - 1) t)                   about the same at each look

Boundaries follow by recursive numerical integration (Armitage, McPherson and Rowe, Journal of the
Royal Statistical Society A 132, 1969, 235-244; Jennison and Turnbull, Group Sequential Methods,
2000, chapter 19). The score B(t) = Z(t) sqrt(t) is a Brownian motion. The density of paths that
crossed no earlier boundary is propagated from look to look, and each boundary is chosen so that the
probability to cross it is the alpha to spend. Boundaries are one-sided and control the level of one
decision: a decision in the other direction has separate boundaries.

`compute_look_levels` returns them as nominal one-sided p-values, which also apply to a t test
(Jennison and Turnbull, section 3.8).
"""

import functools
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal

type Spending = Literal["obrien-fleming", "pocock"]

SPENDINGS: tuple[Spending, ...] = ("obrien-fleming", "pocock")
MOST_LOOKS = 20
_GRID_NODES = 400
"""Intervals of a grid, an even number for Simpson's rule."""
_FARTHEST_SCORE = 8.0
"""Standard deviations beyond which a density is taken as 0."""
_NORMAL = NormalDist()

type Density = tuple[tuple[float, float], ...]
"""Points of a score, each with its probability mass: density times the weight of the rule."""


def compute_spent_alpha(fraction: float, alpha: float, spending: Spending) -> float:
    """Return the part of alpha (0 to 0.5) spent up to a fraction of the information (0 to 1)."""
    if fraction <= 0:
        return 0.0
    if fraction >= 1:
        return alpha
    if spending == "pocock":
        return alpha * math.log(1 + (math.e - 1) * fraction)
    return 2 * _normal_upper_tail(_NORMAL.inv_cdf(1 - alpha / 2) / math.sqrt(fraction))


def compute_look_levels(
    fractions: Sequence[float], alpha: float, spending: Spending
) -> tuple[float, ...]:
    """Return the nominal one-sided level of each look. Raises ValueError for invalid looks.

    `fractions` are of the information, rising, the last at most 1. A look with less than 1e-12 to
    spend has level 0: nothing is decided there.
    """
    return tuple(
        _normal_upper_tail(bound) for bound in compute_boundaries(tuple(fractions), alpha, spending)
    )


@functools.cache
def compute_boundaries(
    fractions: tuple[float, ...], alpha: float, spending: Spending
) -> tuple[float, ...]:
    """Return the boundary of each look in standard deviations; infinite if nothing may be spent."""
    check_looks(fractions, alpha)
    boundaries: list[float] = []
    density: Density = ((0.0, 1.0),)
    before, spent = 0.0, 0.0
    for fraction in fractions:
        total = compute_spent_alpha(fraction, alpha, spending)
        scale = math.sqrt(fraction - before)
        bound = _find_boundary(density, scale, total - spent, _FARTHEST_SCORE * math.sqrt(fraction))
        boundaries.append(bound / math.sqrt(fraction))
        top = min(bound, _FARTHEST_SCORE * math.sqrt(fraction))
        density = _propagate_density(density, scale, -_FARTHEST_SCORE * math.sqrt(fraction), top)
        before, spent = fraction, total
    return tuple(boundaries)


def check_looks(fractions: tuple[float, ...], alpha: float) -> None:
    """Raise ValueError for invalid looks or an invalid alpha."""
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha is above 0 and below 0.5, not {alpha:g}")
    rising = all(a < b for a, b in zip((0.0, *fractions), fractions, strict=False))
    if not fractions or not rising or fractions[-1] > 1:
        raise ValueError(f"looks are rising fractions above 0 and up to 1, not {list(fractions)}")
    if len(fractions) > MOST_LOOKS:
        raise ValueError(f"{len(fractions)} looks; at most {MOST_LOOKS} can be")


def _normal_upper_tail(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2


def _find_boundary(density: Density, scale: float, budget: float, most: float) -> float:
    """Return the score that is crossed with probability `budget`, by bisection."""
    if budget < 1e-12:
        return math.inf
    low, high = -most, most
    for _ in range(60):
        middle = (low + high) / 2
        crossing = sum(mass * _normal_upper_tail((middle - at) / scale) for at, mass in density)
        low, high = (middle, high) if crossing > budget else (low, middle)
    return (low + high) / 2


def _propagate_density(density: Density, scale: float, low: float, high: float) -> Density:
    """Return the density one look later of the paths below `high`, by Simpson's rule."""
    width = (high - low) / _GRID_NODES
    norm = width / 3 / (scale * math.sqrt(2 * math.pi))
    points = []
    for number in range(_GRID_NODES + 1):
        at = low + number * width
        weight = 1 if number in (0, _GRID_NODES) else 4 if number % 2 else 2
        value = sum(mass * math.exp(-(((at - x) / scale) ** 2) / 2) for x, mass in density)
        points.append((at, norm * weight * value))
    return tuple(points)
