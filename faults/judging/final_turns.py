"""The end of a run, as far as it bears on what the agent claims."""

from collections import Counter
from dataclasses import dataclass

from traces.story import Step, Story, ToolUse

SHOWN = 2
"""Messages and tool calls that are kept."""


@dataclass(frozen=True, slots=True)
class ToolTurn:
    """One tool call with its result."""

    call: str
    """The tool's name with its arguments in parentheses, or the text of an action."""
    result: str | None = None
    """None if the agent never reported one."""
    is_error: bool | None = None


@dataclass(frozen=True, slots=True)
class FinalTurns:
    """The last messages of the agent, its last tool calls, and how the run ended."""

    messages: tuple[str, ...]
    """The last two messages of the agent, oldest first; the last one even if it is empty."""
    tools: tuple[ToolTurn, ...] = ()
    """The last tool calls, oldest first."""
    open_call: bool = False
    """Whether the run ends in a tool call whose result the model never saw."""
    ended: str | None = None
    """How the run ended, in the words of whoever recorded it; None if unknown."""


def final_turns(story: Story, ended: str | None = None) -> FinalTurns:
    """The end of a run's main conversation; titles and subagents in other lanes are left out."""
    lane = _main_lane(story)
    turns = tuple(turn for turn in story.turns if turn.lane == lane)
    if not turns:
        return FinalTurns((), ended=ended)
    uses = tuple(use for use in story.uses if use.lane == lane)
    last = turns[-1]
    earlier = [turn.message for turn in turns[:-1] if turn.message.strip()]
    return FinalTurns(
        messages=(*earlier[1 - SHOWN :], last.message),
        tools=tuple(map(_tool_turn, uses[-SHOWN:])),
        open_call=_is_open(last, uses),
        ended="cut" if last.finish is None and ended in (None, "final") else ended,
    )


def _main_lane(story: Story) -> int | None:
    """The first lane with a tool call, else the one with the most turns: titles call no tool."""
    if story.uses:
        return min(story.uses, key=lambda use: use.step).lane
    turns = Counter(turn.lane for turn in story.turns)
    return max(turns, key=lambda lane: (turns[lane], -lane), default=None)


def _is_open(last: Step, uses: tuple[ToolUse, ...]) -> bool:
    asked = [use for use in uses if use.call_id in last.calls]
    return bool(last.calls) and all(use.result is None for use in asked)


def _tool_turn(use: ToolUse) -> ToolTurn:
    return ToolTurn(call=f"{use.tool}({use.arguments})", result=use.result, is_error=use.is_error)
