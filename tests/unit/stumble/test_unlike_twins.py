"""Clean twins that did the same and end differently: somebody else was in their world."""

from copy import replace

from faults.judging.judge import RunEvidence, to_run_evidence
from stumble.verdicts.twin_differences import find_differing_twin_ends
from tests.support.stores.scripted_runs import (
    ORDER,
    Telling,
)
from traces.model import RunEnding

SHARED = "another run may use this world, or --state prints what varies by itself"


def twin(text: str | None, *, calls: int = 1, passed: bool | None = None) -> RunEvidence:
    """A clean run that ends in a state."""
    told = Telling()
    for _ in range(calls):
        told = told.calls(ORDER)
    whole = told.says("DONE").over()
    of = "w" if text else None
    ending = RunEnding(ended="final", passed=passed, state=text, state_text=text or "", state_of=of)
    return to_run_evidence(replace(whole.tape, ending=ending))


def test_twins_that_did_the_same_and_end_differently_are_named_with_the_difference() -> None:
    found = find_differing_twin_ends([twin('{"a": 1}'), twin('{"a": 1}'), twin('{"a": 1, "b": 2}')])
    assert found == (
        f"clean twins did the same and end differently: $.b: 2, in clean twins nothing; {SHARED}"
    )


def test_a_verifier_that_contradicts_itself_is_named() -> None:
    found = find_differing_twin_ends([twin(None, passed=True), twin(None, passed=False)])
    assert found == (f"clean twins did the same and end differently: 1 of 2 right; {SHARED}")


def test_twins_that_did_something_else_may_end_so() -> None:
    assert find_differing_twin_ends([twin('{"a": 1}'), twin('{"a": 2}', calls=2)]) is None


def test_twins_that_end_alike_are_no_news() -> None:
    assert find_differing_twin_ends([twin('{"a": 1}')] * 3) is None
    assert find_differing_twin_ends([twin(None)] * 3) is None
    assert find_differing_twin_ends([]) is None
