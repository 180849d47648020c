"""Tapes with one feature each, deterministic byte for byte, and their expected contents.

python -m tests.support.stores.conformance_tapes    # writes tests/data/tapes/
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import replace
from pathlib import Path

import msgpack
import zstandard

from traces.model import (
    BodyEdit,
    Chunk,
    Exchange,
    Headers,
    Injection,
    Request,
    Response,
    RunEnding,
    Trajectory,
)
from traces.tape import frames
from traces.tape.frame_kinds import CHUNK, REQUEST
from traces.tape.payload import PACKED, encode_edit, pack, to_sparse_dict, unpack
from traces.tape.reader import Tape, read_tape
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter

TAPES = Path(__file__).parents[2] / "data" / "tapes"
RUN = Trajectory(
    id="run-1", recorded_at=1.5, command=("python", "agent.py"), tools={"get": "GET */orders/*"}
)
JSON: Headers = (("Content-Type", "application/json"), ("X-Odd", "caf\xe9"))
ENDING = RunEnding(ended="final", exit_code=0, passed=True, reward=0.5, at=9.25, detail="as it was")


def exchange(seq: int, body: bytes = b"", answer: bytes = b'{"ok":true}') -> Exchange:
    """Return a complete exchange with `answer` as one chunk."""
    at = float(seq)
    request = Request(method="POST", url=f"http://shop.test/{seq}", headers=JSON, body=body)
    said = Response(
        status=200,
        reason="OK",
        headers=JSON,
        at=at + 0.25,
        chunks=(Chunk(at=at + 0.5, data=answer),),
        ended=at + 0.75,
    )
    return Exchange(seq=seq, started=at, connection=1, request=request, response=said)


@contextmanager
def tape(path: Path, *, ending: bool = True) -> Iterator[TapeWriter]:
    """Write a tape of this run."""
    with TapeWriter(path, RUN, redact=False) as writer:
        yield writer
        if ending:
            writer.write_ending(ENDING)


def plain(path: Path) -> None:
    """Two exchanges, the second with a long body."""
    with tape(path) as writer:
        writer.write_exchange(exchange(0, b'{"order":17}'))
        writer.write_exchange(exchange(1, b'{"text":"' + b"lorem ipsum " * 99 + b'"}', b""))


def stream(path: Path) -> None:
    """An answer of three chunks with trailers, another one between them, on HTTP/2."""
    one = exchange(0)
    assert one.response is not None
    events = tuple(Chunk(at=0.5 + n, data=b"data: %d\n\n" % n) for n in range(3))
    trailers = (("grpc-status", "0"),)
    answer = replace(
        one.response, version="HTTP/2.0", chunks=events, trailers=trailers, ended=3.0, reason=""
    )
    one = replace(one, stream=5, response=answer, answered_by="recorded")
    with tape(path) as writer:
        writer.request(one)
        writer.head(replace(one, response=replace(answer, chunks=(), trailers=(), ended=None)))
        writer.chunk(one, events[0])
        writer.write_exchange(exchange(1))
        writer.chunk(one, events[1])
        writer.chunk(one, events[2])
        writer.done(one)


def cut(path: Path) -> None:
    """An answer that was reset in the middle, and one under way when the run was killed."""
    one, two = exchange(0, answer=b"half of i"), exchange(1, answer=b"not yet ov")
    assert one.response is not None
    assert two.response is not None
    with tape(path, ending=False) as writer:
        writer.write_exchange(
            replace(one, response=replace(one.response, ended=None), error="reset")
        )
        writer.request(two)
        writer.head(two)
        writer.chunk(two, two.response.chunks[0])


def error(path: Path) -> None:
    """A 500, a server that refused, and one that nothing is known of."""
    one = exchange(0)
    assert one.response is not None
    with tape(path) as writer:
        writer.write_exchange(replace(one, response=replace(one.response, status=500, reason="Oh")))
        writer.write_exchange(replace(exchange(1), response=None, error="refused: port 1"))
        writer.request(replace(exchange(2), response=None))


def deltas(path: Path) -> None:
    """Two conversations of 80 and 8 requests, each of which says all before it again."""
    said = {"a": "", "b": ""}
    with tape(path) as writer:
        for seq in range(88):
            who = "ab"[seq % 11 == 10]
            said[who] += f"{who} {seq} {hashlib.sha256(b'%d' % seq).hexdigest() * 2}, "
            body = f"reminder {seq % 5}; {said[who]}; the end of {who}"
            writer.write_exchange(exchange(seq, body.encode()))


def edited(path: Path) -> None:
    """What was asked, what went on instead, and the injection that did it."""
    edits = (BodyEdit(start=10, stop=14, data=b"1259"),)
    injection = Injection(
        id="run-1/1",
        seq=0,
        side="request",
        op="digit",
        place="model-boundary",
        address="ab",
        params={"min_digits": 3, "share": 0.5, "name": None},
        original=b"1250",
        mutated=b"1259",
        edits=edits,
    )
    with tape(path) as writer:
        writer.write_exchange(replace(exchange(0, b'{"cents": 1250}'), edits=edits, redacted=True))
        writer.write_injection(injection)


def anew(path: Path) -> None:
    """An answer that begins a second time, where its first beginning was not to be written."""
    one = exchange(0, answer=b"void")
    with tape(path) as writer:
        writer.request(one)
        writer.head(one)
        writer.chunk(one, Chunk(at=0.5, data=b"void"))
        writer.head(one)
        whole = exchange(0, answer=b"this is it")
        assert whole.response is not None
        writer.chunk(whole, whole.response.chunks[0])
        writer.done(whole)


def unknown(path: Path) -> None:
    """Kinds and map keys of a later version, which change nothing for who does not know them."""
    later = pack({"id": "run-1", "recorded_at": 1.5, "mood": "good", "weather": {"rain": 1}})
    with tape(path.with_suffix(".part")) as writer:
        writer.write_exchange(exchange(0))
    rest = [each for each in kinds(path.with_suffix(".part")) if each[0] != 1]
    path.with_suffix(".part").unlink()
    put(path, [(1, later), (33, pack([1, 2, "three"])), *rest, (63, b"")])


def packed(path: Path) -> None:
    """A body, a piece of a delta to it and an answer as zstd frames: older writers packed them."""
    aside, said = path.with_suffix(".part"), [b"lorem ipsum " * 99, b"dolor sit " * 99]
    with tape(aside) as writer:
        writer.write_exchange(exchange(0, answer=said[1]))
        writer.write_exchange(exchange(1))
    pieces = ((0, 600), _pack_bytes(said[1]), (600, len(said[0])))
    bodies = iter((_pack_bytes(said[0]), {"parent": 0, "pieces": pieces}))
    out = list[tuple[int, bytes]]()
    for kind, payload in kinds(aside):
        value = unpack(payload)
        if kind == REQUEST:
            value |= {"body": next(bodies)}
        elif kind == CHUNK and value[2] == said[1]:
            value = (*value[:2], _pack_bytes(said[1]))
        out.append((kind, pack(value)))
    aside.unlink()
    put(path, out)


def _pack_bytes(data: bytes) -> msgpack.ExtType:
    return msgpack.ExtType(PACKED, zstandard.ZstdCompressor(level=1).compress(data))


def damaged(path: Path) -> None:
    """A bit flipped in an answer, and one in the length of a frame."""
    plain(path)
    data = bytearray(path.read_bytes())
    data[data.index(b'{"ok":true}') + 2] ^= 1
    where = data.index(b"http://shop.test/1")
    frame = data.rindex(b"\x02\x8a\xa3seq", 0, where) - 8
    data[frame + 2] ^= 0x40
    path.write_bytes(data)


def torn(path: Path) -> None:
    """A process was killed, and of its last frame only the beginning was written."""
    plain(path)
    path.write_bytes(path.read_bytes()[:-20])


def sealed(path: Path) -> None:
    """The conversations of `deltas`, sealed."""
    deltas(path)
    if not seal_tape(path):
        raise ValueError(f"{path} was not sealed")


def blocks(path: Path) -> None:
    """Frames, a block, a frame, a block whose bytes are damaged, and a frame."""
    aside = path.with_suffix(".part")
    with tape(aside) as writer:
        for seq in range(4):
            writer.write_exchange(exchange(seq, b'{"order":%d}' % seq))
    first, *rest = kinds(aside)
    aside.unlink()
    put(path, [first, block(rest[:6]), *rest[6:8], block(rest[8:12]), *rest[12:]])
    data = bytearray(path.read_bytes())
    data[data.rindex(b"\x28\xb5\x2f\xfd") + 20] ^= 0x10
    path.write_bytes(data)


def format_1(path: Path) -> None:
    """The first format: bodies by prefix and suffix or with a dictionary, and four of a chunk."""
    bodies = [b"once upon a time " * 40, b"once upon a time " * 41, b"upon " * 300]
    words = zstandard.ZstdCompressionDict(bodies[1], dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packed = zstandard.ZstdCompressor(level=5, dict_data=words).compress(bodies[2])
    said: list[object] = [bodies[0], (0, 100, 580, bodies[1][100:-580], False)]
    out = [(1, pack(to_sparse_dict(RUN)))]
    for seq, body in enumerate([*said, (1, 0, 0, packed, True)]):
        asked = {"seq": seq, "connection": 1, "stream": 0, "transport": "http", "started": 1.0}
        asked |= {"by": "live", "method": "POST", "url": "http://shop.test/", "headers": JSON}
        head = {"seq": seq, "at": 1.5, "status": 200, "reason": "", "version": "HTTP/1.1"}
        head |= {"headers": (), "by": "live"}
        over = {"seq": seq, "by": "live", "bytes": 2, "ended": 2.0}
        out += [(2, pack(asked | {"body": body})), (3, pack(head))]
        out += [(4, pack((seq, 1.75, False, b"ok"))), (5, pack(over))]
    put(path, out, format=1)


def kinds(path: Path) -> list[tuple[int, bytes]]:
    """Return the frames of a tape."""
    found = frames.read_frames(path.read_bytes())
    return [
        (each.kind, bytes(each.payload)) for each in found if isinstance(each, frames.TapeFrame)
    ]


def block(held: list[tuple[int, bytes]]) -> tuple[int, bytes]:
    """Return these frames as one block."""
    data = b"".join(frames.encode_frame(kind, payload) for kind, payload in held)
    return frames.BLOCK, zstandard.ZstdCompressor(level=9).compress(data)


def put(path: Path, held: list[tuple[int, bytes]], *, format: int = frames.FORMAT) -> None:
    """Write a tape of these frames."""
    head = frames.MAGIC + bytes((format,))
    path.write_bytes(head + b"".join(frames.encode_frame(kind, payload) for kind, payload in held))


MAKERS: tuple[Callable[[Path], None], ...] = (
    plain,
    stream,
    cut,
    error,
    deltas,
    edited,
    anew,
    unknown,
    packed,
    damaged,
    torn,
    sealed,
    blocks,
    format_1,
)


def text(data: bytes) -> str:
    """Return bytes as JSON text: short ones as latin-1, long ones by their digest."""
    if len(data) <= 100:
        return data.decode("latin-1")
    return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"


def plainly(value: object) -> object:
    """Convert a value to JSON types."""
    match value:
        case bytes():
            return text(value)
        case dict():
            return {key: plainly(each) for key, each in value.items()}
        case list() | tuple():
            return [plainly(each) for each in value]
    return value


def held(tape: Tape) -> object:
    """Return the contents of a tape as JSON types."""
    injections = [
        to_sparse_dict(each)
        | ({"edits": [encode_edit(edit) for edit in each.edits]} if each.edits else {})
        for each in tape.injections
    ]
    verbatim = {"verbatim": True} if tape.verbatim else {}
    return plainly(
        {
            "trajectory": to_sparse_dict(tape.trajectory) | verbatim,
            "exchanges": [_exchange(each) for each in tape.exchanges],
            "injections": injections,
            "ending": to_sparse_dict(tape.ending) if tape.ending else None,
            "lost": tape.dropped,
        }
    )


def _exchange(exchange: Exchange) -> dict[str, object]:
    asked, answer = exchange.request, exchange.response
    return {
        "seq": exchange.seq,
        "connection": exchange.connection,
        "stream": exchange.stream,
        "transport": exchange.transport,
        "started": exchange.started,
        "by": exchange.answered_by,
        "method": asked.method,
        "url": asked.url,
        "headers": asked.headers,
        "body": asked.body,
        "edits": [encode_edit(edit) for edit in exchange.edits],
        "redacted": exchange.redacted,
        "error": exchange.error,
        "answer": answer
        and {
            "at": answer.at,
            "status": answer.status,
            "reason": answer.reason,
            "version": answer.version,
            "headers": answer.headers,
            "chunks": [(chunk.at, chunk.data) for chunk in answer.chunks],
            "ended": answer.ended,
            "trailers": answer.trailers,
        },
    }


def make(folder: Path) -> None:
    """Write all tapes, and `tapes.json` with their contents."""
    folder.mkdir(parents=True)
    holds = {}
    for maker in MAKERS:
        path = folder / f"{maker.__name__}.tape"
        maker(path)
        holds[maker.__name__] = {"what": maker.__doc__} | {"holds": held(read_tape(path))}
    lines = [f"{json.dumps(name)}: {json.dumps(said)}" for name, said in holds.items()]
    (folder / "tapes.json").write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    shutil.rmtree(TAPES, ignore_errors=True)
    make(TAPES)
