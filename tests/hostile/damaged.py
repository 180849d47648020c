"""Tapes as an attacker or a broken disk makes them: seeded changes of real ones."""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgpack
import zstandard

from traces.tape import frames
from traces.tape.frames import BLOCK, TapeFrame
from traces.tape.payload import unpack
from traces.tape.reader import read_tape

REAL = Path(__file__).parents[1] / "data" / "tapes"

type Chance = random.Random
type Frames = list[tuple[int, bytes]]
"""Kind and payload of each, blocks opened."""


def seeds() -> dict[str, bytes]:
    """Real tapes, by name."""
    return {path.stem: path.read_bytes() for path in sorted(REAL.glob("*.tape"))}


def damaged(
    seed: int, count: int, whole: Mapping[str, bytes] | None = None
) -> Iterator[tuple[str, bytes]]:
    """So many tapes that were damaged in one way or several, each with how it was made."""
    real = list((whole or seeds()).items())
    for number in range(count):
        chance = random.Random(f"{seed}/{number}")
        name, data = chance.choice(real)
        changes = chance.choices(BYTES + FRAMES, k=chance.choice((1, 1, 1, 2, 3)))
        for change in changes:
            data = change(data, chance)
        yield f"{number} {name} {' '.join(each.__name__ for each in changes)}", data


def in_full(path: Path) -> bytes:
    """A tape whose bodies are not said by way of one another."""
    bodies = {each.seq: each.request.body for each in read_tape(path).exchanges}
    out = [frames.make_tape_preamble()]
    for each in frames.read_frames(path.read_bytes()):
        assert isinstance(each, TapeFrame)
        value = unpack(each.payload)
        if each.kind == 2:
            value |= {"body": bodies[value["seq"]]}
        out.append(frames.encode_frame(each.kind, msgpack.packb(value)))
    return b"".join(out)


def flip_bits(data: bytes, chance: Chance) -> bytes:
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 20)) if out else 0):
        out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


def cut(data: bytes, chance: Chance) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def remove_bytes(data: bytes, chance: Chance) -> bytes:
    at, size = chance.randrange(len(data) + 1), chance.choice((1, 4, 100, 4000))
    return data[:at] + data[at + size :]


def insert_bytes(data: bytes, chance: Chance) -> bytes:
    at = chance.randrange(len(data) + 1)
    new = chance.choice((b"\x00", b"\x01", b"\xff", b"\x82\xa3seq", zstandard.FRAME_HEADER))
    return data[:at] + new * chance.choice((1, 9, 300)) + data[at:]


def repeat_bytes(data: bytes, chance: Chance) -> bytes:
    at, size = chance.randrange(len(data) + 1), chance.choice((13, 200, 5000))
    return data[: at + size] + data[at : at + size] * chance.choice((1, 3)) + data[at + size :]


def change_length(data: bytes, chance: Chance) -> bytes:
    """Let a frame claim to be longer or shorter than it is."""
    found = [each for each in _outer(data) if isinstance(each, TapeFrame)]
    if not found:
        return data
    at, length = chance.choice([(each.offset, len(each.payload)) for each in found])
    new = chance.choice((0, 1, length - 1, length + 1, length * 2, 2**24, 2**31, 2**32 - 1))
    return data[:at] + max(0, new).to_bytes(4, "little") + data[at + 4 :]


BYTES = [flip_bits, cut, remove_bytes, insert_bytes, repeat_bytes, change_length]
"""What a broken disk does."""


def swap_frames(data: bytes, chance: Chance) -> bytes:
    return _remade(data, chance, _swap)


def drop_frames(data: bytes, chance: Chance) -> bytes:
    return _remade(data, chance, _drop)


def repeat_frames(data: bytes, chance: Chance) -> bytes:
    return _remade(data, chance, _repeat)


def change_kinds(data: bytes, chance: Chance) -> bytes:
    return _remade(data, chance, _rekind)


def change_values(data: bytes, chance: Chance) -> bytes:
    return _remade(data, chance, _revalue)


def change_bodies(data: bytes, chance: Chance) -> bytes:
    return _remade(data, chance, _rebody)


FRAMES = [
    *(swap_frames, drop_frames, repeat_frames, change_kinds, change_values, change_values),
    *(change_bodies, change_bodies, change_bodies),
]
"""What somebody does who can compute a checksum."""


def _outer(data: bytes) -> list[Any]:
    try:
        return list(frames.read_outer_frames(data))
    except ValueError:
        return []


def _remade(data: bytes, chance: Chance, change: Callable[[Frames, Chance], Frames]) -> bytes:
    try:
        found = [each for each in frames.read_frames(data) if isinstance(each, TapeFrame)]
    except ValueError:
        return data
    plain = [(each.kind, bytes(each.payload)) for each in found]
    if not plain:
        return data
    said = [frames.encode_frame(*each) for each in change(plain, chance)]
    if chance.random() < 0.3:
        block = zstandard.compress(b"".join(said[1:]), 3)
        said = [said[0], frames.encode_frame(BLOCK, block)] if said else []
    return frames.make_tape_preamble() + b"".join(said)


def _swap(plain: Frames, chance: Chance) -> Frames:
    one, two = chance.randrange(len(plain)), chance.randrange(len(plain))
    plain[one], plain[two] = plain[two], plain[one]
    return plain


def _drop(plain: Frames, chance: Chance) -> Frames:
    return [each for each in plain if chance.random() < 0.8]


