"""Bodies in tape format 1, which stays readable."""

import zstandard

from traces.tape.inflation import read_inflated_size

_MAX_WINDOW = 1 << 27


def decode_format1_body(said: list[object], parent: bytes) -> bytes:
    """Decode the body `[parent seq, prefix, suffix, middle, packed]`.

    It is `parent[:prefix] + middle + parent[-suffix:]`, or, if packed, `middle` is a zstd frame
    with the parent as raw dictionary. Raises ValueError or zstandard.ZstdError if it is invalid.
    """
    match said:
        case [int(), int(), int(), bytes(middle), True]:
            read_inflated_size(middle, len(parent))
            dictionary = zstandard.ZstdCompressionDict(
                parent, dict_type=zstandard.DICT_TYPE_RAWCONTENT
            )
            decompressor = zstandard.ZstdDecompressor(
                dict_data=dictionary, max_window_size=_MAX_WINDOW
            )
            return decompressor.decompress(middle)
        case [int(), int(prefix), int(suffix), bytes(middle), False] if min(
            prefix, suffix
        ) >= 0 and prefix + suffix <= len(parent):
            return parent[:prefix] + middle + parent[len(parent) - suffix :]
    raise ValueError("this delta does not fit its parent")
