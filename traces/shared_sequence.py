"""An immutable sequence that shares its beginning with those it was made from."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Self, overload

MAX_DEPTH = 64
"""Sequences whose beginnings are made of one another, before all items are copied."""


class SharedSequence[T](Sequence[T]):
    """The items of a base, up to a place, and items of its own.

    Adding to a sequence takes time and memory for what is new, and so does adding to its beginning,
    as for a conversation whose last messages are rewritten each time.
    """

    __slots__ = ("_base", "_depth", "_kept", "_length", "_own")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._base: SharedSequence[T] | None = None
        self._kept = self._depth = 0
        self._own = list(items)
        """Shared with longer and shorter sequences; only its beginning is of this one."""
        self._length = len(self._own)

    def first(self, count: int) -> "SharedSequence[T]":
        """Return the first `count` items."""
        node = self
        while node._base is not None and count <= node._kept:
            node = node._base
        return node._with_length(count)

    def plus(self, items: Sequence[T]) -> "SharedSequence[T]":
        """Return these items and then others."""
        if not items or not self._length:
            return SharedSequence(items) if items else self
        at, own = self._length - self._kept, self._own
        if own[at : at + len(items)] == list(items) or at == len(own):
            own.extend(items[len(own) - at :])
            return self._with_length(self._length + len(items))
        if self._depth == MAX_DEPTH:
            return SharedSequence([*self, *items])
        longer = SharedSequence(items)
        longer._base, longer._kept, longer._depth = self, self._length, self._depth + 1
        longer._length = self._length + len(items)
        return longer

    def count_shared(self, other: "SharedSequence[T]") -> int:
        """Return how many of the first items are known to be those of another sequence."""
        chain = {id(node._own): length for node, length in other._iter_nodes()}
        for node, length in self._iter_nodes():
            if id(node._own) in chain:
                return min(length, chain[id(node._own)])
        return 0

    def _with_length(self, length: int) -> "SharedSequence[T]":
        copied = SharedSequence[T].__new__(SharedSequence)
        copied._base, copied._kept, copied._depth = self._base, self._kept, self._depth
        copied._own, copied._length = self._own, length
        return copied

    def _iter_nodes(self) -> Iterator[tuple[Self, int]]:
        """Yield this sequence and its bases, with the number of the items here up to their end."""
        node, length = self, self._length
        while node is not None:
            yield node, length
            length, node = node._kept, node._base  # type: ignore[assignment]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return self._iter_between(0, self._length)

    def _iter_between(self, start: int, stop: int) -> Iterator[T]:
        parts = list[Iterator[T]]()
        for node, length in self._iter_nodes():
            begin, end = max(start, node._kept), min(stop, length)
            if begin < end:
                parts.append(islice(node._own, begin - node._kept, end - node._kept))
            if node._kept <= start:
                break
        return chain.from_iterable(reversed(parts))

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        if isinstance(place, slice):
            start, stop, step = place.indices(self._length)
            if step != 1:
                return tuple(self)[place]
            return tuple(self._iter_between(start, stop))
        at = place + self._length if place < 0 else place
        if not 0 <= at < self._length:
            raise IndexError(f"{place} of {self._length} items")
        node = self
        while at < node._kept and node._base is not None:
            node = node._base
        return node._own[at - node._kept]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SharedSequence | tuple):
            return NotImplemented
        return len(self) == len(other) and all(
            one is two or one == two for one, two in zip(self, other, strict=True)
        )

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"SharedSequence({list(self)!r})"
