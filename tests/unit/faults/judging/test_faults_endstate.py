"""A run ends rightly if a clean run ended so, and wrongly only if enough of them did not."""

import json
from copy import replace

import pytest

from faults.judging.end_state import describe_state_difference, judge_by_state
from faults.judging.judge import RunEvidence, judge_injection
from tests.support.stores.scripted_runs import (
    BENT,
    ORDER,
    Telling,
    struck,
)
from traces.model import EndReason, RunEnding


def ended(state: str | None, *, how: EndReason = "final", of: str = "dump") -> RunEnding:
    text = state or ""
    return RunEnding(ended=how, state=state, state_text=text, state_of=of if state else None)


@pytest.mark.parametrize(
    ("own", "twins", "passed", "why"),
    [
        ("a", "aaa", True, ""),
        ("b", "aab", True, ""),
        ("a", "a", True, ""),
        ("x", "aab", False, ""),
        ("x", "aa", None, "2 of 3 clean twins have an end state"),
        ("x", "", None, "0 of 3 clean twins have an end state"),
        ("x", "abc", None, "no two clean twins end alike: let --state leave out what varies"),
    ],
)
def test_an_end_is_held_against_those_of_the_twins(
    own: str, twins: str, passed: bool | None, why: str
) -> None:
    found = judge_by_state(ended(own), [ended(each) for each in twins])
    assert (found.passed, found.why) == (passed, why)
    assert bool(found.difference) == (passed is False)


def test_no_end_is_right_because_a_twin_crashed_in_it_or_was_found_wrong() -> None:
    good = [ended("a")] * 3
    assert judge_by_state(ended("x"), [*good, ended("x", how="crash")]).passed is False
    assert judge_by_state(ended("x"), [*good, replace(ended("x"), passed=False)]).passed is False


def test_what_another_command_told_is_not_compared() -> None:
    assert judge_by_state(ended("a"), [ended("a", of="other")] * 3).passed is None


@pytest.mark.parametrize(
    ("wanted", "found", "says"),
    [
        ({"r": [{"n": 48.15}]}, {"r": [{"n": 48.75}]}, "$.r[0].n: 48.75, in clean twins 48.15"),
        ({"r": [1]}, {"r": [1, 2]}, "$.r[1]: 2, in clean twins nothing"),
        ({"a": 1, "r": {}}, {"a": 1}, "$.r: nothing, in clean twins {}"),
        ({"a": 1}, {"a": True}, "$.a: true, in clean twins 1"),
    ],
)
def test_json_is_told_apart_by_its_path(wanted: object, found: object, says: str) -> None:
    assert describe_state_difference(json.dumps(wanted), json.dumps(found)) == says


def test_text_is_told_apart_by_its_line_and_what_is_cut_is_not_guessed() -> None:
    assert describe_state_difference("a\nb\n", "a\nc\n") == "line 2: c, in clean twins b"
    long = "[" + "1," * 4095
    assert describe_state_difference(long, long) == "it differs in what was not kept of it"
    assert describe_state_difference(long + "2", long + "3") == (
        "line 1: ..." + "1," * 15 + "3, in clean twins ..." + "1," * 15 + "2"
    )
    deep = "[" * 4000 + "1" + "]" * 4000
    assert describe_state_difference(deep, deep.replace("1", "2")).startswith("line 1: ...[[")


def run(text: str, state: str | None, detail: str | None = None) -> RunEvidence:
    found = Telling().calls(text).says("DONE: refunded").over(passed=None)
    assert found.tape.ending is not None
    ending = replace(ended(state), detail=detail)
    return replace(found, tape=replace(found.tape, ending=ending))


RIGHT, WRONG = '{"refund":1250.4}', '{"refund":1259.4}'


def test_a_verdict_needs_no_verifier() -> None:
    twins = (run(ORDER, RIGHT),) * 3
    found = judge_injection(struck("V", BENT), run(BENT, WRONG), twins)
    assert (found.outcome, found.passed, found.baseline_valid) == ("silent_wrong", False, True)
    assert "end state: $.refund: 1259.4, in clean twins 1250.4" in found.evidence
    assert judge_injection(struck("V", BENT), run(BENT, RIGHT), twins).outcome == "masked"


def test_what_is_not_known_is_no_verdict_and_says_why() -> None:
    twins = (run(ORDER, RIGHT),) * 3
    dumb = run(BENT, None, "the state command printed nothing")
    found = judge_injection(struck("V", BENT), dumb, twins)
    assert (found.outcome, found.passed, found.baseline_valid) == (None, None, True)
    assert found.reasons["passed"] == "the state command printed nothing"
    found = judge_injection(struck("V", BENT), run(BENT, WRONG), twins[:2])
    assert (found.passed, found.baseline_valid) == (None, None)
    assert found.reasons["passed"] == "2 of 3 clean twins have an end state"
    apart = tuple(run(ORDER, state) for state in ("1", "2", "3"))
    assert judge_injection(struck("V", BENT), run(BENT, WRONG), apart).baseline_valid is False
