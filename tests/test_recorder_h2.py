"""HTTP/2 from the agent to us, and on to servers that do or do not speak it."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import h2.config
import h2.connection
import h2.events
import pytest

from recorder.loop import run
from tests.recorder_wire import Notes, curl, listening, recording, reset, says, server_tls, serving

ONE = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-Case: Kept\r\n\r\none"

type Reply = Callable[[h2.connection.H2Connection, int, asyncio.StreamWriter], Awaitable[None]]


def speaking_h2(reply: Reply) -> Callable[..., Awaitable[None]]:
    """A connection that calls `reply` for every request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        machine = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        machine.initiate_connection()
        writer.write(machine.data_to_send())
        while data := await reader.read(65536):
            for event in machine.receive_data(data):
                if isinstance(event, h2.events.StreamEnded):
                    await reply(machine, event.stream_id, writer)
            writer.write(machine.data_to_send())

    return serve


def test_a_server_that_speaks_http_1_is_asked_in_http_1() -> None:
    async def main() -> None:
        notes = Notes()
        async with serving(says(ONE), tls=server_tls()) as server, recording(notes) as proxy:
            url = f"https://localhost:{server.port}/a"
            got = await curl("--http2", "-w", "%{http_version}", url, through=proxy)
            exchange = await notes.only()
        assert got == (0, b"one2")
        assert exchange.stream == 1
        assert exchange.request.url == url
        assert exchange.response is not None
        assert exchange.response.version == "HTTP/1.1"
        assert ("X-Case", "Kept") in exchange.response.headers

    run(main())


def test_streams_and_trailers() -> None:
    async def reply(
        machine: h2.connection.H2Connection, stream: int, writer: asyncio.StreamWriter
    ) -> None:
        machine.send_headers(stream, [(":status", "200"), ("x-n", str(stream))])
        machine.send_data(stream, b"two")
        machine.send_headers(stream, [("x-sum", "7")], end_stream=True)

    async def main() -> None:
        notes = Notes()
        tls = server_tls("h2.test", h2=True)
        async with listening(speaking_h2(reply), tls=tls) as server, recording(notes) as proxy:
            urls = [f"https://localhost:{server.port}/{n}" for n in range(3)]
            outs = ["-o", "-"] * 3
            got = await curl("--http2", *outs, *urls, through=proxy)
        assert got == (0, b"two" * 3)
        assert server.accepts == 1
        assert [exchange.stream for exchange in notes.over] == [1, 3, 5]
        for exchange in notes.over:
            assert exchange.connection == 1
            assert exchange.response is not None
            assert exchange.response.version == "HTTP/2.0"
            assert exchange.response.trailers == (("x-sum", "7"),)

    run(main())


@pytest.mark.parametrize(
    ("end", "code", "error"),
    [
        ("stream", 92, "reset: the server reset the stream ENHANCE_YOUR_CALM"),
        ("reset", 56, "reset: peer closed connection"),
        ("fin", 92, "eof: peer closed connection"),
    ],
)
def test_a_cut_of_a_stream_or_of_its_connection(end: str, code: int, error: str) -> None:
    async def reply(
        machine: h2.connection.H2Connection, stream: int, writer: asyncio.StreamWriter
    ) -> None:
        machine.send_headers(stream, [(":status", "200")])
        machine.send_data(stream, b"tw")
        writer.write(machine.data_to_send())
        await writer.drain()
        await asyncio.sleep(0.05)
        if end == "stream":
            machine.reset_stream(stream, error_code=0xB)
        elif end == "reset":
            reset(writer)
        else:
            writer.close()

    async def main() -> None:
        notes = Notes()
        tls = server_tls("h2.test", h2=True)
        async with listening(speaking_h2(reply), tls=tls) as server, recording(notes) as proxy:
            url = f"https://localhost:{server.port}/"
            assert await curl("--http2", url, through=proxy) == (code, b"tw")
            exchange = await notes.only()
        assert exchange.error == error
        assert exchange.response is not None
        assert exchange.response.body == b"tw"

    run(main())


def test_a_failure_before_the_head_is_no_page_of_ours() -> None:
    async def hang_up(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def main() -> None:
        notes = Notes()
        async with serving(hang_up, tls=server_tls()) as server, recording(notes) as proxy:
            url = f"https://localhost:{server.port}/"
            assert await curl("--http2", url, through=proxy) == (92, b"")
            exchange = await notes.only()
        assert (exchange.error or "").startswith("eof: ")

    run(main())


def test_an_agent_that_cancels_one_stream() -> None:
    async def trickle(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome")

    async def main() -> None:
        notes = Notes()
        async with serving(trickle, tls=server_tls()) as server, recording(notes) as proxy:
            trust = ssl.create_default_context(cafile=proxy.certificate)
            trust.set_alpn_protocols(["h2"])
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(b"CONNECT localhost:%d HTTP/1.1\r\n\r\n" % server.port)
            await reader.readuntil(b"\r\n\r\n")
            await writer.start_tls(trust, server_hostname="localhost")
            machine = h2.connection.H2Connection()
            machine.initiate_connection()
            authority = f"localhost:{server.port}"
            machine.send_headers(
                1,
                [
                    (":method", "GET"),
                    (":path", "/"),
                    (":scheme", "https"),
                    (":authority", authority),
                ],
                end_stream=True,
            )
            writer.write(machine.data_to_send())
            while not notes.chunks:
                machine.receive_data(await reader.read(65536))
            machine.reset_stream(1, error_code=8)
            writer.write(machine.data_to_send())
            exchange = await notes.only()
            writer.close()
        assert (exchange.error or "").startswith("cancelled: ")
        assert exchange.response is not None
        assert exchange.response.body == b"some"

    run(main())
