"""Where a fault is to strike: one call, or one turn of the model, chosen before anything runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from faults import turns
from faults.address import address, share
from faults.aim import Aim, Asked, fits
from faults.operator import COPY, Operator
from faults.when import Position, When, when
from traces.conversation import Call, canonical_arguments
from traces.model import Fault, Place
from traces.nearest import nearest
from traces.story import Story, ToolUse
from traces.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A call, known by its tool, arguments and ordinal, and by its id or what came before it.

    Its id decides where no other call of the recording has it: ids are the model's, whose
    answers come from the tape up to the call, while the conversation before it holds dates,
    session ids and keys of each run. Clients that count their ids anew in each conversation
    make them aliases; there the address of the conversation decides.
    """

    tool: str
    call_id: str
    alone: bool = True
    """True where the recording has no other call of that id."""
    arguments: str
    """Canonical JSON."""
    prefix: str
    ordinal: int
    place: Place
    result: str | None
    """What the call returned in the recording."""
    before: tuple[Asked, ...] = ()
    """The recording's calls up to this one, with it: what was counted until here."""
    turn: Turn | None = None
    """The model's turn that is struck; None where it is a call."""

    def is_call(self, call: Call | Turn) -> bool:
        """True for this very call, or turn, in another run of the same prefix."""
        if self.turn is not None or isinstance(call, Turn):
            return self.turn is not None and isinstance(call, Turn) and self.turn.again(call)
        return (
            call.tool == self.tool
            and (call.id == self.call_id if self.alone else call.prefix == self.prefix)
            and call.ordinal == self.ordinal
            and canonical_arguments(call.arguments) == self.arguments
        )


def select(story: Story, fault: Fault, operator: Operator, *, seed: int = 0, rep: int = 0) -> Site:
    """The first call of the recording that a fault strikes.

    The agent takes a step after it in the recording, else nothing could be told from it.
    LookupError where the recording has no such call: the message names what it has.
    """
    fault = settled(story, fault, seed=seed, rep=rep)
    if fault.at == "model":
        return _of_turns(turns.select(story, fault, seed=seed, rep=rep, trace=trace(story)))
    aim = Aim(fault, seed=seed, trace=trace(story), rep=rep)
    for number, use in enumerate(story.uses, start=1):
        if aim.take(use):
            if not followed(story, use):
                raise LookupError(
                    f"the agent took no step after {_counted(fault, story, use)}, "
                    "so nothing could be told from it; strike an earlier one"
                )
            return _site(story, use, fault, operator, story.uses[:number])
    raise LookupError(_nothing(story, fault, when(fault)))


def settled(story: Story, fault: Fault, *, seed: int = 0, rep: int = 0) -> Fault:
    """The fault with the number of a call of this recording in place of a `position`.

    The number is drawn, each with the same chance, from the calls of that part of the recording
    after which the agent took a step.
    """
    said = when(fault)
    if said.trigger != "position":
        return fault
    if fault.at == "model":
        numbers = turns.numbers(story, fault)
    else:
        fitting = [use for use in story.uses if fits(fault, use)]
        numbers = [n for n, use in enumerate(fitting, start=1) if followed(story, use)]
    if not numbers:
        raise LookupError(_nothing(story, fault, said))
    at = address(
        seed=seed,
        trace=trace(story),
        rep=rep,
        fault=f"{fault.name} {said.position}",
        tool=fault.where.get("tool", "*"),
        arguments="",
        occurrence=0,
    )
    those = part(numbers, said.position)
    return replace(fault, nth=those[int(share(at) * len(those))], when={})


