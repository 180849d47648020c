"""A request body said by way of an earlier one, byte for byte.

Clients send the whole conversation with every request, so a body is mostly its parent again:
common prefix, common suffix, and a middle. Where the middle is over 2 kB and over 2 % of the
body (a cache marker moved, a reminder went in at the front), it is compressed with the parent
as raw dictionary; the window must cover both, and level 5 holds where level 3 falls off above
1 MB. A key body every 64 keeps the way to any body short.
"""

from dataclasses import dataclass

import zstandard

KEY_EVERY = 64
_PARENTS = 8
_MIDDLE = 2_000
_SMALL = 500
_SHARE = 0.02
_MAX_WINDOW = 1 << 27


@dataclass(frozen=True, slots=True)
class Delta:
    """`parent[:prefix] + middle + parent[-suffix:]`; `packed`: middle is zstd with the parent."""

    parent: int
    prefix: int
    suffix: int
    middle: bytes
    packed: bool


def common_prefix(one: bytes, two: bytes) -> int:
    """Length of the common prefix, by halving, so that memcmp does the work."""
    low, high = 0, min(len(one), len(two))
    if one[:high] == two[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle
    return low


def common_suffix(one: bytes, two: bytes, most: int) -> int:
    """Length of the common suffix, up to `most`."""
    low, high = 0, most
    if most == 0 or one[-most:] == two[-most:]:
        return most
    while high - low > 1:
        middle = (low + high) // 2
        if one[len(one) - middle : len(one) - low] == two[len(two) - middle : len(two) - low]:
            low = middle
        else:
            high = middle
    return low


def between(body: bytes, parent: bytes, seq: int) -> Delta:
    """The delta that makes `body` out of the body of exchange `seq`."""
    prefix = common_prefix(body, parent)
    suffix = common_suffix(body, parent, min(len(body), len(parent)) - prefix)
    middle = body[prefix : len(body) - suffix]
    if len(middle) > _MIDDLE and len(middle) > _SHARE * len(body):
        return Delta(seq, 0, 0, _codec(parent, len(body)).compress(body), True)
    return Delta(seq, prefix, suffix, middle, False)


def restore(delta: Delta, parent: bytes) -> bytes:
    """The body that a delta stands for; zstandard.ZstdError or ValueError if it does not fit."""
    if delta.packed:
        dictionary = _dictionary(parent)
        reader = zstandard.ZstdDecompressor(dict_data=dictionary, max_window_size=_MAX_WINDOW)
        return reader.decompress(delta.middle)
    if delta.prefix + delta.suffix > len(parent):
        raise ValueError("the delta reaches beyond its parent")
    return parent[: delta.prefix] + delta.middle + parent[len(parent) - delta.suffix :]


def _dictionary(parent: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(parent, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def _codec(parent: bytes, size: int) -> zstandard.ZstdCompressor:
    window = min(27, max(10, (len(parent) + size + 1024).bit_length()))
    params = zstandard.ZstdCompressionParameters.from_level(5, window_log=window)
    return zstandard.ZstdCompressor(dict_data=_dictionary(parent), compression_params=params)


class Bodies:
    """The bodies a writer may refer back to: the last few, each with its distance to a key.

    Any body may be the parent of any other. The one with the longest common prefix is of the
    same lane; where something moved at the front, the latest one may serve better, so both
    are tried. Neither needs to know of lanes.
    """

    def __init__(self) -> None:
        self._recent: dict[int, tuple[bytes, int]] = {}

    def encode(self, seq: int, body: bytes) -> Delta | bytes:
        """The shortest cheap way to say this body; bytes where there is no use in a parent."""
        if len(body) <= _SMALL:
            return body
        tried = [between(body, self._recent[parent][0], parent) for parent in self._parents(body)]
        best = min(tried, key=lambda delta: len(delta.middle), default=None)
        if best is None or len(best.middle) >= len(body) // 2:
            best = None
        depth = 0 if best is None else self._recent[best.parent][1] + 1
        self._recent[seq] = (body, depth)
        while len(self._recent) > _PARENTS:
            del self._recent[next(iter(self._recent))]
        return body if best is None else best

    def _parents(self, body: bytes) -> list[int]:
        near = {
            seq: common_prefix(body, text)
            for seq, (text, depth) in self._recent.items()
            if depth + 1 < KEY_EVERY
        }
        if not near:
            return []
        longest, latest = max(near, key=lambda seq: (near[seq], seq)), max(near)
        return (
            [longest] if longest == latest or near[longest] > len(body) * 0.9 else [longest, latest]
        )
