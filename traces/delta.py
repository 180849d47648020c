"""A request body said by way of an earlier one, byte for byte.

Clients send the whole conversation with every request, so a body is mostly its parent again:
it is said as pieces, each a stretch of the parent or bytes of its own. Where the two part (a
cache marker moved, a reminder went in at the front, an old result was cut), a few bytes from
further on are looked for in the parent, and from there both go on together. All of it is memcmp
and find; nothing is compressed while a run goes on.

Every 64th body in a row is said by way of the 64th before it, and not of the last one: so body
n is at most 64 + n / 64 steps away from one said in full, what a damaged frame costs ends at
the next one, and a long conversation still costs its length and not its square, which bodies
said in full every now and then would.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

KEY_EVERY = 64
_PARENTS = 8
_KEYS = 4
_SMALL = 2_000
"""Bodies up to this many bytes are said in full: sealing finds what they have in common."""
_LARGE = 1 << 24
"""No conversation is that long; what is would fill the memory with the last few of it."""
_FIRST, _STEP = 1 << 8, 1 << 16
_PROBE = 32
_NEAR = (8, 32, 128, 512, 2048)
_REACH = 8192
_FAR = (64, 1024, 8192, 65536)
_MOST = 256
_FAIR = 4096

type Piece = bytes | tuple[int, int]
"""Bytes as they are, or (start, stop) in the parent."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A body as pieces of the body of exchange `parent`."""

    parent: int
    pieces: tuple[Piece, ...]

    @property
    def own(self) -> int:
        """How many bytes the parent does not have."""
        return sum(len(piece) for piece in self.pieces if isinstance(piece, bytes))


def common_prefix(one: bytes, two: bytes, at: int = 0, there: int = 0) -> int:
    """For how long `one` from `at` on and `two` from `there` on are the same."""
    length, step, most = 0, _FIRST, min(len(one) - at, len(two) - there)
    while length < most:
        step = min(step, most - length)
        a, b = one[at + length : at + length + step], two[there + length : there + length + step]
        if a != b:
            return length + _parting(a, b)
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
            return length + _agreeing(a, b)
        length, step = length + step, min(step * 4, _STEP)
    return length


def _parting(one: bytes, two: bytes) -> int:
    """The first place where two texts of the same length differ, by halving."""
    low, high = 0, len(one)
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _agreeing(one: bytes, two: bytes) -> int:
    """For how long the ends of two different texts of the same length are the same."""
    low, high, size = 0, len(one), len(one)
    while high - low > 1:
        middle = (low + high) // 2
        if one[size - middle : size - low] == two[size - middle : size - low]:
            low = middle
        else:
            high = middle
    return low


def between(body: bytes, parent: bytes, seq: int) -> Delta:
    """The delta that makes `body` out of the body of exchange `seq`."""
    prefix = common_prefix(body, parent)
    suffix = common_suffix(body, parent, min(len(body), len(parent)) - prefix)
    stop, end = len(body) - suffix, len(parent) - suffix
    pieces: list[Piece] = [(0, prefix)]
    at = there = prefix
    while at < stop and len(pieces) < _MOST and (met := _meeting(body, parent, at, there, end)):
        new, old = met
        if new >= stop:
            break
        size = min(common_prefix(body, parent, new, old), stop - new, end - old)
        pieces += [body[at:new], (old, old + size)]
        at, there = new + size, old + size
    pieces += [body[at:stop], (end, len(parent))]
    return Delta(seq, tuple(piece for piece in pieces if _size(piece)))


def _size(piece: Piece) -> int:
    return len(piece) if isinstance(piece, bytes) else piece[1] - piece[0]


def _meeting(body: bytes, parent: bytes, at: int, there: int, end: int) -> tuple[int, int] | None:
    """Where the two go on together: a place in the body behind `at`, and one in the parent."""
    if there + _PROBE > end:
        return None
    looked = [(skip, there + skip + _REACH) for skip in _NEAR] + [(skip, end) for skip in _FAR]
    for skip, high in looked:
        probe = body[at + skip : at + skip + _PROBE]
        if len(probe) < _PROBE:
            continue
        old = parent.find(probe, there, min(high, end))
        if old >= 0:
            back = common_suffix(body[at : at + skip], parent[there:old], min(skip, old - there))
            return at + skip - back, old - back
    return None


def restore(pieces: Iterable[Piece | tuple[int, int]], parent: bytes) -> bytes:
    """The body that the pieces of a delta stand for; ValueError if they do not fit the parent."""
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


class Bodies:
    """The bodies a writer may refer back to: the last few, and the last few keys.

    Any body may be the parent of any other, so nothing needs to know of lanes. The latest one
    is mostly the right one; where it is not, some places of the body tell which one is.
    """

    def __init__(self) -> None:
        self._recent: dict[int, tuple[bytes, int]] = {}
        """seq to body and its distance to its key."""
        self._keys: dict[int, bytes] = {}

    def encode(self, seq: int, body: bytes) -> Delta | bytes:
        """The shortest cheap way to say this body; the body itself where no parent is of use."""
        if len(body) <= _SMALL or len(body) > _LARGE:
            return body
        best = self._best(body, {seq: text for seq, (text, _) in self._recent.items()})
        depth = 0 if best is None else self._recent[best.parent][1] + 1
        if depth >= KEY_EVERY:
            best, depth = self._best(body, self._keys), 0
        self._recent = _with(self._recent, seq, (body, depth), _PARENTS)
        if depth == 0:
            self._keys = _with(self._keys, seq, body, _KEYS)
        return body if best is None else best

    def _best(self, body: bytes, parents: Mapping[int, bytes]) -> Delta | None:
        """The delta from the latest parent or, if that says little, from the one most alike."""
        if not parents:
            return None
        latest = max(parents)
        best = between(body, parents[latest], latest)
        if best.own > max(_FAIR, len(body) // 20):
            alike = max(parents, key=lambda seq: (_alike(body, parents[seq]), seq))
            if alike != latest:
                best = min(best, between(body, parents[alike], alike), key=lambda said: said.own)
        return best if best.own < len(body) // 2 else None


def _alike(body: bytes, parent: bytes) -> int:
    """How many of some places of a body are in the parent too."""
    places = range(len(body) // 8, len(body), len(body) // 4)
    return sum(body[place : place + _PROBE] in parent for place in places)


def _with[T](old: dict[int, T], seq: int, value: T, most: int) -> dict[int, T]:
    """The table with one more entry, and of the older ones only the latest."""
    kept = list(old.items())[-(most - 1) :]
    return {**dict(kept), seq: value}
