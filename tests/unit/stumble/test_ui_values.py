"""Pure values of the pages: how many traces would decide, and what is kept of a run."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stumble.campaigns.progress_file import read_progress, write_progress_to
from stumble.campaigns.scheduler import CampaignProgress
from stumble.ui.reading.run_cache import RunCache, RunState
from stumble.ui.values.campaign_view import (
    WANTED_HALF_WIDTH,
    count_more_traces,
    format_cost_share,
)
from stumble.ui.values.injection_view import describe_use
from stumble.ui.values.run_rows import RunRows
from traces.model import Outcome


@pytest.mark.parametrize(
    ("traces", "low", "high", "more"),
    [(10, 30, 70, 30), (10, 45, 55, 0), (10, 40, 60, 0), (25, 0, 25, 15)],
)
def test_four_times_the_traces_halve_an_interval(
    traces: int, low: float, high: float, more: int
) -> None:
    assert count_more_traces(traces, low, high) == more


@given(st.integers(1, 1000), st.floats(0, 100), st.floats(0, 100))
def test_with_that_many_more_the_interval_is_narrow_enough(traces: int, a: float, b: float) -> None:
    low, high = sorted((a, b))
    more = count_more_traces(traces, low, high)
    assert more >= 0
    half = (high - low) / 2 * (traces / (traces + more)) ** 0.5
    assert half <= WANTED_HALF_WIDTH * (1 + 1e-9)


def _rows(*, is_live: bool) -> RunRows:
    return RunRows(id="r", rows={}, is_live=is_live)


@pytest.mark.parametrize("is_live", [True, False])
def test_a_run_is_read_again_only_if_it_changed(is_live: bool) -> None:
    """A live run changes with its tape, an ended one with the index, which has its verdicts."""
    cache, rows = RunCache(), _rows(is_live=is_live)
    cache.keep_run(rows, RunState(version=1, size=10))
    assert cache.find_run("r", RunState(version=1, size=10)) is rows
    assert (cache.find_run("r", RunState(version=2, size=10)) is rows) == is_live
    assert (cache.find_run("r", RunState(version=1, size=11)) is rows) != is_live


def test_the_progress_of_a_campaign_is_read_by_others(tmp_path: Path) -> None:
    now = CampaignProgress(sources=1, laid=1, wanted=9, before=2, done=3)
    told = list[CampaignProgress]()
    path = tmp_path / "progress.json"
    assert read_progress(path) is None
    times = iter([5.0, 5.0, 5.0, 5.5, 7.0, 7.0, 7.0])
    report = write_progress_to(path, told.append, lambda: next(times))
    report(now)
    written = read_progress(path)
    assert written is not None
    assert (written.done, written.wanted, written.seconds_left is None) == (5, 9, False)
    now.done = 4
    report(now)
    assert read_progress(path) == written
    report(now)
    later = read_progress(path)
    assert later is not None
    assert later.done == 6
    assert told == [now, now, now]


def test_a_progress_of_another_version_is_none(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    path.write_text('{"done": 1}')
    assert read_progress(path) is None


@pytest.mark.parametrize(
    ("cost", "limit", "shown"),
    [
        (None, None, "\u2013"),
        (0.5, None, "$0.5000"),
        (1.25, 5.0, "$1.2500 of at most $5.0000, 25 %"),
        (None, 5.0, "\u2013 of at most $5.0000"),
        (0.0, 0.0, "$0.0000 of at most $0.0000"),
    ],
)
def test_a_cost_stands_against_its_limit(
    cost: float | None, limit: float | None, shown: str
) -> None:
    assert format_cost_share(cost, limit) == shown


@pytest.mark.parametrize("passed", [False, None, True])
@pytest.mark.parametrize("control_only", [False, None, True])
@pytest.mark.parametrize("uses", [(), ("step 3, pay: 12.5 (exact)",)])
def test_a_value_is_unused_only_if_nothing_else_can_have_come_of_it(
    *, passed: bool | None, control_only: bool | None, uses: tuple[str, ...]
) -> None:
    """A sum made of the wrong value is a use that no value shows."""
    verdict = Outcome(
        injection_id="i", judge_version=1, consumed=True, passed=passed,
        control_only=control_only, uses=uses,
    )  # fmt: skip
    row = describe_use(verdict)
    sure = passed is not False and control_only is False
    assert row.value == ("yes" if uses else "no" if sure else "unknown")
    assert row.words or row.value == "no"
