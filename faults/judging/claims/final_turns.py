"""The end of a run: the part from which the agent's claim is read."""

from collections import Counter
from dataclasses import dataclass

from traces.conversation.derived_steps import DerivedSteps, ToolUse, TrajectoryStep

KEPT_TURNS = 2
"""Number of messages and of tool calls that are kept."""


@dataclass(frozen=True, slots=True)
class FinalToolCall:
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
    tools: tuple[FinalToolCall, ...] = ()
    """The last tool calls, oldest first."""
    open_call: bool = False
    """Whether the run ends in a tool call whose result the model never saw."""
    ended: str | None = None
    """How the run ended, as named by the recorder of the run; None if unknown."""


def find_final_turns(story: DerivedSteps, ended: str | None = None) -> FinalTurns:
    """Return the end of a run's main conversation, without titles and subagents in other lanes."""
    lane = _find_main_lane(story)
    turns = tuple(turn for turn in story.agent_steps if turn.lane == lane)
    if not turns:
        return FinalTurns((), ended=ended)
    uses = tuple(use for use in story.tool_uses if use.lane == lane)
    last = turns[-1]
    earlier = [turn.message for turn in turns[:-1] if turn.message.strip()]
    return FinalTurns(
        messages=(*earlier[1 - KEPT_TURNS :], last.message),
        tools=tuple(map(_to_final_tool_call, uses[-KEPT_TURNS:])),
        open_call=_is_open_call(last, uses),
        ended="cut" if last.finish is None and ended in (None, "final") else ended,
    )


def _find_main_lane(story: DerivedSteps) -> int | None:
    """Return the first lane with a tool call, else that with most turns: titles call no tool."""
    if story.tool_uses:
        return min(story.tool_uses, key=lambda use: use.step).lane
    turns = Counter(turn.lane for turn in story.agent_steps)
    return max(turns, key=lambda lane: (turns[lane], -lane), default=None)


def _is_open_call(last: TrajectoryStep, uses: tuple[ToolUse, ...]) -> bool:
    last_uses = [use for use in uses if use.call_id in last.calls]
    return bool(last.calls) and all(use.result is None for use in last_uses)


def _to_final_tool_call(use: ToolUse) -> FinalToolCall:
    return FinalToolCall(
        call=f"{use.tool}({use.arguments})", result=use.result, is_error=use.is_error
    )
