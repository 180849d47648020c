"""What the recorder writes is read, and a client that sends the same again gets the same.

Hypothesis draws requests, and answers in every framing, cut anywhere, with bytes that are no HTTP,
and with every end that a server can give.
"""

import asyncio
import re
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from recorder.event_loop import run_event_loop
from recorder.proxy.server import ProxyServer
from replay.player import TapePlayer
from tests.support.servers.raw_servers import confdir, listening, recording, reset
from tests.support.strict_replay import secrets_of
from tests.support.tiers import examples
from traces.conversation.tracker import ConversationTap
from traces.conversation.volatile_fields import VOLATILE_VERSION
from traces.model import Trajectory
from traces.redaction.redactor import Redactor
from traces.tape.reader import Tape, read_tape
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

type Heard = tuple[bytes, str]


class Talk(NamedTuple):
    """One request on a connection of its own, its answer as pieces, and how the server ends."""

    request: bytes
    answer: tuple[bytes, ...]
    end: str


def make_request(method: bytes, path: bytes, fields: Sequence[bytes], body: bytes) -> bytes:
    length = [b"Content-Length: %d" % len(body)] if body or method == b"POST" else []
    lines = [method + b" " + path + b" HTTP/1.1", b"Host: a.example", *fields, *length]
    return b"\r\n".join([*lines, b"Connection: close", b"", body])


def make_answer(status: int, fields: Sequence[bytes], body: bytes, framing: str) -> bytes:
    lines = [b"HTTP/1.1 %d Reason" % status, *fields]
    if framing == "length":
        return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body])
    if framing == "chunks":
        parts = [body[at : at + 7] for at in range(0, len(body), 7)]
        data = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
        head = b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", b""])
        return head + data + b"0\r\nX-Trailer: t\r\n\r\n"
    return b"\r\n".join([*lines, b"Connection: close", b"", body])


def split(data: bytes, places: Sequence[int]) -> tuple[bytes, ...]:
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return tuple(data[a:b] for a, b in zip(ends, ends[1:], strict=False))


def spoil(answer: bytes, count: int, position: int, noise: bytes) -> bytes:
    """Return an answer without its last bytes, with others at one place of what is left."""
    kept = answer[: max(0, len(answer) - count)]
    at = position % (len(kept) + 1)
    return kept[:at] + noise + kept[at:]


PATHS = st.sampled_from([b"/", b"/a?b=c", b"/%7e//x", b"/v1/chat/completions", b"/[1]"])
PLAIN = [b"X-A: 1", b"x-a: 2", b"X-Latin: \xe9", b"Content-Type: a/b"]
SECRET = [b"Cookie: a=1", b"Authorization: Bearer abcdefghijklmnop"]
"""In requests alone: an answer gets placeholders for them."""
REQUESTS = st.builds(
    make_request,
    st.sampled_from([b"GET", b"POST", b"DELETE"]),
    PATHS,
    st.lists(st.sampled_from(PLAIN + SECRET), max_size=3),
    st.binary(max_size=40),
)
ANSWERS = st.builds(
    make_answer,
    st.sampled_from([200, 201, 404, 429, 503]),
    st.lists(st.sampled_from(PLAIN), max_size=3),
    st.binary(max_size=60),
    st.sampled_from(["length", "chunks", "end"]),
)
TALKS = st.builds(
    lambda request, answer, places, cut, noise, end: Talk(
        request, split(spoil(answer, cut, *noise), places), end
    ),
    REQUESTS,
    ANSWERS,
    st.lists(st.integers(0, 200), max_size=4),
    st.one_of(st.just(0), st.integers(0, 200)),
    st.one_of(
        st.just((0, b"")),
        st.tuples(st.integers(0, 200), st.sampled_from([b"\r\n", b"\0", b"zz", b"1", b": "])),
    ),
    st.sampled_from(["fin", "reset"]),
)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        (
            int(x.split(b":")[1])
            for x in head.lower().split(b"\r\n")
            if x.startswith(b"content-len")
        ),
        0,
    )
    return head + await reader.readexactly(length)


async def converse(port: int, request: bytes) -> Heard:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    data = b""
    try:
        while piece := await reader.read(65536):
            data += piece
    except ConnectionError:
        return data, "reset"
    finally:
        writer.transport.abort()
    return data, "fin"


async def record(talks: Sequence[Talk], path: Path) -> list[Heard]:
    remaining = iter(talks)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = next(remaining)
        await read_request(reader)
        for piece in talk.answer:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if talk.end == "reset":
            await asyncio.sleep(0.02)  # a reset at once may destroy what was not read yet
            reset(writer)

    head = Trajectory(id="a", recorded_at=0.0, volatile=VOLATILE_VERSION)
    with TapeWriter(path, head, secrets=secrets_of()) as tape:
        async with listening(serve) as server:
            hosts = {"a.example": ("127.0.0.1", server.port)}
            async with recording(ConversationTap(), tape, hosts=hosts) as proxy:
                return [await converse(proxy.port, to_proxy(talk.request)) for talk in talks]


async def replay(talks: Sequence[Talk], tape: Tape) -> list[Heard]:
    watch, secrets = ConversationTap(), secrets_of()
    redact = Redactor(secrets, tape.redactions).redact_request
    player = TapePlayer(tape, watch, redact=redact, key=secrets.key)
    async with AsyncExitStack() as stack:
        listener = ProxyServer(confdir=confdir()).create_listener(
            TapChain((watch, player)), began=time.monotonic(), seqs=count(1)
        )
        await stack.enter_async_context(listener)
        return [await converse(listener.port, to_proxy(talk.request)) for talk in talks]


def to_proxy(request: bytes) -> bytes:
    method, _, rest = request.partition(b" ")
    return method + b" http://a.example" + rest


def join_chunks(heard: Heard) -> tuple[bytes, bytes, bytes, str]:
    """Return head, body, what follows the last chunk, and end: where chunks end may differ.

    What follows the announced length of a body is the next answer's on a connection that is kept,
    and nobody's on these.
    """
    data, end = re.sub(rb"\r\n +", b" ", heard[0]), heard[1]  # a line may be folded
    head, mark, rest = data.partition(b"\r\n\r\n")
    if length := re.search(rb"\r\nContent-Length: ([0-9]+)$", head):
        return head + mark, rest[: int(length[1])], b"", end
    if b"chunked" not in head:
        return head + mark, rest, b"", end
    body = b""
    while (size := re.match(rb"([0-9a-f]+)\r\n", rest)) and (count := int(size[1], 16)):
        chunk = rest[size.end() :]
        body += chunk[:count]
        if len(chunk) < count + 2:
            return head + mark, body, b"cut", end
        rest = chunk[count + 2 :]
    last, blank, _ = rest.partition(b"\r\n\r\n")
    return head + mark, body, last + blank, end


@settings(max_examples=examples(60))
@given(st.lists(TALKS, min_size=1, max_size=3))
@example([Talk(make_request(b"GET", b"/", (), b""), (), "fin")])
@example([Talk(make_request(b"GET", b"/", (), b""), (b"HTTP/1.1 200 OK\r\n\r\npart",), "reset")])
def test_a_client_that_sends_the_same_again_gets_the_same(talks: list[Talk]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tape"
        was = run_event_loop(record(talks, path))
        tape = read_tape(path)
        assert (tape.dropped, len(tape.exchanges)) == (0, len(talks))
        again = run_event_loop(replay(talks, tape))
        assert list(map(join_chunks, again)) == list(map(join_chunks, was))
