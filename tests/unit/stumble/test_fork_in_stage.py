"""A fault in a stage of the pipeline is at the first call that it can change, or nothing runs."""

from copy import replace
from pathlib import Path

import pytest

from stumble.campaigns.run_matrix import place_in_stage
from traces.conversation.derived_steps import DerivedSteps, derive_tape_steps
from traces.model import Fault
from traces.tape.reader import Tape, read_tape

RECORDED = Path(__file__).parents[2] / "data" / "golden" / "pipeline.tape"
IN_STAGE = Fault(name="truncate", where={"stage": "T2"})


@pytest.fixture(scope="module")
def recording() -> tuple[Tape, DerivedSteps]:
    """Two calls in each of T1 and T2: `ls`, and `cp && ls`."""
    tape = read_tape(RECORDED)
    return tape, derive_tape_steps(tape)


def place(recording: tuple[Tape, DerivedSteps], fault: Fault) -> Fault:
    return place_in_stage(*recording, fault, seed=0, world=True)


def test_the_first_call_that_it_changes_is_taken(recording: tuple[Tape, DerivedSteps]) -> None:
    assert place(recording, IN_STAGE) == replace(IN_STAGE, nth=1)


def test_a_call_that_is_named_stays(recording: tuple[Tape, DerivedSteps]) -> None:
    for fault in (replace(IN_STAGE, nth=2), replace(IN_STAGE, when={"every": 2})):
        assert place(recording, fault) == fault
    anywhere = Fault(name="truncate")
    assert place(recording, anywhere) == anywhere


def test_a_fault_that_changes_none_is_named_before_anything_runs(
    recording: tuple[Tape, DerivedSteps],
) -> None:
    with pytest.raises(LookupError) as refused:
        place(recording, Fault(name="digit", where={"stage": "T2"}))
    assert refused.value.args[0] == (
        "digit changes none of the 2 calls of stage T2: no number of 3 digits in the result"
    )


def test_a_stage_without_calls_is_named(recording: tuple[Tape, DerivedSteps]) -> None:
    with pytest.raises(LookupError, match="none with stage=T4"):
        place(recording, Fault(name="digit", where={"stage": "T4"}))
