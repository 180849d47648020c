"""Signals that an agent noticed: read from what it did, never from what was planned.

First cut: N1 (the same call again), N2 (the call again with other arguments for the same
thing) and N7 (the final answer says not done and names the tool or field). A signal is hard
only if it is there in the faulted run and in none of the clean twins, so an agent that always
asks twice is not said to have noticed.
"""

from collections.abc import Callable
from typing import Literal

import orjson

from faults.atoms import atoms
from faults.lexicon import not_done, opens_not_done
from traces.conversation import canonical_arguments
from traces.model import Injection, Signal
from traces.story import Step, Story, ToolUse

WINDOW = 3
"""Agent steps after the struck result in which a reaction counts."""


def turn_after(story: Story, seq: int) -> int | None:
    """The index among the agent's turns of the answer to a model request."""
    return next((i for i, turn in enumerate(story.turns) if seq in turn.seqs), None)


def final(story: Story) -> Step | None:
    """The agent's last turn, if there is one and it was not cut off.

    A last turn that calls a tool counts: agents that submit by a tool call (mini-swe-agent) end
    by it and never hear its result. Whether a run crashed there is told by its ending.
    """
    return story.turns[-1] if story.turns and story.turns[-1].finish is not None else None


def signals(
    injection: Injection, story: Story, seq: int, twins: tuple[Story, ...]
) -> tuple[Signal, ...]:
    """The hard signals after model request `seq`, which carried the struck result."""
    use = story.use(injection.call_id or "")
    at = turn_after(story, seq)
    if use is None or at is None:
        return ()
    return (*_repeats(use, story, at, twins), *_report(injection, story, twins))


def _repeats(use: ToolUse, story: Story, at: int, twins: tuple[Story, ...]) -> tuple[Signal, ...]:
    found = []
    signs: tuple[tuple[Literal["N1", "N2"], _Alike], ...] = (("N1", _same), ("N2", _modified))
    for code, alike in signs:
        here = _window(story, at, use, alike)
        most = max((_twin_count(twin, use, alike) for twin in twins), default=0)
        if len(here) > most:
            again = here[most]
            quote = f"{again.tool}({again.arguments})"
            found.append(Signal(code=code, step=again.step, quote=quote, hard=True))
    return tuple(found)


type _Alike = Callable[[ToolUse, ToolUse], bool]


def _window(story: Story, at: int, use: ToolUse, alike: _Alike) -> list[ToolUse]:
    ids = {call for turn in story.turns[at : at + WINDOW] for call in turn.calls}
    return [other for other in story.uses if other.call_id in ids and alike(other, use)]


def _twin_count(twin: Story, use: ToolUse, alike: _Alike) -> int:
    mate = twin.use(use.call_id)
    at = turn_after(twin, mate.result_seq) if mate and mate.result_seq is not None else None
    return 0 if mate is None or at is None else len(_window(twin, at, mate, alike))


def _same(other: ToolUse, use: ToolUse) -> bool:
    return other.tool == use.tool and canonical_arguments(other.arguments) == canonical_arguments(
        use.arguments
    )


def _modified(other: ToolUse, use: ToolUse) -> bool:
    if other.tool != use.tool or _same(other, use):
        return False
    ids = {a for a in atoms(use.arguments) if a[0] in "id"}
    return bool(ids & atoms(other.arguments))


def _report(injection: Injection, story: Story, twins: tuple[Story, ...]) -> tuple[Signal, ...]:
    last = final(story)
    if last is None:
        return ()
    quote = not_done(last.message, anchors(injection))
    others = [final(twin) for twin in twins]
    if quote is None or any(t and not_done(t.message, anchors(injection)) for t in others):
        return ()
    return (Signal(code="N7", step=last.number, quote=quote, hard=True),)


def anchors(injection: Injection) -> tuple[str, ...]:
    """The words that tie a statement to an injection: the tool and the fields that differ."""
    return (injection.tool or "", *changed_fields(injection.original, injection.mutated))


def changed_fields(original: bytes | None, mutated: bytes | None) -> tuple[str, ...]:
    """The top-level fields of a JSON result that are not what they were, its shape kept."""
    try:
        before, after = orjson.loads(original or b""), orjson.loads(mutated or b"")
    except ValueError:
        return ()
    if not isinstance(before, dict) or not isinstance(after, dict):
        return ()
    if before.keys() != after.keys():
        return ()
    return tuple(key for key in before if before[key] != after[key])


def change(injection: Injection) -> str | None:
    """What was done to the result, in a few words; None where it says nothing simple."""
    before, after = injection.original, injection.mutated
    if before is None or after is None or before == after:
        return None
    fields = changed_fields(before, after)
    if fields:
        was, now = orjson.loads(before), orjson.loads(after)
        return ", ".join(f"{field}: {was[field]} -> {now[field]}" for field in fields[:3])
    if before.startswith(after):
        return f"cut to {len(after)} of {len(before)} bytes"
    return None


def claims_success(injection: Injection, story: Story) -> bool | None:
    """Whether the final answer claims the task was done; None where there is no final answer."""
    last = final(story)
    if last is None:
        return None
    return not opens_not_done(last.message) and not_done(last.message, anchors(injection)) is None
