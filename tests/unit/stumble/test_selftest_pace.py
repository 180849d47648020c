"""`same pace` of a self-test: gaps between chunks as the agent read them, live and replayed."""

from collections.abc import Sequence
from itertools import accumulate

import pytest

from scenarios.practice.agents.logging_agent import ExchangeNote
from scenarios.practice.fixed_pace_server import PAUSE, PIECES
from stumble.selftest.checks import MAX_GAP_ERROR, check_same_pace

LIVE = [PAUSE] * (len(PIECES) - 1)


def note(gaps: Sequence[float]) -> tuple[ExchangeNote, ...]:
    times = accumulate(gaps, initial=100.0)
    pieces = tuple((at, b"x") for at in times)
    return (ExchangeNote(url="", headers="", sent=b"", status=200, error=None, pieces=pieces),)


@pytest.mark.parametrize(
    ("gaps", "holds"),
    [
        (LIVE, True),
        ([*LIVE[1:], PAUSE + 0.9 * MAX_GAP_ERROR], True),
        ([*LIVE[1:], PAUSE - 0.9 * MAX_GAP_ERROR], True),
        ([*LIVE[1:], PAUSE + 1.1 * MAX_GAP_ERROR], False),
        ([PAUSE - 1.1 * MAX_GAP_ERROR, *LIVE[1:]], False),
        ([0.0] * len(LIVE), False),
        (LIVE[1:], False),
        ([*LIVE, PAUSE], False),
    ],
)
def test_each_gap_is_the_recorded_one_within_a_bound(gaps: Sequence[float], holds: bool) -> None:
    assert check_same_pace(note(LIVE), note(gaps)).holds is holds


@pytest.mark.parametrize("nothing", [(), note([])])
def test_without_gaps_it_fails(nothing: tuple[ExchangeNote, ...]) -> None:
    assert check_same_pace(nothing, nothing).holds is False


def test_its_figure_is_the_largest_error() -> None:
    late = [PAUSE, PAUSE + 0.12, PAUSE - 0.03, PAUSE]
    said = check_same_pace(note(LIVE), note(late)).figure
    assert said == "4 gaps of 200 ms between chunks, off by 120.0 ms at most, 100 ms are allowed"
