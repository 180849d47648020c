"""What a frame holds: one msgpack value, and in it bytes that may be packed."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import msgpack
import zstandard

from traces.model import Edit, Headers

PACKED = 1
"""The msgpack extension that stands for bytes and holds them as one zstd frame."""
_WORTH, _CHEAP = 1024, 1 << 14
"""Bytes below which packing saves nothing, and above which writing costs less than packing."""
LARGE = 1 << 20
"""Bytes from which on another copy is one too many."""
_ZSTD = zstandard.ZstdDecompressor()


class Packer:
    """Packs values, for one thread; long bytes are said shorter where that is cheap."""

    def __init__(self) -> None:
        self._zstd = zstandard.ZstdCompressor(level=1)
        self._msgpack = msgpack.Packer()

    def pack(self, value: object) -> bytes:
        """A value as the payload of a frame."""
        packed: bytes = self._msgpack.pack(value)
        return packed

    def around(self, value: Mapping[str, object], name: str, data: bytes) -> bytes:
        """A map as far as its last field, bytes that are too many to be copied and follow it."""
        fields = b"".join(self.pack(key) + self.pack(each) for key, each in value.items())
        header: bytes = self._msgpack.pack_map_header(len(value) + 1)
        return header + fields + self.pack(name) + b"\xc6" + len(data).to_bytes(4)

    def short(self, data: bytes) -> bytes | msgpack.ExtType:
        """The bytes, or what stands for them."""
        if not _WORTH <= len(data) <= _CHEAP:
            return data
        said = self._zstd.compress(data)
        return msgpack.ExtType(PACKED, said) if len(said) < len(data) * 0.9 else data


def pack(value: object) -> bytes:
    """A value as the payload of a frame."""
    packed: bytes = msgpack.packb(value)
    return packed


def unpack(payload: bytes | memoryview) -> Any:
    """The value of a payload, packed bytes unpacked; ValueError or ZstdError if it is none."""
    return msgpack.unpackb(payload, strict_map_key=False, use_list=False, ext_hook=_unpacked)


def _unpacked(code: int, data: bytes) -> bytes:
    if code != PACKED:
        raise ValueError(f"no extension {code} is known")
    return _ZSTD.decompress(data)


def sparse(value: object) -> dict[str, object]:
    """The fields of a frozen value that are not at their default."""
    out: dict[str, object] = {}
    for each in fields(value):  # type: ignore[arg-type]
        item = getattr(value, each.name)
        if item != each.default and not (item == () or item == {}):
            out[each.name] = dict(item) if isinstance(item, Mapping) else item
    return out


def whole[T](kind: type[T], value: Mapping[str, Any]) -> T:
    """The frozen value that a map stands for; fields it does not have are left out.

    TypeError where a field is missing.
    """
    known = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    given = {
        key: tuple(item) if isinstance(item, list) else item
        for key, item in value.items()
        if key in known
    }
    return kind(**given)


def headers(value: object) -> Headers:
    """Header fields as a payload holds them; TypeError where they are no pairs."""
    if not isinstance(value, tuple):
        raise TypeError("headers are a list of pairs")
    for name, text in value:
        if not (isinstance(name, str) and isinstance(text, str)):
            raise TypeError("a header is a pair of texts")
    return value


def said_edit(edit: Edit) -> tuple[int, int, bytes]:
    """An edit as a tape says it."""
    return edit.start, edit.stop, edit.data


def edit(value: tuple[int, int, bytes]) -> Edit:
    """An edit out of what a tape says."""
    start, stop, data = value
    return Edit(start=start, stop=stop, data=data)
