"""Request bodies encoded as byte-exact deltas to earlier ones.

Clients send the whole conversation with every request, so a body mostly repeats an earlier one, its
parent: it is encoded as pieces, each a range of the parent or literal bytes. Where the two diverge
(a cache marker moved, a reminder was added at the front, an old result was shortened), a few bytes
from further on are searched in the parent, and from there both are compared again. All of it is
memcmp and find; nothing is compressed during a run.

Every 64th body in a row is a delta to the 64th before it, not to the last one: so body n is at most
64 + n / 64 steps away from a literal body, a damaged frame affects bodies only up to the next 64th,
and the size grows with the length of a conversation, not with its square, as it would with regular
literal bodies.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

KEY_EVERY = 64
_PARENTS = 8
_KEYS = 4
_SMALL = 1 << 12
"""Bodies up to this many bytes are stored literally, which costs less than to look for a delta:
sealing compresses their common parts."""
_LARGE = 1 << 24
"""No conversation is that long; the last few such bodies would fill the memory."""
_FIRST, _STEP = 1 << 8, 1 << 16
_PROBE = 32
_NEAR = (8, 32, 128, 512, 2048)
_REACH = 8192
_FAR = (64, 1024, 8192, 65536)
_MOST = 256
_FAIR = 4096
_COMPARED = 1 << 18
"""Bytes of a body whose texts are looked for in others."""

type DeltaPiece = bytes | tuple[int, int]
"""Literal bytes, or (start, stop) in the parent."""


class BodyDelta(Struct, frozen=True):
    """A body as pieces relative to the body of exchange `parent`."""

    parent: int
    pieces: tuple[DeltaPiece, ...]

    @property
    def own_size(self) -> int:
        """Number of literal bytes."""
        return sum(len(piece) for piece in self.pieces if isinstance(piece, bytes))

    def repeats(self, size: int) -> bool:
        """Whether it holds nearly all of a parent of `size` bytes, and may be a parent instead."""
        taken = sum(piece[1] - piece[0] for piece in self.pieces if not isinstance(piece, bytes))
        return taken * 16 >= size * 15


def common_prefix(one: bytes, two: bytes, at: int = 0, there: int = 0) -> int:
    """Length of the common prefix of `one` from `at` on and `two` from `there` on."""
    length, step, most = 0, _FIRST, min(len(one) - at, len(two) - there)
    while length < most:
        step = min(step, most - length)
        a, b = one[at + length : at + length + step], two[there + length : there + length + step]
        if a != b:
            return length + _find_first_difference(a, b)
        length, step = length + step, min(step * 4, _STEP)
    return length


def common_suffix(one: bytes, two: bytes, most: int) -> int:
    """Length of the common suffix, up to `most`."""
    length, step = 0, _FIRST
    while length < most:
        step = min(step, most - length)
        a = one[len(one) - length - step : len(one) - length]
        b = two[len(two) - length - step : len(two) - length]
        if a != b:
            return length + _count_equal_ending(a, b)
        length, step = length + step, min(step * 4, _STEP)
    return length


def _find_first_difference(one: bytes, two: bytes) -> int:
    """Return the first offset at which two texts of equal length differ, by bisection."""
    low, high = 0, len(one)
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _count_equal_ending(one: bytes, two: bytes) -> int:
    """Length of the common suffix of two different texts of equal length."""
    low, high, size = 0, len(one), len(one)
    while high - low > 1:
        middle = (low + high) // 2
        if one[size - middle : size - low] == two[size - middle : size - low]:
            low = middle
        else:
            high = middle
    return low


def make_body_delta(body: bytes, parent: bytes, seq: int) -> BodyDelta:
    """Encode `body` as a delta to `parent`, the body of exchange `seq`."""
    prefix = common_prefix(body, parent)
    suffix = common_suffix(body, parent, min(len(body), len(parent)) - prefix)
    stop, end = len(body) - suffix, len(parent) - suffix
    pieces: list[DeltaPiece] = [(0, prefix)]
    at = there = prefix
    while (
        at < stop
        and len(pieces) < _MOST
        and (resync := _find_resync_point(body, parent, at, there, end))
    ):
        new, old = resync
        if new >= stop:
            break
        size = min(common_prefix(body, parent, new, old), stop - new, end - old)
        pieces += [body[at:new], (old, old + size)]
        at, there = new + size, old + size
    pieces += [body[at:stop], (end, len(parent))]
    return BodyDelta(seq, tuple(piece for piece in pieces if _measure_piece(piece)))


def _measure_piece(piece: DeltaPiece) -> int:
    return len(piece) if isinstance(piece, bytes) else piece[1] - piece[0]


def _find_resync_point(
    body: bytes, parent: bytes, at: int, there: int, end: int
) -> tuple[int, int] | None:
    """Find offsets in the body (from `at` on) and in the parent at which equal bytes begin
    again."""
    if there + _PROBE > end:
        return None
    probes = [(skip, there + skip + _REACH) for skip in _NEAR] + [(skip, end) for skip in _FAR]
    for skip, high in probes:
        probe = body[at + skip : at + skip + _PROBE]
        if len(probe) < _PROBE:
            continue
        match = parent.find(probe, there, min(high, end))
        if match >= 0:
            back = common_suffix(
                body[at : at + skip], parent[there:match], min(skip, match - there)
            )
            return at + skip - back, match - back
    return None


def restore_body(pieces: Iterable[DeltaPiece | tuple[int, int]], parent: bytes) -> bytes:
    """Restore a body from its pieces; raise ValueError if they do not fit the parent."""
    out = []
    for piece in pieces:
        if isinstance(piece, bytes):
            out.append(piece)
            continue
        start, stop = piece
        if not 0 <= start <= stop <= len(parent):
            raise ValueError(f"{start}:{stop} of a parent of {len(parent)} bytes")
        out.append(parent[start:stop])
    return b"".join(out)


class BodyDeltaEncoder:
    """Encodes each body as a delta to one of the last few bodies or the last few keys.

    Any body may be the parent of any other, so lanes do not matter. The latest one is usually the
    best; if it is not, the texts that both have decide which one is.
    """

    def __init__(self) -> None:
        self._recent: dict[int, tuple[bytes, int]] = {}
        """seq to body and its distance from its key."""
        self._keys: dict[int, bytes] = {}
        self._texts: dict[int, frozenset[int]] = {}
        """Hashes of the texts in some of these bodies, found once they are needed."""

    def encode(self, seq: int, body: bytes) -> BodyDelta | bytes:
        """Return the smallest cheap delta for a body, or the body itself if no parent helps."""
        if len(body) <= _SMALL or len(body) > _LARGE:
            return body
        best = self._find_best_delta(
            seq, body, {each: text for each, (text, _) in self._recent.items()}
        )
        depth = 0 if best is None else self._recent[best.parent][1] + 1
        if best is not None and best.repeats(len(self._recent[best.parent][0])):
            del self._recent[best.parent]
        if depth >= KEY_EVERY:
            best, depth = self._find_best_delta(seq, body, self._keys), 0
        self._recent = _add_to_latest(self._recent, seq, (body, depth), _PARENTS)
        if depth == 0:
            self._keys = _add_to_latest(self._keys, seq, body, _KEYS)
        return body if best is None else best

    def _find_best_delta(
        self, seq: int, body: bytes, parents: Mapping[int, bytes]
    ) -> BodyDelta | None:
        """Return the delta to the latest parent or, if that is large, to the most similar one."""
        if not parents:
            return None
        latest = max(parents)
        best = make_body_delta(body, parents[latest], latest)
        if best.own_size > max(_FAIR, len(body) // 20):
            alike = self._find_alike(seq, body, parents)
            if alike != latest:
                best = min(
                    best,
                    make_body_delta(body, parents[alike], alike),
                    key=lambda delta: delta.own_size,
                )
        return best if best.own_size < len(body) // 2 else None

    def _find_alike(self, seq: int, body: bytes, parents: Mapping[int, bytes]) -> int:
        """Return the parent that has most texts of a body; of several the latest."""
        known = {seq, *self._recent, *self._keys}
        self._texts = {each: texts for each, texts in self._texts.items() if each in known}
        for each, parent in (*parents.items(), (seq, body)):
            if each not in self._texts:
                self._texts[each] = _hash_texts(parent)
        own = self._texts[seq]
        return max(parents, key=lambda each: (len(own & self._texts[each]), each))


def _hash_texts(body: bytes) -> frozenset[int]:
    """Hash the longer texts in the first part of a body, between quotes, as in JSON, or lines."""
    part = body[:_COMPARED]
    texts = part.split(b'"' if b'"' in part[:_PROBE] else b"\n")
    return frozenset([hash(text) for text in texts if len(text) >= _PROBE])


def _add_to_latest[T](old: dict[int, T], seq: int, value: T, most: int) -> dict[int, T]:
    """Return the table with one more entry and only the latest of the older ones."""
    latest = list(old.items())[-(most - 1) :]
    return {**dict(latest), seq: value}
