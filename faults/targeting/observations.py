"""Clean observations: the calls of a recording and their results, as input of operators.

An operator is pure, so observations are passed to it as a value. Wrong values that cannot be
generated (a stale one, another entity's, another valid member of an enum) are taken from here and
never fabricated.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from copy import replace
from dataclasses import dataclass
from functools import cached_property

from msgspec import Struct

from faults.document import DocumentNode, NodeKind, TextDocument, parse_document
from traces.conversation.derived_steps import DerivedSteps, ToolUse
from traces.conversation.tracker import TrackedCall, canonicalize_arguments
from traces.model import Exchange, Response


class CallObservation(Struct, frozen=True, kw_only=True):
    """One call of the clean recording and its result."""

    call_id: str
    tool: str
    arguments: str
    """Canonical JSON."""
    ordinal: int
    result: str
    """As the model received it; empty if it never did."""
    response: Response | None = None
    """The tool's own response, if the call made a request and got one."""


@dataclass(frozen=True, kw_only=True)
class CleanObservations:
    """The clean observations in their order, and the index of the target call."""

    observations: tuple[CallObservation, ...] = ()
    tool: str = ""
    """Tool of the target call."""
    arguments: str = "{}"
    """Canonical JSON."""
    own_index: int | None = None
    """Index of the target call; None if it is not among them: then all of them came before it."""
    final: str = ""
    """The clean run's last message."""
    writes: bool | None = None
    """Whether the target call changes the world; None if unknown."""
    world: bool = False
    """Whether the world can be reset, so that an effect can be verified."""
    began: float = 0.0
    """When the run began, in seconds since the epoch: the time 0 of its exchanges."""

    def for_call(self, call: TrackedCall, writes: bool | None = None) -> "CleanObservations":
        """Return the same recording with another target call."""
        arguments = canonicalize_arguments(call.arguments)
        candidates = [
            at
            for at, each in enumerate(self.observations)
            if (each.tool, each.arguments) == (call.tool, arguments)
        ]
        same = [at for at in candidates if self.observations[at].call_id == call.id]
        nth = candidates[call.ordinal : call.ordinal + 1]
        at = next(iter(same or nth), None)
        return replace(self, tool=call.tool, arguments=arguments, own_index=at, writes=writes)

    @property
    def own_call(self) -> CallObservation | None:
        """The target call in the recording."""
        return None if self.own_index is None else self.observations[self.own_index]

    def find_answers(self, tool: str) -> Iterator[Response]:
        """Yield the tool's network responses: the target call's own, then the latest first."""
        own = () if self.own_call is None else (self.own_call,)
        for each in (*own, *reversed(self.observations)):
            if each.tool == tool and each.response is not None:
                yield each.response

    @property
    def before(self) -> tuple[CallObservation, ...]:
        """The observations before the target call."""
        return self.observations[: self.own_index]

    @property
    def later_text(self) -> str:
        """The arguments of the clean run's later calls, and its final message."""
        after = () if self.own_index is None else self.observations[self.own_index + 1 :]
        return "\n".join([*(each.arguments for each in after), self.final])

    def documents(self, *, before: bool = False) -> Iterator[TextDocument]:
        """Yield the observed results except the target call's own, the latest first."""
        observed = self.before if before else self.observations
        for at, each in reversed(tuple(enumerate(observed))):
            if at != self.own_index and each.result:
                yield parse_document(each.result)

    def find_values(self, node: DocumentNode) -> tuple[str, ...]:
        """Return the distinct values of this node's kind seen under its name."""
        return tuple(self._values_by_name.get((node.name, node.kind), {}))

    @cached_property
    def _values_by_name(self) -> Mapping[tuple[str, NodeKind], Mapping[str, None]]:
        values = defaultdict[tuple[str, NodeKind], dict[str, None]](dict)
        for document in self.documents():
            for node in document.nodes():
                if node.name and node.is_whole:
                    values[node.name, node.kind][node.text] = None
        return values


NO_OBSERVATIONS = CleanObservations()
"""Observations of a run without a recording."""


def observe_recording(
    derived_steps: DerivedSteps, exchanges: Iterable[Exchange]
) -> CleanObservations:
    """Return the observations of a clean recording."""
    by_seq = {exchange.seq: exchange for exchange in exchanges}
    return CleanObservations(
        observations=tuple(_to_call_observation(use, by_seq) for use in derived_steps.tool_uses),
        final=derived_steps.agent_steps[-1].message if derived_steps.agent_steps else "",
    )


def _to_call_observation(use: ToolUse, by_seq: Mapping[int, Exchange]) -> CallObservation:
    answers = [by_seq[seq].response for seq in use.seqs if seq in by_seq]
    return CallObservation(
        call_id=use.call_id,
        tool=use.tool,
        arguments=canonicalize_arguments(use.arguments),
        ordinal=use.ordinal,
        result=use.result or "",
        response=answers[-1] if answers else None,
    )
