"""A model's turn is known again in another run of the same prefix."""

from tests.told_runs import ORDER, Telling
from traces.story import tell
from traces.turn import turn, turns


def test_results_of_parallel_calls_come_as_they_end() -> None:
    """Claude Code sends them in the order in which its tools were done."""
    told = tell(Telling().calls(ORDER).calls(ORDER).says("DONE").over().tape)
    *_, last = turns(told)
    placed = told.placed[last.seq]
    assert len(placed.results) == 2
    other = turn(last.seq, placed._replace(results=placed.results[::-1]))
    assert other is not None
    assert last.again(other)


def test_another_turn_of_the_lane_is_another() -> None:
    told = tell(Telling().calls(ORDER).calls(ORDER).says("DONE").over().tape)
    first, second, third = turns(told)
    assert not first.again(second)
    assert not second.again(third)
