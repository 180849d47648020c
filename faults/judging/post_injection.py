"""The part of a run after its model received a certain result: steps, calls and tokens."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from faults.judging.claims.closing_turns import find_last_turns
from faults.judging.claims.sentences import split_clauses
from faults.judging.taint.sinks import CallKey, TaintSink, find_taint_sinks, make_call_key
from faults.judging.trouble_words import REACTION_STEPS
from faults.judging.value_tokens import extract_tokens, mask_values
from traces.conversation.derived_steps import DerivedSteps, ToolUse, TrajectoryStep
from traces.model import Injection


@dataclass(frozen=True, kw_only=True)
class RunContinuation:
    """A run from the agent's first turn after a result to its end."""

    story: DerivedSteps
    use: ToolUse | None
    """The call with that result; None if it is not a call's."""
    turns: tuple[TrajectoryStep, ...]
    """All turns of the agent in the run."""
    first_turn: int
    """Index of the first turn with the result."""

    @property
    def later_turns(self) -> tuple[TrajectoryStep, ...]:
        """The turns with the result, in all lanes."""
        return self.turns[self.first_turn :]

    @cached_property
    def reaction_turns(self) -> tuple[TrajectoryStep, ...]:
        """The first of them in the lane of the result: the window for reactions."""
        lane = self.turns[self.first_turn].lane
        return tuple(turn for turn in self.later_turns if turn.lane == lane)[:REACTION_STEPS]

    @cached_property
    def final_turns(self) -> tuple[TrajectoryStep, ...]:
        """The turns of the agent's last answer."""
        return find_last_turns(self.story)

    @cached_property
    def sentence_counts(self) -> Counter[str]:
        """How often each sentence occurs in messages and reasoning, values masked."""
        sentences = (
            clause.text for turn in self.turns for clause in split_clauses(render_turn_text(turn))
        )
        return Counter(map(mask_values, sentences))

    @cached_property
    def reaction_calls(self) -> tuple[ToolUse, ...]:
        """The calls of the window."""
        return self._find_calls(self.reaction_turns)

    @cached_property
    def calls(self) -> tuple[ToolUse, ...]:
        """All calls requested after the result."""
        return self._find_calls(self.later_turns)

    def _find_calls(self, turns: Iterable[TrajectoryStep]) -> tuple[ToolUse, ...]:
        requested = {(turn.lane, call) for turn in turns for call in turn.calls}
        return tuple(use for use in self.story.tool_uses if (use.lane, use.call_id) in requested)

    @cached_property
    def call_keys(self) -> tuple[CallKey, ...]:
        """The keys of `calls`."""
        return tuple(map(make_call_key, self.calls))

    @cached_property
    def sinks(self) -> tuple[TaintSink, ...]:
        """The taint sinks, in the order of the steps."""
        return tuple(find_taint_sinks(self.later_turns, self.calls, self.final_turns))

    @cached_property
    def prior_tokens(self) -> frozenset[str]:
        """The tokens of everything before, without the result itself."""
        first, own = self.turns[self.first_turn].number, self.use
        token_sets = [
            extract_tokens(step.message) for step in self.story.steps if step.number < first
        ]
        requested = {(turn.lane, call) for turn in self.later_turns for call in turn.calls}
        for use in self.story.tool_uses:
            if (use.lane, use.call_id) not in requested:
                token_sets.append(extract_tokens(use.arguments))
                if use.result and use is not own:
                    token_sets.append(extract_tokens(use.result))
        return frozenset().union(*token_sets)

    @cached_property
    def all_tokens(self) -> frozenset[str]:
        """The tokens of the complete run."""
        token_sets = [extract_tokens(step.message) for step in self.story.steps]
        for use in self.story.tool_uses:
            token_sets += [extract_tokens(use.arguments), extract_tokens(use.result or "")]
        return frozenset().union(*token_sets)


def find_answer_turn(derived_steps: DerivedSteps, seq: int) -> int | None:
    """Return the index, among the agent's turns, of the response to a model request."""
    return next((i for i, turn in enumerate(derived_steps.agent_steps) if seq in turn.seqs), None)


def render_turn_text(turn: TrajectoryStep) -> str:
    """Return the message of a turn, after its reasoning."""
    return f"{turn.reasoning}\n{turn.message}" if turn.reasoning else turn.message


def find_continuation(
    derived_steps: DerivedSteps, use: ToolUse | None, seq: int | None
) -> RunContinuation | None:
    """Return the run after model request `seq`; None if no turn answered it.

    Without a call the injection was in the response to that request: then the next turn is the
    first.
    """
    turns = derived_steps.agent_steps
    if use is None:
        at = next((i for i, t in enumerate(turns) if seq is not None and min(t.seqs) > seq), None)
    elif use.is_of_program:
        at = next((i for i, turn in enumerate(turns) if turn.number > use.step), None)
    else:
        at = next((i for i, turn in enumerate(turns) if seq in turn.seqs), None)
    return (
        None
        if at is None
        else RunContinuation(story=derived_steps, use=use, turns=turns, first_turn=at)
    )


def find_twin_continuation(
    twin: DerivedSteps, injection: Injection, use: ToolUse | None
) -> RunContinuation | None:
    """Return a clean twin after the target call of another run; None without such a call.

    The call is found by its id, else by tool, arguments and ordinal; without a call the model
    request counts.
    """
    if use is None:
        return find_continuation(twin, None, injection.seq)
    twin_use = twin.find_use(use.call_id) or next(
        (
            o
            for o in twin.tool_uses
            if make_call_key(o) == make_call_key(use) and o.ordinal == use.ordinal
        ),
        None,
    )
    if twin_use is None or twin_use.result_seq is None:
        return None
    return find_continuation(twin, twin_use, twin_use.result_seq)
