"""A model's turn: one question to it, however often it is tried, and how it is known again."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from traces.conversation import Placed
from traces.story import Story


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of an agent's conversation, in a recording or in a run of the same prefix.

    It is known by its number in its lane and by the ids of the results that it carries, which are
    the model's and come from the tape. Where another turn has the same, its lane's number decides.
    What was said before does not: it holds dates, session ids and keys of each run.
    """

    seq: int = field(compare=False)
    """Of its first attempt."""
    lane: int
    number: int
    """Among those of its lane, from 1."""
    results: tuple[str, ...]
    """The call ids of the results in its request, sorted: parallel calls end in any order."""
    offers: bool
    """True where its lane offers the model tools."""
    step: int = field(default=0, compare=False)
    tools: tuple[str, ...] = field(default=(), compare=False)
    """Those that its answer calls, where there is one."""
    prefix: str = field(default="", compare=False)
    stage: str | None = field(default=None, compare=False)
    """The stage of a pipeline in which it is asked."""
    alone: bool = field(default=False, compare=False)
    """True where no other turn of the recording has its number and results."""

    @property
    def tool(self) -> str:
        """What is asked."""
        return "model"

    @property
    def arguments(self) -> str:
        """What names it in draws, the same on every machine."""
        return f"turn {self.number} of lane {self.lane}"

    @property
    def ordinal(self) -> int:
        """It comes once."""
        return 0

    @property
    def place(self) -> Literal["model"]:
        """Where it is answered."""
        return "model"

    @property
    def server(self) -> None:
        """No tool's."""
        return None

    @property
    def read_only(self) -> None:
        """Nobody says."""
        return None

    def again(self, other: "Turn") -> bool:
        """True for this very turn in another run of the same prefix, or another attempt of it."""
        return _key(self) == _key(other) and (self.alone or self.lane == other.lane)


def _key(turn: Turn) -> tuple[object, ...]:
    return turn.number, turn.results, turn.offers


def turn(seq: int, placed: Placed) -> Turn | None:
    """The turn of a model request; None for one that is none: a warm-up, or an upgrade."""
    if placed.kind != "model" or placed.lane is None or placed.silent or placed.dialect is None:
        return None
    return Turn(
        seq=seq if placed.attempt_of is None else placed.attempt_of,
        lane=placed.lane,
        number=placed.turn,
        results=tuple(sorted(result.call_id for result in placed.results)),
        offers=placed.offers,
        step=placed.step,
        prefix=placed.prefix,
        stage=placed.stage,
    )


def turns(told: Story) -> tuple[Turn, ...]:
    """The agent's turns of a recording, in their order.

    Where some lanes offer the model tools, those that do not are no agent's: clients ask for a
    title of the conversation on the side.
    """
    found = list(_first(told))
    times = Counter(map(_key, found))
    offering = any(each.offers for each in found)
    return tuple(
        replace(each, alone=times[_key(each)] == 1) for each in found if each.offers or not offering
    )


def _first(told: Story) -> Iterator[Turn]:
    """Each turn at its first attempt, with what its last one called."""
    called = dict[int, tuple[str, ...]]()
    for seq, answer in told.answers.items():
        attempt_of = told.placed[seq].attempt_of
        called[seq if attempt_of is None else attempt_of] = tuple(c.name for c in answer.calls)
    for seq, placed in sorted(told.placed.items()):
        found = turn(seq, placed) if placed.attempt_of is None else None
        if found is not None:
            yield replace(found, tools=called.get(seq, ()))
