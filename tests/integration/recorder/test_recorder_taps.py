"""What a tap may do while the proxy listens: answer, change, hold back, and fail."""

import asyncio
import gzip
from copy import replace

import pytest

from recorder.event_loop import run_event_loop
from tests.support.servers.raw_servers import (
    Notes,
    converse,
    curl,
    recording,
    says,
    server_tls,
    serving,
)
from traces.model import BodyEdit, Chunk, Exchange, Response, Trajectory
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter

REAL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Real: yes\r\n\r\nreal"
LONG = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"


def asks(port: int) -> bytes:
    return (
        f"POST http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Connection: close\r\nContent-Length: 8\r\n\r\nquestion"
    ).encode()


class Player:
    """Answers by itself."""

    def __init__(self, answer: Response | None = None, error: str | None = None) -> None:
        self.answer, self.error = answer, error

    def request(self, exchange: Exchange) -> Exchange:
        return replace(exchange, response=self.answer, error=self.error, answered_by="recorded")


def test_a_tap_that_answers_leaves_the_server_alone() -> None:
    chunks = (Chunk(at=0.0, data=b"reco"), Chunk(at=0.0, data=b"rded"))
    headers = (("Content-Length", "8"), ("X-odd", "Case"))
    answer = Response(status=418, headers=headers, chunks=chunks, reason="Tea", at=0.0, ended=0.0)

    async def main() -> None:
        notes = Notes()
        async with serving(says(REAL)) as server, recording(Player(answer), notes) as proxy:
            got, _ = await converse(proxy.port, asks(server.port))
            exchange = await notes.only()
        assert got == b"HTTP/1.1 418 Tea\r\nContent-Length: 8\r\nX-odd: Case\r\n\r\nrecorded"
        assert server.accepts == 0
        assert exchange.answered_by == "recorded"
        assert exchange.response is not None
        assert [chunk.data for chunk in exchange.response.chunks] == [b"reco", b"rded"]
        assert all(0 < chunk.at < 4.0 for chunk in exchange.response.chunks)
        assert exchange.response.ended is not None
        assert notes.heads[0].response == replace(exchange.response, chunks=(), ended=None)

    run_event_loop(main())


def test_a_tap_that_says_reset_resets() -> None:
    async def main() -> None:
        notes = Notes()
        player = Player(error="reset: upstream, as recorded")
        async with serving(says(REAL)) as server, recording(player, notes) as proxy:
            assert await converse(proxy.port, asks(server.port)) == (b"", "reset")
            exchange = await notes.only()
        assert (exchange.error, exchange.response, server.accepts) == (player.error, None, 0)

    run_event_loop(main())


def test_a_request_goes_on_as_edited_and_is_recorded_as_asked() -> None:
    class Bend:
        def request(self, exchange: Exchange) -> Exchange:
            return replace(exchange, edits=(BodyEdit(start=0, stop=5, data=b"another qu"),))

    async def main() -> None:
        notes = Notes()
        async with serving(says(REAL)) as server, recording(Bend(), notes) as proxy:
            assert (await converse(proxy.port, asks(server.port)))[0] == REAL
            exchange = await notes.only()
        assert server.requests[0].endswith(b"Content-Length: 13\r\n\r\nanother quion")
        assert exchange.request.body == b"question"

    run_event_loop(main())


