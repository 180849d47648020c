"""Limits on double and lost actions: counts of what was seen, and never a pass by ignorance."""

from collections.abc import Mapping

import pytest

from stumble.gate.effect_limits import check_effect_limits
from stumble.gate.junit import render_junit_suite
from stumble.gate.limits import GateVerdict
from stumble.gate.report import format_check_line, list_gate_cases, render_gate_markdown


def row(runs: int, doubled: int, unknown: int, agent: str = "clerk") -> Mapping[str, object]:
    counts = {"runs": runs, "doubled": doubled, "unknown_doubled": unknown}
    return {"agent": agent, "model": "m", "world": "fresh", "lost": 0, "unknown_lost": 0} | counts


@pytest.mark.parametrize(
    ("rows", "most", "verdict"),
    [
        ([row(9, 0, 0)], 0, "pass"),
        ([row(9, 1, 0)], 0, "fail"),
        ([row(9, 1, 8)], 0, "fail"),
        ([row(9, 1, 0), row(9, 1, 0)], 1, "fail"),
        ([row(9, 1, 1)], 2, "pass"),
    ],
)
def test_runs_are_counted_against_the_limit(
    rows: list[Mapping[str, object]], most: int, verdict: GateVerdict
) -> None:
    [check] = check_effect_limits(rows, {"double": most})
    assert check.verdict == verdict


@pytest.mark.parametrize("rows", [[], [row(9, 0, 9)], [row(9, 0, 1)], [row(1, 0, 1)]])
def test_a_run_without_a_ledger_never_passes(rows: list[Mapping[str, object]]) -> None:
    [check] = check_effect_limits(rows, {"double": 0})
    assert check.verdict == "unknown"
    assert "not enough evidence" in format_check_line(check)
    assert "<error" in render_junit_suite(list_gate_cases([check]), "")
    assert "not enough evidence" in render_gate_markdown([check])
    [loose] = check_effect_limits(rows, {"double": 99})
    assert loose.verdict == ("pass" if rows == [row(9, 0, 1)] else "unknown")


def test_each_agent_is_checked_apart() -> None:
    checks = check_effect_limits([row(9, 1, 0, "a"), row(9, 0, 0, "b")], {"double": 0, "lost": 0})
    assert [(c.subject, c.measure, c.verdict) for c in checks] == [
        ("a m", "double", "fail"), ("a m", "lost", "pass"),
        ("b m", "double", "pass"), ("b m", "lost", "pass"),
    ]  # fmt: skip
