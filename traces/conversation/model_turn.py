"""A model turn: one request to the model with all its attempts, and its identity across runs."""

from collections import Counter
from collections.abc import Iterator
from copy import replace
from dataclasses import dataclass, field
from typing import Literal

from traces.conversation.derived_steps import DerivedSteps
from traces.conversation.tracker import ExchangeContext


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTurn:
    """One turn of an agent's conversation, in a recording or in a run of the same prefix.

    Its identity is its number in its lane and the ids of the results that it carries, which the
    model assigned and the tape contains. If another turn has the same, the lane number decides.
    Earlier messages are not part of it: they contain dates, session ids and keys of each run.
    """

    seq: int = field(compare=False)
    """seq of its first attempt."""
    lane: int
    number: int
    """Number among the turns of its lane, from 1."""
    results: tuple[str, ...]
    """The call ids of the results in its request, sorted: parallel calls end in any order."""
    offers: bool
    """True if its lane offers the model tools."""
    step: int = field(default=0, compare=False)
    tools: tuple[str, ...] = field(default=(), compare=False)
    """The tools that its response calls, if there is one."""
    prefix: str = field(default="", compare=False)
    stage: str | None = field(default=None, compare=False)
    """The pipeline stage in which it is sent."""
    is_unique: bool = field(default=False, compare=False)
    """True if no other turn of the recording has its number and results."""

    @property
    def tool(self) -> str:
        """The tool name of every model turn."""
        return "model"

    @property
    def arguments(self) -> str:
        """Its name for seeded random draws, the same on every machine."""
        return f"turn {self.number} of lane {self.lane}"

    @property
    def ordinal(self) -> int:
        """Always 0, since a turn occurs once."""
        return 0

    @property
    def place(self) -> Literal["model"]:
        """The place of its response."""
        return "model"

    @property
    def server(self) -> None:
        """None: a turn has no tool server."""
        return None

    @property
    def read_only(self) -> None:
        """None: undeclared for a turn."""
        return None

    def is_same_turn(self, other: "ModelTurn") -> bool:
        """True for this turn in another run of the same prefix, or another attempt of it."""
        return _make_turn_identity(self) == _make_turn_identity(other) and (
            self.is_unique or self.lane == other.lane
        )


def _make_turn_identity(turn: ModelTurn) -> tuple[object, ...]:
    return turn.number, turn.results, turn.offers


def to_model_turn(seq: int, placed: ExchangeContext) -> ModelTurn | None:
    """Return the turn of a model request; None for a warm-up, an upgrade or another kind."""
    if placed.kind != "model" or placed.lane is None or placed.is_warmup or placed.dialect is None:
        return None
    return ModelTurn(
        seq=seq if placed.attempt_of is None else placed.attempt_of,
        lane=placed.lane,
        number=placed.turn,
        results=tuple(sorted(result.call_id for result in placed.results)),
        offers=placed.offers,
        step=placed.step,
        prefix=placed.prefix,
        stage=placed.stage,
    )


def list_agent_turns(derived_steps: DerivedSteps) -> tuple[ModelTurn, ...]:
    """List the agent's turns of a recording, in order.

    If some lanes offer the model tools, those without are not the agent's: clients request a title
    of the conversation on the side.
    """
    turns = list(_iter_first_attempts(derived_steps))
    times = Counter(map(_make_turn_identity, turns))
    offering = any(each.offers for each in turns)
    return tuple(
        replace(each, is_unique=times[_make_turn_identity(each)] == 1)
        for each in turns
        if each.offers or not offering
    )


def _iter_first_attempts(derived_steps: DerivedSteps) -> Iterator[ModelTurn]:
    """Yield each turn at its first attempt, with the tools that its last attempt called."""
    called = dict[int, tuple[str, ...]]()
    for seq, answer in derived_steps.answers.items():
        attempt_of = derived_steps.contexts[seq].attempt_of
        called[seq if attempt_of is None else attempt_of] = tuple(c.name for c in answer.calls)
    for seq, placed in sorted(derived_steps.contexts.items()):
        turn = to_model_turn(seq, placed) if placed.attempt_of is None else None
        if turn is not None:
            yield replace(turn, tools=called.get(seq, ()))
