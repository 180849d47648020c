"""BLAKE2b of bodies that repeat the beginning of earlier ones, which is compared, not hashed again.

The bytes hashed are those of `hashlib.blake2b(head + body)`; the state of the hash is kept at some
offsets of the last few bodies, and the next body continues from the last of them that it shares.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from traces.bodies.body_delta import common_prefix

SMALL = 1 << 16
"""Size in bytes up to which a body is hashed at once, and distance of the states of larger ones."""
MAX_BODIES, MAX_BYTES = 8, 1 << 24
"""How many bodies are kept, and their total size; the last one always."""


class _HashedBody(NamedTuple):
    head: bytes
    body: bytes
    states: tuple[tuple[int, "blake2b"], ...]
    """Offsets in the body, and the hash of the bytes before; never updated."""


class RepeatedBodyHash:
    """A hash function. Threads may share it: what it keeps is replaced as a whole."""

    def __init__(self, digest_size: int) -> None:
        self._digest_size = digest_size
        self._known: tuple[_HashedBody, ...] = ()

    def __call__(self, head: bytes, body: bytes) -> bytes:
        """Return the digest of head and body."""
        if len(body) <= SMALL:
            digest = blake2b(head, digest_size=self._digest_size)
            digest.update(body)
            return digest.digest()
        states = list(self._find_shared_states(head, body))
        at, digest = states[-1] if states else (0, blake2b(head, digest_size=self._digest_size))
        digest = digest.copy()
        view = memoryview(body)
        while at + SMALL <= len(body):
            digest.update(view[at : at + SMALL])
            at += SMALL
            states.append((at, digest.copy()))
        digest.update(view[at:])
        self._known = tuple(_drop_old([_HashedBody(head, body, tuple(states)), *self._known]))
        return digest.digest()

    def _find_shared_states(self, head: bytes, body: bytes) -> Iterator[tuple[int, "blake2b"]]:
        """Yield the states of the body with the longest common beginning, as far as it goes."""
        most, found = 0, None
        for known in self._known:
            if known.head != head or most >= len(known.body):
                continue
            common = common_prefix(known.body, body)
            if common > most:
                most, found = common, known
            if most * 4 >= len(body) * 3:
                break
        for at, state in found.states if found is not None else ():
            if at > most:
                break
            yield at, state


def _drop_old(known: list[_HashedBody]) -> Iterator[_HashedBody]:
    """Yield the bodies that are kept: none that another one repeats to its last state."""
    size = 0
    for number, each in enumerate(known[:MAX_BODIES]):
        size += len(each.body)
        is_repeated = number > 0 and each.states[-1] in known[0].states
        if number == 0 or (size <= MAX_BYTES and not is_repeated):
            yield each
