"""Faults at the model: select the agent's turn whose response is changed.

Turns are selected like calls, by the same fold (`selector`): a turn has an order, a step, and is
identified by its place in the conversation. Only one selector applies: the tool that its response
calls, which is known only in a recording.
"""

import re

from faults.targeting.selector import CallSelector, is_matching_call
from faults.targeting.triggers import parse_persistence, parse_trigger
from traces.conversation.derived_steps import DerivedSteps
from traces.conversation.model_turn import ModelTurn, list_agent_turns
from traces.conversation.tracker import ExchangeContext
from traces.did_you_mean import suggest_nearest_name
from traces.model import Fault

_TITLE = re.compile(r"\btitle\b", re.IGNORECASE)
_TRIGGERS = ("nth", "after_calls", "every", "probability", "step_range", "position")


def check_model_fault(fault: Fault) -> None:
    """Raise ValueError if a fault at the model has a selector or trigger that does not apply."""
    for name in fault.where:
        if name != "tool":
            raise ValueError(f"where: {name} chooses calls of tools; at=model knows tool alone")
    trigger, persistence = parse_trigger(fault), parse_persistence(fault)
    if trigger.trigger not in _TRIGGERS:
        problem = f"{trigger.trigger} asks what a call says; at=model knows "
        raise ValueError(f"when: {problem}{', '.join(_TRIGGERS)}")
    repeats = trigger.trigger in ("every", "probability") or (
        persistence.name not in ("once", "same_args")
        and (persistence.name, persistence.number) != ("burst", 1)
    )
    if find_wanted_tool(fault) and repeats:
        raise ValueError(
            "at=model with tool selects the turn of the recording that calls it; which turns do "
            "so later is not known before they are answered: persist=once, burst:n=1 or same_args"
        )


def find_wanted_tool(fault: Fault) -> str | None:
    """Return the tool that the turn's response must call; None if any turn matches."""
    tool = fault.where.get("tool", "*")
    return None if tool == "*" else tool


def describe_turn(found: ModelTurn) -> str:
    """Return `turn 3 (step 7)`."""
    return f"turn {found.number} (step {found.step})"


def select_turns(
    derived_steps: DerivedSteps, fault: Fault, *, seed: int, rep: int, trace: str
) -> tuple[ModelTurn, ...]:
    """Return the recording's turns up to and including the first that a fault targets.

    Raises LookupError if there is none; the message names the available turns.
    """
    turns = list_agent_turns(derived_steps)
    call_selector = CallSelector(fault, seed=seed, trace=trace, rep=rep)
    for number, turn in enumerate(turns, start=1):
        if call_selector.take(turn):
            if not is_turn_followed(derived_steps, turn):
                raise LookupError(
                    f"the agent took no step after {describe_turn(turn)}, so nothing could be "
                    "learnt from it; choose an earlier one"
                )
            return turns[:number]
    raise LookupError(_explain_no_turn(turns, fault))


def find_turn_numbers(derived_steps: DerivedSteps, fault: Fault) -> list[int]:
    """Return the numbers, from 1, of matching turns after which the agent took a step.

    Raises LookupError if there is none.
    """
    turns = list_agent_turns(derived_steps)
    fitting = [each for each in turns if is_matching_call(fault, each)]
    numbers = [
        n for n, each in enumerate(fitting, start=1) if is_turn_followed(derived_steps, each)
    ]
    if not numbers:
        raise LookupError(_explain_no_turn(turns, fault))
    return numbers


def is_turn_followed(derived_steps: DerivedSteps, found: ModelTurn) -> bool:
    """Return whether the agent took a step after the response of a turn."""
    return any(
        context.lane == found.lane and context.turn > found.number
        for context in derived_steps.contexts.values()
    )


def _explain_no_turn(found: tuple[ModelTurn, ...], fault: Fault) -> str:
    tool, trigger = find_wanted_tool(fault), parse_trigger(fault)
    fitting = [each for each in found if is_matching_call(fault, each)]
    if not fitting:
        tools = tuple(dict.fromkeys(name for each in found for name in each.tools))
        hint = suggest_nearest_name(tool or "", tools) if tools else "; it has no tool calls at all"
        return (
            f"the recording has no model's turn that calls {tool!r}{hint}"
            if found
            else ("the recording has no model's turn")
        )
    count = f"{len(fitting)} model's turn{'' if len(fitting) == 1 else 's'}"
    count += f" that call {tool!r}" if tool else ""
    if trigger.trigger == "nth":
        return f"the recording has {count}: --nth {trigger.number} is too many"
    if trigger.trigger == "probability":
        return f"the recording has {count}, of which probability selects none with this seed"
    return (
        f"the recording has {count}, but none for {trigger.trigger}={fault.when[trigger.trigger]}"
    )


def is_title_request(placed: ExchangeContext) -> bool:
    """Return whether a request without tools asks for a title, as some clients do."""
    first = placed.messages[0].content if placed.messages else ""
    return len(placed.messages) <= 3 and _TITLE.search(first) is not None
