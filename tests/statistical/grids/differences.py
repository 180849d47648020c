"""Differences within recordings: `paired`, `excess` and `compare`."""

from collections.abc import Iterator

import numpy as np
from scipy import stats

from tests.statistical.grids.cells import Cell
from tests.statistical.grids.outcome import Outcome, covering
from tests.support.stores.gained_and_lost import gained_and_lost
from tests.support.stores.simulated_stores import Numbers

TWINS = 3
KEPT = {"no effect": 1.0, "half is lost": 0.5}


def paired_test(clean: Numbers, faulted: Numbers, runs: Numbers) -> Numbers:
    """p of the question `paired`: passes of three twins and of faulted runs, stores x roots."""
    passed, both = clean + faulted, TWINS + runs
    excess = (faulted - passed * runs / both).sum(axis=1)
    variance = (passed * (both - passed) * runs * TWINS / (both * both * (both - 1.0))).sum(axis=1)
    statistic = np.maximum(0, np.abs(excess) - 0.5) ** 2 / np.where(variance > 0, variance, 1)
    found: Numbers = np.where(variance > 0, stats.chi2.sf(statistic, 1), np.nan)
    return found


def paired(cell: Cell) -> Iterator[Outcome]:
    """Three twins against as many faulted runs as a root of the cell has cases."""
    for name, kept in KEPT.items():
        rng = cell.rng(f"paired {name}")
        chances, runs = cell.chances(rng), cell.cases
        twins = np.full(runs.shape, TWINS)
        clean, faulted = rng.binomial(twins, chances), rng.binomial(runs, kept * chances)
        lo, hi, says = gained_and_lost(clean / TWINS - faulted / runs, np.minimum(twins, runs))
        p = paired_test(clean, faulted, runs)
        truth = cell.rate * (1 - kept)
        alarms = float(np.mean(p < 0.05)) if kept == 1 else None
        yield covering(f"paired, {name}", cell, lo, hi, says, truth, alarms)


def compare(cell: Cell) -> Iterator[Outcome]:
    """As many pairs of the same cell of a plan as a root of the grid has cases."""
    for name, kept in KEPT.items():
        rng = cell.rng(f"compare {name}")
        chances, pairs = cell.chances(rng), cell.cases
        x = rng.binomial(pairs, chances) / pairs
        y = rng.binomial(pairs, kept * chances) / pairs
        lo, hi, says = gained_and_lost(y - x, pairs)
        alarms = float(np.mean(compare_test(y - x) < 0.05)) if kept == 1 else None
        yield covering(f"compare, {name}", cell, lo, hi, says, cell.rate * (kept - 1), alarms)


def compare_test(differences: Numbers) -> Numbers:
    """p of Student's t over roots, or of the sign test where all of them differ alike."""
    roots = differences.shape[1]
    mean = differences.mean(axis=1)
    is_alike = np.ptp(differences, axis=1) == 0
    error = np.where(is_alike, 1, differences.std(axis=1, ddof=1)) / np.sqrt(roots)
    alike = np.where(mean == 0, 1, 0.5 ** (roots - 1))
    found: Numbers = np.where(is_alike, alike, 2 * stats.t.sf(np.abs(mean / error), roots - 1))
    return found


def excess(cell: Cell) -> Iterator[Outcome]:
    """The view `excess`: how much more often runs end wrong than the three twins of their root."""
    for name, kept in KEPT.items():
        rng = cell.rng(f"excess {name}")
        wrong = cell.chances(rng)
        runs, twins = cell.cases, np.full(cell.cases.shape, TWINS)
        x, y = rng.binomial(runs, wrong) / runs, rng.binomial(twins, kept * wrong) / TWINS
        lo, hi, says = gained_and_lost(x - y, np.minimum(runs, twins))
        yield covering(f"excess, {name}", cell, lo, hi, says, cell.rate * (1 - kept))
