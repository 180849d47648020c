"""Agents that speak HTTP/2 alone, with h2 as their side, before the own server."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)

from recorder.proxy.server import ProxyServer, RunListener
from tests.support.servers.replay_server_thread import (
    Script,
    dial,
    eventually,
    fail,
    heard,
    on_stage,
    say,
    trusting,
)
from traces.model import Exchange

type Fields = list[tuple[str, str]]
type Answer = Callable[[Exchange], Exchange]
HOST = "a.example"


@pytest.fixture(scope="module")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ca")


@pytest.fixture(scope="module")
def performer(confdir: Path) -> ProxyServer:
    return ProxyServer(confdir=confdir)


@dataclass(slots=True)
class Got:
    """What came on one stream."""

    fields: Fields = field(default_factory=list)
    body: bytes = b""
    trailers: Fields = field(default_factory=list)
    ended: bool = False
    reset: bool = False


@dataclass(slots=True)
class Client:
    """A connection of HTTP/2; `ask` sends a request, `read` reads until all streams are over."""

    end: ssl.SSLSocket
    machine: H2Connection
    streams: dict[int, Got] = field(default_factory=dict)

    def ask(self, path: str, body: bytes = b"", *, more: Fields | None = None) -> Got:
        number = self.machine.get_next_available_stream_id()
        head = [(":method", "POST" if body else "GET"), (":scheme", "https"), (":path", path)]
        head += [(":authority", HOST), *(more or [])]
        self.machine.send_headers(number, head, end_stream=not body)
        if body:
            self.machine.send_data(number, body, end_stream=True)
        self.end.sendall(self.machine.data_to_send())
        self.streams[number] = got = Got()
        return got

    def read(self) -> None:
        while not all(each.ended or each.reset for each in self.streams.values()):
            data = self.end.recv(1 << 16)
            assert data, "the connection has ended"
            for event in self.machine.receive_data(data):
                self._take(event)
            self.end.sendall(self.machine.data_to_send())

    def _take(self, event: object) -> None:
        match event:
            case ResponseReceived() | TrailersReceived():
                got = self.streams[event.stream_id]
                into = got.trailers if isinstance(event, TrailersReceived) else got.fields
                into += [(str(name), str(value)) for name, value in event.headers]
            case DataReceived():
                self.streams[event.stream_id].body += event.data
                size = event.flow_controlled_length
                self.machine.acknowledge_received_data(size, event.stream_id)
            case StreamEnded():
                self.streams[event.stream_id].ended = True
            case StreamReset():
                self.streams[event.stream_id].reset = True


def in_turn(*answers: Answer) -> Script:
    """Give the nth request the nth answer."""
    left = iter(answers)
    return Script(lambda exchange: next(left)(exchange))


@contextmanager
def client(stage: RunListener, confdir: Path) -> Iterator[Client]:
    with dial(stage) as end:
        end.sendall(f"CONNECT {HOST}:443 HTTP/1.1\r\n\r\n".encode())
        heard(end, b"\r\n\r\n")
        with trusting(confdir, "h2").wrap_socket(end, server_hostname=HOST) as tunnel:
            assert tunnel.selected_alpn_protocol() == "h2"
            machine = H2Connection(H2Configuration(header_encoding="latin-1"))
            machine.initiate_connection()
            tunnel.sendall(machine.data_to_send())
            yield Client(tunnel, machine)


def test_streams_have_heads_bodies_and_trailers_and_are_requests_of_their_host(
    performer: ProxyServer, confdir: Path
) -> None:
    trailers = (("grpc-status", "0"),)
    script = in_turn(
        say(b"one", b"two", headers=(("X-A", "1"), ("Connection", "keep-alive")), gap=0.01),
        say(b"\0\0\0\0\5hello", trailers=trailers, version="HTTP/2.0"),
    )
    with on_stage(performer, script) as stage, client(stage, confdir) as agent:
        first = agent.ask("/v1?q=1", more=[("cookie", "a=1"), ("cookie", "b=2")])
        agent.read()
        second = agent.ask("/pkg.Service/Method", b"\0\0\0\0\3abc", more=[("te", "trailers")])
        agent.read()
    assert (first.fields, first.body, first.ended) == (
        [(":status", "200"), ("x-a", "1")],
        b"onetwo",
        True,
    )
    assert (second.body, second.trailers) == (b"\0\0\0\0\5hello", [*trailers])
    one, two = (exchange.request for exchange in script.asked)
    assert (one.method, one.url) == ("GET", f"https://{HOST}/v1?q=1")
    assert dict(one.headers)["cookie"] == "a=1; b=2"
    assert (two.method, two.url) == ("POST", f"https://{HOST}/pkg.Service/Method")
    assert two.body == b"\0\0\0\0\3abc"
    assert dict(two.headers)["te"] == "trailers"
    assert stage.untrusted == {}


def test_an_answer_larger_than_every_window_comes_complete_beside_others(
    performer: ProxyServer, confdir: Path
) -> None:
    large = bytes(range(256)) * 4096  # 1 MB; the windows have 64 kB
    script = Script(say(large))
    with on_stage(performer, script) as stage, client(stage, confdir) as agent:
        streams = [agent.ask(f"/{n}") for n in range(3)]
        agent.read()
    assert [each.body == large for each in streams] == [True] * 3


@pytest.mark.parametrize("error", ["reset: peer closed connection", "eof: the server closed it"])
def test_an_answer_that_breaks_off_resets_its_stream_alone(
    error: str, performer: ProxyServer, confdir: Path
) -> None:
    headers = (("Content-Length", "9"),)
    script = in_turn(say(b"par", error=error, headers=headers), fail(error), say(b"all"))
    with on_stage(performer, script) as stage, client(stage, confdir) as agent:
        cut = agent.ask("/1")
        agent.read()
        none = agent.ask("/2")
        agent.read()
        whole = agent.ask("/3")
        agent.read()
    assert (cut.body, cut.reset) in ((b"par", True), (b"", True))  # a reset may pass what is unread
    assert (none.fields, none.reset) == ([], True)
    assert (whole.body, whole.ended) == (b"all", True)


def test_bytes_that_are_no_http2_end_the_connection(performer: ProxyServer, confdir: Path) -> None:
    with on_stage(performer, Script()) as stage, dial(stage) as end:
        end.sendall(f"CONNECT {HOST}:443 HTTP/1.1\r\n\r\n".encode())
        heard(end, b"\r\n\r\n")
        with trusting(confdir, "h2").wrap_socket(end, server_hostname=HOST) as tunnel:
            tunnel.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while tunnel.recv(1 << 16):
                pass


def test_an_agent_that_leaves_ends_its_streams(performer: ProxyServer, confdir: Path) -> None:
    script = Script(say(b"late", gap=60.0))
    with on_stage(performer, script) as stage:
        with client(stage, confdir) as agent:
            agent.ask("/1")
            eventually(lambda: len(script.asked) == 1)
            agent.end.shutdown(socket.SHUT_RDWR)
        eventually(lambda: not stage.connections)
