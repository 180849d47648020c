"""What passes through the proxy arrives as it was sent, and is told to the taps as it was."""

import asyncio
import gzip
import itertools
import ssl
import statistics
import time

import httpx
import pytest

from recorder.event_loop import run_event_loop
from recorder.proxy.recording import start_recording_proxy
from tests.support.servers.raw_servers import (
    Notes,
    confdir,
    converse,
    curl,
    listening,
    recording,
    says,
    server_tls,
    serving,
)
from traces.model import Trajectory
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

PACKED = gzip.compress(b"the answer is forty-two. " * 40)
PLAIN = (
    b"HTTP/1.1 203 Sort of OK\r\nX-Second: b\r\nContent-Encoding: gzip\r\n"
    b"x-first: a\r\nX-Second: c\r\nContent-Length: %d\r\n\r\n%s" % (len(PACKED), PACKED)
)
EVENTS = 20
GAP = 0.02


@pytest.mark.programs
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_exchange_is_recorded_byte_for_byte(scheme: str, capfd) -> None:
    async def main() -> None:
        notes = Notes()
        tls = server_tls() if scheme == "https" else None
        async with serving(says(PLAIN), tls=tls) as server, recording(notes) as proxy:
            url = f"{scheme}://localhost:{server.port}/v1/x?q=%C3%A4&q=2"
            code, got = await curl(url, "-d", '{"n": 1}', "-H", "aUThorization: k", through=proxy)
            exchange = await notes.only()
        assert (code, got) == (0, PACKED)
        assert server.requests[0].startswith(b"POST /v1/x?q=%C3%A4&q=2 HTTP/1.1\r\n")
        assert b"proxy-connection" not in server.requests[0].lower()

        request, response = exchange.request, exchange.response
        assert (request.method, request.url, request.body) == ("POST", url, b'{"n": 1}')
        assert ("aUThorization", "k") in request.headers
        assert response is not None
        assert (response.status, response.reason, response.version) == (
            203,
            "Sort of OK",
            "HTTP/1.1",
        )
        assert response.headers == (
            ("X-Second", "b"),
            ("Content-Encoding", "gzip"),
            ("x-first", "a"),
            ("X-Second", "c"),
            ("Content-Length", str(len(PACKED))),
        )
        assert response.body == PACKED
        assert exchange.error is None
        assert response.ended is not None
        assert 0 < exchange.started < response.at <= response.chunks[0].at <= response.ended < 20

    run_event_loop(main())
    assert capfd.readouterr() == ("", "")


@pytest.mark.alone
def test_every_piece_of_a_stream_is_passed_on_at_once_and_timed() -> None:
    sent: list[float] = []

    async def stream(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for number in range(EVENTS):
            event = b"data: %d\n\n" % number
            sent.append(time.monotonic())
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await asyncio.sleep(GAP)
        writer.write(b"0\r\n\r\n")

    async def main() -> None:
        notes, came = Notes(), list[float]()
        async with serving(stream, tls=server_tls()) as server, recording(notes) as proxy:
            trust = ssl.create_default_context(cafile=proxy.certificate)
            async with (
                httpx.AsyncClient(proxy=proxy.url, verify=trust) as client,
                client.stream("GET", f"https://localhost:{server.port}/") as response,
            ):
                async for _ in response.aiter_raw():
                    came.append(time.monotonic())
            exchange = await notes.only()
        assert len(came) == EVENTS
        assert exchange.response is not None
        chunks = exchange.response.chunks
        assert [chunk.data for chunk in chunks] == [b"data: %d\n\n" % n for n in range(EVENTS)]
        for times in (came, [chunk.at for chunk in chunks]):
            wrong = [
                abs((b - a) - (d - c))
                for (a, b), (c, d) in zip(
                    itertools.pairwise(times), itertools.pairwise(sent), strict=True
                )
            ]
            assert statistics.median(wrong) < 0.002

    run_event_loop(main())


def test_a_connection_is_kept_and_numbered() -> None:
    async def main() -> None:
        notes = Notes()
        async with serving(says(PLAIN)) as server, recording(notes) as proxy:
            url = f"http://localhost:{server.port}/"
            async with httpx.AsyncClient(proxy=proxy.url) as client:
                await client.get(url)
                await client.get(url)
            async with httpx.AsyncClient(proxy=proxy.url) as client:
                await client.get(url)
        assert [exchange.connection for exchange in notes.over] == [1, 1, 2]
        assert [exchange.seq for exchange in notes.over] == [1, 2, 3]
        assert server.accepts == 2

    run_event_loop(main())


def test_twenty_requests_at_once() -> None:
    gate = asyncio.Event()

    async def main() -> None:
        waiting = 0

        async def meet(request: bytes, writer: asyncio.StreamWriter) -> None:
            nonlocal waiting
            waiting += 1
            if waiting == 20:
                gate.set()
            await gate.wait()
            name = request.split()[1]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(name), name))

        notes = Notes()
        async with serving(meet, tls=server_tls()) as server, recording(notes) as proxy:
            trust = ssl.create_default_context(cafile=proxy.certificate)
            async with httpx.AsyncClient(proxy=proxy.url, verify=trust) as client:
                urls = [f"https://localhost:{server.port}/{n}" for n in range(20)]
                answers = await asyncio.gather(*map(client.get, urls))
        assert [answer.text for answer in answers] == [f"/{n}" for n in range(20)]
        assert sorted(exchange.seq for exchange in notes.over) == list(range(1, 21))
        for exchange in notes.over:
            assert exchange.response is not None
            assert exchange.request.url.endswith(exchange.response.body.decode())

    run_event_loop(main())


