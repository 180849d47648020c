"""Payload of a frame: one msgpack value, whose bytes may be compressed."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgpack
from msgspec import NODEFAULT, Struct

from traces.model import BodyEdit, Headers
from traces.tape.field_types import is_count
from traces.tape.inflation import InflationBudget, inflate

PACKED = 1
"""The msgpack extension type of bytes that are stored as one zstd frame, as older writers did."""
UNCOPIED, LARGE = 1 << 14, 1 << 20
"""Sizes in bytes above which a chunk, and a request body, is written from where it is."""
_VALUE = 64
"""Bytes of memory that a value in a list or map takes."""


_HALF_SURROGATES = "backslashreplace"
"""Half a surrogate pair, which UTF-8 does not have, is written as `\\udcff`."""


class PayloadPacker:
    """Packs values, in one thread."""

    def __init__(self) -> None:
        self._msgpack = msgpack.Packer(unicode_errors=_HALF_SURROGATES)
        self.pack: Callable[[object], bytes] = self._msgpack.pack
        """Encodes a value as the payload of a frame; without a method of its own around it, as
        each exchange has four."""

    def pack_before_bytes(self, value: Mapping[str, object], name: str, data: bytes) -> bytes:
        """Encode a map up to its last field; the caller writes that field's `data`, uncopied."""
        fields = b"".join(self.pack(key) + self.pack(each) for key, each in value.items())
        header: bytes = self._msgpack.pack_map_header(len(value) + 1)
        return header + fields + self.pack(name) + _encode_bytes_header(data)

    def pack_list_before_bytes(self, values: Sequence[object], data: bytes) -> bytes:
        """Encode a list up to its last item; the caller writes that item, `data`, uncopied."""
        header: bytes = self._msgpack.pack_array_header(len(values) + 1)
        return header + b"".join(map(self.pack, values)) + _encode_bytes_header(data)


def _encode_bytes_header(data: bytes) -> bytes:
    return b"\xc6" + len(data).to_bytes(4)


def pack(value: object) -> bytes:
    """Encode a value as the payload of a frame."""
    packed: bytes = msgpack.packb(value, unicode_errors=_HALF_SURROGATES)
    return packed


def unpack(payload: bytes | memoryview, budget: InflationBudget | None = None) -> Any:
    """Decode a payload, including compressed bytes; ValueError or ZstdError if it is invalid.

    Decompressed bytes, and the memory of many small values, are charged to the budget.
    """
    if len(payload) <= LARGE:
        return msgpack.unpackb(
            payload,
            strict_map_key=False,
            use_list=False,
            ext_hook=_unpack_extension
            if budget is None
            else partial(_unpack_extension, budget=budget),
        )
    counted = _BudgetedContainers(budget or InflationBudget(len(payload)))
    return msgpack.unpackb(
        payload,
        strict_map_key=False,
        ext_hook=partial(_unpack_extension, budget=budget),
        list_hook=counted.count_list,
        object_hook=counted.count_map,
    )


class _BudgetedContainers:
    """Charges the lists and maps of a value to a budget."""

    def __init__(self, budget: InflationBudget) -> None:
        self._budget = budget

    def count_list(self, value: list[Any]) -> tuple[Any, ...]:
        self._budget.spend(_VALUE * (len(value) + 1))
        return tuple(value)

    def count_map(self, value: dict[Any, Any]) -> dict[Any, Any]:
        self._budget.spend(_VALUE * (2 * len(value) + 1))
        return value


def _unpack_extension(code: int, data: bytes, budget: InflationBudget | None = None) -> bytes:
    if code != PACKED:
        raise ValueError(f"no extension {code} is known")
    return inflate(data, budget)


def to_sparse_dict(value: Struct) -> dict[str, object]:
    """Return the fields of a struct that are not at their default."""
    out: dict[str, object] = {}
    names, defaults = value.__struct_fields__, value.__struct_defaults__
    required = (NODEFAULT,) * (len(names) - len(defaults))
    for name, default in zip(names, required + defaults, strict=True):
        item = getattr(value, name)
        if item != default and not (item == () or item == {}):
            out[name] = dict(item) if isinstance(item, Mapping) else item
    return out


def decode_headers(value: object) -> Headers:
    """Decode header fields.

    Raises TypeError if they are not pairs, ValueError if a text is not latin-1.
    """
    if not isinstance(value, tuple):
        raise TypeError("headers are a list of pairs")
    for name, text in value:
        if not (isinstance(name, str) and isinstance(text, str)):
            raise TypeError("a header is a pair of texts")
        if not (name.isascii() and text.isascii()):
            f"{name}{text}".encode("latin-1")
    return value


def encode_edit(edit: BodyEdit) -> tuple[int, int, bytes]:
    """Encode an edit as (start, stop, data)."""
    return edit.start, edit.stop, edit.data


def decode_edit(value: tuple[int, int, bytes]) -> BodyEdit:
    """Decode an edit; TypeError or ValueError if it is invalid."""
    start, stop, data = value
    if not (is_count(start) and is_count(stop) and isinstance(data, bytes)):
        raise TypeError("an edit is two offsets and bytes")
    return BodyEdit(start=start, stop=stop, data=data)
