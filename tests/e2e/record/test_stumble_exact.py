"""What a raw server says byte for byte is what an agent gets live, recorded and replayed.

One agent asks for every answer below, each on a connection of its own, in the clear and over TLS.
Where the connection stays it then asks for one more on it, so that a byte between the two is seen.
"""

import asyncio
import gzip
import json
import socket
import socketserver
import ssl
import struct
import sys
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import brotli
import h2.connection
import pytest
import zstandard

from tests.clients.test_stumble_tee import Desk
from tests.integration.recorder.test_recorder_h2 import speaking_h2
from tests.support.agents.mcp_tee_client import ROOT
from tests.support.servers.raw_servers import (
    listening,
    server_ca,
    server_tls,
)
from traces.tape.reader import read_tape

LIMIT = 240.0
STUMBLE = (sys.executable, "-m", "stumble")
AGENT = (sys.executable, str(ROOT / "tests" / "support" / "agents" / "raw_socket_agent.py"))
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
SAID = b'{"id": 1, "total": 1250.40}' * 20
EVENTS = b"9\r\ndata: a\n\n\r\n" + b"b\r\ndata: b c\n\n\r\n"
FAILED = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'

pytestmark = pytest.mark.timeout(LIMIT)


def whole(body: bytes, *fields: bytes, status: bytes = b"200 OK") -> bytes:
    head = b"".join(field + b"\r\n" for field in fields)
    return b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n\r\n%b" % (status, head, len(body), body)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@dataclass(frozen=True, slots=True)
class Case:
    """What is said, in pieces that are sent apart, and how the connection goes on."""

    said: tuple[bytes, ...]
    end: str = "stays"
    method: str = "GET"
    replayed: bytes | None = None
    """What a replay says, where it is not the same."""

    @property
    def all(self) -> bytes:
        return b"".join(self.said)


