"""Cache of searched request bodies: only the parts that are new in a request are searched."""

from collections.abc import Iterator

from msgspec import Struct

from traces.bodies.body_delta import common_prefix
from traces.redaction.known_values import KnownValueIndex
from traces.redaction.scanner import SecretScanner
from traces.redaction.text_buffer import SpanReplacement

_OVERLAP = 4096
_REMEMBERED = 4
_STRETCHES = 8


class _SearchedBody(Struct, frozen=True):
    body: bytes
    spans: list[SpanReplacement]
    generation: int


class RequestPrefixCache:
    """The last few request bodies, in memory only, with the secrets found in them."""

    def __init__(self, search: SecretScanner, known: KnownValueIndex) -> None:
        self._search, self._known = search, known
        self._seen: list[_SearchedBody] = []

    def find_spans(self, body: bytes) -> list[SpanReplacement]:
        """Find the secrets of a request body; parts equal to a recent body are not searched
        again."""
        if len(body) < _OVERLAP:
            return self._search.find_spans(body)
        recent = [seen for seen in self._seen if seen.generation == self._known.generation]
        best, shared = _find_most_similar(body, recent)
        spans = self._search.find_spans(body) if best is None else self._reuse_spans(best, body)
        if best is not None and shared * 16 >= len(best.body) * 15:
            recent.remove(best)  # this body stands for it from now on
        self._seen = [
            *recent[-_REMEMBERED + 1 :],
            _SearchedBody(body, spans, self._known.generation),
        ]
        return spans

    def _reuse_spans(self, seen: _SearchedBody, body: bytes) -> list[SpanReplacement]:
        """Find the secrets of a body, reusing those of an older one for equal parts."""
        overlap = max(_OVERLAP, 6 * self._known.longest)
        spans, at = list[SpanReplacement](), 0
        for start, there, size in _find_common_stretches(body, seen.body):
            low = start + overlap if start or there else 0
            to_the_end = start + size == len(body) and there + size == len(seen.body)
            high = start + size - (0 if to_the_end else overlap)
            shifted = [(b + start - there, e + start - there, i) for b, e, i in seen.spans]
            # No boundary splits a secret.
            low = max((e for b, e, _ in shifted if b < low < e), default=low)
            high = min((b for b, e, _ in shifted if b < high < e), default=high)
            if low >= high:
                continue
            spans += self._search_part(body, at, low)
            spans += [span for span in shifted if low <= span[0] and span[1] <= high]
            at = high
        return spans + self._search_part(body, at, len(body))

    def _search_part(self, body: bytes, start: int, stop: int) -> list[SpanReplacement]:
        if start >= stop:
            return []
        spans = self._search.find_spans(body[start:stop], final=stop == len(body))
        return [(begin + start, end + start, instead) for begin, end, instead in spans]


def _find_most_similar(
    body: bytes, recent: list[_SearchedBody]
) -> tuple[_SearchedBody | None, int]:
    """Return the body with the longest common prefix, or the latest that shares most, with its
    length."""
    most, found = 0, None
    for seen in reversed(recent):
        length = common_prefix(body, seen.body)
        if found is None or length > most:
            most, found = length, seen
        if length * 4 >= len(body) * 3:
            break
    return found, most


def _find_common_stretches(body: bytes, parent: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield (offset in body, offset in parent, size) of equal parts, in order; not all of them.

    Clients move a marker or insert a reminder at the front; the rest is unchanged.
    """
    at = there = 0
    for _ in range(_STRETCHES):
        size = common_prefix(body, parent, at, there)
        yield at, there, size
        at, there = at + size, there + size
        for skip in (16, 256, 2048):
            probe = body[at + skip : at + skip + 64]
            match = parent.find(probe, there, there + 8192) if len(probe) == 64 else -1
            if match >= 0:
                at, there = at + skip, match
                break
        else:
            return
