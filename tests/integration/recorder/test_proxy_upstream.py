"""The way out: live requests to a small server, over real sockets."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import replace
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from recorder.proxy.route import UpstreamRoute
from recorder.proxy.server import ProxyServer
from recorder.proxy.upstream import OriginClient, UpstreamClient
from tests.support.servers.raw_servers import server_ca, server_tls, wanting_certificates
from tests.support.servers.replay_server_thread import (
    GET,
    WAIT,
    Script,
    dial,
    ending,
    eventually,
    heard,
    on_stage,
    plain_and_tls,
    reach,
    say,
)
from traces.model import BodyEdit, Exchange

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
STREAM = b"HTTP/1.1 200 OK\r\nX-Case: Kept\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ca")


@pytest.fixture(scope="module")
def performer(confdir: Path) -> ProxyServer:
    return ProxyServer(confdir=confdir)


@dataclass
class Proxy:
    """A server whose answers a test writes by hand."""

    port: int
    asked: list[bytes] = field(default_factory=list)
    connections: int = 0

    def way(self, began: float) -> UpstreamClient:
        hosts = {"a.example": ("127.0.0.1", self.port)}
        return OriginClient(UpstreamRoute(hosts=hosts, ca_file=server_ca()), began, {})


type Answer = Callable[[socket.socket, int], object]
"""What is done on a connection for the nth request of all; returning True ends the connection."""


@contextmanager
def inner(answer: Answer, *, tls: bool = False) -> Iterator[Proxy]:
    listening = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy(listening.getsockname()[1])
    threads: list[threading.Thread] = []

    def serve(end: socket.socket) -> None:
        with end if not tls else server_tls("a.example").wrap_socket(end, server_side=True) as end:
            while request := question(end):
                proxy.asked.append(request)
                if answer(end, len(proxy.asked)):
                    return

    def accept() -> None:
        while True:
            try:
                end, _ = listening.accept()
            except OSError:
                return  # the test is over
            end.settimeout(WAIT)
            proxy.connections += 1
            threads.append(threading.Thread(target=serve, args=(end,)))
            threads[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield proxy
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for thread in (acceptor, *threads):
            thread.join(WAIT)
            assert not thread.is_alive()


def question(end: socket.socket) -> bytes:
    """One whole request; nothing if the other side has left."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        try:
            piece = end.recv(1)
        except ConnectionResetError:
            return b""
        if not piece:
            return b""
        data += piece
    if length := re.search(rb"(?i)content-length: (\d+)", data):
        while len(data.partition(b"\r\n\r\n")[2]) < int(length[1]):
            data += end.recv(1 << 16)
    elif b"ransfer-" in data:
        data += heard(end, b"0\r\n\r\n")
    return data


