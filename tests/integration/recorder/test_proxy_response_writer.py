"""What an agent reads: bytes, chunks, times and cuts, over real sockets and real TLS."""

import os
import select
import socket
import statistics
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import replace
from itertools import pairwise
from pathlib import Path

import h11
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recorder.proxy.server import ProxyServer, RunListener
from tests.support.servers.replay_server_thread import (
    GET,
    Script,
    dial,
    ending,
    eventually,
    fail,
    heard,
    on_stage,
    plain_and_tls,
    reach,
    rest,
    say,
)
from tests.support.tiers import examples
from traces.model import Chunk, Exchange, Headers, Response


@pytest.fixture(scope="module")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ca")


@pytest.fixture(scope="module")
def performer(confdir: Path) -> ProxyServer:
    return ProxyServer(confdir=confdir)


@plain_and_tls
def test_a_head_keeps_its_order_case_and_reason(
    performer: ProxyServer, confdir: Path, tls: bool
) -> None:
    headers = (
        ("X-B", "2"),
        ("content-TYPE", "text/plain; q=\xe9"),
        ("x-a", "1"),
        ("X-B", "1"),
        ("Content-Length", "5"),
        ("Empty", ""),
    )
    script = Script(say(b"hello", headers=headers))
    with on_stage(performer, script) as stage:
        end, request = reach(stage, confdir, tls)
        with end:
            end.sendall(request)
            answer = heard(end, b"hello")
    assert answer == (
        b"HTTP/1.1 200 OK\r\nX-B: 2\r\ncontent-TYPE: text/plain; q=\xe9\r\nx-a: 1\r\nX-B: 1\r\n"
        b"Content-Length: 5\r\nEmpty: \r\n\r\nhello"
    )
    [got] = script.got
    assert got.response is not None
    assert (got.response.headers, got.response.body, got.error) == (headers, b"hello", None)


@plain_and_tls
def test_a_chunk_of_the_recording_is_a_chunk_of_the_answer(
    performer: ProxyServer, confdir: Path, tls: bool
) -> None:
    script = Script(say(b"one", b"", b"twelve bytes", trailers=(("X-Sum", "ab"),)))
    with on_stage(performer, script) as stage:
        end, request = reach(stage, confdir, tls)
        with end:
            end.sendall(request)
            answer = heard(end, b"ab\r\n\r\n")
    assert answer.partition(b"\r\n\r\n")[2] == (
        b"3\r\none\r\nc\r\ntwelve bytes\r\n0\r\nX-Sum: ab\r\n\r\n"
    )
    [got] = script.got
    assert got.response is not None
    assert [chunk.data for chunk in got.response.chunks] == [b"one", b"twelve bytes"]
    assert got.response.trailers == (("X-Sum", "ab"),)
    assert script.chunks == list(got.response.chunks)
    assert [x.response for x in script.heads] == [
        replace(got.response, chunks=(), trailers=(), ended=None)
    ]


class Wholes(Script):
    """A script that takes what went out in one piece as one."""

    def __init__(self, answer: Callable[[Exchange], Exchange]) -> None:
        super().__init__(answer)
        self.wholes: list[Exchange] = []

    def whole(self, exchange: Exchange) -> None:
        self.wholes.append(exchange)


@pytest.mark.parametrize("gap", [0.0, 0.001])
def test_taps_are_told_at_once_of_what_went_out_at_once(performer: ProxyServer, gap: float) -> None:
    one = Wholes(say(b"one", b"two", trailers=(("X-Sum", "ab"),), gap=gap))
    other = Script()
    with on_stage(performer, one, other) as stage, dial(stage) as end:
        end.sendall(GET)
        heard(end, b"ab\r\n\r\n")
    [got] = other.got
    assert one.wholes == ([] if gap else [got])
    assert (one.heads, one.chunks, one.got) == (
        ([], [], []) if not gap else (other.heads, other.chunks, other.got)
    )
    assert got.response is not None
    assert [x.response for x in other.heads] == [
        replace(got.response, chunks=(), trailers=(), ended=None)
    ]
    assert other.chunks == list(got.response.chunks)


def test_an_answer_of_http2_goes_out_as_http1_and_the_connection_stays(
    performer: ProxyServer,
) -> None:
    script = Script(say(b"hi", headers=(("content-type", "a/b"),), version="HTTP/2.0"))
    with on_stage(performer, script) as stage, dial(stage) as end:
        for _ in range(2):
            end.sendall(GET)
            assert heard(end, b"0\r\n\r\n") == (
                b"HTTP/1.1 200 OK\r\ncontent-type: a/b\r\ntransfer-encoding: chunked\r\n\r\n"
                b"2\r\nhi\r\n0\r\n\r\n"
            )


