"""Faults at the model: which of an agent's turns they strike.

A turn is struck as a call is, by the same fold (`aim`): it is asked for in an order, has a step,
and is told from the others by its place in the conversation. What can be said of it is less: the
tool that its answer calls, which is known of a recording only.
"""

import re

from faults.aim import Aim, fits
from faults.when import persist, when
from traces.conversation import Placed
from traces.model import Fault
from traces.nearest import nearest
from traces.story import Story
from traces.turn import Turn, turns

_TITLE = re.compile(r"\btitle\b", re.IGNORECASE)
_TRIGGERS = ("nth", "after_calls", "every", "probability", "step_range", "position")


def check(fault: Fault) -> None:
    """ValueError where a fault at the model says what makes no sense there."""
    for name in fault.where:
        if name != "tool":
            raise ValueError(f"where: {name} chooses calls of tools; at=model knows tool alone")
    begins, goes_on = when(fault), persist(fault)
    if begins.trigger not in _TRIGGERS:
        said = f"{begins.trigger} asks what a call says; at=model knows "
        raise ValueError(f"when: {said}{', '.join(_TRIGGERS)}")
    beyond = begins.trigger in ("every", "probability") or (
        goes_on.name not in ("once", "same_args") and (goes_on.name, goes_on.number) != ("burst", 1)
    )
    if named(fault) and beyond:
        raise ValueError(
            "at=model with tool strikes the turn of the recording that calls it; which turns do "
            "so later is not known before they are answered: persist=once, burst:n=1 or same_args"
        )


def named(fault: Fault) -> str | None:
    """The tool whose call makes a turn one that is struck; None where any will do."""
    tool = fault.where.get("tool", "*")
    return None if tool == "*" else tool


def numbered(found: Turn) -> str:
    """`turn 3 (step 7)`."""
    return f"turn {found.number} (step {found.step})"


def select(told: Story, fault: Fault, *, seed: int, rep: int, trace: str) -> tuple[Turn, ...]:
    """The turns of the recording up to the first that a fault strikes, with it.

    LookupError where there is none: the message names what there is.
    """
    found = turns(told)
    aim = Aim(fault, seed=seed, trace=trace, rep=rep)
    for number, each in enumerate(found, start=1):
        if aim.take(each):
            if not followed(told, each):
                raise LookupError(
                    f"the agent took no step after {numbered(each)}, so nothing could be told "
                    "from it; strike an earlier one"
                )
            return found[:number]
    raise LookupError(_nothing(found, fault))


def numbers(told: Story, fault: Fault) -> list[int]:
    """Which of the turns that fit are such that the agent took a step after them, from 1.

    LookupError where there is none.
    """
    found = turns(told)
    fitting = [each for each in found if fits(fault, each)]
    those = [n for n, each in enumerate(fitting, start=1) if followed(told, each)]
    if not those:
        raise LookupError(_nothing(found, fault))
    return those


def followed(told: Story, found: Turn) -> bool:
    """Whether the agent took a step with the answer of a turn."""
    return any(
        placed.lane == found.lane and placed.turn > found.number for placed in told.placed.values()
    )


def _nothing(found: tuple[Turn, ...], fault: Fault) -> str:
    tool, said = named(fault), when(fault)
    fitting = [each for each in found if fits(fault, each)]
    if not fitting:
        tools = tuple(dict.fromkeys(name for each in found for name in each.tools))
        has = nearest(tool or "", tools) if tools else "; it has no tool calls at all"
        return (
            f"the recording has no model's turn that calls {tool!r}{has}"
            if found
            else ("the recording has no model's turn")
        )
    count = f"{len(fitting)} model's turn{'' if len(fitting) == 1 else 's'}"
    count += f" that call {tool!r}" if tool else ""
    if said.trigger == "nth":
        return f"the recording has {count}: --nth {said.number} is too many"
    if said.trigger == "probability":
        return f"the recording has {count}, of which chance strikes none with this seed"
    return f"the recording has {count}, but none for {said.trigger}={fault.when[said.trigger]}"


def titles(placed: Placed) -> bool:
    """Whether a request without tools asks for a title, as clients do on the side."""
    first = placed.messages[0].content if placed.messages else ""
    return len(placed.messages) <= 3 and _TITLE.search(first) is not None
