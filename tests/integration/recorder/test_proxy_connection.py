"""How agents come in: proxy form, direct form, CONNECT, TLS, pipelines, and nonsense."""

import os
import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from recorder.proxy.server import ProxyServer
from tests.support.servers.replay_server_thread import (
    GET,
    INSIDE,
    WAIT,
    Script,
    dial,
    eventually,
    heard,
    on_stage,
    plain_and_tls,
    reach,
    rest,
    say,
    secure,
    trusting,
)
from traces.model import Exchange, Request


@pytest.fixture(scope="module")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ca")


@pytest.fixture(scope="module")
def performer(confdir: Path) -> ProxyServer:
    return ProxyServer(confdir=confdir)


def test_all_ways_to_ask_name_the_same_url(performer: ProxyServer, confdir: Path) -> None:
    script = Script(say(b"hi"))
    with on_stage(performer, script) as stage:
        for text in (
            b"GET http://a.example/x?y=1 HTTP/1.1\r\nHost: ignored\r\n",
            b"GET http://a.example:80/x?y=1 HTTP/1.1\r\nHost: a.example\r\n",
            b"GET /x?y=1 HTTP/1.1\r\nHost: a.example\r\n",
            b"GET http://a.example?y=1 HTTP/1.1\r\nHost: a.example\r\n",
            b"OPTIONS * HTTP/1.1\r\nHost: a.example:81\r\n",
        ):
            with dial(stage) as end:
                end.sendall(text + b"Connection: close\r\n\r\n")
                assert rest(end).endswith(b"\r\n2\r\nhi\r\n0\r\n\r\n")
        with secure(stage, confdir) as tunnel:
            tunnel.sendall(INSIDE)
            heard(tunnel, b"0\r\n\r\n")
        with secure(stage, confdir, "[::1]") as tunnel:
            tunnel.sendall(INSIDE)
            heard(tunnel, b"0\r\n\r\n")
        with dial(stage) as end:
            end.sendall(b"CONNECT a.example:80 HTTP/1.1\r\n\r\n" + INSIDE)
            heard(end, b"0\r\n\r\n")
        with secure(stage, confdir) as tunnel:
            tunnel.sendall(b"GET http://other.example/x HTTP/1.1\r\nHost: other.example\r\n\r\n")
            heard(tunnel, b"0\r\n\r\n")
        here = stage.url
        with dial(stage) as end:
            end.sendall(b"GET /x HTTP/1.0\r\n\r\n")
            rest(end)
    assert [x.request.url for x in script.asked] == [
        "http://a.example/x?y=1",
        "http://a.example/x?y=1",
        "http://a.example/x?y=1",
        "http://a.example/?y=1",
        "http://a.example:81",
        "https://a.example/x",
        "https://[::1]/x",
        "http://a.example/x",
        "https://a.example/x",
        f"{here}/x",
    ]
    assert [x.seq for x in script.asked] == list(range(1, 11))
    assert [x.connection for x in script.asked] == list(range(1, 11))


@plain_and_tls
def test_a_request_is_understood_however_it_is_cut_into_segments(
    performer: ProxyServer, confdir: Path, tls: bool
) -> None:
    script = Script(say(b"hi"))
    request = (
        b"POST http://a.example/x HTTP/1.1\r\nHost: a.example\r\nX-Case: Kept \r\n"
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10;ext=1\r\n0123456789abcdef\r\n"
        b"0\r\nX-Trailer: dropped\r\n\r\n"
    )
    with on_stage(performer, script) as stage:
        end, _ = reach(stage, confdir, tls)
        with end:
            for at in range(len(request)):
                end.sendall(request[at : at + 1])
            heard(end, b"0\r\n\r\n")
    [asked] = script.asked
    assert asked.request == Request(
        method="POST",
        url=f"{'https' if tls else 'http'}://a.example/x",
        headers=(("Host", "a.example"), ("X-Case", "Kept"), ("Transfer-Encoding", "chunked")),
        body=b"abc0123456789abcdef",
    )


