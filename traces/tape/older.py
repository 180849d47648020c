"""How format 1 said a body; tapes of that format always open."""

import zstandard

_MAX_WINDOW = 1 << 27


def body(said: list[object], parent: bytes) -> bytes:
    """The body that `[parent seq, prefix, suffix, middle, packed]` stands for.

    `parent[:prefix] + middle + parent[-suffix:]`, or, where packed, middle is a zstd frame with
    the parent as raw dictionary. ValueError or zstandard.ZstdError where it does not fit.
    """
    match said:
        case [int(), int(), int(), bytes(middle), True]:
            words = zstandard.ZstdCompressionDict(parent, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            reader = zstandard.ZstdDecompressor(dict_data=words, max_window_size=_MAX_WINDOW)
            return reader.decompress(middle)
        case [int(), int(prefix), int(suffix), bytes(middle), False] if min(
            prefix, suffix
        ) >= 0 and prefix + suffix <= len(parent):
            return parent[:prefix] + middle + parent[len(parent) - suffix :]
    raise ValueError("this delta does not fit its parent")
