"""OTLP between protobuf (https://protobuf.dev/programming-guides/encoding) and JSON's values.

Our own, as a generated decoder has no bound: a request of 16 MB may hold 8 million empty spans.
"""

import base64
import struct
from collections.abc import Mapping

from msgspec import Struct

from traces.otlp.messages import Field, Message

MAX_MESSAGES = 500_000
"""Messages of one document, attributes and values included; each takes about 300 bytes."""
MAX_NESTING = 64
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIRE_TYPES = {
    "text": _BYTES, "hex": _BYTES, "base64": _BYTES, "message": _BYTES,
    "fixed64": _FIXED64, "double": _FIXED64, "fixed32": _FIXED32,
    "int": _VARINT, "long": _VARINT, "bool": _VARINT,
}  # fmt: skip
_U64 = (1 << 64) - 1
type Table = dict[str, object]


class _ProtobufReader(Struct):
    data: bytes
    messages: int = 0

    def read_message(self, start: int, end: int, fields: Message, depth: int) -> Table:
        self.messages += 1
        if self.messages > MAX_MESSAGES or depth > MAX_NESTING:
            what = "messages" if depth <= MAX_NESTING else "levels of nesting"
            bound = MAX_MESSAGES if depth <= MAX_NESTING else MAX_NESTING
            raise ValueError(f"it has more than {bound:,} {what}")
        found: Table = {}
        at = start
        while at < end:
            tag, at = self._read_varint(at, end)
            field = fields.get(tag >> 3)
            if field is not None and _WIRE_TYPES[field.kind] != tag & 7:
                field = None
            value, at = self._read_value(at, end, tag & 7, field, depth)
            if field is None:
                continue
            if field.repeated:
                values = found.setdefault(field.name, [])
                assert isinstance(values, list)
                values.append(value)
            else:
                found[field.name] = value
        return found

    def _read_value(
        self, at: int, end: int, wire: int, field: Field | None, depth: int
    ) -> tuple[object, int]:
        """Return the value at a position, None of an unknown field, and the position after it."""
        if wire == _VARINT:
            number, at = self._read_varint(at, end)
            return (_to_number(field, number) if field else None), at
        if wire == _BYTES:
            size, at = self._read_varint(at, end)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"it is no protobuf: wire type {wire}")
        if at + size > end:
            raise ValueError("it is no protobuf: a field ends after its message")
        if field is None:
            return None, at + size
        if field.kind == "message":
            return self.read_message(at, at + size, field.message, depth + 1), at + size
        return _to_value(field, self.data[at : at + size]), at + size

    def _read_varint(self, at: int, end: int) -> tuple[int, int]:
        number = shift = 0
        while at < end and shift < 70:
            byte = self.data[at]
            number |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if not byte & 0x80:
                return number & _U64, at
        raise ValueError("it is no protobuf: a number does not end")


def decode_protobuf(data: bytes, message: Message) -> Table:
    """Return the values of a message; ValueError if it is invalid or exceeds a bound.

    Unknown fields are skipped. Of a field that may occur once, the last one counts.
    """
    return _ProtobufReader(data).read_message(0, len(data), message, 0)


def _to_number(field: Field, number: int) -> object:
    if field.kind == "bool":
        return number != 0
    if field.kind == "long":
        return str(number - (1 << 64) if number >> 63 else number)
    return number


def _to_value(field: Field, data: bytes) -> object:
    match field.kind:
        case "text":
            return data.decode("utf-8", "replace")
        case "hex":
            return data.hex()
        case "base64":
            return base64.b64encode(data).decode()
        case "double":
            return struct.unpack("<d", data)[0]
    return str(int.from_bytes(data, "little")) if len(data) == 8 else int.from_bytes(data, "little")


def encode_protobuf(values: Mapping[str, object], message: Message) -> bytes:
    """Return a message as protobuf; ValueError if a value does not fit its field."""
    out = bytearray()
    for number, field in message.items():
        value = values.get(field.name)
        if value is None:
            continue
        for each in value if field.repeated and isinstance(value, list) else [value]:
            try:
                out += _encode_varint(number << 3 | _WIRE_TYPES[field.kind])
                out += _encode_value(field, each)
            except (TypeError, AttributeError, struct.error, OverflowError) as error:
                raise ValueError(f"{field.name} is no {field.kind}: {error}") from None
    return bytes(out)


def _encode_value(field: Field, value: object) -> bytes:
    match field.kind:
        case "message":
            data = encode_protobuf(value, field.message)  # type: ignore[arg-type]
        case "text":
            data = str(value).encode("utf-8", "replace")
        case "hex":
            data = bytes.fromhex(value)  # type: ignore[arg-type]
        case "base64":
            data = base64.b64decode(value)  # type: ignore[arg-type]
        case "double":
            return struct.pack("<d", value)
        case "fixed64":
            return struct.pack("<Q", int(value))  # type: ignore[call-overload]
        case "fixed32":
            return struct.pack("<I", int(value))  # type: ignore[call-overload]
        case _:
            return _encode_varint(int(value) & _U64)  # type: ignore[call-overload]
    return _encode_varint(len(data)) + data


def _encode_varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
