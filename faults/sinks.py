"""Where a value can end up: what an agent asked tools for, and what it said."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from faults.atoms import SHORT, Leaf, atoms, leaves
from faults.side import Side, side
from traces.conversation import canonical_arguments
from traces.story import Step, ToolUse

type Key = tuple[str, str]
"""A tool and its canonical arguments."""
type Where = tuple[str, int]
"""The tool, and for which time it is asked after the strike; `final` and the turn's place for the
last answer.

Slots of two runs are the same where this is."""


@dataclass(frozen=True, kw_only=True)
class Sink:
    """The arguments of one call, or one text of the agent."""

    step: int
    where: Where
    text: str
    side: Side | None = None
    """What the tool does; None for a text, and where nobody knows."""
    key: Key | None = None
    """The call; None for a text."""
    result: str | None = None

    @property
    def final(self) -> bool:
        """True for the last answer."""
        return self.where[0] == FINAL

    @property
    def called(self) -> bool:
        """True for the arguments of a call."""
        return self.key is not None

    @cached_property
    def atoms(self) -> frozenset[str]:
        """What it says."""
        return atoms(self.text)

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The values of it; a text is one."""
        return _leaves(self.text)


FINAL = "final"


@lru_cache(maxsize=1 << 12)
def _leaves(text: str) -> tuple[Leaf, ...]:
    return leaves(text) or (Leaf("", text, "text"),)


def key(use: ToolUse) -> Key:
    """What makes two calls the same."""
    said = use.arguments
    return use.tool, _canonical(said) if len(said) <= SHORT else canonical_arguments(said)


_canonical = lru_cache(maxsize=1 << 12)(canonical_arguments)


def sinks(turns: Iterable[Step], uses: Iterable[ToolUse], finals: Sequence[Step]) -> Iterator[Sink]:
    """What was said in these turns, some of which are the answer, and asked by these calls."""
    calls = {(use.lane, use.call_id): use for use in uses}
    count: dict[str, int] = {}
    for turn in turns:
        if turn.message:
            last = next((at for at, each in enumerate(finals) if each is turn), None)
            where = ("text", turn.number) if last is None else (FINAL, last)
            yield Sink(step=turn.number, where=where, text=turn.message)
        for id in turn.calls:
            if use := calls.get((turn.lane, id)):
                nth = count[use.tool] = count.get(use.tool, 0) + 1
                yield Sink(
                    step=turn.number,
                    where=(use.tool, nth),
                    text=use.arguments,
                    side=side(use.tool),
                    key=key(use),
                    result=use.result,
                )
