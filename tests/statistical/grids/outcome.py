"""What became of a figure in one cell, and whether that is allowed."""

from dataclasses import asdict, dataclass

import numpy as np

from tests.statistical.grids.cells import Cell
from tests.support.stores.simulated_stores import Numbers

LEAST, MOST = 0.92, 0.985
"""What printed intervals cover, and above what their rows say `conservative`."""
SAYING = 0.8
"""The share of rows that say so in a cell above it: rows differ by what was drawn."""
ALARMS, PASSES = 0.06, 0.05
"""The most false alarms of a test or of a gate that fails, and of a gate that passes."""


def allowance(share: float, stores: float) -> float:
    """Three standard errors of a share that was counted in so many stores."""
    return float(3 * np.sqrt(share * (1 - share) / stores))


@dataclass(frozen=True)
class Outcome:
    """One figure in one cell; shares are None if there was nothing to count."""

    figure: str
    cell: Cell
    printed: int = 0
    covered: float | None = None
    conservative: float | None = None
    alarms: float | None = None
    passes: float | None = None

    def to_row(self) -> dict[str, object]:
        """One line of a file of outcomes."""
        rest = {key: value for key, value in asdict(self).items() if key != "cell"}
        return asdict(self.cell) | rest

    def misses(self) -> list[str]:
        """In which respects this is not allowed, beyond chance."""
        found = []
        if self.covered is not None and self.printed >= 50:
            slack = allowance(LEAST, self.printed)
            if self.covered < LEAST - slack:
                found.append(f"covers {self.covered:.3f}")
            is_marked = (self.conservative or 0) >= SAYING
            if self.covered > MOST + allowance(MOST, self.printed) and not is_marked:
                found.append(f"covers {self.covered:.3f} and says so in {self.conservative:.2f}")
        for name, share, most in (
            ("alarms", self.alarms, ALARMS),
            ("passes", self.passes, PASSES),
        ):
            if share is not None and share > most + allowance(most, self.cell.stores):
                found.append(f"{name} {share:.3f}")
        return found


def outcome_from_row(row: dict[str, object]) -> Outcome:
    """The reverse of `to_row`."""
    names = ("roots", "size", "icc", "rate", "stores")
    cell = Cell(**{name: row[name] for name in names})  # type: ignore[arg-type]
    rest = {key: value for key, value in row.items() if key not in (*names, "asked")}
    return Outcome(cell=cell, **rest)  # type: ignore[arg-type]


def covering(
    figure: str,
    cell: Cell,
    lo: Numbers,
    hi: Numbers,
    says: Numbers,
    truth: float,
    alarms: float | None = None,
    passes: float | None = None,
) -> Outcome:
    """Count the intervals of stores that hold the truth."""
    is_printed = ~np.isnan(lo) & ~np.isnan(hi)
    printed = int(is_printed.sum())
    if not printed:
        return Outcome(figure, cell, alarms=alarms, passes=passes)
    holds = (lo <= truth + 1e-12) & (hi >= truth - 1e-12)
    return Outcome(
        figure,
        cell,
        printed,
        float(holds[is_printed].mean()),
        float(says[is_printed].mean()),
        alarms,
        passes,
    )
