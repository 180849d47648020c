"""No half of a secret is written while an answer streams, and the chunks stay what they were."""

import base64
import json
import random
import signal
import subprocess
import sys
import zlib
from copy import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import brotli
import duckdb
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.leak_search import (
    copies,
    leaks,
)
from tests.support.secret_spellings import SPELLINGS
from tests.support.tiers import examples
from traces.bodies.content_encoding import decode_content
from traces.model import Chunk, Exchange, Headers, Request, Response, Trajectory, find_header
from traces.redaction.placeholder import PLACEHOLDER
from traces.redaction.redactor import Redactor
from traces.store import rows as store_rows
from traces.store.schema import make_relation_table
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter

KEY = "sk-live-0123/56789+bcdef"
RUN = Trajectory(id="r", recorded_at=0.0)
REQUEST = Request(method="GET", url="http://h/")
EVENTS: Headers = (("content-type", "text/event-stream"),)


def answered(pieces: list[bytes], headers: Headers = ()) -> Exchange:
    chunks = tuple(Chunk(at=place + 0.5, data=data) for place, data in enumerate(pieces))
    answer = Response(status=200, headers=headers, chunks=chunks, ended=99.0)
    return Exchange(seq=0, request=REQUEST, response=answer)


def streamed(pieces: list[bytes], *secrets: str, headers: Headers = ()) -> list[Chunk]:
    seen = Redactor(secrets).redact_exchange(answered(pieces, headers))
    assert seen.response is not None
    return list(seen.response.chunks)


def cut(data: bytes, *places: int) -> list[bytes]:
    return [data[a:b] for a, b in pairwise((0, *sorted(places), len(data)))]


SAID = st.lists(
    st.sampled_from((KEY.encode(), KEY[:12].encode(), KEY[12:].encode(), b"plain ", b"%", b"\\"))
    | st.sampled_from(tuple(SPELLINGS.values())).map(lambda spelled: spelled(KEY).encode())
    | st.just(b'data: {"content": "' + KEY[:9].encode() + b'"}\n\n')
    | st.just(b'data: {"content": "' + KEY[9:].encode() + b'"}\n\n')
    | st.just(b"tok-0123456789-abcdef"),
    max_size=5,
)


@example([b"tok-0123456789-abcdef"], (("set-cookie", "id=tok-0123456789-abcdef"),), "http")
@given(
    SAID,
    st.sampled_from(
        ((), EVENTS, (("set-cookie", "id=tok-0123456789-abcdef"),), (("content-encoding", "br"),))
    ),
    st.sampled_from(("http", "websocket")),
)
def test_an_answer_in_one_piece_is_written_as_one_that_came_in_pieces(
    said: list[bytes], headers: Headers, transport: Literal["http", "websocket"]
) -> None:
    one = replace(answered(said, headers), transport=transport)
    assert one.response is not None
    started = replace(one, response=replace(one.response, chunks=(), ended=None))
    with TemporaryDirectory() as folder:
        whole, pieces = Path(folder, "whole.tape"), Path(folder, "pieces.tape")
        with TapeWriter(whole, RUN, secrets=[KEY]) as tape:
            tape.request(one)
            tape.whole(one)
        with TapeWriter(pieces, RUN, secrets=[KEY]) as tape:
            tape.request(one)
            tape.head(started)
            for chunk in one.response.chunks:
                tape.chunk(started, chunk)
            tape.done(one)
        assert read_tape(whole).exchanges == read_tape(pieces).exchanges


@pytest.mark.gate
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_split_over_two_chunks_at_every_offset(spelling: str, tmp_path: Path) -> None:
    body = b'{"a": "b ' + SPELLINGS[spelling](KEY).encode() + b' c"}'
    path = tmp_path / "all.tape"
    with TapeWriter(path, RUN, secrets=[KEY]) as tape:
        for seq, place in enumerate(range(len(body) + 1)):
            one = answered(cut(body, place))
            tape.write_exchange(Exchange(seq=seq, request=REQUEST, response=one.response))

    for place, exchange in enumerate(read_tape(path).exchanges):
        assert exchange.response is not None
        assert [len(chunk.data) for chunk in exchange.response.chunks] == [place, len(body) - place]
        assert [chunk.at for chunk in exchange.response.chunks] == [0.5, 1.5]
        assert exchange.redacted
        assert copies(KEY.encode(), exchange.response.body) == 0
    assert leaks(KEY, path) == 0