@pytest.mark.programs
def test_an_answer_that_is_held_can_be_bent() -> None:
    class Bend:
        def holds(self, exchange: Exchange) -> bool:
            return exchange.request.body == b"question"

        def response(self, exchange: Exchange) -> Exchange:
            answer = exchange.response
            assert answer is not None
            assert answer.body == b"abcd"
            wrong_value = gzip.compress(b"a lie")
            headers = (("Content-Encoding", "gzip"), ("Content-Length", str(len(wrong_value))))
            chunks = (Chunk(at=answer.at, data=wrong_value),)
            return replace(exchange, response=replace(answer, headers=headers, chunks=chunks))

    async def main() -> None:
        notes = Notes()
        async with serving(says(LONG)) as server, recording(Bend(), notes) as proxy:
            url = f"http://127.0.0.1:{server.port}/"
            mutated = await curl(url, "-d", "question", "--compressed", through=proxy)
            real = await curl(url, "-d", "else", "--compressed", through=proxy)
        assert (mutated, real) == ((0, b"a lie"), (0, b"abcd"))
        first, second = notes.over
        assert first.response is not None
        assert gzip.decompress(first.response.body) == b"a lie"
        assert second.response is not None
        assert [chunk.data for chunk in second.response.chunks] == [b"ab", b"cd"]

    run_event_loop(main())


def test_an_answer_that_is_held_can_become_an_error() -> None:
    class Break:
        def holds(self, exchange: Exchange) -> bool:
            return True

        def response(self, exchange: Exchange) -> Exchange:
            return replace(exchange, response=None, error="reset: injected")

    async def main() -> None:
        notes = Notes()
        async with serving(says(REAL)) as server, recording(Break(), notes) as proxy:
            assert await converse(proxy.port, asks(server.port)) == (b"", "reset")
            exchange = await notes.only()
        assert (exchange.error, exchange.response) == ("reset: injected", None)
        assert server.accepts == 1

    run_event_loop(main())


def test_an_answer_that_is_held_and_breaks_off_breaks_off_for_the_agent() -> None:
    class Hold:
        def holds(self, exchange: Exchange) -> bool:
            return True

    async def half(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(REAL[:-2])
        writer.close()

    async def main() -> None:
        notes = Notes()
        async with serving(half) as server, recording(Hold(), notes) as proxy:
            assert await converse(proxy.port, asks(server.port)) == (REAL[:-2], "fin")
            exchange = await notes.only()
        assert (exchange.error or "").startswith("eof: ")
        assert exchange.response is not None
        assert (exchange.response.body, exchange.response.ended) == (b"re", None)

    run_event_loop(main())


class Mistake(Exception):
    pass


class Faulty:
    """Raises when its time has come."""

    def __init__(self, when: str) -> None:
        setattr(self, when, self.fail)

    def fail(self, *_: object) -> None:
        raise Mistake("ours")


@pytest.mark.programs
@pytest.mark.parametrize("when", ["request", "holds", "head", "chunk", "done"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_tap_that_raises_ends_the_run(when: str, scheme: str) -> None:
    agents: list[asyncio.Task[tuple[int, bytes]]] = []

    async def record(url: str) -> None:
        async with recording(Faulty(when)) as proxy:
            agents.append(asyncio.create_task(curl(url, through=proxy)))
            await asyncio.Event().wait()

    async def main() -> None:
        tls = server_tls() if scheme == "https" else None
        async with serving(says(LONG), tls=tls) as server:
            with pytest.raises(Mistake, match="ours") as caught:
                await record(f"{scheme}://localhost:{server.port}/")
            assert caught.traceback[-1].name == "fail"
            code, _ = await agents[0]
        assert code == 56

    run_event_loop(main())


def test_a_run_that_is_cancelled_is_cancelled() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), recording():
                await asyncio.Event().wait()

    run_event_loop(main())


def test_a_mistake_of_the_run_itself_is_raised_as_it_is() -> None:
    async def main() -> None:
        with pytest.raises(Mistake):
            async with recording():
                raise Mistake

    run_event_loop(main())


def test_a_tape_holds_what_passed(tmp_path) -> None:
    path = tmp_path / "a.tape"

    async def main() -> None:
        notes = Notes()
        with TapeWriter(path, Trajectory(id="t", recorded_at=0.0)) as tape:
            async with serving(says(LONG)) as server, recording(tape, notes) as proxy:
                await converse(proxy.port, asks(server.port))
                await converse(proxy.port, asks(1))
        assert read_tape(path).exchanges == tuple(notes.over)
        assert notes.over[1].error == "refused: Connection refused"

    run_event_loop(main())