@pytest.mark.programs
def test_a_host_is_dialled_where_it_really_is_under_its_own_name() -> None:
    async def main() -> None:
        notes = Notes()
        name = "api.example.test"
        urls = (f"https://{name}/1", f"https://{name}/2")
        async with (
            serving(says(PLAIN), tls=server_tls(name)) as server,
            recording(notes, hosts={name: ("127.0.0.1", server.port)}) as here,
        ):
            code, got = await curl(*urls, "-o", "-", "-o", "-", through=here)
        assert (code, got) == (0, PACKED * 2)
        assert server.names == [name]
        assert server.accepts == 1
        assert b"\r\nHost: api.example.test\r\n" in server.requests[0]
        assert notes.over[0].request.url == "https://api.example.test/1"

    run_event_loop(main())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_request_in_absolute_form_is_served(scheme: str) -> None:
    async def main() -> None:
        notes = Notes()
        tls = server_tls() if scheme == "https" else None
        async with serving(says(PLAIN), tls=tls) as server, recording(notes) as proxy:
            url = f"{scheme}://localhost:{server.port}/path"
            request = f"GET {url} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            got, end = await converse(proxy.port, request.encode())
            exchange = await notes.only()
        assert (got, end) == (PLAIN, "fin")
        assert server.requests[0].startswith(b"GET /path HTTP/1.1\r\n")
        assert exchange.request.url == url

    run_event_loop(main())


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ],
)
def test_an_answer_without_a_body_ends_with_its_head(method: str, answer: bytes) -> None:
    async def main() -> None:
        notes = Notes()
        async with serving(says(answer)) as server, recording(notes) as proxy:
            request = f"{method} http://localhost:{server.port}/ HTTP/1.1\r\nConnection: close\r\n"
            got, _ = await converse(proxy.port, f"{request}Host: localhost\r\n\r\n".encode())
            exchange = await notes.only()
        assert got == answer
        assert exchange.response is not None
        assert exchange.response.chunks == () == tuple(notes.chunks)
        assert exchange.response.ended is not None

    run_event_loop(main())


