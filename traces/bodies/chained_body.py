"""A request body kept as its parent and what is new; its bytes exist only while they are read.

A conversation of a thousand steps is sent a thousand times, each time a little longer. Its bodies
together have the square of its length; their pieces have its length.
"""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

from traces.bodies.body_delta import DeltaPiece, restore_body

RESTORED_BYTES = 1 << 23
"""Total size of the restored bodies that are kept, of all tapes of a process: the next body is
mostly a delta to one of the last."""


class ChainedBody:
    """A body as pieces of its parent, which is bytes or such a body; equal only to itself."""

    __slots__ = ("_parent", "_pieces", "size")

    def __init__(self, parent: "bytes | ChainedBody", pieces: tuple[DeltaPiece, ...]) -> None:
        """Raise TypeError or ValueError if the pieces are malformed or do not fit the parent."""
        self._parent, self._pieces = parent, pieces
        self.size = _measure_pieces(pieces, measure_body(parent))
        """Length in bytes."""

    def is_made_of(self, parent: "bytes | ChainedBody", pieces: tuple[DeltaPiece, ...]) -> bool:
        """Whether these are its parent and its pieces."""
        return self._parent is parent and self._pieces == pieces

    def read(self) -> bytes:
        """Return the bytes. They are the same object while they are among those kept."""
        pending, body = list[ChainedBody](), self
        known = _restored.get(body)
        while known is None:
            pending.append(body)
            parent = body._parent
            if isinstance(parent, bytes):
                known = parent
            else:
                body, known = parent, _restored.get(parent)
        for body in reversed(pending):
            known = restore_body(body._pieces, known)
        if pending:
            _restored.add(self, known)  # not its parents, which would drive out other tapes' bodies
        return known


def measure_body(body: bytes | ChainedBody) -> int:
    """Return the length of a body in bytes, without restoring it."""
    return body.size if isinstance(body, ChainedBody) else len(body)


def read_body(body: bytes | ChainedBody) -> bytes:
    """Return the bytes of a body."""
    return body.read() if isinstance(body, ChainedBody) else body


def restores_when_read[T](name: str) -> Callable[[type[T]], type[T]]:
    """Decorate a class with slots: a chained body in this field is restored when it is read."""

    def decorate(cls: type[T]) -> type[T]:
        slot: Any = vars(cls)[name]
        get = slot.__get__

        def read(instance: object) -> Any:
            body = get(instance)
            return body if body.__class__ is bytes else read_body(body)

        setattr(cls, name, property(read, slot.__set__))
        return cls

    return decorate


def _measure_pieces(pieces: tuple[DeltaPiece, ...], parent_size: int) -> int:
    total = 0
    for piece in pieces:
        if isinstance(piece, bytes):
            total += len(piece)
            continue
        start, stop = piece
        if not (isinstance(start, int) and isinstance(stop, int)):
            raise TypeError("a piece is bytes or two offsets")
        if not 0 <= start <= stop <= parent_size:
            raise ValueError(f"{start}:{stop} of a parent of {parent_size} bytes")
        total += stop - start
    return total


class _RestoredBodies:
    """The bodies read last, up to a total size; the last one always. Safe in threads."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._bodies = OrderedDict[ChainedBody, bytes]()
        self._lock = Lock()

    def get(self, of: ChainedBody) -> bytes | None:
        with self._lock:
            if (body := self._bodies.get(of)) is not None:
                self._bodies.move_to_end(of)
            return body

    def add(self, of: ChainedBody, body: bytes) -> None:
        with self._lock:
            if of in self._bodies:
                return
            self._bodies[of] = body
            self._size += len(body)
            while self._size > self._most and len(self._bodies) > 1:
                _, oldest = self._bodies.popitem(last=False)
                self._size -= len(oldest)


_restored = _RestoredBodies(RESTORED_BYTES)
