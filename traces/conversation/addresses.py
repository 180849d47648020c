"""Addresses of conversations: a hash of the addresses of their messages, equal for equal ones."""

from hashlib import blake2b

from traces.dialects.types import ChatMessage
from traces.shared_sequence import SharedSequence

SIZE = 16
"""Bytes of the address of a message."""
MAX_STATES = 64


class ConversationAddresses:
    """The addresses of all beginnings of a conversation.

    Those of the conversation before are known already as far as both begin with the same messages.
    """

    def __init__(self) -> None:
        self._messages = SharedSequence[ChatMessage]()
        self._joined = b""
        self._states = {0: blake2b(digest_size=16)}
        """The hash of the first messages, by their number."""

    def read(self, messages: SharedSequence[ChatMessage]) -> None:
        """Continue with a conversation."""
        shared = messages.count_shared(self._messages)
        new = b"".join([message.address for message in messages[shared:]])
        self._joined = self._joined[: shared * SIZE] + new
        latest = sorted(count for count in self._states if 0 < count <= shared)[-MAX_STATES:]
        self._states = {count: self._states[count] for count in (0, *latest)}
        self._messages = messages

    def hash_first(self, count: int) -> str:
        """Return the address of the first `count` messages; empty for none."""
        if count not in self._states:
            before = max(known for known in self._states if known < count)
            state = self._states[before].copy()
            state.update(self._joined[before * SIZE : count * SIZE])
            self._states[count] = state
        return self._states[count].hexdigest() if count else ""