@settings(max_examples=examples(60))
@given(
    st.sampled_from(sorted(SPELLINGS)),
    st.binary(max_size=40),
    st.binary(max_size=40),
    st.lists(st.integers(0, 200), max_size=30),
)
def test_split_anywhere_into_many(
    spelling: str, before: bytes, after: bytes, places: list[int]
) -> None:
    body = before + b'"' + SPELLINGS[spelling](KEY).encode() + b'"' + after
    pieces = cut(body, *(min(place, len(body)) for place in places))
    chunks = streamed(pieces, KEY)

    assert [len(chunk.data) for chunk in chunks] == [len(piece) for piece in pieces]
    assert [chunk.at for chunk in chunks] == [place + 0.5 for place in range(len(pieces))]
    assert copies(KEY.encode(), b"".join(chunk.data for chunk in chunks)) == 0


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20])
def test_what_is_only_known_by_its_look_is_not_written_in_halves(size: int) -> None:
    for secret in (
        "ghp_" + "aB3d" * 9,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqh\n-----END PRIVATE KEY-----",
    ):
        body = f"the key: {secret}, use it. Bearer 0123456789abcdefABCDEF and go".encode()
        chunks = streamed([body[at : at + size] for at in range(0, len(body), size)])
        text = b"".join(chunk.data for chunk in chunks)
        assert len(text) == len(body)
        assert secret.encode()[30:48] not in text
        assert b"456789abcdef" not in text
        assert text.endswith(b" and go")


def event(field: str, text: str) -> bytes:
    return f"data: {json.dumps({'choices': [{'delta': {field: text}}]})}\n\n".encode()


