"""A model's turn is known again in another run of the same prefix."""

from tests.support.stores.scripted_runs import (
    ORDER,
    Telling,
)
from traces.conversation.derived_steps import derive_tape_steps
from traces.conversation.model_turn import list_agent_turns, to_model_turn


def test_results_of_parallel_calls_come_as_they_end() -> None:
    """Claude Code sends them in the order in which its tools were done."""
    derived_steps = derive_tape_steps(Telling().calls(ORDER).calls(ORDER).says("DONE").over().tape)
    *_, last = list_agent_turns(derived_steps)
    placed = derived_steps.contexts[last.seq]
    assert len(placed.results) == 2
    other = to_model_turn(last.seq, placed._replace(results=placed.results[::-1]))
    assert other is not None
    assert last.is_same_turn(other)


def test_another_turn_of_the_lane_is_another() -> None:
    derived_steps = derive_tape_steps(Telling().calls(ORDER).calls(ORDER).says("DONE").over().tape)
    first, second, third = list_agent_turns(derived_steps)
    assert not first.is_same_turn(second)
    assert not second.is_same_turn(third)