def test_connect_and_client_hello_may_share_a_segment(
    performer: ProxyServer, confdir: Path
) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    agent = trusting(confdir).wrap_bio(incoming, outgoing, server_hostname="a.example")
    with pytest.raises(ssl.SSLWantReadError):
        agent.do_handshake()
    with on_stage(performer, Script(say(b"hi"))) as stage, dial(stage) as end:
        end.sendall(b"CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n" + outgoing.read())
        heard(end, b"\r\n\r\n")
        while agent.version() is None:
            incoming.write(end.recv(1 << 16))
            with suppress(ssl.SSLWantReadError):
                agent.do_handshake()
        # The end of the handshake and the request share one, too.
        agent.write(INSIDE)
        end.sendall(outgoing.read())
        answer = b""
        while not answer.endswith(b"0\r\n\r\n"):
            incoming.write(end.recv(1 << 16))
            with suppress(ssl.SSLWantReadError):
                while piece := agent.read(1 << 16):
                    answer += piece
    assert answer.endswith(b"\r\n\r\n2\r\nhi\r\n0\r\n\r\n")


@plain_and_tls
def test_pipelined_requests_are_answered_in_their_order(
    performer: ProxyServer, confdir: Path, tls: bool
) -> None:
    def answer(x: Exchange) -> Exchange:
        name = x.request.url.rpartition("/")[2]
        return say(name.encode(), gap=0.05 if name == "n1" else 0.0)(x)

    script = Script(answer)
    with on_stage(performer, script) as stage:
        end, request = reach(stage, confdir, tls)
        with end:
            end.sendall(b"".join([request.replace(b"/x", b"/n%d" % n) for n in range(100)]))
            bodies = [heard(end, b"0\r\n\r\n").splitlines()[-3] for _ in range(100)]
    assert bodies == [b"n%d" % n for n in range(100)]
    assert [x.stream for x in script.got] == list(range(1, 101))


def test_a_tunnel_waits_for_the_answer_before_it(performer: ProxyServer) -> None:
    script = Script(say(b"hi", gap=0.05))
    with on_stage(performer, script) as stage, dial(stage) as end:
        end.sendall(GET + b"CONNECT b.example:80 HTTP/1.1\r\n\r\n" + INSIDE)
        heard(end, b"0\r\n\r\n")
        assert heard(end, b"\r\n\r\n").startswith(b"HTTP/1.1 200 Connection established")
        heard(end, b"0\r\n\r\n")
        end.sendall(INSIDE + b"CONNECT c.example:80 HTTP/1.1\r\n\r\n")
        heard(end, b"0\r\n\r\n")
        assert rest(end).startswith(b"HTTP/1.1 400 Bad Request")
    assert [x.request.url for x in script.got] == [
        "http://a.example/x",
        "http://b.example/x",
        "http://b.example/x",
    ]


def test_half_a_client_hello_may_come_while_an_answer_is_under_way(
    performer: ProxyServer, confdir: Path
) -> None:
    outgoing = ssl.MemoryBIO()
    agent = trusting(confdir).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="a.example")
    with suppress(ssl.SSLWantReadError):
        agent.do_handshake()
    hello = outgoing.read()
    with on_stage(performer, Script(say(b"hi", gap=0.05))) as stage, dial(stage) as end:
        end.sendall(GET + b"CONNECT a.example:443 HTTP/1.1\r\n\r\n" + hello[:10])
        heard(end, b"0\r\n\r\n")
        heard(end, b"established\r\n\r\n")
        end.sendall(hello[10:])
        assert end.recv(1) == b"\x16"


