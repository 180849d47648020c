"""A request repeats most of the one before, so only what is new in it is searched."""

from collections.abc import Iterator
from dataclasses import dataclass

from traces.delta import common_prefix
from traces.known import Known
from traces.said import Span
from traces.search import Search

_OVERLAP = 4096
_REMEMBERED = 4
_STRETCHES = 8


@dataclass(frozen=True, slots=True)
class _Seen:
    body: bytes
    spans: list[Span]
    generation: int


class Repeats:
    """The last few request bodies, in memory only, with the secrets found in them."""

    def __init__(self, search: Search, known: Known) -> None:
        self._search, self._known = search, known
        self._seen: list[_Seen] = []

    def spans(self, body: bytes) -> list[Span]:
        """The secrets of a request body; what a recent body holds too is not searched again."""
        if len(body) < _OVERLAP:
            return self._search.spans(body)
        recent = [seen for seen in self._seen if seen.generation == self._known.generation]
        near = [common_prefix(body, seen.body) for seen in recent]
        best = max(range(len(near)), key=near.__getitem__, default=None)
        spans = self._search.spans(body) if best is None else self._since(recent[best], body)
        self._seen = [*recent[-_REMEMBERED + 1 :], _Seen(body, spans, self._known.generation)]
        return spans

    def _since(self, seen: _Seen, body: bytes) -> list[Span]:
        """The secrets of a body, those of an older one taken over where it says the same."""
        overlap = max(_OVERLAP, 6 * self._known.longest)
        spans, at = list[Span](), 0
        for start, there, size in _stretches(body, seen.body):
            low = start + overlap if start or there else 0
            to_the_end = start + size == len(body) and there + size == len(seen.body)
            high = start + size - (0 if to_the_end else overlap)
            moved = [(b + start - there, e + start - there, i) for b, e, i in seen.spans]
            # No cut goes through a secret.
            low = max((e for b, e, _ in moved if b < low < e), default=low)
            high = min((b for b, e, _ in moved if b < high < e), default=high)
            if low >= high:
                continue
            spans += self._part(body, at, low)
            spans += [span for span in moved if low <= span[0] and span[1] <= high]
            at = high
        return spans + self._part(body, at, len(body))

    def _part(self, body: bytes, start: int, stop: int) -> list[Span]:
        if start >= stop:
            return []
        found = self._search.spans(body[start:stop], final=stop == len(body))
        return [(begin + start, end + start, instead) for begin, end, instead in found]


def _stretches(body: bytes, parent: bytes) -> Iterator[tuple[int, int, int]]:
    """Where in body and parent, and for how long, they say the same; in order, not all of it.

    Clients move a marker or put a reminder in at the front: behind it all is as before.
    """
    at = there = 0
    for _ in range(_STRETCHES):
        size = common_prefix(body, parent, at, there)
        yield at, there, size
        at, there = at + size, there + size
        for skip in (16, 256, 2048):
            probe = body[at + skip : at + skip + 64]
            again = parent.find(probe, there, there + 8192) if len(probe) == 64 else -1
            if again >= 0:
                at, there = at + skip, again
                break
        else:
            return