def cut(end: socket.socket) -> bool:
    """The connection is reset."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    return True


def answers(*said: bytes, last: bool = False) -> Answer:
    """The nth request gets the nth answer, the `last` one of its connection or not."""

    def answer(end: socket.socket, n: int) -> bool:
        end.sendall(said[n - 1])
        return last

    return answer


@plain_and_tls
def test_what_goes_out_is_what_was_asked_but_for_the_hop(
    performer: ProxyServer, confdir: Path, tls: bool
) -> None:
    with (
        inner(answers(OK), tls=tls) as proxy,
        on_stage(performer, Script(), upstream=proxy.way) as stage,
    ):
        end, _ = reach(stage, confdir, tls)
        with end:
            end.sendall(
                (b"POST /v1" if tls else b"POST http://a.example/v1") + b" HTTP/1.1\r\n"
                b"HOST: a.example\r\nX-B: 2\r\nProxy-Connection: keep-alive\r\nx-A: 1\r\n"
                b"Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nProxy-Authorization: Basic eA==\r\n"
                b"Keep-Alive: timeout=5\r\nExpect: 100-continue\r\ncontent-LENGTH: 4\r\n\r\nbody"
            )
            assert heard(end, b"hi") == OK
    assert proxy.asked == [
        b"POST /v1 HTTP/1.1\r\nHOST: a.example\r\nX-B: 2\r\nx-A: 1\r\n"
        b"Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
        b"content-LENGTH: 4\r\n\r\nbody"
    ]


def test_edits_are_made_before_it_goes_out(performer: ProxyServer) -> None:
    edit = BodyEdit(start=1, stop=3, data=b"uil")
    script = Script(lambda x: replace(x, edits=(edit,)))
    with (
        inner(answers(OK)) as proxy,
        on_stage(performer, script, upstream=proxy.way) as stage,
        dial(stage) as end,
    ):
        end.sendall(GET[:-2] + b"Content-Length: 4\r\n\r\nbody")
        heard(end, b"hi")
    assert proxy.asked[0].endswith(b"Content-Length: 5\r\n\r\nbuily")
    [got] = script.got
    assert (got.request.body, got.forwarded.body) == (b"body", b"buily")
    assert got.answered_by == "live"


def test_chunks_of_a_request_go_out_as_one(performer: ProxyServer) -> None:
    with (
        inner(answers(OK, OK)) as proxy,
        on_stage(performer, Script(), upstream=proxy.way) as stage,
        dial(stage) as end,
    ):
        for body in (b"3\r\nabc\r\n2\r\nde\r\n", b""):
            end.sendall(GET[:-2] + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n")
            heard(end, b"hi")
    assert [text.partition(b"\r\n\r\n")[2] for text in proxy.asked] == [
        b"5\r\nabcde\r\n0\r\n\r\n",
        b"0\r\n\r\n",
    ]


def test_an_http10_request_goes_out_as_one(performer: ProxyServer) -> None:
    with (
        inner(answers(OK)) as proxy,
        on_stage(performer, Script(), upstream=proxy.way) as stage,
        dial(stage) as end,
    ):
        end.sendall(b"GET http://a.example:81/x HTTP/1.0\r\n\r\n")
        heard(end, b"hi")
    assert proxy.asked == [b"GET /x HTTP/1.0\r\n\r\n"]


@plain_and_tls
def test_a_stream_goes_through_as_it_comes(
    performer: ProxyServer, confdir: Path, tls: bool
) -> None:
    """The proxy sends a part only after the agent has read the one before: nothing is kept back."""
    read = threading.Semaphore(0)
    parts = [STREAM, b"3\r\none\r\n", b"3\r\ntwo\r\n", b"0\r\nX-Sum: ab\r\n\r\n"]

    def answer(end: socket.socket, n: int) -> None:
        for part in parts:
            end.sendall(part)
            assert read.acquire(timeout=WAIT)

    script = Script()
    with inner(answer, tls=tls) as proxy, on_stage(performer, script, upstream=proxy.way) as stage:
        end, request = reach(stage, confdir, tls)
        with end:
            end.sendall(request)
            for part in parts:
                assert heard(end, part) == part
                read.release()
    [got] = script.got
    assert got.response is not None
    assert [chunk.data for chunk in got.response.chunks] == [b"one", b"two"]
    assert (got.response.reason, got.response.trailers) == ("OK", (("X-Sum", "ab"),))
    assert got.response.at < got.response.chunks[0].at < got.response.chunks[1].at
    assert got.response.ended is not None
    assert got.response.ended > got.response.chunks[1].at
    assert script.chunks == list(got.response.chunks)


@pytest.mark.parametrize(
    ("method", "answer", "read"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b""),
        ("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b""),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", b""),
        ("GET", b"HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", b""),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        ("GET", b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    ],
)
def test_answers_of_every_framing_come_back_the_same(
    performer: ProxyServer, method: str, answer: bytes, read: bytes
) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    script = Script()
    with (
        inner(answers(answer, early + answer)) as proxy,
        on_stage(performer, script, upstream=proxy.way) as stage,
        dial(stage) as end,
    ):
        for early_too in (b"", early):
            end.sendall(GET.replace(b"GET", method.encode()))
            assert heard(end, answer) == early_too + answer
    assert proxy.connections == 1
    assert [x.error for x in script.got] == [None, None]
    assert all(x.response and x.response.body == read for x in script.got)


def test_an_answer_that_ends_with_the_connection_is_whole(performer: ProxyServer) -> None:
    answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"
    script = Script()
    with (
        inner(answers(answer, last=True)) as proxy,
        on_stage(performer, script, upstream=proxy.way) as stage,
        dial(stage) as end,
    ):
        end.sendall(GET)
        assert ending(end) == (answer, "end")
    [got] = script.got
    assert got.error is None
    assert got.response is not None
    assert got.response.ended is not None


def test_each_connection_of_the_agent_has_its_own(performer: ProxyServer) -> None:
    with (
        inner(answers(*[OK] * 6)) as proxy,
        on_stage(performer, Script(), upstream=proxy.way) as stage,
    ):
        for _ in range(3):
            with dial(stage) as end:
                for _ in range(2):
                    end.sendall(GET)
                    heard(end, b"hi")
    assert (len(proxy.asked), proxy.connections) == (6, 3)


def test_a_server_that_ends_each_connection_at_once_ends_each_request(
    performer: ProxyServer,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with suppress(OSError):  # the test is over
                while True:
                    listening.accept()[0].close()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        script, proxy = Script(), Proxy(listening.getsockname()[1])
        with on_stage(performer, script, upstream=proxy.way) as stage:
            for _ in range(30):
                with dial(stage) as end:
                    end.sendall(GET)
                    assert ending(end)[0] == b""
        listening.shutdown(socket.SHUT_RDWR)
        acceptor.join(WAIT)
    assert {(each.error or "").partition(":")[0] for each in script.got} <= {"eof", "reset"}
    assert len(script.got) == 30


def test_a_server_that_wants_a_client_certificate_ends_the_request(
    performer: ProxyServer, confdir: Path
) -> None:
    script = Script()
    with wanting_certificates() as port:
        proxy = Proxy(port)
        with (
            on_stage(performer, script, upstream=proxy.way) as stage,
            reach(stage, confdir, True)[0] as end,
        ):
            end.sendall(GET)
            assert ending(end) == (b"", "reset")
    assert [each.error for each in script.got] == ["tls: tlsv13 alert certificate required"]


@plain_and_tls
@pytest.mark.parametrize("rude", [False, True], ids=["fin", "rst"])
def test_a_connection_that_the_server_ends_while_it_is_idle_ends_for_the_agent(
    performer: ProxyServer, confdir: Path, tls: bool, rude: bool
) -> None:
    def answer(end: socket.socket, n: int) -> bool:
        end.sendall(OK)
        assert read.wait(WAIT)
        return cut(end) if rude else True

    read, script = threading.Event(), Script()
    with inner(answer, tls=tls) as proxy, on_stage(performer, script, upstream=proxy.way) as stage:
        end, request = reach(stage, confdir, tls)
        with end:
            end.sendall(request)
            heard(end, b"hi")
            read.set()
            assert ending(end) == (b"", "reset" if rude else "cut" if tls else "end")
    assert [x.error for x in script.got] == [None]


def test_nonsense_reaches_the_agent(performer: ProxyServer) -> None:
    script = Script()
    with (
        inner(answers(b"nonsense\r\n\r\n", last=True)) as proxy,
        on_stage(performer, script, upstream=proxy.way) as stage,
        dial(stage) as end,
    ):
        end.sendall(GET)
        assert ending(end) == (b"nonsense\r\n\r\n", "end")
    assert script.got[0].unparsed == b"nonsense\r\n\r\n"


def test_a_fresh_connection_that_says_nothing_is_not_asked_again(performer: ProxyServer) -> None:
    script = Script()
    with (
        inner(lambda end, n: True) as proxy,
        on_stage(performer, script, upstream=proxy.way) as stage,
        dial(stage) as end,
    ):
        end.sendall(GET)
        assert ending(end) == (b"", "end")
    assert len(proxy.asked) == 1
    assert [(x.response, x.error and x.error[:4]) for x in script.got] == [(None, "eof:")]


@plain_and_tls
@pytest.mark.parametrize("rude", [False, True], ids=["fin", "rst"])
def test_an_answer_that_breaks_off_breaks_off_for_the_agent(
    performer: ProxyServer, confdir: Path, tls: bool, rude: bool
) -> None:
    def answer(end: socket.socket, n: int) -> bool:
        end.sendall(STREAM + b"3\r\none\r\n")
        assert read.wait(WAIT)
        return cut(end) if rude else True

    read = threading.Event()
    script = Script()
    with inner(answer, tls=tls) as proxy, on_stage(performer, script, upstream=proxy.way) as stage:
        end, request = reach(stage, confdir, tls)
        with end:
            end.sendall(request)
            heard(end, b"one\r\n")
            read.set()
            assert ending(end) == (b"", "reset" if rude else "cut" if tls else "end")
    [got] = script.got
    assert got.error is not None
    assert got.error.partition(":")[0] == ("reset" if rude else "eof")
    assert got.response is not None
    assert (got.response.body, got.response.ended) == (b"one", None)


def test_what_is_held_back_is_fetched_whole_and_bent(performer: ProxyServer) -> None:
    seen: list[Exchange] = []

    class Bend:
        def holds(self, exchange: Exchange) -> bool:
            return True

        def response(self, exchange: Exchange) -> Exchange:
            seen.append(exchange)
            return replace(say(b"bent", trailers=())(exchange), answered_by="fault")

    script = Script()
    with (
        inner(answers(STREAM + b"3\r\none\r\n0\r\n\r\n")) as proxy,
        on_stage(performer, Bend(), script, upstream=proxy.way) as stage,
        dial(stage) as end,
    ):
        end.sendall(GET)
        assert heard(end, b"0\r\n\r\n").endswith(b"\r\n\r\n4\r\nbent\r\n0\r\n\r\n")
    [fetched] = seen
    assert fetched.response is not None
    assert (fetched.response.body, fetched.error) == (b"one", None)
    assert fetched.response.ended is not None
    assert [x.answered_by for x in script.got] == ["fault"]


def test_a_stream_that_was_held_back_keeps_the_gaps_between_its_chunks(
    performer: ProxyServer,
) -> None:
    gap = 0.2

    class Hold:
        def holds(self, exchange: Exchange) -> bool:
            return True

    def answer(end: socket.socket, n: int) -> bool:
        head = STREAM.replace(b"X-Case: Kept", b"Content-Type: text/event-stream")
        end.sendall(head + b"3\r\none\r\n")
        time.sleep(gap)  # the model thinks
        end.sendall(b"3\r\ntwo\r\n0\r\n\r\n")
        return True

    script = Script()
    with (
        inner(answer) as proxy,
        on_stage(performer, Hold(), script, upstream=proxy.way) as stage,
        dial(stage) as end,
    ):
        end.sendall(GET)
        heard(end, b"0\r\n\r\n")
    [got] = script.got
    assert got.response is not None
    first, second = got.response.chunks
    assert (first.data, second.data) == (b"one", b"two")
    assert second.at - first.at >= gap * 0.9


def test_an_agent_that_leaves_ends_the_request_of_the_proxy_too(performer: ProxyServer) -> None:
    left = threading.Event()

    def answer(end: socket.socket, n: int) -> bool:
        end.sendall(STREAM + b"3\r\none\r\n")
        assert ending(end)[0] == b""
        left.set()
        return True

    script = Script()
    with inner(answer) as proxy, on_stage(performer, script, upstream=proxy.way) as stage:
        with dial(stage) as end:
            end.sendall(GET)
            heard(end, b"one\r\n")
        assert left.wait(WAIT)
        assert eventually(lambda: script.got)
    [got] = script.got
    assert (got.error or "").startswith("cancelled: ")
    assert got.response is not None
    assert got.response.body == b"one"


@plain_and_tls
def test_a_slow_agent_slows_the_proxy_down(
    performer: ProxyServer, confdir: Path, tls: bool
) -> None:
    """100 MB are offered; what is on the way is the buffers of four sockets and 256 KB of ours."""
    sent: list[int] = []
    stuck = threading.Event()

    def answer(end: socket.socket, n: int) -> bool:
        end.sendall(STREAM)
        end.settimeout(1)
        with suppress(TimeoutError):
            for _ in range(1600):
                end.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
                sent.append(0x10000)
        stuck.set()
        return True

    script = Script()
    with inner(answer, tls=tls) as proxy, on_stage(performer, script, upstream=proxy.way) as stage:
        end, request = reach(stage, confdir, tls)
        with end:
            end.sendall(request)
            assert stuck.wait(WAIT)
            assert 0 < sum(sent) < 50_000_000


def test_a_server_that_is_not_there_is_refused(performer: ProxyServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = Script()
    with on_stage(performer, script, upstream=Proxy(port).way) as stage, dial(stage) as end:
        end.sendall(GET)
        assert ending(end) == (b"", "reset")
    assert [x.error for x in script.got] == ["refused: Connection refused"]


@pytest.mark.gate
@plain_and_tls
def test_fifty_streams_at_once(performer: ProxyServer, confdir: Path, tls: bool) -> None:
    def answer(end: socket.socket, n: int) -> None:
        end.sendall(STREAM)
        for _ in range(20):
            time.sleep(0.005)
            end.sendall(b"3\r\none\r\n")
        end.sendall(b"0\r\n\r\n")

    script = Script()
    with inner(answer, tls=tls) as proxy, on_stage(performer, script, upstream=proxy.way) as stage:
        ends = [reach(stage, confdir, tls) for _ in range(50)]
        for end, request in ends:
            end.sendall(request)
        for end, _ in ends:
            with end:
                heard(end, b"0\r\n\r\n")
    assert len(script.got) == proxy.connections == 50
    assert {x.response and x.response.body for x in script.got} == {b"one" * 20}
    assert {x.error for x in script.got} == {None}
