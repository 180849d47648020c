"""Which conversation a request belongs to, by what it says; nothing of one that is over is kept.

A model request continues the conversation whose last request is the longest prefix of its
messages. Of several with equal prefixes (the same task given to many agents) it continues the one
whose answer asked for the calls that it returns, else the one on its connection, else the oldest
that has an answer. The same messages again are a retry only after a failed attempt. A tool's
request belongs to the conversation with an open call of which it holds the most values, if that is
a single one.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from traces.conversation.join_proof import count_call_values
from traces.dialects import find_dialect
from traces.dialects.types import DialectLens, ModelAnswer, ModelRequest
from traces.model import Exchange, Request, find_header


class ConversationState(Struct, eq=False):
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


class ReadRequest(Struct, frozen=True):
    """A model request as read; `lens` is None for any other."""

    lens: DialectLens | None
    parsed: ModelRequest
    addresses: bytes = b""
    """Those of its messages, joined."""

    @property
    def length(self) -> int:
        """Number of messages."""
        return len(self.parsed.messages)

    def hash_prefixes(self, lengths: Iterable[int]) -> list[tuple[int, bytes]]:
        """Return the hash of the first n messages for each n up to all, the longest first."""
        running, at = hashlib.blake2b(digest_size=16), 0
        hashes = list[tuple[int, bytes]]()
        for length in sorted(lengths):
            stop = length * len(self.addresses) // max(1, self.length)
            if length > self.length:
                break
            running.update(self.addresses[at:stop])
            hashes.append((length, running.digest()))
            at = stop
        return hashes[::-1]


class ConversationIndex:
    """The conversations that are not over."""

    def __init__(self) -> None:
        self._states: dict[ConversationState, None] = {}
        self._by_prefix: dict[bytes, dict[ConversationState, None]] = {}
        self._lengths = Counter[int]()
        """How many conversations have so many messages."""
        self._readers: dict[str, Callable[[bytes], ModelRequest]] = {}
        """The reader of each dialect, which remembers the last few bodies."""

    def read(self, request: Request, body: bytes) -> ReadRequest:
        """Parse a request; of a body that repeats another one, what is new."""
        lens = find_dialect(request)
        if lens is None:
            return ReadRequest(None, ModelRequest())
        if lens.NAME not in self._readers:
            self._readers[lens.NAME] = lens.make_dialect_reader()
        parsed = self._readers[lens.NAME](body)
        return ReadRequest(lens, parsed, b"".join([each.address for each in parsed.messages]))

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
        for length, prefix in read.hash_prefixes(n for n in self._lengths if n):
            found = self._by_prefix.get(prefix, {})
            if length == read.length:
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
        ((state.length, state.prefix),) = read.hash_prefixes([read.length])
        state.answered, state.connection = False, connection
        state.in_flight += 1
        for result in read.parsed.results if state.calls else ():
            state.calls.pop(result.call_id, None)
        self._by_prefix.setdefault(state.prefix, {})[state] = None
        self._lengths[state.length] += 1

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
        if found is None or state not in found:
            return
        del found[state]
        if not found:
            del self._by_prefix[state.prefix]
        self._lengths[state.length] -= 1
        if not self._lengths[state.length]:
            del self._lengths[state.length]


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
