"""What a run did once its model had heard a certain result: the steps and calls that count."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from faults.atoms import atoms, mask_values
from faults.judging.closing import last_said
from faults.judging.sentences import clauses
from faults.lexicon import WINDOW
from faults.sinks import Key, Sink, key, sinks
from traces.model import Injection
from traces.story import Step, Story, ToolUse


@dataclass(frozen=True, kw_only=True)
class After:
    """A run from the agent's first turn with a result before it to its end."""

    story: Story
    use: ToolUse | None
    """The call with that result; None for what is no call's."""
    turns: tuple[Step, ...]
    """All turns of the agent in the run."""
    at: int
    """The first of them that had the result."""

    @property
    def later(self) -> tuple[Step, ...]:
        """The turns that had the result, in all lanes."""
        return self.turns[self.at :]

    @cached_property
    def window(self) -> tuple[Step, ...]:
        """The first of them in the lane that had it: there a reaction is one to the result."""
        lane = self.turns[self.at].lane
        return tuple(turn for turn in self.later if turn.lane == lane)[:WINDOW]

    @cached_property
    def finals(self) -> tuple[Step, ...]:
        """The agent's last answer, in as many turns as it took."""
        return last_said(self.story)

    @cached_property
    def forms(self) -> Counter[str]:
        """How often each sentence is said or thought in the run, values masked."""
        said = (clause.text for turn in self.turns for clause in clauses(spoken(turn)))
        return Counter(map(mask_values, said))

    @cached_property
    def reacted(self) -> tuple[ToolUse, ...]:
        """The calls of the window."""
        return self._calls(self.window)

    @cached_property
    def calls(self) -> tuple[ToolUse, ...]:
        """All calls that were asked for with the result before them."""
        return self._calls(self.later)

    def _calls(self, turns: Iterable[Step]) -> tuple[ToolUse, ...]:
        asked = {(turn.lane, call) for turn in turns for call in turn.calls}
        return tuple(use for use in self.story.uses if (use.lane, use.call_id) in asked)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The keys of `calls`."""
        return tuple(map(key, self.calls))

    @cached_property
    def sinks(self) -> tuple[Sink, ...]:
        """Where a value can end up, in the order of the steps."""
        return tuple(sinks(self.later, self.calls, self.finals))

    @cached_property
    def known(self) -> frozenset[str]:
        """The atoms of all that was said before, the result itself left out."""
        first, own = self.turns[self.at].number, self.use
        said = [atoms(step.message) for step in self.story.steps if step.number < first]
        asked = {(turn.lane, call) for turn in self.later for call in turn.calls}
        for use in self.story.uses:
            if (use.lane, use.call_id) not in asked:
                said.append(atoms(use.arguments))
                if use.result and use is not own:
                    said.append(atoms(use.result))
        return frozenset().union(*said)

    @cached_property
    def all(self) -> frozenset[str]:
        """The atoms of all that was said in the run."""
        said = [atoms(step.message) for step in self.story.steps]
        for use in self.story.uses:
            said += [atoms(use.arguments), atoms(use.result or "")]
        return frozenset().union(*said)


def turn_after(story: Story, seq: int) -> int | None:
    """The index among the agent's turns of the answer to a model request."""
    return next((i for i, turn in enumerate(story.turns) if seq in turn.seqs), None)


def spoken(turn: Step) -> str:
    """What a turn says, and what was thought before it."""
    return f"{turn.reasoning}\n{turn.message}" if turn.reasoning else turn.message


def after(story: Story, use: ToolUse | None, seq: int | None) -> After | None:
    """The run after model request `seq`; None where no turn answered it.

    What is no call's result was the answer to that request: there the next turn is the first.
    """
    turns = story.turns
    if use is None:
        at = next((i for i, t in enumerate(turns) if seq is not None and min(t.seqs) > seq), None)
    else:
        at = next((i for i, turn in enumerate(turns) if seq in turn.seqs), None)
    return None if at is None else After(story=story, use=use, turns=turns, at=at)


def mate(twin: Story, injection: Injection, use: ToolUse | None) -> After | None:
    """A clean twin after the call that was struck in another run; None where it made no such call.

    By the call's id, else as the same tool with the same arguments for the same time; what is no
    call's is found at the same request.
    """
    if use is None:
        return after(twin, None, injection.seq)
    found = twin.use(use.call_id) or next(
        (o for o in twin.uses if key(o) == key(use) and o.ordinal == use.ordinal), None
    )
    if found is None or found.result_seq is None:
        return None
    return after(twin, found, found.result_seq)