def test_an_answer_whose_end_was_the_end_of_the_connection_is_that_again(
    performer: ProxyServer,
) -> None:
    headers = (("Connection", "close"),)
    with on_stage(performer, Script(say(b"hi", headers=headers))) as stage, dial(stage) as end:
        end.sendall(GET)
        assert rest(end) == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi"


def test_an_http10_agent_gets_no_chunks(performer: ProxyServer) -> None:
    with on_stage(performer, Script(say(b"one", b"two"))) as stage, dial(stage) as end:
        end.sendall(b"GET http://a.example/ HTTP/1.0\r\n\r\n")
        assert rest(end) == b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nonetwo"


def test_a_wrong_length_is_put_right_unless_the_answer_breaks_off(performer: ProxyServer) -> None:
    headers = (("A", "1"), ("content-length", "3"), ("B", "2"))
    with on_stage(performer, Script(say(b"hello", headers=headers))) as stage, dial(stage) as end:
        end.sendall(GET)
        assert heard(end, b"hello").splitlines()[1:4] == [b"A: 1", b"content-length: 5", b"B: 2"]
    cut = Script(say(b"hello", headers=(("content-length", "50"),), error="eof"))
    with on_stage(performer, cut) as stage, dial(stage) as end:
        end.sendall(GET)
        assert rest(end).endswith(b"content-length: 50\r\n\r\nhello")


@pytest.mark.parametrize(
    ("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304), ("DELETE", 204)]
)
def test_an_answer_without_a_body_ends_with_its_head(
    performer: ProxyServer, method: str, status: int
) -> None:
    script = Script(say(status=status, headers=(("Content-Length", "5"),)))
    with on_stage(performer, script) as stage, dial(stage) as end:
        for _ in range(2):
            end.sendall(GET.replace(b"GET", method.encode()))
            assert heard(end, b"\r\n\r\n").endswith(b" OK\r\nContent-Length: 5\r\n\r\n")
    assert [x.response.ended is not None for x in script.got if x.response] == [True, True]


texts = st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f"))
names = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-", min_size=1, max_size=20)
FRAMING = {"content-length", "transfer-encoding", "connection", "upgrade", "keep-alive"}
plain_fields = st.tuples(
    names.filter(lambda name: name.lower() not in FRAMING),
    texts.filter(lambda text: not any(0x7F <= ord(letter) < 0xA1 for letter in text)),
)


@st.composite
def responses(draw: st.DrawFn) -> Response:
    chunks = tuple(
        Chunk(at=0.0, data=draw(st.binary(min_size=1, max_size=300)) * draw(st.integers(1, 400)))
        for _ in range(draw(st.integers(0, 6)))
    )
    headers: Headers = tuple(draw(st.lists(plain_fields, max_size=5)))
    length = sum(len(chunk.data) for chunk in chunks)
    framings: list[Headers] = [
        (("Content-Length", str(length)),),
        (("Transfer-Encoding", "chunked"),),
        (("Connection", "close"),),
        (),
    ]
    framing = draw(st.sampled_from(framings))
    return Response(
        status=draw(st.sampled_from([200, 201, 400, 404, 429, 500, 529])),
        reason=draw(st.sampled_from(["", "OK", "Not Found", "caf\xe9"])),
        headers=headers + framing,
        chunks=chunks,
        trailers=tuple(draw(st.lists(plain_fields, max_size=2)))
        if "chunked" in str(framing)
        else (),
        version=draw(st.sampled_from(["HTTP/1.1", "HTTP/2.0"])),
    )


@plain_and_tls
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_every_answer_is_read_as_it_was_recorded(
    performer: ProxyServer, confdir: Path, tls: bool, data: st.DataObject
) -> None:
    many = data.draw(st.lists(responses(), min_size=1, max_size=4))
    left = iter(many)
    script = Script(lambda x: replace(x, response=next(left)))
    with on_stage(performer, script) as stage:
        end, request = reach(stage, confdir, tls)
        for response in many:
            end.sendall(request)
            status, reason, headers, body, trailers, stays = read(end)
            added = (("transfer-encoding", "chunked"),)
            assert (status, reason) == (response.status, response.reason)
            assert headers in (response.headers, response.headers + added)
            assert body == response.body
            assert trailers == response.trailers
            if not stays:
                end.close()
                end, request = reach(stage, confdir, tls)
        end.close()
    assert [x.response and x.response.body for x in script.got] == [r.body for r in many]


def read(end: socket.socket) -> tuple[int, str, Headers, bytes, Headers, bool]:
    """One answer as h11, a parser that is not ours, reads it."""
    agent = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 24)
    agent.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    agent.send(h11.EndOfMessage())
    body = b""
    head: h11.Response | None = None
    while True:
        event = agent.next_event()
        if event is h11.NEED_DATA:
            agent.receive_data(end.recv(1 << 16))
        elif isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            return (
                head.status_code,
                head.reason.decode("latin-1"),
                latin(head.headers.raw_items()),
                body,
                latin(event.headers.raw_items()),
                agent.their_state is h11.DONE,
            )


