"""What gate and report refuse to say, because the evidence does not carry it."""

from collections.abc import Iterator

import pytest

from stumble.gate.limits import GateLimit, GateRate, check_gate_limits, join_gate_verdicts
from stumble.gate.report import format_check_line
from stumble.report.headline import build_headline_section
from stumble.report.model import AgentKey
from stumble.report.notice import build_notice_section
from stumble.report.survival import build_survival_section
from stumble.store.filter import ReportRow, fetch_question_rows
from tests.support.stores.faulted_runs import (
    Strike,
    store,
    strike,
)
from tests.support.stores.in_memory_relations import (
    Sql,
    answers,
    empty,
    fill,
)

HANDLED = GateLimit(measure="handled", value=0.1, least=True, confidence=0.95)
WHO: AgentKey = (None, "m", "fresh")
TRACES = tuple("abcdefgh")
NAMED_TWICE = [strike(trace=trace, verifier=by) for trace in TRACES for by in ("tests", "sums")]


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def gate(sql: Sql) -> tuple[str, str]:
    """The verdict, and the line of a gate that any evidence at all would pass."""
    rates = [GateRate(**row) for row in fetch_question_rows(sql, "gate")]  # type: ignore[arg-type]
    found = check_gate_limits(rates, [HANDLED])
    return join_gate_verdicts(found), format_check_line(found[0])


def sentence(sql: Sql, unfinished: dict[AgentKey, str] | None = None) -> str:
    [_, said, _] = build_headline_section(sql, lambda row: str(row["model"]), unfinished or {}).lead
    return said


def test_evidence_of_one_measure_is_told(sql: Sql) -> None:
    store(sql, [strike(trace=trace, verifier="tests") for trace in TRACES])
    assert gate(sql)[0] == "pass"
    assert "Handled: 100 %" in sentence(sql)


def test_each_recording_may_have_a_verifier_of_its_own(sql: Sql) -> None:
    store(sql, [strike(trace=trace, verifier=f"tests of {trace}") for trace in TRACES])
    assert gate(sql)[0] == "pass"
    [row] = answers(sql, "SELECT fired, len(verifiers) AS verifiers FROM recovery")
    assert row == {"fired": 8, "verifiers": 8}


def test_another_verifier_of_the_same_recordings_is_another_row_and_no_sentence(sql: Sql) -> None:
    store(sql, NAMED_TWICE)
    found = answers(sql, "SELECT fired, verifiers FROM recovery ORDER BY verifiers")
    assert found == [{"fired": 8, "verifiers": ["sums"]}, {"fired": 8, "verifiers": ["tests"]}]
    verdict, said = gate(sql)
    assert verdict == "unknown"
    assert "no interval: mixed_verifiers" in said
    assert "name a campaign of one of them" in said
    assert "No rate is given: several verifiers" in sentence(sql)


def test_another_verifier_is_another_line_of_survival_and_notice(sql: Sql) -> None:
    store(sql, [each | {"detect": "D0"} for each in NAMED_TWICE])
    for build in (build_survival_section, build_notice_section):
        [table, *_] = build(sql, lambda row: str(row["model"])).tables
        assert {row[0] for row in table.rows} == {"m, verifier 1", "m, verifier 2"}


def test_another_judge_is_another_row_and_no_sentence(sql: Sql) -> None:
    store(sql, [strike(trace=trace) for trace in TRACES])
    had = answers(sql, "FROM outcomes")
    newer: list[ReportRow] = [each | {"judge_version": 1 + (n > 3)} for n, each in enumerate(had)]
    fill(sql, "outcomes", newer)
    found = answers(sql, "SELECT fired, judge_versions FROM recovery ORDER BY judge_versions")
    assert found == [{"fired": 4, "judge_versions": [1]}, {"fired": 4, "judge_versions": [2]}]
    verdict, said = gate(sql)
    assert (verdict, "mixed_judges" in said, "judges them anew" in said) == ("unknown", True, True)
    assert "No rate is given: verdicts are of several versions" in sentence(sql)


def test_what_no_judge_has_seen_counts_beside_the_newest(sql: Sql) -> None:
    told: list[Strike] = [strike(trace=trace) for trace in TRACES]
    store(sql, [*told, strike(consumed=False, unreached_reason="not_fired")])
    fill(
        sql,
        "outcomes",
        [row for row in answers(sql, "FROM outcomes") if row["injection_id"] != "i8"],
    )
    [row] = answers(sql, "SELECT fired, judged, judge_versions FROM recovery")
    assert row == {"fired": 8, "judged": 8, "judge_versions": [1]}


@pytest.mark.gate
@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"twins": ["t"], "baseline_valid": None}, "fewer than 3 clean twins came to an end"),
        ({"baseline_valid": False}, "the clean twins fail as well"),
        ({"baseline_valid": None}, "give --verify or --state"),
    ],
)
def test_without_a_judged_run_the_reason_is_told_and_what_would_help(
    sql: Sql, told: Strike, why: str
) -> None:
    store(sql, [strike(trace=trace) | {"class": None} for trace in TRACES])
    fill(sql, "outcomes", [row | {"class": None} | told for row in answers(sql, "FROM outcomes")])
    verdict, said = gate(sql)
    assert verdict == "unknown"
    assert "no fault was judged of 8 that fired" in said
    assert "8 are left out: " in said
    assert why in said
    assert "No rate is given: 8 are left out: " in sentence(sql)
    assert why in sentence(sql)


def test_a_sealed_plan_that_is_not_finished_has_no_rate(sql: Sql) -> None:
    store(sql, [strike(trace=trace) for trace in TRACES])
    why = "the sealed campaign n is not finished: 4 of 6 runs are done"
    assert f"No rate is given: {why}" in sentence(sql, {WHO: why})
    others: dict[AgentKey, str] = {("another", "m", "fresh"): why}
    assert "Handled: 100 %" in sentence(sql, others)
