"""Which conversation a request belongs to, by what it says; nothing of one that is over is kept.

A model request continues the conversation whose last request is the longest prefix of its
messages. Of several with equal prefixes (the same task given to many agents) it continues the one
whose answer asked for the calls that it returns, else the one on its connection, else the oldest
that has an answer. The same messages again are a retry only after a failed attempt. A tool's
request belongs to the conversation with an open call of which it holds the most values, if that is
a single one.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import field

from traces.conversation.join_proof import count_call_values
from traces.dialects import find_dialect
from traces.dialects.types import ChatMessage, DialectLens, ModelAnswer, ModelRequest
from traces.lazy_dataclass import dataclass
from traces.model import Exchange, Request, find_header


@dataclass(slots=True, eq=False)
class ConversationState:
    """What is known of one conversation."""

    prefix: bytes = b""
    """Hash of the messages of its last request."""
    length: int = 0
    answered: bool = False
    """Whether the last request has a whole answer."""
    in_flight: int = 0
    calls: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Open calls: id -> tool and arguments."""
    asked: frozenset[str] = frozenset()
    """Ids of the calls in the last answer."""
    said: str = ""
    """Text of the last answer."""
    answer_id: str | None = None
    connection: int = -1


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A model request as read; `lens` is None for any other."""

    lens: DialectLens | None
    parsed: ModelRequest
    hashes: Sequence[bytes] = ()
    """Hash of the first n messages, for n from 0."""


def read_model_request(request: Request, body: bytes) -> ReadRequest:
    """Parse a request and hash each prefix of its messages."""
    lens = find_dialect(request)
    if lens is None:
        return ReadRequest(None, ModelRequest())
    parsed = lens.make_dialect_reader()(body)
    return ReadRequest(lens, parsed, tuple(_hash_prefixes(parsed.messages)))


def _hash_prefixes(messages: Iterable[ChatMessage]) -> Iterable[bytes]:
    running = hashlib.blake2b(digest_size=16)
    yield running.digest()
    for message in messages:
        running.update(message.address)
        yield running.digest()


class ConversationIndex:
    """The conversations that are not over."""

    def __init__(self) -> None:
        self._states: dict[ConversationState, None] = {}
        self._by_prefix: dict[bytes, dict[ConversationState, None]] = {}

    def add(self) -> ConversationState:
        """Begin a conversation."""
        state = ConversationState()
        self._states[state] = None
        return state

    def remove(self, state: ConversationState) -> None:
        """Forget a conversation that is over."""
        self._states.pop(state, None)
        self._unlink(state)

    def find_for_model(self, read: ReadRequest, connection: int) -> ConversationState | None:
        """Return the conversation that a model request continues; None if it begins one."""
        before = read.parsed.state.previous_answer
        if before is not None:
            return next((s for s in self._states if s.answer_id == before), None)
        total = len(read.hashes) - 1
        for length in range(total, 0, -1):
            found = self._by_prefix.get(read.hashes[length], {})
            if length == total:
                again = [s for s in found if not s.in_flight and not s.answered]
                if again:
                    return _prefer(again, connection)
            elif found:
                return _choose_continued(list(found), read, connection)
        return None

    def find_for_tool(self, request: Request, connection: int) -> ConversationState | None:
        """Return the conversation of a tool's request; None if none is proved."""
        id = find_header(request.headers, "x-tool-call-id")
        if id is not None:
            named = [state for state in self._states if id in state.calls]
            if len(named) == 1:
                return named[0]
        scores = {
            state: max(count_call_values(text, request) for _, text in state.calls.values())
            for state in self._states
            if state.calls
        }
        most = max(scores.values(), default=0)
        best = [state for state, score in scores.items() if score == most]
        if most and len(best) == 1:
            return best[0]
        same = [state for state in best if most and state.connection == connection]
        return same[0] if len(same) == 1 else None

    def note_request(self, state: ConversationState, read: ReadRequest, connection: int) -> None:
        """Note a model request: its messages are the prefix of the next one."""
        self._unlink(state)
        state.prefix, state.length = read.hashes[-1], len(read.hashes) - 1
        state.answered, state.connection = False, connection
        state.in_flight += 1
        for result in read.parsed.results:
            state.calls.pop(result.call_id, None)
        self._by_prefix.setdefault(state.prefix, {})[state] = None

    def note_answer(
        self, state: ConversationState, answer: ModelAnswer | None, *, failed: bool
    ) -> None:
        """Note the end of a model's answer."""
        state.in_flight -= 1
        if answer is None or failed:
            return
        state.answered = True
        state.answer_id, state.said = answer.id, answer.message
        state.asked = frozenset(call.id for call in answer.calls)
        state.calls |= {call.id: (call.name, call.arguments) for call in answer.calls}

    def _unlink(self, state: ConversationState) -> None:
        found = self._by_prefix.get(state.prefix)
        if found is not None:
            found.pop(state, None)
            if not found:
                del self._by_prefix[state.prefix]


def _choose_continued(
    found: list[ConversationState], read: ReadRequest, connection: int
) -> ConversationState:
    if len(found) == 1:
        return found[0]
    returned = {result.call_id for result in read.parsed.results}
    asked = [state for state in found if state.asked and state.asked <= returned]
    if asked:
        return _prefer(asked, connection)
    texts = [message.content for message in read.parsed.messages[found[0].length :]]
    said = [state for state in found if state.said and state.said in texts]
    return _prefer(said or found, connection)


def _prefer(found: list[ConversationState], connection: int) -> ConversationState:
    same = [state for state in found if state.connection == connection]
    answered = [state for state in found if state.answered]
    return (same or answered or found)[0]


def read_answer(read: ReadRequest, exchange: Exchange) -> ModelAnswer | None:
    """Parse the answer to a model request; None if there is none to parse."""
    answer = exchange.response
    if read.lens is None or answer is None or not answer.chunks:
        return None
    return read.lens.parse_model_answer(answer.headers, answer.body)
