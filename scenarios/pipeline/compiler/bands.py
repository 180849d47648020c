"""Three bands of difficulty of the graded programs, by their length in tokens.

The length is a property of the programs, which neither names nor layout change; no score of any
solution is part of it. So what solutions score on the bands is a test of these:
`frozen/solutions.csv` has the measured score of each program with the solution of each quality at
each stage, on golden artifacts.
"""

import csv
from collections.abc import Iterable, Mapping
from functools import cache
from statistics import fmean

from scenarios.pipeline.compiler.golden import FROZEN, load_golden_slot
from scenarios.pipeline.compiler.types import STAGES

BANDS = ("easy", "middle", "hard")
MEASURED_STAGES = STAGES[1:]
MEASURED_QUALITIES = ("good", "fair", "half", "broken")
"""Those that write a program; the untouched starter scores 0."""
LESSER_QUALITIES = MEASURED_QUALITIES[1:]

type MeasuredScores = Mapping[str, Mapping[tuple[str, str], float]]
"""Scores by program, and by stage and quality."""


@cache
def load_measured_scores() -> MeasuredScores:
    """Return the frozen scores of the prepared solutions."""
    with (FROZEN / "solutions.csv").open(newline="") as file:
        return {
            row["program"]: {
                (stage, quality): float(row[f"{stage}_{quality}"])
                for stage in MEASURED_STAGES
                for quality in MEASURED_QUALITIES
            }
            for row in csv.DictReader(file)
        }


def compute_ease(program: str, stages: Iterable[str] = MEASURED_STAGES) -> float:
    """Return the mean score of the lesser solutions on a program."""
    measured = load_measured_scores()[program]
    return fmean(measured[stage, quality] for stage in stages for quality in LESSER_QUALITIES)


@cache
def count_program_tokens() -> Mapping[str, int]:
    """Return the number of tokens of each program."""
    listed = load_golden_slot("T1").artifacts
    return {name: len(lines.splitlines()) for name, lines in listed.items()}


@cache
def sort_into_bands() -> Mapping[str, tuple[str, ...]]:
    """Return the programs of each band, the shortest first."""
    lengths = count_program_tokens()
    programs = sorted(lengths, key=lambda name: (lengths[name], name))
    third = len(programs) // len(BANDS)
    return {band: tuple(programs[at * third : (at + 1) * third]) for at, band in enumerate(BANDS)}


@cache
def list_bands() -> Mapping[str, str]:
    """Return the band of each program."""
    return {name: band for band, programs in sort_into_bands().items() for name in programs}