def latin(items: list[tuple[bytes, bytes]]) -> Headers:
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in items)


@plain_and_tls
@pytest.mark.parametrize(
    ("error", "end"),
    [
        ("reset", "reset"),
        ("reset: by peer", "reset"),
        ("refused", "reset"),
        ("protocol: x", "reset"),
        ("eof", "end"),
    ],
)
def test_no_answer_at_all(
    performer: ProxyServer, confdir: Path, tls: bool, error: str, end: str
) -> None:
    script = Script(fail(error))
    with on_stage(performer, script) as stage:
        line, request = reach(stage, confdir, tls)
        with line:
            line.sendall(request)
            assert ending(line) == (b"", end)
    assert [(x.response, x.error) for x in script.got] == [(None, error)]


@plain_and_tls
@pytest.mark.parametrize(("error", "end"), [("reset", "reset"), ("eof", "end")])
def test_an_answer_breaks_off_after_its_last_byte(
    performer: ProxyServer, confdir: Path, tls: bool, error: str, end: str
) -> None:
    script = Script(say(b"one", b"two", gap=0.01, error=error))
    with on_stage(performer, script) as stage:
        line, request = reach(stage, confdir, tls)
        with line:
            line.sendall(request)
            data, how = ending(line)
    assert how == end
    assert data.endswith(b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n")
    [got] = script.got
    assert got.error == error
    assert got.response is not None
    assert (got.response.body, got.response.ended) == (b"onetwo", None)


@plain_and_tls
@pytest.mark.parametrize(("error", "how"), [("reset", "reset"), ("eof", "end")])
def test_a_cut_loses_nothing_of_what_came_before_it(
    performer: ProxyServer, confdir: Path, tls: bool, error: str, how: str
) -> None:
    """3 MB stand in buffers of the kernel, and not all on the agent's side, when it is cut."""
    body = os.urandom(3_000_000)
    script = Script(say(body, error=error))
    with on_stage(performer, script) as stage:
        end, request = reach(stage, confdir, tls)
        with end:
            end.sendall(request)
            assert eventually(
                lambda: script.chunks or any(line.paused for line in stage.connections)
            )
            data, ended = ending(end)
    assert ended == how
    assert data.endswith(body + b"\r\n")


@pytest.mark.parametrize("error", ["timeout", "timeout: 30 s", "cancelled"])
def test_a_silent_answer_stays_silent_until_the_agent_gives_up(
    performer: ProxyServer, error: str
) -> None:
    script = Script(say(b"one", error=error))
    with on_stage(performer, script) as stage, dial(stage) as end:
        end.sendall(GET)
        heard(end, b"one\r\n")
        assert select.select([end], [], [], 0.3)[0] == []
    assert [x.error for x in script.got] == [error]


def test_silence_has_a_bound(performer: ProxyServer) -> None:
    script = Script(fail("timeout"))
    with on_stage(performer, script, hold=0.2) as stage, dial(stage) as end:
        end.sendall(GET)
        assert ending(end) == (b"", "end")
    assert [x.error for x in script.got] == ["timeout"]


@plain_and_tls
@pytest.mark.parametrize("rude", [False, True], ids=["fin", "rst"])
def test_an_agent_that_leaves_has_cancelled(
    performer: ProxyServer, confdir: Path, tls: bool, rude: bool
) -> None:
    script = Script(say(b"one", b"two", gap=0.4))
    with on_stage(performer, script) as stage:
        end, request = reach(stage, confdir, tls)
        with end:
            end.sendall(request)
            heard(end, b"one\r\n")
            if rude:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        with dial(stage) as other:
            other.sendall(GET)
            heard(other, b"0\r\n\r\n")
    cancelled, whole = script.got
    assert (cancelled.error, whole.error) == ("cancelled", None)
    assert cancelled.response is not None
    assert (cancelled.response.body, cancelled.response.ended) == (b"one", None)


def test_an_agent_that_leaves_before_the_head_got_nothing(performer: ProxyServer) -> None:
    script = Script(lambda x: say(b"one")(x).with_delay(60))
    with on_stage(performer, script) as stage, dial(stage) as end:
        end.sendall(GET)
        assert select.select([end], [], [], 0.1)[0] == []
    assert [(x.response, x.error) for x in script.got] == [(None, "cancelled")]


@pytest.mark.alone
@plain_and_tls
def test_chunks_keep_their_gaps(performer: ProxyServer, confdir: Path, tls: bool) -> None:
    """No chunk is early; and, on a machine that is not overloaded, 1 ms at the median."""
    errors = []
    for _ in range(5):
        script = Script(say(*[b"data: x\n\n"] * 50, gap=0.02))
        with on_stage(performer, script) as stage:
            end, request = reach(stage, confdir, tls)
            with end:
                end.sendall(request)
                heard(end, b"\r\n\r\n")
                seen = []
                for _ in range(50):
                    assert heard(end, b"x\n\n\r\n") == b"9\r\ndata: x\n\n\r\n"
                    seen.append(time.monotonic())
        [got] = script.got
        assert got.response is not None
        assert got.response.ended is not None
        times = [chunk.at for chunk in got.response.chunks]
        assert min(at - got.started - 0.02 * n for n, at in enumerate(times, 1)) >= 0
        assert [got.started, got.response.at, *times, got.response.ended] == sorted(
            [got.started, got.response.at, *times, got.response.ended]
        )
        errors.append(statistics.median(abs(b - a - 0.02) for a, b in pairwise(seen)))
        if errors[-1] < 0.001:
            return
    pytest.fail(f"medians of the gaps were off by {errors} s")


def test_a_head_may_come_long_before_its_body(performer: ProxyServer) -> None:
    with on_stage(performer, Script(say(b"late", gap=0.2))) as stage, dial(stage) as end:
        end.sendall(GET)
        heard(end, b"\r\n\r\n")
        assert select.select([end], [], [], 0.1)[0] == []
        assert heard(end, b"0\r\n\r\n") == b"4\r\nlate\r\n0\r\n\r\n"


def test_fifty_agents_at_once_do_not_wait_for_one_another(
    performer: ProxyServer, confdir: Path
) -> None:
    script = Script(say(*[b"x"] * 10, gap=0.02))

    def ask(stage: RunListener, n: int) -> float:
        end, request = reach(stage, confdir, n % 2 == 0)
        with end:
            end.sendall(request)
            heard(end, b"0\r\n\r\n")
        return time.monotonic()

    with on_stage(performer, script) as stage, ThreadPoolExecutor(50) as pool:
        list(pool.map(lambda n: ask(stage, n), range(50)))
    spans = [(x.started, x.response.ended or 0) for x in script.got if x.response]
    assert len(spans) == 50
    assert sum(end - start for start, end in spans) > 50 * 0.2
    assert sorted(x.connection for x in script.got) == list(range(1, 51))


@plain_and_tls
def test_an_answer_waits_in_small_pieces_for_an_agent_that_does_not_read(
    performer: ProxyServer, confdir: Path, tls: bool
) -> None:
    body = os.urandom(30_000_000)
    script = Script(say(body, headers=(("Content-Length", str(len(body))),)))
    with on_stage(performer, script) as stage:
        end, request = reach(stage, confdir, tls)
        with end:
            tracemalloc.start()
            end.sendall(request)
            assert eventually(lambda: any(line.paused for line in stage.connections))
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert script.got == []
            heard(end, b"\r\n\r\n")
            read = bytearray()
            while len(read) < len(body) and (piece := end.recv(1 << 20)):
                read += piece
    assert read == body
    assert peak < 1_000_000
    assert [x.response and x.response.body == body for x in script.got] == [True]


@plain_and_tls
def test_an_agent_that_leaves_in_the_middle_of_a_chunk_got_the_beginning_of_it(
    performer: ProxyServer, confdir: Path, tls: bool
) -> None:
    body = os.urandom(30_000_000)
    script = Script(say(body))
    with on_stage(performer, script) as stage:
        end, request = reach(stage, confdir, tls)
        with end:
            end.sendall(request)
            assert eventually(lambda: any(line.paused for line in stage.connections))
        assert eventually(lambda: script.got)
    [got] = script.got
    assert got.error == "cancelled"
    assert got.response is not None
    assert 0 < len(got.response.body) < len(body)
    assert body.startswith(got.response.body)


def test_an_agent_that_asks_and_never_reads_is_no_longer_read(performer: ProxyServer) -> None:
    script = Script(say(b"x" * 50_000))
    sent = 0

    def ask(end: socket.socket) -> None:
        nonlocal sent
        while sent < 50_000_000:
            sent += end.send(GET * 1000)

    with on_stage(performer, script) as stage, dial(stage) as end:
        end.settimeout(1)
        with pytest.raises(TimeoutError):
            ask(end)
    assert len(script.asked) < 1000
    assert sent < 20_000_000