def _repeat(plain: Frames, chance: Chance) -> Frames:
    at = chance.randrange(len(plain))
    return plain[:at] + [plain[at]] * chance.choice((2, 50)) + plain[at:]


def _rekind(plain: Frames, chance: Chance) -> Frames:
    at = chance.randrange(len(plain))
    plain[at] = chance.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 63, 64)), plain[at][1]
    return plain


def _revalue(plain: Frames, chance: Chance) -> Frames:
    """Change values of one frame, and its checksum with them."""
    at = chance.randrange(len(plain))
    kind, payload = plain[at]
    try:
        value = msgpack.unpackb(payload, strict_map_key=False)
    except ValueError:
        return plain
    plain[at] = kind, msgpack.packb(_other(value, chance, chance.choice((1, 2, 5))))
    return plain


def _other(value: Any, chance: Chance, many: int) -> Any:
    if isinstance(value, dict) and value and chance.random() < 0.9:
        for _ in range(many):
            key = chance.choice(list(value))
            if chance.random() < 0.15:
                value = {each: value[each] for each in value if each != key} or {key: None}
            else:
                value = value | {key: _other(value[key], chance, 1)}
        return value
    if isinstance(value, list) and value and chance.random() < 0.7:
        at = chance.randrange(len(value))
        return [*value[:at], _other(value[at], chance, 1), *value[at + 1 :]]
    return chance.choice(STRANGE)


def _rebody(plain: Frames, chance: Chance) -> Frames:
    """Change the JSON that a request or a piece of an answer holds, and say it in full."""
    held = [at for at, (kind, _) in enumerate(plain) if kind in (2, 4)]
    at = chance.choice(held) if held else 0
    kind, payload = plain[at]
    try:
        value = msgpack.unpackb(payload, strict_map_key=False)
        place = "body" if isinstance(value, dict) else len(value) - 1
        value[place] = _other_json(value[place], chance)
    except (ValueError, TypeError, LookupError, AttributeError):  # no JSON there, or a delta
        return plain
    plain[at] = kind, msgpack.packb(value)
    return plain


def _other_json(text: bytes, chance: Chance) -> bytes:
    """A text in which a value of the JSON in it, whole or behind `data: `, is another one."""
    begin = text.find(b"{")
    end = text.find(b"\n\n", begin)
    end = len(text) if end < 0 else end
    value = json.loads(text[begin:end])
    for _ in range(chance.choice((1, 1, 4))):
        value = _deeper(value, chance)
    return text[:begin] + json.dumps(value).encode() + text[end:]


def _deeper(value: Any, chance: Chance) -> Any:
    inside = isinstance(value, dict | list) and value and chance.random() < 0.85
    if not inside:
        return chance.choice(STRANGE_JSON)
    if isinstance(value, dict):
        key = chance.choice(list(value))
        return value | {key: _deeper(value[key], chance)}
    at = chance.randrange(len(value))
    return [*value[:at], _deeper(value[at], chance), *value[at + 1 :]]


def _nested(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value] if depth % 2 else {"content": [value]}
    return value


STRANGE_JSON: list[Any] = [
    None, True, -1, 0, 2**53 + 1, 10**400, 0.1, float("nan"), float("inf"), "", "x", "\ud800", "\0",
    "function", "tool_use", "tool_result", "user", "assistant", "call_1", "x" * 50000, [], {}, [[]],
    [None], [{}], {"": None}, {"type": "tool_use"}, {"type": "text", "text": None},
    [{"type": "tool_use", "id": 1, "input": []}], {"role": "tool", "tool_call_id": []},
    {"function": {"name": 1, "arguments": {}}}, "{" * 2000, "[" * 30000, _nested(300), _nested(301),
    {"jsonrpc": "2.0", "method": "tools/call", "id": 1, "params": []},
]  # fmt: skip


STRANGE: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**53, 2**63, 2**64 - 1, -(2**63), 0.5, float("nan"), float("inf"),
    1e308, "", "x", "../" * 14 + "tmp/x", "/etc/passwd", "a\0b", "é", "\u2028", "😀", "x" * 70000,
    b"", b"\xff\xfe", b"{" * 3000, b"[" * 100000 + b"]" * 100000,
    b'{"messages":' + b'[{"content":' * 900 + b"1" + b"}]" * 900 + b"}",
    b'{"a":1e400,"b":' + b"9" * 5000 + b"}", b"data: {\n\n" * 50,
    [], {}, [[]], {"a": {"b": [1]}}, [["a", "b"]], [["a"]], [[1, 2]], [["a", "\u0100"]],
    [["content-length", "-5"], ["transfer-encoding", "chunked"]], [["content-encoding", "zstd"]],
    [["content-encoding", "gzip, br, deflate"]], [["a\r\nb", "c\r\nd: e"]], {1: 2}, {"": ""},
    {"parent": 0, "pieces": [[0, 2**40]]}, {"parent": 1, "pieces": [[-1, 5]]},
    {"parent": 0, "pieces": [b"x", [0, 1], "y"]}, {"parent": 2**70 % 2**63, "pieces": []},
    [0, 0, 0, b"", True], [0, 1, 1, zstandard.compress(b"x" * 100), True],
    msgpack.ExtType(1, zstandard.compress(b"y" * 2000)), msgpack.ExtType(1, b"none"),
    msgpack.ExtType(7, b"none"), "http://[", "http://a:99999999/b", "://", "\x1b[2J", "<script>",
    "http", "websocket", "stdio", "live", "final", "record", "fork", "GET",
]  # fmt: skip