@pytest.mark.parametrize("field", ["content", "text", "partial_json", "arguments"])
def test_split_over_events_by_json_framing(field: str) -> None:
    for first in range(len(KEY)):
        for second in (first, (first + len(KEY)) // 2):
            texts = ["it is ", KEY[:first], KEY[first:second], KEY[second:], " isn't it?"]
            pieces = [event(field, text) for text in texts]
            chunks = streamed(pieces, KEY, headers=EVENTS)
            assert [len(chunk.data) for chunk in chunks] == [len(piece) for piece in pieces]
            told = [json.loads(chunk.data[6:])["choices"][0]["delta"][field] for chunk in chunks]
            assert KEY not in "".join(told)
            assert PLACEHOLDER.search("".join(told).encode())
            assert (told[0], told[-1]) == ("it is ", " isn't it?")


def test_a_stream_may_begin_with_the_first_byte_of_a_secret() -> None:
    pieces = [event("content", text) for text in (KEY[:1], KEY[1:], "!")]
    told = b"".join(chunk.data for chunk in streamed(pieces, KEY, headers=EVENTS))
    texts = [
        json.loads(line[6:])["choices"][0]["delta"]["content"]
        for line in told.decode().split("\n\n")[:-1]
    ]
    assert "".join(texts) == "REDACTEDk1" + "x" * 13 + "Z!"


def test_events_that_are_cut_by_chunks_too() -> None:
    stream = b"".join(event("content", text) for text in ("it is ", KEY[:9], KEY[9:], "!"))
    for size in (1, 5, 13, 40, 90):
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        told = b"".join(chunk.data for chunk in streamed(pieces, KEY, headers=EVENTS))
        texts = [
            json.loads(line[6:])["choices"][0]["delta"]["content"]
            for line in told.decode().split("\n\n")[:-1]
        ]
        assert KEY not in "".join(texts)


def test_only_what_may_be_a_beginning_waits() -> None:
    stream = Redactor([KEY]).open_stream(())
    pieces = (b"hello ", b"world s", b"ome sk-live", b" or so", b"sk-live-0123/5")
    free = [len(stream.chunk(Chunk(at=0.0, data=data))) for data in pieces]
    assert free == [1, 0, 1, 2, 0]
    (last,) = stream.done()
    assert last.data != b"sk-live-0123/5"
    assert len(last.data) == 14


class _Raw:
    """A raw deflate stream, as some servers send it for `deflate`."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj(wbits=-15)
        self.compress, self.flush = self._stream.compress, self._stream.flush


def encoded(name: str, pieces: list[bytes]) -> list[bytes]:
    """Each piece encoded up to a flush; the last with the end."""
    out = []
    if name == "br":
        stream = brotli.Compressor()
        out = [stream.process(piece) + stream.flush() for piece in pieces]
        return [*out[:-1], out[-1] + stream.finish()]
    if name == "zstd":
        packer = zstandard.ZstdCompressor().compressobj()
        flush = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        out = [packer.compress(piece) + packer.flush(flush) for piece in pieces]
        return [*out[:-1], out[-1] + packer.flush()]
    squeeze = _Raw() if name == "raw" else zlib.compressobj(wbits=31 if name == "gzip" else 15)
    out = [squeeze.compress(piece) + squeeze.flush(zlib.Z_SYNC_FLUSH) for piece in pieces]
    return [*out[:-1], out[-1] + squeeze.flush()]


@pytest.mark.gate
@pytest.mark.parametrize("name", ["gzip", "deflate", "raw", "br", "zstd"])
@pytest.mark.parametrize("spelling", ["plain", "json \\u", "base64 1"])
def test_an_encoded_stream_begins_anew_once_a_secret_turns_up(
    name: str, spelling: str, tmp_path: Path
) -> None:
    body = b"lorem ipsum " * 20 + SPELLINGS[spelling](KEY).encode() + b" dolor sit amet" * 20
    coding = "deflate" if name == "raw" else name
    for place in range(236, 250 + len(SPELLINGS[spelling](KEY)), 3):
        pieces = encoded(name, cut(body, 100, place, 500))
        heads = (("Content-Encoding", coding), ("Content-Length", str(sum(map(len, pieces)))))
        path = tmp_path / f"{place}.tape"
        with TapeWriter(path, RUN, secrets=[KEY]) as tape:
            tape.write_exchange(answered(pieces, heads))

        (seen,) = read_tape(path).exchanges
        assert seen.response is not None
        assert [chunk.at for chunk in seen.response.chunks] == [0.5, 1.5, 2.5, 3.5]
        assert find_header(seen.response.headers, "content-length") == str(len(seen.response.body))
        text = decode_content(seen.response.headers, seen.response.body)
        assert text is not None
        assert len(text) == len(body)
        assert text.endswith(b" dolor sit amet" * 20)
        assert seen.redacted
        assert leaks(KEY, path) == 0


@pytest.mark.parametrize("name", ["gzip", "deflate", "raw", "br", "zstd"])
def test_an_encoded_stream_without_a_secret_keeps_its_very_bytes(name: str) -> None:
    pieces = encoded(name, [b"lorem sk-li", b"ing ipsum", b"dolor" * 99])
    heads = (("content-encoding", "deflate" if name == "raw" else name),)
    assert [chunk.data for chunk in streamed(pieces, KEY, headers=heads)] == pieces


def test_what_is_not_in_its_encoding_is_kept_as_it_came() -> None:
    pieces = [b"this is no gzip", b"and this neither"]
    heads = (("content-encoding", "gzip"),)
    assert [chunk.data for chunk in streamed(pieces, KEY, headers=heads)] == pieces


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_secret_that_is_not_in_its_encoding_is_found(name: str) -> None:
    body = b'{"password": "%b", "note": "plain"}' % KEY.encode()
    for pieces in (cut(body, 0), cut(body, 30), cut(body, 20, 40)):
        said = [each.data for each in streamed(pieces, headers=(("content-encoding", name),))]
        assert [len(each) for each in said] == [len(each) for each in pieces]
        assert KEY.encode() not in b"".join(said)


def test_what_the_messages_of_a_websocket_say_bit_by_bit_is_found() -> None:
    """Each message stands for itself: nothing but JSON, and no line ends between them."""
    pieces = ['{"delta":"hello sk-li', '{"delta":"ve-0123/567', '{"delta":"89+bcdef bye']
    said = [f'{piece}","n":{n}}}'.encode() for n, piece in enumerate(pieces)]
    chunks = tuple(Chunk(at=at, data=data) for at, data in enumerate(said))
    turn = Exchange(
        seq=0, request=REQUEST, response=Response(status=101, chunks=chunks), transport="websocket"
    )
    seen = Redactor([KEY]).redact_exchange(turn).response
    assert seen is not None
    assert [(chunk.at, len(chunk.data)) for chunk in seen.chunks] == [
        (chunk.at, len(chunk.data)) for chunk in chunks
    ]
    text = "".join(json.loads(chunk.data)["delta"] for chunk in seen.chunks)
    assert text.startswith("hello REDACTED")
    assert text.endswith("Z bye")


def test_a_secret_is_found_late_in_a_long_websocket() -> None:
    stream = Redactor([KEY]).open_stream((), messages=True)
    given = [
        chunk
        for n in range(3000)
        for chunk in stream.chunk(Chunk(at=n, data=b'{"delta":"word %d"}' % n))
    ]
    assert len(given) == 3000
    given = stream.chunk(Chunk(at=0, data=b'{"delta":"' + KEY.encode() + b'"}'))
    (last,) = [*given, *stream.done()]
    assert b"REDACTED" in last.data


KILLED = """
import sys, time
from pathlib import Path
from traces.model import Chunk, Exchange, Request, Response, Trajectory
from traces.tape.writer import TapeWriter
tape = TapeWriter(Path(sys.argv[1]), Trajectory(id="r", recorded_at=0.0), secrets=[sys.argv[2]])
exchange = Exchange(seq=0, request=Request(method="GET", url="u"), response=Response(status=200))
tape.request(exchange)
tape.head(exchange)
key = sys.argv[2].encode()
for data in (b"one ", b"two " + key + b" ", b"three ", b"four " + key[:15]):
    tape.chunk(exchange, Chunk(at=0.0, data=data))
print("there", flush=True)
time.sleep(60)
"""


def test_a_killed_run_lacks_only_the_half_that_waited(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    command = [sys.executable, "-c", KILLED, str(path), KEY]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"there\n"
        writer.send_signal(signal.SIGKILL)
        writer.wait(timeout=30)

    answer = read_tape(path).exchanges[0].response
    assert answer is not None
    assert [len(chunk.data) for chunk in answer.chunks] == [4, 4 + len(KEY) + 1, 6]
    assert leaks(KEY[:15], path) == 0


def test_a_tape_that_is_closed_early_has_the_half_redacted(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    exchange = answered([b"one ", b"two " + KEY[:15].encode()])
    with TapeWriter(path, RUN, secrets=[KEY]) as tape:
        tape.request(exchange)
        tape.head(exchange)
        assert exchange.response is not None
        for chunk in exchange.response.chunks:
            tape.chunk(exchange, chunk)
    (seen,) = read_tape(path).exchanges
    assert seen.response is not None
    assert [len(chunk.data) for chunk in seen.response.chunks] == [4, 19]
    assert leaks(KEY[:15], path) == 0


def test_nothing_reaches_the_index(tmp_path: Path) -> None:
    path, call = tmp_path / "a.tape", {"name": "get", "arguments": json.dumps({"key": KEY})}
    turn = {"role": "user", "content": f"my key is {KEY} {base64.b64encode(KEY.encode()).decode()}"}
    body = json.dumps({"model": "m", "messages": [turn]}).encode()
    request = Request(
        method="POST", url=f"http://h/v1/chat/completions?key={KEY}", body=body,
        headers=(("authorization", f"Bearer {KEY}"),),
    )  # fmt: skip
    calls = [{"id": "c1", "type": "function", "function": call}]
    message = {"role": "assistant", "content": f"say {KEY}", "tool_calls": calls}
    answer = json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()
    run = Trajectory(id="r", recorded_at=0.0, command=("agent", "--key", KEY))
    with TapeWriter(path, run, secrets=[KEY]) as tape:
        one = answered(cut(answer, len(answer) // 2))
        tape.write_exchange(Exchange(seq=0, request=request, response=one.response))

    store, rows = TraceStore(tmp_path / "store"), store_rows.build_tape_rows(read_tape(path))
    store.write(
        "r", {name: make_relation_table(name, found) for name, found in rows.items() if found}
    )
    store.compact()
    assert rows["tool_calls"]
    assert rows["messages"]
    files = [file for file in (tmp_path / "store").rglob("*") if file.is_file()]
    held = b""
    for file in files:
        if file.suffix == ".parquet":
            for row in duckdb.connect().execute("from read_parquet(?)", [str(file)]).fetchall():
                held += repr(row).encode()
        else:
            held += file.read_bytes()
    assert b"REDACTED" in held
    assert copies(KEY.encode(), held) == 0


def test_a_long_run_of_base64_goes_through_as_it_comes() -> None:
    stream, data = (
        Redactor([KEY]).open_stream(()),
        base64.b64encode(random.Random(1).randbytes(27_000)),
    )
    given = [
        stream.chunk(Chunk(at=0.0, data=data[at : at + 500])) for at in range(0, len(data), 500)
    ]
    waited = [place for place, chunks in enumerate(given) if not chunks]
    assert len(waited) < len(given) // 2
    assert b"".join(chunk.data for chunks in (*given, stream.done()) for chunk in chunks) == data
