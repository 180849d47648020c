"""The cells of a grid: how many clusters of which sizes, how alike their cases, at which rate."""

import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from tests.support.stores.simulated_stores import Numbers

ROOTS = (8, 20, 50)
SIZES = {"5": (5,), "10": (10,), "60": (60,), "uneven": (1, 2, 5, 40)}
ICCS = (0.0, 0.2, 0.5)
RATES = (0.02, 0.05, 0.5, 0.95)
STORES = 1000
QUANTILES = np.linspace(0, 1, 4001)


@dataclass(frozen=True)
class Cell:
    """Recordings (or tasks), cases of each, their intraclass correlation, and the mean rate."""

    roots: int
    size: str
    icc: float
    rate: float
    stores: int = STORES

    def rng(self, name: str) -> np.random.Generator:
        """The generator of a figure in this cell, whatever was drawn before."""
        key = f"{name} {self.roots} {self.size} {self.icc} {self.rate} {self.stores}"
        return np.random.default_rng(zlib.crc32(key.encode()))

    @property
    def cases(self) -> Numbers:
        """Stores x roots."""
        sizes = np.resize(SIZES[self.size], self.roots)
        return np.broadcast_to(sizes, (self.stores, self.roots))

    def chances(self, rng: np.random.Generator, rate: float | None = None) -> Numbers:
        """The rate of each root, beta-distributed about the mean: stores x roots."""
        mean = self.rate if rate is None else rate
        if self.icc == 0:
            return np.full((self.stores, self.roots), mean)
        spread = (1 - self.icc) / self.icc
        return rng.beta(mean * spread, (1 - mean) * spread, (self.stores, self.roots))

    def curve(self, rate: float) -> tuple[Numbers, float]:
        """Chances at QUANTILES for a mean of about `rate`, linear between, and their exact mean."""
        if self.icc == 0:
            return np.full(QUANTILES.shape, rate), rate
        spread = (1 - self.icc) / self.icc
        at = stats.beta.ppf(QUANTILES, rate * spread, (1 - rate) * spread)
        return at, float(np.trapezoid(at, QUANTILES))

    def moment(self, power: float) -> float:
        """The mean over roots of their chance to the power."""
        if self.icc == 0:
            return float(self.rate**power)
        a = self.rate * (1 - self.icc) / self.icc
        b = (1 - self.rate) * (1 - self.icc) / self.icc
        return float(np.exp(special.betaln(a + power, b) - special.betaln(a, b)))


def all_cells(stores: int = STORES) -> Iterator[Cell]:
    """All 144 cells."""
    for roots, size, icc, rate in itertools.product(ROOTS, SIZES, ICCS, RATES):
        yield Cell(roots, size, icc, rate, stores)
