"""What is printed of a rate with unknown cases, and whether it is true."""

from collections.abc import Iterator

import numpy as np
import pytest

from stumble.campaigns.results import format_rate_interval
from stumble.gate.limits import GateCheck, GateLimit, GateRate, format_gate_rate
from stumble.gate.report import describe_recordings_needed
from stumble.report.headline import HEADLINE_TERMS
from stumble.report.model import REASONS, make_figure
from tests.support.stores.in_memory_relations import Sql, answers, empty
from tests.support.stores.simulated_stores import put, rates, struck
from traces.store.sql import run_question

ROW = {
    "silent_rate": 0.25,
    "silent_rate_lo": 0.2,
    "silent_rate_hi": 0.3,
    "silent_rate_of": 80,
    "silent_rate_unknown": 20,
    "silent_rate_least": 0.2,
    "silent_rate_most": 0.4,
}


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "20%-40% by 20 unknown, known 25% (20%-30%)"),
        ({"silent_rate_hi": 0.6}, "25% (20%-60%), 20%-40% by 20 unknown"),
        ({"silent_rate_unknown": 0}, "25% (20%-30%)"),
        ({"silent_rate": 1.0, "silent_rate_lo": None, "silent_rate_of": 1,
          "silent_rate_unknown": 0}, "1 of 1"),
        ({"silent_rate": None, "silent_rate_of": 0, "silent_rate_least": 0.0,
          "silent_rate_most": 1.0}, "0%-100% by 20 unknown, known unknown"),
    ],
)  # fmt: skip
def test_a_rate_stands_with_its_unknown_cases(changes: dict[str, object], text: str) -> None:
    assert format_rate_interval(ROW | changes, "silent_rate") == text


def test_a_report_gives_bounds_first_if_they_are_wider_than_the_interval() -> None:
    figure = make_figure(ROW, "silent_rate", n="silent_rate_of")
    assert figure.text == "20\u201340 % by 20 unknown; of the known 25 % (20\u201330 %), n = 80"
    figure = make_figure(ROW | {"silent_rate_hi": 0.6}, "silent_rate", n="silent_rate_of")
    assert figure.text == "25 % (20\u201360 %), n = 80; 20\u201340 % by 20 unknown"


def test_a_fault_without_a_known_end_was_injected_all_the_same() -> None:
    assert "injected" not in REASONS["no_faults"]


def _simulate_unknowns(sql: Sql, agents: int, hidden: float) -> np.ndarray:
    """Fill the store with agents whose silent failures are unknown with this probability.

    Returns the true rates of all runs, one per agent.
    """
    rng = np.random.default_rng(42)
    chances = rates(rng, 0.3, 0.2, agents, 20)
    silent = rng.random((agents, 20, 5)) < chances[:, :, None]
    struck(sql, silent)
    unknown = silent & (rng.random(silent.shape) < hidden)
    put(
        sql,
        "outcomes",
        "SELECT i AS injection_id, 1 AS judge_version, true AS baseline_valid,"
        " NOT silent AS passed, true AS claims_success, if(unknown, NULL, NOT silent) AS noticed,"
        " if(unknown, NULL, if(silent, 'silent_wrong', 'recovered')) AS class",
        i=np.arange(silent.size),
        silent=silent.ravel(),
        unknown=unknown.ravel(),
    )
    return silent.reshape(agents, -1).mean(axis=1)


@pytest.mark.gate
def test_bounds_hold_the_truth_if_silent_failures_are_the_ones_that_are_unknown(sql: Sql) -> None:
    """The sentence of the report, with unknowns that are not unknown by chance."""
    agents = 60
    truth = _simulate_unknowns(sql, agents, hidden=0.4)
    found = answers(sql, "FROM recovery ORDER BY agent::INT")
    of_known = [row["silent_rate_lo"] <= t <= row["silent_rate_hi"]
                for row, t in zip(found, truth, strict=True)]  # fmt: skip
    in_bounds = [row["silent_rate_least"] <= t <= row["silent_rate_most"]
                 for row, t in zip(found, truth, strict=True)]  # fmt: skip
    widths = [row["silent_rate_unknown"] / row["fired"] for row in found]  # type: ignore[operator]
    assert all(in_bounds)
    assert np.median(widths) <= 0.25
    assert np.mean(of_known) < 0.95, "intervals of the known runs do not hold the rate of all"
    assert "the rate of the runs whose value is known" in HEADLINE_TERMS
    assert [row["ends_right_rate"] for row in found] == pytest.approx(1 - truth)


@pytest.mark.gate
def test_a_gate_over_unknown_runs_passes_and_fails_no_more_often_than_it_may(sql: Sql) -> None:
    agents = 60
    _simulate_unknowns(sql, agents, hidden=0.4)
    answer = run_question(sql, "gate")
    names = [column[0] for column in answer.description or ()]
    rows = [dict(zip(names, values, strict=True)) for values in answer.fetchall()]
    silent = [GateRate(**row) for row in rows if row["measure"] == "silent"]
    assert len(silent) == agents
    limits = [
        GateLimit(measure="silent", value=value, least=False, confidence=0.95)
        for value in (0.29, 0.31)
    ]
    passes = np.mean([limits[0].verdict(rate) == "pass" for rate in silent])
    fails = np.mean([limits[1].verdict(rate) == "fail" for rate in silent])
    assert passes <= 0.05
    assert fails <= 0.05


def make_rate(**fields: object) -> GateRate:
    usual: dict[str, object] = {
        "agent": "a", "model": "m", "world": None, "part": "all", "ops": [], "measure": "silent",
        "hits": 1, "cases": 10, "traces": 10, "n_eff": 10.0, "t": 2.0, "rate": 0.1, "lo": 0.0,
        "hi": 0.6, "reason": None, "unknown": 10, "least": 0.05, "most": 0.55,
        "known_lo": 0.01, "known_hi": 0.4,
    }  # fmt: skip
    return GateRate(**(usual | fields))  # type: ignore[arg-type]


def test_a_gate_says_that_unknown_runs_decide_if_they_reach_over_the_limit() -> None:
    limit = GateLimit(measure="silent", value=0.2, least=False, confidence=0.95)
    open_check = GateCheck(limit=limit, rate=make_rate())
    assert open_check.verdict == "unknown"
    assert open_check.needed is None
    assert "10 unknown runs decide" in describe_recordings_needed(open_check)
    assert format_gate_rate(make_rate()).startswith("0.050 to 0.550 by 10 unknown; of the known")
    near_limit = make_rate(unknown=1, least=0.09, most=0.18, hi=0.4)
    assert GateCheck(limit=limit, rate=near_limit).needed is not None
