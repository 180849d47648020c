"""Simulate all cells of all figures, or go on where that stopped, and print the tables.

    python -m tests.statistical.grids [--out FILE] [--figure NAME ...] [--seconds N] [--write PAGE]

A line of FILE is one figure in one cell; what it holds already is not computed again. With --write
the tables take the place of those between the markers of PAGE (docs/statistics.md).
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.statistical.grids.cells import Cell, all_cells
from tests.statistical.grids.differences import compare, excess, paired
from tests.statistical.grids.outcome import Outcome, outcome_from_row
from tests.statistical.grids.rates import gate_by_operator, recovery, standardised
from tests.statistical.grids.steps import half_life, kaplan_meier, survival
from tests.statistical.grids.tables import print_tables, write_tables
from tests.statistical.grids.trials import reliability

FIGURES: dict[str, Callable[[Cell], Iterator[Outcome]]] = {
    "recovery": recovery,
    "gate-by-op": gate_by_operator,
    "standardised": standardised,
    "paired": paired,
    "excess": excess,
    "compare": compare,
    "reliability": reliability,
    "kaplan_meier": kaplan_meier,
    "half_life": half_life,
    "survival": survival,
}


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(".cache/grids.jsonl"))
    parser.add_argument("--figure", action="append", choices=list(FIGURES))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    run(asked.out, asked.figure or list(FIGURES), time.monotonic() + asked.seconds)
    outcomes = read(asked.out)
    print_tables(outcomes)
    if asked.write:
        write_tables(asked.write, outcomes)
    missing = [(each.figure, each.cell, each.misses()) for each in outcomes if each.misses()]
    for figure, cell, misses in missing:
        print(f"{figure}, {cell}: {'; '.join(misses)}")
    raise SystemExit(1 if missing else 0)


def run(out: Path, figures: list[str], until: float) -> None:
    """Append the cells that are not in the file yet."""
    done = {(row["asked"], *place(outcome_from_row(row).cell)) for row in rows(out)}
    with out.open("a", encoding="utf-8") as file:
        for figure in figures:
            for cell in all_cells():
                if (figure, *place(cell)) in done:
                    continue
                if time.monotonic() > until:
                    return
                for outcome in FIGURES[figure](cell):
                    file.write(json.dumps(outcome.to_row() | {"asked": figure}) + "\n")
                file.flush()


def place(cell: Cell) -> tuple[int, str, float, float]:
    """What tells a cell from others."""
    return cell.roots, cell.size, cell.icc, cell.rate


def rows(out: Path) -> list[dict[str, object]]:
    """All whole lines of a file, which need not exist."""
    if not out.exists():
        return []
    lines = out.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


def read(out: Path) -> list[Outcome]:
    """The outcomes of a file."""
    return [outcome_from_row(row) for row in rows(out)]


if __name__ == "__main__":
    main()
