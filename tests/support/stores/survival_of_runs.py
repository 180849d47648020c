"""Survival over steps by numpy, for thousands of stores at once.

A second implementation of traces/store/sql/views/kaplan_meier.sql at one step, of the hazard of
half_life.sql and of the interval of survival.sql, which say where the formulas come from.
"""

from dataclasses import dataclass

import numpy as np

from tests.support.stores.clustered_rates import Rates, weighted_rates
from tests.support.stores.simulated_stores import Numbers


@dataclass(frozen=True)
class Runs:
    """Clean runs, stores x tasks x runs; runs that a task does not have are not `is_there`."""

    steps: Numbers
    died: Numbers
    is_there: Numbers
    is_dated: bool


@dataclass(frozen=True)
class Interval:
    """One interval of each store (nan where there is none)."""

    lo: Numbers
    hi: Numbers
    is_wide: Numbers
    """Whether the row has a reason for an interval that covers more than 95 %."""


def observe(runs: Runs, step: int) -> Interval:
    """`kaplan_meier` at a step."""
    late, early = _dead(runs, step, True), _dead(runs, step, False)
    is_between = np.abs(late.rate - early.rate) >= 1e-9
    is_wide = late.is_conservative | early.is_conservative | is_between
    return Interval(1 - late.hi, 1 - early.lo, is_wide)


def survive(runs: Runs, step: int) -> Numbers:
    """`at_least` of `kaplan_meier` at a step, which is the survival if all failures are dated."""
    found: Numbers = 1 - _dead(runs, step, True).rate
    return found


def _dead(runs: Runs, step: int, is_late: bool) -> Rates:
    """The share that is dead by a step, of failures without a date as late or early as can be."""
    until = np.minimum(runs.steps, step)
    is_dead = runs.died & (runs.steps <= step)
    if not runs.is_dated:
        until = until if is_late else np.where(is_dead, 1, until)
        is_dead = runs.died if is_late else is_dead
    last = np.where(runs.is_there, until, 0).max(axis=(1, 2), keepdims=True)
    is_alive = ~is_dead & (until == last)
    weights = _weights(until, is_dead, ~is_dead & ~is_alive, runs.is_there, step)
    of_dead = np.where(runs.is_there & is_dead, weights, 0)
    of_all = np.where(runs.is_there & (is_dead | is_alive), weights, 0)
    return weighted_rates(of_dead.sum(2), of_all.sum(2), (of_all**2).sum(2), 0.95)


def _weights(
    until: Numbers, is_dead: Numbers, is_left: Numbers, is_there: Numbers, last: int
) -> Numbers:
    """The inverse of the chance not to have left before, of each run."""
    steps = range(1, last + 1)
    here = [is_there & (until == step) for step in steps]
    deaths, left, leaving = (
        np.array([(each & which).sum(axis=(1, 2)) for each in here])
        for which in (is_dead, is_left, np.ones_like(is_dead))
    )
    at_risk = np.cumsum(leaving[::-1], axis=0)[::-1]
    stays = 1 - left / np.maximum(at_risk - deaths, 1)
    before = np.concatenate([np.ones((1, stays.shape[1])), np.cumprod(stays, axis=0)[:-1]])
    with np.errstate(divide="ignore"):
        found: Numbers = (1 / before)[until - 1, np.arange(len(until))[:, None, None]]
    return found


def hazard(runs: Runs, is_sure: bool) -> Interval:
    """Deaths per step; of a failure without a date all steps count, or the first if `is_sure`."""
    steps = np.where(runs.died, 1, runs.steps) if is_sure and not runs.is_dated else runs.steps
    longest = np.where(runs.is_there, runs.steps, 0).max(axis=(1, 2))
    each = runs.is_there.sum(2)
    most = each * longest[:, None]
    dying = weighted_rates((runs.died & runs.is_there).sum(2), each, each, 0.975)
    lasting = weighted_rates(np.where(runs.is_there, steps, 0).sum(2), most, most, 0.975)
    lo = dying.lo / (lasting.hi * longest)
    return Interval(lo, np.minimum(1, dying.hi / (lasting.lo * longest)), np.ones(lo.shape, bool))


def chance_per_step(runs: Runs) -> Interval:
    """`half_life`: p_lo and p_hi."""
    late, early = hazard(runs, False), hazard(runs, True)
    return Interval(1 - early.hi, 1 - late.lo, late.is_wide)


def imply(runs: Runs, handled: Rates, errors: float, n: int, reach: int) -> Interval:
    """`survival` at n steps, if the last step of an observed interval is `reach`."""

    def implied(h: Numbers, u: Numbers | float) -> Numbers:
        found: Numbers = np.maximum(0, 1 - errors * (1 - h) - u) ** n
        return found

    late, early = hazard(runs, False), hazard(runs, True)
    seen = observe(runs, min(n, reach))
    if n > reach:
        lo = np.minimum(implied(handled.lo, early.hi), implied(handled.lo, 0))
    else:
        lo = np.minimum(implied(handled.lo, late.hi), seen.lo * implied(handled.lo, 0))
    hi = np.maximum(implied(handled.hi, late.lo), seen.hi * implied(handled.hi, 0))
    return Interval(lo, hi, np.ones(lo.shape, bool))
