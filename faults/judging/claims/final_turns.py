"""The end of a run: the part from which the agent's claim is read."""

from msgspec import Struct


class FinalToolCall(Struct, frozen=True):
    """One tool call with its result."""

    call: str
    """The tool's name with its arguments in parentheses, or the text of an action."""
    result: str | None = None
    """None if the agent never reported one."""
    is_error: bool | None = None


class FinalTurns(Struct, frozen=True):
    """The last messages of the agent, its last tool calls, and how the run ended."""

    messages: tuple[str, ...]
    """The last two messages of the agent, oldest first; the last one even if it is empty."""
    tools: tuple[FinalToolCall, ...] = ()
    """The last tool calls, oldest first."""
    open_call: bool = False
    """Whether the run ends in a tool call whose result the model never saw."""
    ended: str | None = None
    """How the run ended, as named by the recorder of the run; None if unknown."""
