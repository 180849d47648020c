"""What goes wrong with a server goes wrong with the agent in the same way, and is recorded."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from random import Random

import pytest

from recorder.event_loop import run_event_loop
from recorder.proxy.http1_response import UNPARSED_BYTES
from tests.support.servers.raw_servers import (
    Answer,
    Notes,
    converse,
    curl,
    listening,
    recording,
    reset,
    says,
    server_tls,
    serving,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b"9\r\ndata: a\n\n\r\n"
PARTIAL = HEAD + EVENT * 3
END: dict[str, Callable[[asyncio.StreamWriter], None]] = {
    "reset": reset,
    "fin": lambda writer: writer.close(),
}
CODE = {"reset": "reset", "fin": "eof"}


def cut(sent: bytes, end: str) -> Answer:
    """Sends so much of an answer and ends the connection so."""

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        if sent:
            writer.write(sent)
            await writer.drain()
            await asyncio.sleep(0.05)  # a reset at once may destroy what was not read yet
        END[end](writer)

    return answer


def asks(port: int, *, through: bool) -> bytes:
    origin = f"http://127.0.0.1:{port}" if through else ""
    return f"GET {origin}/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


@pytest.mark.parametrize("end", END)
@pytest.mark.parametrize("sent", [b"", PARTIAL], ids=["before the head", "in the middle"])
def test_a_cut_is_the_same_cut(sent: bytes, end: str) -> None:
    async def main() -> None:
        notes = Notes()
        async with serving(cut(sent, end)) as server, recording(notes) as proxy:
            direct = await converse(server.port, asks(server.port, through=False))
            proxied = await converse(proxy.port, asks(server.port, through=True))
            exchange = await notes.only()
        assert proxied == direct == (sent, end)
        assert (exchange.error or "").partition(":")[0] == CODE[end]
        if sent:
            assert exchange.response is not None
            assert exchange.response.body == b"data: a\n\n" * 3
            assert exchange.response.ended is None
            assert exchange.response.chunks == tuple(notes.chunks)
        else:
            assert exchange.response is None

    run_event_loop(main())


@pytest.mark.programs
@pytest.mark.parametrize("end", END)
@pytest.mark.parametrize("sent", [b"", PARTIAL], ids=["before the head", "in the middle"])
def test_curl_gives_the_same_exit_code_over_tls(sent: bytes, end: str) -> None:
    async def main() -> None:
        notes = Notes()
        async with (
            serving(cut(sent, end), tls=server_tls()) as server,
            recording(notes) as proxy,
        ):
            url = f"https://localhost:{server.port}/"
            direct = await curl(url)
            assert await curl(url, through=proxy) == direct
            assert direct[0] != 0
            assert ((await notes.only()).error or "").partition(":")[0] == CODE[end]

    run_event_loop(main())


@pytest.mark.parametrize("end", END)
def test_a_body_cut_short_of_its_length(end: str) -> None:
    sent = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"

    async def main() -> None:
        notes = Notes()
        async with serving(cut(sent, end)) as server, recording(notes) as proxy:
            assert await converse(proxy.port, asks(server.port, through=True)) == (sent, end)
            exchange = await notes.only()
        assert (exchange.error or "").partition(":")[0] == CODE[end]
        assert exchange.response is not None
        assert exchange.response.body == b"half"

    run_event_loop(main())


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        number: int = taken.getsockname()[1]
        return number


@pytest.mark.programs
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_refused_connection_is_a_reset_one(scheme: str) -> None:
    async def main() -> None:
        notes = Notes()
        async with recording(notes) as proxy:
            code, got = await curl(f"{scheme}://127.0.0.1:{free_port()}/", through=proxy)
            exchange = await notes.only()
        assert (code, got) == (56, b"")
        assert exchange.error == "refused: Connection refused"
        assert exchange.response is None

    run_event_loop(main())


@pytest.mark.programs
def test_a_name_that_nobody_knows() -> None:
    async def main() -> None:
        notes = Notes()
        async with recording(notes, hosts={"a.test": ("no such host", 80)}) as proxy:
            code, _ = await curl("http://a.test/", through=proxy)
            exchange = await notes.only()
        assert code == 56
        assert (exchange.error or "").startswith("dns: ")

    run_event_loop(main())


@pytest.mark.programs
def test_a_server_that_does_not_speak_tls() -> None:
    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.test ESMTP\r\n")
        await reader.read()

    async def main() -> None:
        notes = Notes()
        async with listening(hello) as server, recording(notes) as proxy:
            code, _ = await curl(f"https://localhost:{server.port}/", through=proxy)
            exchange = await notes.only()
        assert code == 56
        assert exchange.error == "tls: The remote server does not speak TLS."

    run_event_loop(main())


@pytest.mark.programs
@pytest.mark.parametrize("end", END)
def test_a_server_that_ends_in_the_tls_handshake(end: str) -> None:
    async def vanish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        END[end](writer)

    async def main() -> None:
        notes = Notes()
        async with listening(vanish) as server, recording(notes) as proxy:
            await curl(f"https://localhost:{server.port}/", through=proxy)
            exchange = await notes.only()
        assert exchange.error == f"{CODE[end]}: in the TLS handshake"

    run_event_loop(main())


@pytest.mark.programs
def test_a_certificate_for_another_name_is_not_taken() -> None:
    async def main() -> None:
        notes = Notes()
        hosts = {}
        async with serving(says(PARTIAL), tls=server_tls()) as server:
            hosts["other.test"] = ("127.0.0.1", server.port)
            async with recording(notes, hosts=hosts) as proxy:
                assert await curl("https://other.test/", through=proxy) == (56, b"")
                exchange = await notes.only()
        assert exchange.error == "tls: Certificate verify failed: hostname mismatch"
        assert server.requests == []

    run_event_loop(main())


@pytest.mark.parametrize("end", END)
def test_words_that_are_no_http_reach_the_agent(end: str) -> None:
    async def main() -> None:
        notes = Notes()
        async with serving(cut(b"what?\r\n\r\n", end)) as server, recording(notes) as proxy:
            direct = await converse(server.port, asks(server.port, through=False))
            assert await converse(proxy.port, asks(server.port, through=True)) == direct
            exchange = await notes.only()
        assert (exchange.error or "").partition(":")[0] == CODE[end]
        assert (exchange.error or "").endswith("what is no HTTP/1.1: no version begins it")
        assert exchange.unparsed == b"what?\r\n\r\n"

    run_event_loop(main())


def test_more_that_is_no_http_than_is_kept_is_damage() -> None:
    async def main() -> None:
        notes, sent = Notes(), b"what?" * UNPARSED_BYTES
        async with serving(cut(sent, "fin")) as server, recording(notes) as proxy:
            got = await converse(proxy.port, asks(server.port, through=True))
            exchange = await notes.only()
        assert got == (sent, "fin")
        assert (exchange.error or "").startswith("damaged: ")
        assert exchange.unparsed == b""

    run_event_loop(main())


@pytest.mark.parametrize("sent", [b"", PARTIAL], ids=["before the head", "in the middle"])
@pytest.mark.parametrize("end", END)
def test_an_agent_that_hangs_up_has_cancelled(sent: bytes, end: str) -> None:
    async def main() -> None:
        notes = Notes()
        async with serving(says(sent)) as server, recording(notes) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(asks(server.port, through=True))
            await reader.readexactly(len(sent))
            while not server.requests:
                await asyncio.sleep(0.001)
            END[end](writer)
            exchange = await notes.only()
            await server.gone.wait()
        assert exchange.error == f"cancelled: {CODE[end]} by the agent"
        if sent:
            assert exchange.response is not None
            assert exchange.response.body == b"data: a\n\n" * 3
        else:
            assert exchange.response is None

    run_event_loop(main())


def test_an_agent_that_hangs_up_while_the_server_is_dialled_has_cancelled() -> None:
    async def main() -> None:
        # A queue of length 0 that is full: the kernel lets the next one wait for its answer.
        with socket.socket() as deaf, socket.socket() as first:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            first.connect(deaf.getsockname())
            notes = Notes()
            async with recording(notes) as proxy:
                _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
                writer.write(asks(deaf.getsockname()[1], through=True))
                while not notes.asked:
                    await asyncio.sleep(0.001)
                writer.close()
                exchange = await notes.only()
        assert exchange.error == "cancelled: eof by the agent"

    run_event_loop(main())


def test_a_request_that_never_became_whole_is_nobodys() -> None:
    async def main() -> None:
        notes = Notes()
        async with serving(says(PARTIAL)) as server, recording(notes) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            head = asks(server.port, through=True)[:-2]
            writer.write(head + b"Content-Length: 10\r\n\r\nhalf")
            writer.write_eof()
            got = await reader.read()
            writer.close()
        assert (got, notes.asked, notes.over, server.accepts) == (b"", [], [], 0)

    run_event_loop(main())


@pytest.mark.parametrize("end", END)
def test_a_websocket_is_cut_as_it_was(end: str) -> None:
    switching = b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"

    async def main() -> None:
        notes = Notes()
        sent = switching + b"\x81\x02hi"
        async with serving(cut(sent, end)) as server, recording(notes) as proxy:
            request = asks(server.port, through=True)[:-2] + upgrade
            assert await converse(proxy.port, request) == (sent, end)

    run_event_loop(main())


@pytest.mark.gate
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_whatever_happens_each_exchange_is_told_once_and_whole(scheme: str) -> None:
    """80 agents and servers that vanish when they like, by a seed."""

    async def main() -> None:
        chance = Random(7)
        notes = Notes()
        whole = HEAD + EVENT * 6 + b"0\r\n\r\n"

        async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
            for start in range(0, len(whole), 40):
                writer.write(whole[start : start + 40])
                await asyncio.sleep(0)
                if chance.random() < 0.1:
                    END[chance.choice(list(END))](writer)
                    return

        async def agent(port: int, to: int) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                if scheme == "https":
                    writer.write(b"CONNECT localhost:%d HTTP/1.1\r\n\r\n" % to)
                    await reader.readuntil(b"\r\n\r\n")
                    await writer.start_tls(trust, server_hostname="localhost")
                for _ in range(3):
                    request = asks(to, through=scheme == "http")
                    if chance.random() < 0.1:
                        writer.write(request[:20])
                        return
                    writer.write(request)
                    for _ in range(chance.randrange(8)):
                        await reader.readexactly(chance.choice([1, 10]))
            except (ConnectionError, asyncio.IncompleteReadError):
                return
            finally:
                END[chance.choice(list(END))](writer)

        tls = server_tls() if scheme == "https" else None
        async with serving(answer, tls=tls) as server, recording(notes) as proxy:
            trust = ssl.create_default_context(cafile=proxy.certificate)
            async with asyncio.TaskGroup() as agents:
                for _ in range(80):
                    agents.create_task(agent(proxy.port, server.port))
        assert len(notes.asked) > 40  # how many of the 240 begin is left to chance
        assert {each.seq for each in notes.asked} == {each.seq for each in notes.over}
        assert len(notes.over) == len(notes.asked)
        for exchange in notes.over:
            answered = exchange.response is not None and exchange.response.ended is not None
            assert answered is (exchange.error is None)
            if answered:
                assert exchange.response is not None
                assert exchange.response.body == b"data: a\n\n" * 6
        codes = {(exchange.error or "whole").partition(":")[0] for exchange in notes.over}
        assert codes == {"whole", "cancelled", "reset", "eof"}

    run_event_loop(main())
