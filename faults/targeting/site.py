"""Injection sites: the one call, or model turn, chosen before anything runs."""

from collections.abc import Sequence
from copy import replace

from msgspec import Struct

from faults.operator import COPY, Operator
from faults.seeded_random import make_draw_address, to_unit_interval
from faults.targeting import model_turns
from faults.targeting.selector import CallSelector, SelectableCall, is_matching_call
from faults.targeting.triggers import FaultTrigger, Position, parse_trigger
from traces.conversation.derived_steps import DerivedSteps, ToolUse
from traces.conversation.model_turn import ModelTurn
from traces.conversation.tracker import TrackedCall, canonicalize_arguments
from traces.did_you_mean import suggest_nearest_name
from traces.model import Fault, Place


class InjectionSite(Struct, frozen=True, kw_only=True):
    """A call, identified by its tool, arguments and ordinal, and by its id or its prefix.

    The id decides if no other call of the recording has it: ids are the model's, whose responses
    come from the tape up to the call, while the conversation before it contains dates, session ids
    and keys of each run. Clients that restart their ids in each conversation make ids ambiguous;
    then the address of the conversation (`prefix`) decides.
    """

    tool: str
    call_id: str
    alone: bool = True
    """True if no other call of the recording has that id."""
    arguments: str
    """Canonical JSON."""
    prefix: str
    ordinal: int
    place: Place
    result: str | None
    """The result of the call in the recording."""
    before: tuple[SelectableCall, ...] = ()
    """The recording's calls up to and including this one: those counted so far."""
    turn: ModelTurn | None = None
    """The targeted model turn; None if the target is a call."""

    def is_call(self, call: TrackedCall | ModelTurn) -> bool:
        """Return whether this is the same call, or turn, in another run with the same prefix."""
        if self.turn is not None or isinstance(call, ModelTurn):
            return (
                self.turn is not None
                and isinstance(call, ModelTurn)
                and self.turn.is_same_turn(call)
            )
        if not self.prefix:  # the call of a program, whose id numbers those of its tool
            return call.id == self.call_id
        return (
            call.tool == self.tool
            and (call.id == self.call_id if self.alone else call.prefix == self.prefix)
            and call.ordinal == self.ordinal
            and canonicalize_arguments(call.arguments) == self.arguments
        )


def select_site(
    derived_steps: DerivedSteps, fault: Fault, operator: Operator, *, seed: int = 0, rep: int = 0
) -> InjectionSite:
    """Return the first call of the recording that a fault targets.

    The agent must take a step after it in the recording, else its reaction cannot be judged. Raises
    LookupError if the recording has no such call; the message names the available ones.
    """
    fault = resolve_position(derived_steps, fault, seed=seed, rep=rep)
    if fault.at == "model":
        return _make_turn_site(
            model_turns.select_turns(
                derived_steps,
                fault,
                seed=seed,
                rep=rep,
                trace=find_recording_address(derived_steps),
            )
        )
    call_selector = CallSelector(
        fault, seed=seed, trace=find_recording_address(derived_steps), rep=rep
    )
    for number, use in enumerate(derived_steps.tool_uses, start=1):
        if call_selector.take(use):
            if not is_call_followed(derived_steps, use):
                place = _describe_call_number(fault, derived_steps, use)
                raise LookupError(
                    f"the agent took no step after {place}, so nothing could be learnt from it; "
                    "choose an earlier one"
                )
            return _make_call_site(
                derived_steps, use, fault, operator, derived_steps.tool_uses[:number]
            )
    raise LookupError(_explain_no_call(derived_steps, fault, parse_trigger(fault)))


def resolve_position(
    derived_steps: DerivedSteps, fault: Fault, *, seed: int = 0, rep: int = 0
) -> Fault:
    """Return the fault with the number of a recorded call in place of a `position`.

    The number is drawn uniformly from the calls in that part of the recording after which the agent
    took a step.
    """
    trigger = parse_trigger(fault)
    if trigger.trigger != "position":
        return fault
    if fault.at == "model":
        numbers = model_turns.find_turn_numbers(derived_steps, fault)
    else:
        fitting = [use for use in derived_steps.tool_uses if is_matching_call(fault, use)]
        numbers = [
            n for n, use in enumerate(fitting, start=1) if is_call_followed(derived_steps, use)
        ]
    if not numbers:
        raise LookupError(_explain_no_call(derived_steps, fault, trigger))
    at = make_draw_address(
        seed=seed,
        trace=find_recording_address(derived_steps),
        rep=rep,
        fault=f"{fault.name} {trigger.position}",
        tool=fault.where.get("tool", "*"),
        arguments="",
        occurrence=0,
    )
    candidates = select_third(numbers, trigger.position)
    return replace(fault, nth=candidates[int(to_unit_interval(at) * len(candidates))], when={})


