"""The end of an agent's main conversation: its messages after the last tool call."""

from collections import Counter

from faults.judging.claims.final_turns import FinalToolCall, FinalTurns
from traces.conversation.derived_steps import DerivedSteps, TrajectoryStep


def find_closing_turns(derived_steps: DerivedSteps) -> tuple[TrajectoryStep, ...]:
    """Return the agent's last turns without a call; empty if the run ends in a call or is cut off.

    There may be several: a program may ask for a title or a summary after the answer. Turns of
    other conversations (titles, sub-agents) are left out.
    """
    turns = _find_main_turns(derived_steps)
    closing: list[TrajectoryStep] = []
    for turn in reversed(turns):
        if turn.calls:
            break
        if turn.finish is not None:
            closing.append(turn)
    return tuple(reversed(closing))


def find_last_turns(derived_steps: DerivedSteps) -> tuple[TrajectoryStep, ...]:
    """Return the closing turns; if the run ends in a call, the turn with that call.

    Some agents submit by a call.
    """
    turns = _find_main_turns(derived_steps)
    return find_closing_turns(derived_steps) or tuple(
        turn for turn in turns[-1:] if turn.finish is not None
    )


def extract_final_turns(derived_steps: DerivedSteps) -> FinalTurns:
    """Return the last two messages and calls of the agent's main conversation."""
    turns = _find_main_turns(derived_steps)
    lanes = {turn.lane for turn in turns}
    uses = [use for use in derived_steps.tool_uses if use.lane in lanes][-2:]
    return FinalTurns(
        messages=tuple(turn.message for turn in turns[-2:]),
        tools=tuple(
            FinalToolCall(f"{use.tool}({use.arguments})", use.result, use.is_error) for use in uses
        ),
        open_call=bool(turns and turns[-1].calls),
    )


def _find_main_turns(derived_steps: DerivedSteps) -> tuple[TrajectoryStep, ...]:
    """Return the turns of the lane with calls that ends last; without calls, of the longest lane.

    A sub-agent ends before its parent, and a client that starts a new conversation in the middle of
    its work, to save context, does not return to the old one.
    """
    turns = derived_steps.agent_steps
    calling = [turn.lane for turn in turns if turn.calls]
    lasting = next((turn.lane for turn in reversed(turns) if turn.lane in calling), None)
    if lasting is None:
        counts = Counter(turn.lane for turn in turns)
        lasting = max(counts, key=lambda lane: (counts[lane], -lane), default=None)
    return tuple(turn for turn in turns if turn.lane == lasting)
