"""Bands of difficulty, made without any score, and what the prepared solutions score on them."""

from itertools import pairwise
from random import Random
from statistics import fmean

import pytest

from scenarios.pipeline.compiler.bands import (
    BANDS,
    LESSER_QUALITIES,
    MEASURED_QUALITIES,
    MEASURED_STAGES,
    compute_ease,
    list_bands,
    load_measured_scores,
    sort_into_bands,
)
from scenarios.pipeline.compiler.program_cases import list_graded_cases

SHUFFLES = 2000


def test_each_program_is_in_one_band_and_the_bands_are_of_one_size() -> None:
    bands = sort_into_bands()
    assert list(bands) == list(BANDS)
    assert {len(programs) for programs in bands.values()} == {21}
    assert set(list_bands()) == {case.name for case in list_graded_cases()}


@pytest.mark.parametrize("stage", MEASURED_STAGES)
def test_five_qualities_are_in_order(stage: str) -> None:
    measured = load_measured_scores().values()
    means = [fmean(row[stage, quality] for row in measured) for quality in MEASURED_QUALITIES]
    assert all(better - worse > 1 for better, worse in pairwise([*means, 0.0])), means


@pytest.mark.parametrize("stage", MEASURED_STAGES)
def test_each_band_is_harder_than_the_one_before_at_every_stage(stage: str) -> None:
    means = [
        fmean(compute_ease(name, [stage]) for name in each) for each in sort_into_bands().values()
    ]
    assert all(easier > harder for easier, harder in pairwise(means)), means


@pytest.mark.parametrize("stage", MEASURED_STAGES)
def test_few_divisions_by_chance_tell_programs_apart_as_well(stage: str) -> None:
    rng, ease = Random(0), [compute_ease(name, [stage]) for name in list_bands()]
    third = len(ease) // len(BANDS)

    def measure_spread() -> float:
        return fmean(ease[:third]) - fmean(ease[-third:])

    found, better = measure_spread(), 0
    for _ in range(SHUFFLES):
        rng.shuffle(ease)
        better += measure_spread() >= found
    assert better / SHUFFLES < 0.05


def test_most_programs_tell_qualities_apart() -> None:
    """A program on which all solutions score alike would say nothing."""
    spreads = [
        max(row[stage, quality] for quality in MEASURED_QUALITIES)
        - min(row[stage, quality] for quality in LESSER_QUALITIES)
        for row in load_measured_scores().values()
        for stage in MEASURED_STAGES
    ]
    assert sum(spread > 5 for spread in spreads) / len(spreads) > 0.9
