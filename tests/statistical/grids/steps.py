"""Survival over steps: `kaplan_meier`, `half_life` and `survival`.

A cell has its recordings as tasks and its cases as clean runs; its rate is the mean chance to be
good after TEN steps, and the hazard of a task is the same for all its steps.
"""

from collections.abc import Iterator

import numpy as np

from tests.statistical.grids.cells import Cell
from tests.statistical.grids.outcome import Outcome, covering
from tests.support.stores.clustered_rates import rates_over_clusters
from tests.support.stores.simulated_stores import Numbers
from tests.support.stores.survival_of_runs import Runs, chance_per_step, imply, observe

TEN = 10
SHORT, LONG = 6, 12
"""The steps that a run takes if nothing ends it: each of the two with the same chance."""
ERRORS = 0.02
"""The share of steps with a loud error, and how many recordings of one fault each tell h."""
TRACES, HANDLED = 20, 0.7
DATES = {"crashes": True, "no dates": False}


def clean_runs(cell: Cell, rng: np.random.Generator, is_dated: bool) -> Runs:
    """Runs whose deaths are crashes, or are only known when they have ended."""
    most = cell.cases[0].max()
    shape = (cell.stores, cell.roots, most)
    hazards = 1 - np.maximum(cell.chances(rng), 1e-300) ** (1 / TEN)
    death = _first_failures(rng, np.broadcast_to(hazards[:, :, None], shape))
    length = rng.choice((SHORT, LONG), shape)
    died = death <= length
    steps = np.where(died & is_dated, death, length)
    is_there = np.broadcast_to(np.arange(most) < cell.cases[0][:, None], shape)
    return Runs(steps, died, is_there, is_dated)


def _first_failures(rng: np.random.Generator, hazards: Numbers) -> Numbers:
    """Steps until the first failure; LONG + 1 for all that come later."""
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.floor(np.log(rng.random(hazards.shape)) / np.log1p(-hazards)) + 1
    found: Numbers = np.minimum(np.nan_to_num(steps, nan=LONG + 1, posinf=LONG + 1), LONG + 1)
    return found.astype(int)


def kaplan_meier(cell: Cell) -> Iterator[Outcome]:
    """The observed curve at three and at ten steps."""
    for name, is_dated in DATES.items():
        runs = clean_runs(cell, cell.rng(f"kaplan_meier {name}"), is_dated)
        for step in (3, TEN):
            found = observe(runs, step)
            truth = cell.moment(step / TEN)
            figure = f"kaplan_meier, {name}, {step} steps"
            yield covering(figure, cell, found.lo, found.hi, found.is_wide, truth)


def half_life(cell: Cell) -> Iterator[Outcome]:
    """The chance per step: 1 less the expected deaths over the expected steps."""
    ends = [_expected(cell, steps) for steps in (SHORT, LONG)]
    deaths, steps = (sum(each) / 2 for each in zip(*ends, strict=True))
    for name, is_dated in DATES.items():
        found = chance_per_step(clean_runs(cell, cell.rng(f"half_life {name}"), is_dated))
        truth = 1 - deaths / steps
        yield covering(f"half_life, {name}", cell, found.lo, found.hi, found.is_wide, truth)


def _expected(cell: Cell, steps: int) -> tuple[float, float]:
    """Deaths, and steps, of a run that takes so many if nothing ends it."""
    alive = [cell.moment(step / TEN) for step in range(steps + 1)]
    return 1 - alive[-1], sum(alive[:-1])


def survival(cell: Cell) -> Iterator[Outcome]:
    """The implied chance within and beyond the observed steps, at a known rate of loud errors."""
    rng = cell.rng("survival")
    runs = clean_runs(cell, rng, True)
    ones = np.ones((cell.stores, TRACES), dtype=int)
    handled = rates_over_clusters(rng.binomial(ones, HANDLED), ones)
    for n in (TEN, 2 * TEN):
        found = imply(runs, handled, ERRORS, n, reach=LONG)
        truth = _with_errors(cell, n)
        yield covering(f"survival, {n} steps", cell, found.lo, found.hi, found.is_wide, truth)


def _with_errors(cell: Cell, n: int) -> float:
    """The mean over tasks of (1 - e (1 - h) - u)^n, by many draws of tasks."""
    if cell.icc == 0:
        return float((cell.rate ** (1 / TEN) - ERRORS * (1 - HANDLED)) ** n)
    many = Cell(cell.roots, cell.size, cell.icc, cell.rate, 400_000 // cell.roots)
    chances = many.chances(cell.rng("truth"))
    return float(np.mean(np.maximum(0, chances ** (1 / TEN) - ERRORS * (1 - HANDLED)) ** n))