CASES: Mapping[str, Case] = {
    "plain": Case((whole(SAID),)),
    "reason": Case((whole(b"x", status=b"402 Pay, Please"),)),
    "no reason": Case((whole(b"x", status=b"200 "),)),
    "teapot": Case((whole(b"short and stout", status=b"418 I'm a teapot"),)),
    "order and case": Case((whole(b"x", b"X-b: 2", b"x-A: 1", b"CONTENT-TYPE: a/b", b"x-b: 3"),)),
    "twice": Case((whole(b"x", b"Link: <a>", b"Link: <b>", b"link: <c>", b"Vary: *"),)),
    "cookies": Case(  # no tape holds their values
        (whole(b"x", b"Set-Cookie: a=1; Path=/", b"Set-Cookie: b=2"),),
        replayed=whole(b"x", b"Set-Cookie: a=RDk1Z; Path=/", b"Set-Cookie: b=RDk2Z"),
    ),
    "latin": Case((whole(b"x", b"X-Name: caf\xe9"),)),
    "empty field": Case((whole(b"x", b"X-Nothing: "),)),
    "gzip": Case((whole(gzip.compress(SAID), b"Content-Encoding: gzip"),)),
    "br": Case((whole(brotli.compress(SAID), b"Content-Encoding: br"),)),
    "zstd": Case((whole(zstandard.compress(SAID), b"Content-Encoding: zstd"),)),
    "deflate": Case((whole(zlib.compress(SAID), b"Content-Encoding: deflate"),)),
    "no gzip": Case((whole(b"this is no gzip", b"Content-Encoding: gzip"),)),
    "any byte": Case((whole(bytes(range(256)) * 8),)),
    "empty": Case((whole(b""),)),
    "chunks": Case((CHUNKED, EVENTS[:14], EVENTS[14:], b"0\r\n\r\n")),
    "chunks together": Case((CHUNKED + EVENTS + b"0\r\n\r\n",)),
    "chunked gzip": Case(
        (
            CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"),
            chunk(gzip.compress(SAID)[:7]),
            chunk(gzip.compress(SAID)[7:]) + b"0\r\n\r\n",
        )
    ),
    "trailers": Case((CHUNKED + EVENTS, b"0\r\nX-Sum: 77\r\nx-More: 1\r\n\r\n")),
    "error in the stream": Case((CHUNKED, EVENTS, chunk(FAILED) + b"0\r\n\r\n")),
    "204": Case((b"HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n",)),
    "304": Case((b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 99\r\n\r\n',)),
    "head": Case((b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n",), method="HEAD"),
    "head chunked": Case((CHUNKED,), method="HEAD"),
    "103": Case(
        (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", whole(SAID)), replayed=whole(SAID)
    ),
    "close": Case((whole(b"bye", b"Connection: close"),), "end"),
    "to the end": Case((b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", SAID, SAID), "end"),
    "1.0": Case((b"HTTP/1.0 200 OK\r\nContent-Type: a/b\r\n\r\nold", b"times"), "end"),
    "fin, no answer": Case((), "end"),
    "rst, no answer": Case((), "reset"),
    "fin after a head": Case((CHUNKED,), "end"),
    "fin after a chunk": Case((CHUNKED, EVENTS[:14]), "end"),
    "fin after two": Case((CHUNKED, EVENTS), "end"),
    "rst after a chunk": Case((CHUNKED, EVENTS[:14]), "reset"),
    "rst after two": Case((CHUNKED + EVENTS,), "reset"),
    "fin, short": Case((b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf",), "end"),
    "rst, short": Case((b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf",), "reset"),
    "silence": Case((CHUNKED, EVENTS), "silence"),
    "silence, no answer": Case((), "silence"),
    "large": Case((whole(SAID * 2000),)),
}
LAST = whole(b"the end")


class Raw(socketserver.ThreadingTCPServer):
    """Says what it is asked for, and nothing else; the path is the number of the case."""

    daemon_threads = True
    request_queue_size = 256
    tls: ssl.SSLContext | None = None

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        line, address = super().get_request()
        if self.tls is not None:
            line = self.tls.wrap_socket(line, server_side=True, do_handshake_on_connect=False)
        return line, address

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Nothing: it would send an end before a reset."""


class Speaks(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        line: socket.socket = self.request
        with line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while (asked := head(line)) != b"":
                path = asked.split(b" ")[1]
                if path == b"/last":
                    line.sendall(LAST)
                    continue
                case = list(CASES.values())[int(path[1:])]
                for piece in case.said:
                    line.sendall(piece)
                    time.sleep(0.02)  # so that it goes out, and is read, by itself
                if case.end == "end":
                    return
                if case.end == "reset":
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return


def head(line: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        try:
            piece = line.recv(1)
        except OSError:
            return b""
        if not piece:
            return b""
        data += piece
    return data


@contextmanager
def speaking(tls: ssl.SSLContext | None = None) -> Iterator[int]:
    with Raw(("127.0.0.1", 0), Speaks) as server:
        server.tls = tls
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(10)


type Heard = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Runs:
    """What the agent heard directly, while it was recorded, and of the tape."""

    direct: Heard
    recorded: Heard
    replayed: Heard
    folder: Path
    said: str


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("raw")
    desk = Desk(folder)
    env = {"SSL_CERT_FILE": str(server_ca()), "SSL_CERT_DIR": str(folder / "none")}
    heard = [folder / f"{name}.json" for name in ("direct", "recorded", "replayed")]
    with speaking() as port, speaking(server_tls()) as secure:
        origins = {"http": f"http://127.0.0.1:{port}", "https": f"https://localhost:{secure}"}
        words = [
            (*AGENT, str(asked(folder, origins, replayed)), "heard.json")
            for replayed in (False, True)
        ]
        code, _, err = desk.run(*words[0], env=env)
        assert code == 0, err
        (folder / "heard.json").rename(heard[0])
        code, _, err = desk.run(*STUMBLE, "record", "-o", "a.tape", "--", *words[0], env=env)
        assert code == 0, err
        (folder / "heard.json").rename(heard[1])
    code, _, said = desk.run(*STUMBLE, "replay", "a.tape", "--in-place", "--", *words[1], env=env)
    assert code == 0, said
    (folder / "heard.json").rename(heard[2])
    direct, recorded, replayed = (json.loads(each.read_text()) for each in heard)
    return Runs(direct, recorded, replayed, folder, said)


def asked(folder: Path, origins: Mapping[str, str], replayed: bool) -> Path:
    """What the agent is to ask for, and how many bytes it is to read."""
    path = folder / f"asked-{replayed}.json"
    asks = []
    for n, (name, case) in enumerate(CASES.items()):
        size = len(case.all if case.replayed is None or not replayed else case.replayed)
        asks += [
            (f"{name}, {s}", f"{o}/{n}", case.method, size, case.end) for s, o in origins.items()
        ]
    path.write_text(json.dumps(asks))
    return path


@pytest.mark.many(12)
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("name", CASES)
def test_what_is_said_is_heard(runs: Runs, name: str, scheme: str) -> None:
    case, key = CASES[name], f"{name}, {scheme}"
    said = (case.all.decode("latin-1"), case.end)
    replayed = said if case.replayed is None else (case.replayed.decode("latin-1"), case.end)
    assert tuple(runs.direct[key]) == said, "the server of this test says something else"
    assert tuple(runs.recorded[key]) == said
    assert tuple(runs.replayed[key]) == replayed


def test_the_tape_has_all_of_it_and_the_replay_needed_nobody(runs: Runs) -> None:
    tape = read_tape(runs.folder / "a.tape")
    lasts = sum(x.request.url.endswith("/last") for x in tape.exchanges)
    assert len(tape.exchanges) - lasts == 2 * len(CASES)
    assert lasts == 2 * sum(case.end == "stays" for case in CASES.values())
    assert "0 upstream, 0 diverged" in runs.said


def test_what_was_said_over_http_2_is_said_over_http_1_and_show_says_so(
    tmp_path: Path,
) -> None:
    async def reply(
        machine: h2.connection.H2Connection, stream: int, writer: asyncio.StreamWriter
    ) -> None:
        machine.send_headers(stream, [(":status", "200"), ("x-n", str(stream))])
        machine.send_data(stream, b"two")
        machine.send_headers(stream, [("x-sum", "7")], end_stream=True)

    async def main() -> tuple[str, str, str]:
        tls, desk = server_tls("h2.test", h2=True), Desk(tmp_path)
        env = {"SSL_CERT_FILE": str(server_ca()), "SSL_CERT_DIR": str(tmp_path / "none")}

        async def said(*words: str) -> str:
            code, out, err = await asyncio.to_thread(desk.run, *STUMBLE, *words, env=env)
            assert code == 0, err
            return out

        async with listening(speaking_h2(reply), tls=tls) as server:
            shown = ("-w", "%{http_version}", f"https://localhost:{server.port}/")
            agent = ("sh", "-c", 'exec curl -s --cacert "$SSL_CERT_FILE" "$@"', "sh")
            first = await said("record", "-o", "a.tape", "--", *agent, "--http2", *shown)
        again = await said("replay", "a.tape", "--", *agent, "-i", "--raw", *shown)
        return first, again, await said("show", "a.tape", "--exchanges")

    first, again, shown = asyncio.run(main())
    assert first == "two2"
    assert again.partition("HTTP/1.1 200 \n")[2].splitlines() == [
        "x-n: 1", "transfer-encoding: chunked", "", "3", "two", "0", "x-sum: 7", "", "1.1",
    ]  # fmt: skip
    assert "(HTTP/2.0, replayed over HTTP/1.1" in shown