@plain_and_tls
def test_an_agent_that_waits_for_leave_to_send_its_body_gets_it(
    performer: ProxyServer, confdir: Path, tls: bool
) -> None:
    script = Script(say(b"hi"))
    with on_stage(performer, script) as stage:
        end, _ = reach(stage, confdir, tls)
        with end:
            for body in (b"abc", b"defg"):
                end.sendall(
                    b"POST http://a.example/ HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(body)
                )
                assert heard(end, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
                end.sendall(body)
                assert heard(end, b"0\r\n\r\n").startswith(b"HTTP/1.1 200 OK\r\n")
    assert [x.request.body for x in script.asked] == [b"abc", b"defg"]


def test_an_offer_to_switch_to_http2_is_not_taken_and_loses_no_body(
    performer: ProxyServer,
) -> None:
    script = Script(say(b"hi"))
    with on_stage(performer, script) as stage, dial(stage) as end:
        for _ in range(2):
            end.sendall(
                b"POST http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
                b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                b"HTTP2-Settings: AA\r\n\r\nabc"
            )
            heard(end, b"0\r\n\r\n")
    assert [x.request.body for x in script.asked] == [b"abc", b"abc"]


WEBSOCKET = (
    b"GET http://a.example/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def test_a_websocket_is_answered_by_a_tap_or_refused(performer: ProxyServer) -> None:
    script = Script()
    with on_stage(performer, script) as stage, dial(stage) as end:
        end.sendall(WEBSOCKET)
        assert heard(end, b"goes out\n").startswith(b"HTTP/1.1 426 Upgrade Required\r\n")
    assert [(x.answered_by, x.error) for x in script.got] == [
        ("refused", "refused: no WebSocket goes out")
    ]
    with on_stage(performer, Script(say(status=426))) as stage, dial(stage) as end:
        end.sendall(WEBSOCKET + GET)
        for _ in range(2):
            assert heard(end, b"0\r\n\r\n").startswith(b"HTTP/1.1 426 OK\r\n")


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x00\x05hello",
    ],
)
def test_what_is_no_request_is_told_so(performer: ProxyServer, sent: bytes) -> None:
    script = Script(say(b"hi"))
    with on_stage(performer, script) as stage, dial(stage) as end:
        end.sendall(GET + sent)
        heard(end, b"0\r\n\r\n")
        assert rest(end).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert len(script.got) == 1


def test_a_head_of_more_than_a_megabyte_is_too_large(performer: ProxyServer) -> None:
    script = Script(say(b"hi"))
    with on_stage(performer, script) as stage, dial(stage) as end:
        end.sendall(GET[:-2] + b"X: " + b"x" * 900_000 + b"\r\n\r\n")
        heard(end, b"0\r\n\r\n")
        end.sendall(GET[:-2] + b"X: " + b"x" * 1_100_000)
        assert rest(end).startswith(b"HTTP/1.1 431 ")
    assert len(script.got) == 1


def test_large_bodies_are_no_large_heads(performer: ProxyServer) -> None:
    body = os.urandom(5_000_000)
    script = Script(say(b"hi"))
    head = b"POST http://a.example/ HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
    with on_stage(performer, script) as stage, dial(stage) as end:
        end.sendall(head + body)
        heard(end, b"0\r\n\r\n")
    assert script.asked[0].request.body == body


def test_an_agent_that_speaks_no_http_is_refused_by_alert(
    performer: ProxyServer, confdir: Path
) -> None:
    with on_stage(performer, Script()) as stage, dial(stage) as end:
        end.sendall(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        heard(end, b"\r\n\r\n")
        with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
            trusting(confdir, "spdy/3").wrap_socket(end, server_hostname="a.example")
    assert stage.untrusted == {"a.example:443": "the agent speaks only spdy/3"}
    with on_stage(performer, Script()) as stage, dial(stage) as end:
        end.sendall(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        heard(end, b"\r\n\r\n")
        both = trusting(confdir, "h2", "http/1.1")
        with both.wrap_socket(end, server_hostname="a.example") as tunnel:
            assert tunnel.selected_alpn_protocol() == "http/1.1"
    assert stage.untrusted == {}


def test_an_agent_that_does_not_trust_us_is_known(performer: ProxyServer) -> None:
    with on_stage(performer, Script()) as stage, dial(stage) as end:
        end.sendall(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        heard(end, b"\r\n\r\n")
        with pytest.raises(ssl.SSLCertVerificationError):
            ssl.create_default_context().wrap_socket(end, server_hostname="a.example")
        assert eventually(lambda: stage.untrusted)
    assert "UNKNOWN_CA" in stage.untrusted["a.example:443"].upper().replace(" ", "_")


def test_bytes_that_are_no_tls_end_the_tunnel(performer: ProxyServer, confdir: Path) -> None:
    script = Script(say(b"one", b"two", gap=60))
    with on_stage(performer, script) as stage:
        tunnel = secure(stage, confdir)
        tunnel.sendall(INSIDE)
        heard(tunnel, b"\r\n\r\n")
        with socket.socket(fileno=tunnel.detach()) as end:
            end.settimeout(WAIT)
            end.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)
            rest(end)
    assert [x.error for x in script.got] == ["cancelled"]
    assert list(stage.untrusted) == ["a.example:443"]
