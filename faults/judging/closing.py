"""The end of an agent's main conversation: what it says once it calls no more tools."""

from collections import Counter

from traces.story import Step, Story


def closing(story: Story) -> tuple[Step, ...]:
    """The agent's last turns without a call; empty if the run ends in a call, or is cut off.

    There may be several: a program may ask on after the answer, for a title or a summary. Turns of
    other conversations (titles, sub-agents) are left out.
    """
    turns = _main_turns(story)
    found: list[Step] = []
    for turn in reversed(turns):
        if turn.calls:
            break
        if turn.finish is not None:
            found.append(turn)
    return tuple(reversed(found))


def last_said(story: Story) -> tuple[Step, ...]:
    """`closing`; if the run ends in a call, as of agents that submit by one, the turn with it."""
    turns = _main_turns(story)
    return closing(story) or tuple(turn for turn in turns[-1:] if turn.finish is not None)


def _main_turns(story: Story) -> tuple[Step, ...]:
    """The turns of the lane with calls that goes on longest; without calls, of the longest lane.

    A sub-agent is over before its parent, and a client that begins a new conversation in the
    middle of its work, to save room, does not come back to the old one.
    """
    turns = story.turns
    calling = [turn.lane for turn in turns if turn.calls]
    lasting = next((turn.lane for turn in reversed(turns) if turn.lane in calling), None)
    if lasting is None:
        counted = Counter(turn.lane for turn in turns)
        lasting = max(counted, key=lambda lane: (counted[lane], -lane), default=None)
    return tuple(turn for turn in turns if turn.lane == lasting)