def part[N](all: Sequence[N], position: Position) -> Sequence[N]:
    """The third of them that a position means; the first where there are too few."""
    if position == "uniform":
        return all
    third, count = ("early", "mid", "late").index(position), len(all)
    return all[count * third // 3 : count * (third + 1) // 3] or all[:1]


def trace(story: Story) -> str:
    """What names a recording in draws: the address of all that was said before its first call."""
    return story.uses[0].prefix if story.uses else ""


def followed(story: Story, use: ToolUse) -> bool:
    """Whether the agent took a step with the result of a call."""
    return use.result_seq is not None and any(
        step.lane == use.lane and step.number > use.step for step in story.turns
    )


def _counted(fault: Fault, story: Story, use: ToolUse) -> str:
    number = sum(fits(fault, each) for each in story.uses[: story.uses.index(use) + 1])
    return f"call {number} of {use.tool}"


def _nothing(story: Story, fault: Fault, said: When) -> str:
    """Why a recording has no call that a fault strikes."""
    wanted = fault.where.get("tool", "*")
    tools = tuple(dict.fromkeys(use.tool for use in story.uses))
    alike = [use for use in story.uses if fits(replace(fault, where={"tool": wanted}), use)]
    if not alike:
        has = nearest(wanted, tools) if tools else "; it has no tool calls at all"
        return f"the recording has no call of tool {wanted!r}{has}"
    fitting = [use for use in story.uses if fits(fault, use)]
    count = f"{len(fitting)} call{'' if len(fitting) == 1 else 's'} of tool {wanted!r}"
    others = {k: v for k, v in fault.where.items() if k != "tool"}
    if not fitting:
        narrowed = ", ".join(f"{key}={value}" for key, value in others.items())
        return f"the recording has {len(alike)} of tool {wanted!r}, but none with {narrowed}"
    match said.trigger:
        case "nth":
            return f"the recording has {count}: --nth {said.number} is too many"
        case "first_write":
            names = ", ".join(dict.fromkeys(use.tool for use in fitting))
            return f"of {names} no name says that it writes; name the tool: --where tool=..."
        case "position":
            return f"the recording has {count}, but the agent took no step after any of them"
        case "probability":
            return f"the recording has {count}, of which chance strikes none with this seed"
        case _:
            value = fault.when[said.trigger]
            return f"the recording has {count}, but none for {said.trigger}={value}"


def _site(
    story: Story, use: ToolUse, fault: Fault, operator: Operator, before: tuple[ToolUse, ...]
) -> Site:
    return Site(
        tool=use.tool,
        call_id=use.call_id,
        alone=sum(other.call_id == use.call_id for other in story.uses) == 1,
        arguments=canonical_arguments(use.arguments),
        prefix=use.prefix,
        ordinal=use.ordinal,
        place=place(use, fault, operator),
        result=use.result,
        before=before,
    )


def _of_turns(found: tuple[Turn, ...]) -> Site:
    turn = found[-1]
    return Site(
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


def place(use: ToolUse, fault: Fault, operator: Operator) -> Place:
    """Where this call can be struck: at its own exchange where its join is strong and the operator
    does anything there, else in the model request.

    A call over MCP is not struck at http, where a fault would bend the protocol around the result.
    LookupError where the place that was asked for, or any the operator knows, is out of reach.
    """
    own: Place | None = None
    if use.strong and (use.place == "http" or use.place == "mcp"):
        own = use.place
    if fault.at in ("http", "mcp") and fault.at != own:
        raise LookupError(f"{use.tool} cannot be struck at {fault.at}: {_why_not(use, own)}")
    if fault.at == "mcp" and not operator.reaches("mcp", stdio=use.stdio):
        raise LookupError(
            f"{operator.name} cannot strike {use.tool} at mcp: its server is one over stdio, which "
            "has no status; try tool_error, or --at model-boundary"
        )
    if fault.at is not None:
        return fault.at
    if own is not None and operator.reaches(own, stdio=use.stdio):
        return own
    if "model-boundary" not in operator.places:
        places = " or ".join(place for place in operator.places if place != "model")
        raise LookupError(f"{operator.name} strikes at {places} only, where {use.tool} does not go")
    if COPY in fault.params:
        raise LookupError(f"copy is of an MCP server's result, and {use.tool} has none to strike")
    return "model-boundary"


def _why_not(use: ToolUse, own: Place | None) -> str:
    if own is not None:
        return f"it is a call over {'MCP' if own == 'mcp' else 'HTTP'}; try --at {own}"
    why = f"its join is only {use.join}" if use.seqs else "it made no request of its own"
    return f"{why}; try --at model-boundary"
