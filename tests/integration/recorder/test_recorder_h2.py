"""HTTP/2 from the agent to us, and on to servers that do or do not speak it."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import h2.config
import h2.connection
import h2.events
import httpx
import pytest
from hyperframe.frame import GoAwayFrame

from recorder.event_loop import run_event_loop
from tests.support.servers.raw_servers import (
    BOUND,
    Notes,
    curl,
    listening,
    recording,
    reset,
    says,
    server_tls,
    serving,
    wanting_certificates,
)
from traces.model import Chunk, Exchange

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


@pytest.mark.programs
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

    run_event_loop(main())


@pytest.mark.programs
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

    run_event_loop(main())


@pytest.mark.programs
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

    run_event_loop(main())


@pytest.mark.programs
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

    run_event_loop(main())


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

    run_event_loop(main())


def test_streams_that_interleave_end_in_any_order() -> None:
    """Three streams on one connection; each piece of each goes out before the next comes."""
    steps = asyncio.Queue[tuple[int, bytes]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        machine = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        machine.initiate_connection()
        asked = list[int]()
        writer.write(machine.data_to_send())
        while len(asked) < 4 and (data := await reader.read(65536)):
            for event in machine.receive_data(data):
                if isinstance(event, h2.events.StreamEnded):
                    asked.append(event.stream_id or 0)
                    if asked == [1]:  # by which the client learns that one connection does
                        machine.send_headers(1, [(":status", "204")], end_stream=True)
            writer.write(machine.data_to_send())
        asked = asked[1:]
        for stream in asked:
            machine.send_headers(stream, [(":status", "200")])
        for text in (b"a", b"b", b"c"):
            for stream in asked:
                machine.send_data(stream, text, end_stream=text == b"c")
                writer.write(machine.data_to_send())
                assert await steps.get() == (stream, text)
        await reader.read()

    class Steps:
        def chunk(self, exchange: Exchange, chunk: Chunk) -> None:
            steps.put_nowait((exchange.stream, chunk.data))

    async def main() -> None:
        notes, tls = Notes(), server_tls("h2.test", h2=True)
        async with (
            listening(serve, tls=tls) as server,
            recording(notes, Steps()) as proxy,
        ):
            trust = ssl.create_default_context(cafile=proxy.certificate)
            async with httpx.AsyncClient(proxy=proxy.url, verify=trust, http2=True) as client:
                url = f"https://localhost:{server.port}/"
                await client.get(url)
                got = await asyncio.gather(*(client.get(url) for _ in range(3)))
        assert [(each.http_version, each.text) for each in got] == [("HTTP/2", "abc")] * 3
        assert server.accepts == 1
        assert sorted(each.stream for each in notes.over) == [1, 3, 5, 7]
        for exchange in notes.over[1:]:
            assert exchange.response is not None
            assert [chunk.data for chunk in exchange.response.chunks] == [b"a", b"b", b"c"]

    run_event_loop(main())


def test_large_bodies_go_both_ways_under_flow_control() -> None:
    """5 MB each way, over windows of 64 kB that are opened as the bytes are taken."""
    size = 5 << 20

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        machine = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        machine.initiate_connection()
        got, left = 0, 0
        writer.write(machine.data_to_send())
        while data := await reader.read(65536):
            for event in machine.receive_data(data):
                if isinstance(event, h2.events.DataReceived):
                    got += len(event.data or b"")
                    taken = event.flow_controlled_length or 0
                    machine.acknowledge_received_data(taken, event.stream_id or 0)
                elif isinstance(event, h2.events.StreamEnded):
                    machine.send_headers(1, [(":status", "200"), ("x-got", str(got))])
                    left = size
            while left and (room := min(left, machine.local_flow_control_window(1), 16384)):
                machine.send_data(1, b"x" * room, end_stream=room == left)
                left -= room
            writer.write(machine.data_to_send())
            await writer.drain()

    async def main() -> None:
        notes, tls = Notes(), server_tls("h2.test", h2=True)
        async with listening(serve, tls=tls) as server, recording(notes) as proxy:
            trust = ssl.create_default_context(cafile=proxy.certificate)
            async with httpx.AsyncClient(
                proxy=proxy.url, verify=trust, http2=True, timeout=BOUND
            ) as client:
                url = f"https://localhost:{server.port}/"
                got = await client.post(url, content=b"y" * size)
            exchange = await notes.only()
        assert (got.headers["x-got"], len(got.content)) == (str(size), size)
        assert len(exchange.request.body) == size
        assert exchange.response is not None
        assert len(exchange.response.body) == size

    run_event_loop(main())


def test_a_server_that_goes_away_finishes_what_it_took_and_is_dialled_again() -> None:
    async def reply(
        machine: h2.connection.H2Connection, stream: int, writer: asyncio.StreamWriter
    ) -> None:
        machine.send_headers(stream, [(":status", "200")])
        machine.send_data(stream, b"last", end_stream=True)
        machine.close_connection(last_stream_id=stream)  # GOAWAY
        writer.write(machine.data_to_send())
        await writer.drain()
        writer.close()

    async def main() -> None:
        notes, tls = Notes(), server_tls("h2.test", h2=True)
        async with listening(speaking_h2(reply), tls=tls) as server, recording(notes) as proxy:
            trust = ssl.create_default_context(cafile=proxy.certificate)
            async with httpx.AsyncClient(proxy=proxy.url, verify=trust, http2=True) as client:
                url = f"https://localhost:{server.port}/"
                first = await client.get(url)
                await server.gone.wait()
                second = await client.get(url)
        assert (first.text, second.text) == ("last", "last")
        assert server.accepts == 2
        assert [each.error for each in notes.over] == [None, None]

    run_event_loop(main())


def test_a_graceful_goaway_lets_the_running_answers_end() -> None:
    """Two requests run; the server takes the first alone, and says so in the middle of it."""

    async def main() -> None:
        notes, tls = Notes(), server_tls("h2.test", h2=True)
        streams = list[int]()

        async def reply(
            machine: h2.connection.H2Connection, stream: int, writer: asyncio.StreamWriter
        ) -> None:
            streams.append(stream)
            if len(streams) == 3:  # on another connection
                machine.send_headers(stream, [(":status", "200")])
                machine.send_data(stream, b"third", end_stream=True)
            if len(streams) != 2:
                return
            machine.send_headers(streams[0], [(":status", "200")])
            machine.send_data(streams[0], b"a")
            writer.write(machine.data_to_send())
            goaway = GoAwayFrame(0, last_stream_id=streams[0])
            writer.write(goaway.serialize())
            await refused.wait()
            machine.send_data(streams[0], b"b", end_stream=True)

        async with listening(speaking_h2(reply), tls=tls) as server, recording(notes) as proxy:
            trust = ssl.create_default_context(cafile=proxy.certificate)
            async with httpx.AsyncClient(proxy=proxy.url, verify=trust, http2=True) as client:
                url = f"https://localhost:{server.port}/"
                refused = asyncio.Event()
                first = asyncio.ensure_future(client.get(url))
                while not streams:
                    await asyncio.sleep(0.001)
                with pytest.raises(httpx.RemoteProtocolError):
                    await client.get(url)
                third = await client.get(url)
                refused.set()
                assert (await first).text == "ab"
        assert third.text == "third"
        assert server.accepts == 2
        assert sorted(each.error or "" for each in notes.over) == [
            "",
            "",
            "reset: the server reset the stream REFUSED_STREAM",
        ]

    run_event_loop(main())


@pytest.mark.programs
@pytest.mark.parametrize("h2_only", [True, False])
def test_a_server_that_wants_a_client_certificate_ends_the_request(h2_only: bool) -> None:
    """In TLS 1.3 the handshake is over for the client when the refusal comes."""

    async def main() -> None:
        notes = Notes()
        with wanting_certificates(h2=h2_only) as port:
            async with recording(notes) as proxy:
                url = f"https://localhost:{port}/"
                code, got = await curl("--http2", url, through=proxy)
                exchange = await notes.only()
        assert code not in (0, 28)
        assert got == b""
        assert exchange.error == "tls: tlsv13 alert certificate required"

    run_event_loop(main())


@pytest.mark.programs
def test_an_agent_of_http_1_is_not_given_http_2() -> None:
    """A server of both is asked in what the agent speaks: an answer is what came, not a version."""

    async def main() -> None:
        notes = Notes()
        both = server_tls("both.test")
        both.set_alpn_protocols(["h2", "http/1.1"])
        async with serving(says(ONE), tls=both) as server, recording(notes) as proxy:
            assert await curl(f"https://localhost:{server.port}/", through=proxy) == (0, b"one")
            exchange = await notes.only()
        assert exchange.response is not None
        assert exchange.response.version == "HTTP/1.1"

    run_event_loop(main())


NODE = """
const [http, http2, tls, fs] = ['http', 'http2', 'tls', 'fs'].map(name => require(name))
const [proxy, port, ca] = process.argv.slice(2)
const [host, at] = proxy.replace('http://', '').split(':')
const ask = http.request({host, port: at, method: 'CONNECT', path: `localhost:${port}`})
ask.on('connect', (_, socket) => {
  const options = {socket, servername: 'localhost', ca: fs.readFileSync(ca), ALPNProtocols: ['h2']}
  const session = http2.connect(`https://localhost:${port}`, {
    createConnection: () => tls.connect(options)
  })
  let left = 2
  for (const path of ['/a', '/b']) {
    const stream = session.request({':path': path})
    let text = ''
    stream.on('data', data => text += data)
    stream.on('trailers', fields => text += fields['x-sum'])
    stream.on('end', () => {
      console.log(text)
      if (!--left) { session.close(); socket.destroy() }
    })
  }
})
ask.end()
"""


@pytest.mark.programs
def test_node_speaks_http_2_through_us(tmp_path) -> None:
    async def reply(
        machine: h2.connection.H2Connection, stream: int, writer: asyncio.StreamWriter
    ) -> None:
        machine.send_headers(stream, [(":status", "200")])
        machine.send_data(stream, b"sum ")
        machine.send_headers(stream, [("x-sum", "7")], end_stream=True)

    async def main() -> None:
        notes, tls = Notes(), server_tls("h2.test", h2=True)
        script = tmp_path / "client.cjs"
        script.write_text(NODE)
        async with listening(speaking_h2(reply), tls=tls) as server, recording(notes) as proxy:
            words = ("node", str(script), proxy.url, str(server.port), str(proxy.certificate))
            process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
            out, _ = await process.communicate()
        assert (process.returncode, out) == (0, b"sum 7\nsum 7\n")
        assert sorted(each.request.url[-2:] for each in notes.over) == ["/a", "/b"]
        assert {each.response and each.response.trailers for each in notes.over} == {
            (("x-sum", "7"),)
        }

    run_event_loop(main())
