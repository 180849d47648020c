"""What a recording knows that an operator may need: clean observations, and what came of them.

An operator is pure, so what was seen is handed to it as a value. A wrong value that nobody could
have sent (a stale one, another entity's, another legal member of an enum) is taken from here and
never made up.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from faults.document import Document, Kind, Node, read
from traces.conversation import Call, canonical_arguments
from traces.model import Exchange, Response
from traces.story import Story, ToolUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One call of the clean recording and what it returned."""

    call_id: str
    tool: str
    arguments: str
    """Canonical JSON."""
    ordinal: int
    result: str
    """As the model was told; empty where it never was."""
    response: Response | None = None
    """The tool's own answer, where the call made a request and got one."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The clean observations in their order, and which of them is struck."""

    observations: tuple[Observation, ...] = ()
    tool: str = ""
    """The struck call's."""
    arguments: str = "{}"
    """Canonical JSON."""
    at: int | None = None
    """None where the struck call is none of them: then all of them came before it."""
    final: str = ""
    """The clean run's last message."""
    writes: bool | None = None
    """Whether the struck call changes the world; None where nobody knows."""
    world: bool = False
    """Whether the world can be set back, so that an effect can be told from none."""

    def of(self, call: Call, writes: bool | None = None) -> "Seen":
        """The same recording as another call sees it."""
        arguments = canonical_arguments(call.arguments)
        alike = [
            at
            for at, each in enumerate(self.observations)
            if (each.tool, each.arguments) == (call.tool, arguments)
        ]
        same = [at for at in alike if self.observations[at].call_id == call.id]
        nth = alike[call.ordinal : call.ordinal + 1]
        at = next(iter(same or nth), None)
        return replace(self, tool=call.tool, arguments=arguments, at=at, writes=writes)

    @property
    def own(self) -> Observation | None:
        """The struck call as it was."""
        return None if self.at is None else self.observations[self.at]

    def answers(self, tool: str) -> Iterator[Response]:
        """What the tool answered over the network, the struck call's own first, then the latest."""
        own = () if self.own is None else (self.own,)
        for each in (*own, *reversed(self.observations)):
            if each.tool == tool and each.response is not None:
                yield each.response

    @property
    def before(self) -> tuple[Observation, ...]:
        """What was seen before the struck call."""
        return self.observations[: self.at]

    @property
    def later(self) -> str:
        """What the clean run made of it: the arguments of later calls, and the final message."""
        after = () if self.at is None else self.observations[self.at + 1 :]
        return "\n".join([*(each.arguments for each in after), self.final])

    def documents(self, *, before: bool = False) -> Iterator[Document]:
        """The observed results, the struck call's own left out; the latest first."""
        observed = self.before if before else self.observations
        for at, each in reversed(tuple(enumerate(observed))):
            if at != self.at and each.result:
                yield read(each.result)

    def values(self, node: Node) -> tuple[str, ...]:
        """What was seen under the same name as this node and of its kind, each once."""
        return tuple(self._values.get((node.name, node.kind), {}))

    @cached_property
    def _values(self) -> Mapping[tuple[str, Kind], Mapping[str, None]]:
        found = defaultdict[tuple[str, Kind], dict[str, None]](dict)
        for document in self.documents():
            for node in document.nodes():
                if node.name and node.whole:
                    found[node.name, node.kind][node.said] = None
        return found


NOTHING = Seen()
"""Of a run without a recording."""


def seen(story: Story, exchanges: Iterable[Exchange]) -> Seen:
    """What a clean recording knows."""
    by_seq = {exchange.seq: exchange for exchange in exchanges}
    return Seen(
        observations=tuple(_observation(use, by_seq) for use in story.uses),
        final=story.turns[-1].message if story.turns else "",
    )


def _observation(use: ToolUse, by_seq: Mapping[int, Exchange]) -> Observation:
    answers = [by_seq[seq].response for seq in use.seqs if seq in by_seq]
    return Observation(
        call_id=use.call_id,
        tool=use.tool,
        arguments=canonical_arguments(use.arguments),
        ordinal=use.ordinal,
        result=use.result or "",
        response=answers[-1] if answers else None,
    )
