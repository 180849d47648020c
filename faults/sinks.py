"""Where a value can end up: what an agent asked tools for, and what it said."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from faults.after import After, Key, key
from faults.atoms import Leaf, atoms, leaves
from faults.side import Side, side

type Where = tuple[str, int]
"""The tool, and for which time it is asked after the strike; `final` and 0 for the last answer.

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


def sinks(after: After) -> tuple[Sink, ...]:
    """All sinks of a run after the strike, in the order of its steps."""
    return tuple(_sinks(after))


def _sinks(after: After) -> Iterator[Sink]:
    calls = {(use.lane, use.call_id): use for use in after.calls}
    count: dict[str, int] = {}
    for turn in after.later:
        if turn.message:
            where = (FINAL, 0) if turn is after.final else ("text", turn.number)
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
