"""Find the call that a tool's request serves, if several conversations ask a tool the same.

A lane is recognised without a number. Each model request contains its entire conversation, or names
the answer that it continues; so its content identifies its lane, and two lanes with the same
conversation are one until they differ. A tool's request contains nothing of the kind, but it serves
a call, and the answer that requested the call came from the tape. So its recorded exchange is the
one for the same call: the call with the same id in the recorded answer that this run got.

The call that a request serves is found as elsewhere (`traces.conversation.tracker.JoinMethod`), in
the recording and in this run; if that is inconclusive, start times decide. A wrong choice is
detected: the model's next request contains another lane's result, and is not on the tape.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from traces.conversation.derived_steps import iter_exchange_events
from traces.conversation.tracker import ConversationTracker
from traces.tape.reader import Tape


@dataclass(frozen=True, slots=True)
class ServedCall:
    """The call of the recording that a request serves."""

    asked_by: int
    """seq of the recorded exchange whose answer requested it."""
    id: str
    named: bool = field(default=False, compare=False)
    """Whether the request itself contains the id."""


class ToolCallContext(Struct, frozen=True):
    """What is known in this run about the call that a tool's request serves."""

    call: ServedCall | None
    given_seqs: Container[int]
    """seqs of the recorded model answers that this run has got."""

    def may_have(self, recorded: ServedCall | None) -> bool:
        """Return False for the answer to another call id, if both requests contain their id."""
        current = self.call
        if current is None or recorded is None or not (current.named and recorded.named):
            return True
        return current.id == recorded.id

    def expects(self, recorded: ServedCall | None) -> bool:
        """Return False for the answer to a call that no model has requested yet."""
        return recorded is None or recorded.asked_by in self.given_seqs


def find_served_calls(recording: Tape) -> Mapping[int, ServedCall]:
    """Return the call that each recorded tool exchange serves, by seq, if known."""
    conversations, served = ConversationTracker(recording.trajectory.tools, live=True), {}
    by_seq = {exchange.seq: exchange for exchange in recording.exchanges}
    for _, is_end, seq in sorted(iter_exchange_events(recording.exchanges)):
        if is_end:
            conversations.add_answer(by_seq[seq])
            del conversations.placed[seq]
            continue
        placed = conversations.add_request(by_seq[seq])
        if (call := placed.call) is not None:
            served[seq] = ServedCall(call.asked_by, call.id, placed.join == "id")
    return served