@pytest.mark.programs
def test_an_answer_that_ends_with_its_connection_is_whole() -> None:
    async def until_fin(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nall of it")
        writer.close()

    async def main() -> None:
        notes = Notes()
        async with serving(until_fin) as server, recording(notes) as proxy:
            got = await curl(f"http://localhost:{server.port}/", through=proxy)
            exchange = await notes.only()
        assert got == (0, b"all of it")
        assert exchange.error is None
        assert exchange.response is not None
        assert (exchange.response.version, exchange.response.body) == ("HTTP/1.0", b"all of it")

    run_event_loop(main())


@pytest.mark.programs
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_announces_an_answer_and_what_follows_it_pass(scheme: str) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    raw = early + early + head + b"2\r\nhi\r\n0\r\nX-Sum: 1\r\nx-sum: 2\r\n\r\n"

    async def main() -> None:
        notes, tls = Notes(), server_tls() if scheme == "https" else None
        async with serving(says(raw), tls=tls) as server, recording(notes) as proxy:
            url = f"{scheme}://localhost:{server.port}/"
            shown = (url, "-i", "--raw", "--suppress-connect-headers")
            assert await curl(*shown, through=proxy) == await curl(*shown)
            exchange = await notes.only()
        assert exchange.error is None
        assert exchange.response is not None
        assert (exchange.response.status, exchange.response.body) == (200, b"hi")
        assert exchange.response.trailers == (("X-Sum", "1"), ("x-sum", "2"))

    run_event_loop(main())


def test_a_websocket_with_an_extension_unknown_to_us_passes_untouched() -> None:
    upgrade = (
        b"Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    switching = (
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Extensions: x-odd\r\n\r\n"
    )
    oddity = bytes(range(256))  # no frame of the protocol, but no business of ours either

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(switching)
        writer.write(await reader.readexactly(len(oddity)))
        await reader.read()

    async def main() -> None:
        notes = Notes()
        async with listening(echo) as server, recording(notes) as here:
            reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
            writer.write(b"GET http://localhost:%d/ws HTTP/1.1\r\n%s" % (server.port, upgrade))
            assert await reader.readexactly(len(switching)) == switching
            writer.write(oddity)
            assert await reader.readexactly(len(oddity)) == oddity
            writer.close()
            exchange = await notes.only()
        assert exchange.transport == "websocket"
        assert exchange.response is not None
        assert exchange.response.status == 101

    run_event_loop(main())


def test_a_client_that_does_not_trust_us_is_named() -> None:
    async def main() -> None:
        async with serving(says(PLAIN), tls=server_tls()) as server, recording() as proxy:
            async with httpx.AsyncClient(proxy=proxy.url) as client:
                with pytest.raises(httpx.ConnectError):
                    await client.get(f"https://localhost:{server.port}/")
            async with asyncio.timeout(5):
                while not proxy.mistrusted:
                    await asyncio.sleep(0.001)
        assert "trust" in proxy.mistrusted["localhost"]
        assert server.accepts == 0

    run_event_loop(main())


@pytest.mark.programs
def test_two_proxies_in_one_process_do_not_mix() -> None:
    async def main() -> None:
        ours, theirs = Notes(), Notes()
        tls = server_tls()
        async with (
            serving(says(PLAIN), tls=tls) as server,
            recording(ours) as trusting,
            recording(theirs, trusting=False) as wary,
        ):
            url = f"https://localhost:{server.port}/"
            assert await curl(url, through=trusting) == (0, PACKED)
            assert await curl(url, through=wary) == (56, b"")
            assert await curl(url, through=trusting) == (0, PACKED)
        assert [exchange.error for exchange in ours.over] == [None, None]
        assert (await theirs.only()).error == (
            "tls: Certificate verify failed: unable to get local issuer certificate"
        )

    run_event_loop(main())


@pytest.mark.programs
def test_httpx_reaches_an_ipv6_address_and_the_tape_is_readable(tmp_path) -> None:
    """It sends a proxy `GET http://::1:80/`, without brackets."""
    path = tmp_path / "run.tape"

    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nsix")
            writer.close()

        server = await asyncio.start_server(serve, "::1", 0)
        url = f"http://[::1]:{server.sockets[0].getsockname()[1]}/two"
        with TapeWriter(path, Trajectory(id="r", recorded_at=0.0)) as tape:
            async with (
                server,
                recording(tape) as proxy,
                httpx.AsyncClient(proxy=proxy.url) as client,
            ):
                assert (await client.get(url)).text == "six"
        read = read_tape(path)
        assert read.damage == ()
        assert [each.request.url for each in read.exchanges] == [url]

    run_event_loop(main())


def test_the_proxy_does_not_dial_itself() -> None:
    async def main() -> None:
        notes = Notes()
        async with recording(notes) as here:
            code, _ = await curl(f"http://localhost:{here.port}/", through=here)
        assert code == 56
        assert (await notes.only()).error == "refused: this is the proxy itself"

    run_event_loop(main())


def test_all_is_closed_at_the_end() -> None:
    async def main() -> None:
        never = asyncio.Event()

        async def hang(request: bytes, writer: asyncio.StreamWriter) -> None:
            await never.wait()

        notes = Notes()
        before = asyncio.all_tasks()
        async with serving(hang) as server:
            async with recording(notes) as here:
                reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
                writer.write(b"GET http://localhost:%d/ HTTP/1.1\r\nHost: l\r\n\r\n" % server.port)
                while not server.requests:
                    await asyncio.sleep(0.001)
            assert await reader.read() == b""
            writer.close()
            never.set()
            await server.gone.wait()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", here.port)
        assert (await notes.only()).error == "cancelled: eof by the agent"
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == before

    run_event_loop(main())


def test_the_key_of_the_ca_is_secret(tmp_path) -> None:
    async def main() -> None:
        folder = tmp_path / "ca"
        seqs = itertools.count()
        async with start_recording_proxy(TapChain(), confdir=folder, began=0, seqs=seqs) as here:
            assert here.certificate.read_text().startswith("-----BEGIN CERTIFICATE-----")
        assert (folder / "mitmproxy-ca.pem").stat().st_mode & 0o777 == 0o600
        assert confdir() != folder

    run_event_loop(main())