def select_third[N](all: Sequence[N], position: Position) -> Sequence[N]:
    """Return the third that a position means; the first item if there are too few."""
    if position == "uniform":
        return all
    third, count = ("early", "mid", "late").index(position), len(all)
    return all[count * third // 3 : count * (third + 1) // 3] or all[:1]


def find_recording_address(derived_steps: DerivedSteps) -> str:
    """Return the recording's name in draws: the address of all messages before its first call."""
    return derived_steps.tool_uses[0].prefix if derived_steps.tool_uses else ""


def is_call_followed(derived_steps: DerivedSteps, use: ToolUse) -> bool:
    """Return whether the agent took a step with the result of a call."""
    return use.result_seq is not None and any(
        step.lane == use.lane and step.number > use.step for step in derived_steps.agent_steps
    )


def _describe_call_number(fault: Fault, derived_steps: DerivedSteps, use: ToolUse) -> str:
    number = sum(
        is_matching_call(fault, each)
        for each in derived_steps.tool_uses[: derived_steps.tool_uses.index(use) + 1]
    )
    return f"call {number} of {use.tool}"


def _explain_no_call(derived_steps: DerivedSteps, fault: Fault, said: FaultTrigger) -> str:
    """Explain why a recording has no call that a fault targets."""
    tool = fault.where.get("tool", "*")
    tools = tuple(dict.fromkeys(use.tool for use in derived_steps.tool_uses))
    same_tool = [
        use
        for use in derived_steps.tool_uses
        if is_matching_call(replace(fault, where={"tool": tool}), use)
    ]
    if not same_tool:
        hint = suggest_nearest_name(tool, tools) if tools else "; it has no tool calls at all"
        return f"the recording has no call of tool {tool!r}{hint}"
    fitting = [use for use in derived_steps.tool_uses if is_matching_call(fault, use)]
    count = f"{len(fitting)} call{'' if len(fitting) == 1 else 's'} of tool {tool!r}"
    others = {k: v for k, v in fault.where.items() if k != "tool"}
    if not fitting:
        selectors = ", ".join(f"{key}={value}" for key, value in others.items())
        calls = f"{len(same_tool)} call{'' if len(same_tool) == 1 else 's'} of tool {tool!r}"
        stages = tuple(dict.fromkeys(use.stage for use in same_tool if use.stage))
        hint = f"; its stages are {', '.join(stages)}" if stages and "stage" in others else ""
        return f"the recording has {calls}, but none with {selectors}{hint}"
    match said.trigger:
        case "nth":
            return f"the recording has {count}: --nth {said.number} is too many"
        case "first_write":
            names = ", ".join(dict.fromkeys(use.tool for use in fitting))
            return f"of {names} no name says that it writes; name the tool: --where tool=..."
        case "position":
            return f"the recording has {count}, but the agent took no step after any of them"
        case "probability":
            return f"the recording has {count}, of which probability selects none with this seed"
        case _:
            value = fault.when[said.trigger]
            return f"the recording has {count}, but none for {said.trigger}={value}"


def _make_call_site(
    derived_steps: DerivedSteps,
    use: ToolUse,
    fault: Fault,
    operator: Operator,
    before: tuple[ToolUse, ...],
) -> InjectionSite:
    return InjectionSite(
        tool=use.tool,
        call_id=use.call_id,
        alone=sum(other.call_id == use.call_id for other in derived_steps.tool_uses) == 1,
        arguments=canonicalize_arguments(use.arguments),
        prefix=use.prefix,
        ordinal=use.ordinal,
        place=choose_place(use, fault, operator),
        result=use.result,
        before=before,
    )


def _make_turn_site(found: tuple[ModelTurn, ...]) -> InjectionSite:
    turn = found[-1]
    return InjectionSite(
        tool=turn.tool,
        call_id="",
        arguments=turn.arguments,
        prefix=turn.prefix,
        ordinal=0,
        place="model",
        result=None,
        before=found,
        turn=turn,
    )


def choose_place(use: ToolUse, fault: Fault, operator: Operator) -> Place:
    """Return the place of an injection: the call's own exchange, else the model request.

    The call's own exchange is used if its join is strong and the operator supports its place. A
    call over MCP has no site at http, where a fault would change the protocol around the result.
    Raises LookupError if the requested place, or every place of the operator, is unreachable.
    """
    own: Place | None = None
    if use.has_strong_join and (use.place == "http" or use.place == "mcp"):
        own = use.place
    if fault.at in ("http", "mcp") and fault.at != own:
        raise LookupError(
            f"{use.tool} cannot be faulted at {fault.at}: {_explain_unreachable(use, own)}"
        )
    if fault.at == "mcp" and not operator.can_inject_at("mcp", stdio=use.stdio):
        raise LookupError(
            f"{operator.name} cannot be used on {use.tool} at mcp: its server is one over stdio, "
            "which has no status; try tool_error, or --at model-boundary"
        )
    if fault.at is not None:
        return fault.at
    if own is not None and operator.can_inject_at(own, stdio=use.stdio):
        return own
    if "model-boundary" not in operator.places:
        places = " or ".join(place for place in operator.places if place != "model")
        raise LookupError(f"{operator.name} works at {places} only, where {use.tool} does not go")
    if COPY in fault.params:
        raise LookupError(f"copy is of an MCP server's result, and {use.tool} has none")
    return "model-boundary"


def _explain_unreachable(use: ToolUse, own: Place | None) -> str:
    if own is not None:
        return f"it is a call over {'MCP' if own == 'mcp' else 'HTTP'}; try --at {own}"
    reason = f"its join is only {use.join}" if use.seqs else "it made no request of its own"
    return f"{reason}; try --at model-boundary"
