"""Whose request it is, where two conversations ask a tool the same.

A lane needs no number to be known again. Each request of a model says the whole of its own
conversation, or names the answer that it goes on from; so its content finds its lane, and two
lanes that have said the same so far are one until they part. A request of a tool says nothing
of the kind, but it serves a call, and the answer that asked for the call came from the tape. So
the recorded exchange of the same call is its own: of the call that the recorded answer which
this run was given asked for, under the same id.

Which call a request serves is found as anywhere (`traces.conversation.Join`), in the recording
and in this run; where that does not tell, start times decide. A wrong guess does not stay
unseen: the model's next request holds what another lane was told, which is not on the tape.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from traces.conversation import Conversations
from traces.story import events
from traces.tape import Tape


@dataclass(frozen=True, slots=True)
class Served:
    """The call of the recording that a request serves."""

    asked_by: int
    """seq of the recorded exchange whose answer asked for it."""
    id: str
    named: bool = field(default=False, compare=False)
    """True where the request itself says the id."""


@dataclass(frozen=True, slots=True)
class Asker:
    """What this run knows of whose request a tool's is."""

    call: Served | None
    given: Container[int]
    """seqs of the recorded answers of models that this run has been given."""

    def may_have(self, recorded: Served | None) -> bool:
        """False for what was told to a call of another id, as both requests say themselves."""
        own = self.call
        if own is None or recorded is None or not (own.named and recorded.named):
            return True
        return own.id == recorded.id

    def expects(self, recorded: Served | None) -> bool:
        """False for what was told to a call that nobody has asked for yet."""
        return recorded is None or recorded.asked_by in self.given


def served(recording: Tape) -> Mapping[int, Served]:
    """The call that each recorded exchange of a tool serves, by seq, where that is known."""
    conversations, found = Conversations(recording.trajectory.tools, live=True), {}
    by_seq = {exchange.seq: exchange for exchange in recording.exchanges}
    for _, over, seq in sorted(events(recording.exchanges)):
        if over:
            conversations.answered(by_seq[seq])
            del conversations.placed[seq]
            continue
        placed = conversations.asked(by_seq[seq])
        if (call := placed.call) is not None:
            found[seq] = Served(call.asked_by, call.id, placed.join == "id")
    return found
