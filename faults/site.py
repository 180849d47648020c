"""Where a fault is to strike: one call of the recording, chosen before anything runs."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from faults.operator import Operator, nearest
from traces.conversation import Call, canonical_arguments
from traces.model import Fault, Place
from traces.story import Story, ToolUse


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

    def is_call(self, call: Call) -> bool:
        """True for this very call in another run of the same prefix."""
        return (
            call.tool == self.tool
            and (call.id == self.call_id if self.alone else call.prefix == self.prefix)
            and call.ordinal == self.ordinal
            and canonical_arguments(call.arguments) == self.arguments
        )


def select(story: Story, fault: Fault, operator: Operator) -> Site:
    """The `nth` call, in the order of the recording, of a tool that fits `where`.

    LookupError where the recording has no such call: the message names what it has.
    """
    wanted = fault.where.get("tool", "*")
    uses = [use for use in story.uses if fnmatchcase(use.tool, wanted)]
    if not uses:
        tools = tuple({use.tool for use in story.uses})
        has = nearest(wanted, tools) if tools else "; it has no tool calls at all"
        raise LookupError(f"the recording has no call of tool {wanted!r}{has}")
    if len(uses) < fault.nth:
        count = f"{len(uses)} call{'' if len(uses) == 1 else 's'}"
        raise LookupError(
            f"the recording has {count} of tool {wanted!r}: --nth {fault.nth} is too many"
        )
    use = uses[fault.nth - 1]
    return Site(
        tool=use.tool,
        call_id=use.call_id,
        alone=sum(other.call_id == use.call_id for other in story.uses) == 1,
        arguments=canonical_arguments(use.arguments),
        prefix=use.prefix,
        ordinal=use.ordinal,
        place=place(use, fault, operator),
        result=use.result,
    )


def place(use: ToolUse, fault: Fault, operator: Operator) -> Place:
    """Where this call can be struck: at http where its join is strong, else in the model request.

    A call over MCP is not struck at http, where a fault would bend the protocol around the result.
    LookupError where the place that was asked for, or any the operator knows, is out of reach.
    """
    http = use.place == "http" and use.strong
    if fault.at == "http" and not http:
        why = f"its join is only {use.join}" if use.seqs else "it made no request of its own"
        why = "it is a call over MCP" if use.place == "mcp" else why
        raise LookupError(f"{use.tool} cannot be struck at http: {why}; try --at model-boundary")
    if fault.at is not None:
        return fault.at
    if http and "http" in operator.places:
        return "http"
    if "model-boundary" not in operator.places:
        raise LookupError(f"{operator.name} strikes at http only, where {use.tool} does not go")
    return "model-boundary"
