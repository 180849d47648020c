"""What the agent of an interrupted run had spent at the stage that it was interrupted in."""

from collections.abc import Mapping, Sequence

from traces.model import RunEvent
from traces.pipeline.stages import ModelCharge, add_earlier_cost, sum_stage_cost


def measure_interrupted_stage(
    marks: Sequence[RunEvent], bills: Sequence[ModelCharge], until: float
) -> tuple[str, Mapping[str, object]] | None:
    """Return the stage that began and was not graded, with its cost so far: calls, tokens,
    cost_usd and seconds of all attempts. None if there is no such stage.

    `until` is the time of the last that is recorded, in seconds from the beginning. An agent that
    was running then is charged up to it, so the seconds are a lower bound.
    """
    began = next((mark for mark in reversed(marks) if mark.name in ("stage", "graded")), None)
    if began is None or began.name == "graded":
        return None
    running: float | None = began.at if began.data.get("attempted") else None
    seconds = 0.0
    for mark in marks[marks.index(began) + 1 :]:
        if mark.name == "agent" and running is not None:
            seconds, running = seconds + mark.at - running, None
        elif mark.name == "attempt" and running is None:
            running = mark.at
    if running is not None:
        seconds += max(until - running, 0.0)
    cost = sum_stage_cost([bill for bill in bills if bill.at >= began.at])
    return str(began.data.get("stage")), add_earlier_cost(
        {**cost, "seconds": seconds}, began.data.get("before")
    )
