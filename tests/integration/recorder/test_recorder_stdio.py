import asyncio
import json
import sys
from collections.abc import Callable
from copy import replace
from dataclasses import dataclass
from pathlib import Path

import pytest

from recorder.event_loop import run_event_loop
from recorder.mcp.stdio import parse_method_and_id, to_stdio_response
from tests.support.agents.mcp_tee_client import (
    BOUND,
    SMALL,
    behind,
    client,
    dumped,
    tees,
    text,
)
from tests.support.servers.raw_servers import Notes
from traces.model import BodyEdit, Chunk, Exchange, Response

TOUCH = (sys.executable, "-c", "import pathlib, sys; pathlib.Path(sys.argv[1]).touch()")


def result(said: str) -> bytes:
    content = [{"type": "text", "text": said}]
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": content}}).encode()


@dataclass
class Decides:
    """A tap that answers some requests."""

    answer: Callable[[Exchange], Exchange]

    def request(self, exchange: Exchange) -> Exchange:
        return self.answer(exchange)


def recorded(exchange: Exchange) -> Exchange:
    """Everything from a tape."""
    message = b"" if exchange.request.method == "START" else result("recorded")
    answer = to_stdio_response(message, exchange.started)
    if not message:
        answer = replace(answer, chunks=())
    return replace(exchange, response=answer, answered_by="recorded")


async def over(notes: Notes, count: int) -> list[Exchange]:
    async with asyncio.timeout(BOUND):
        while len(notes.over) < count:
            await asyncio.sleep(0.001)
    return sorted(notes.over, key=lambda exchange: exchange.seq)


def test_what_a_tap_answers_needs_no_server(tmp_path: Path) -> None:
    async def main() -> tuple[int, list[Exchange]]:
        notes, here = Notes(), (*TOUCH, str(tmp_path / "started"))
        async with (
            tees(Decides(recorded), notes, decides=True, way_out=False) as house,
            client(*behind(house, *here)) as small,
        ):
            assert await small.call(1, "echo", text="live") == "recorded"
            await small.notify("notifications/initialized")
            code, out, _ = await small.rest()
            assert out == b""
            return code, await over(notes, 3)

    code, (start, call, aside) = run_event_loop(main())
    assert code == 0
    assert not (tmp_path / "started").exists()
    assert call.response
    assert text(json.loads(call.response.body)) == "recorded"
    assert aside.response is None
    assert start.response
    assert start.response.ended is not None


def test_what_no_tap_answers_goes_nowhere_where_there_is_no_way_out(tmp_path: Path) -> None:
    async def main() -> dict[str, object]:
        here = (*TOUCH, str(tmp_path / "started"))

        def only_start(exchange: Exchange) -> Exchange:
            return recorded(exchange) if exchange.request.method == "START" else exchange

        async with (
            tees(Decides(only_start), decides=True, way_out=False) as house,
            client(*behind(house, *here)) as small,
        ):
            return await small.ask("x", "tools/list")

    said = run_event_loop(main())
    assert said["id"] == "x"
    assert said["error"] == {"code": -32001, "message": "refused: no way out"}
    assert not (tmp_path / "started").exists()


def test_no_server_starts_where_there_is_no_way_out_whatever_the_taps_leave(tmp_path: Path) -> None:
    async def main() -> None:
        here = (*TOUCH, str(tmp_path / "started"))
        async with (
            tees(Notes(), decides=True, way_out=False) as house,
            client(*behind(house, *here)) as small,
        ):
            assert "error" in await small.ask(1, "initialize")
            await small.rest()

    run_event_loop(main())
    assert not (tmp_path / "started").exists()


def test_an_edit_reaches_the_server_and_the_client_does_not_know() -> None:
    def bent(exchange: Exchange) -> Exchange:
        at = exchange.request.body.find(b"asked")
        edits = (BodyEdit(start=at, stop=at + 5, data=b"told"),) if at >= 0 else ()
        return replace(exchange, edits=edits)

    async def main() -> tuple[str, list[Exchange]]:
        notes = Notes()
        async with (
            tees(Decides(bent), notes, decides=True) as house,
            client(*behind(house, *SMALL)) as small,
        ):
            said = await small.call(1, "echo", text="asked")
            await small.rest()
            return said, await over(notes, 2)

    said, (_, call) = run_event_loop(main())
    assert said == "told"
    assert b"asked" in call.request.body
    assert call.answered_by == "live"


def test_an_answer_that_is_held_back_is_bent_before_the_client_has_it() -> None:
    class Bends:
        def holds(self, exchange: Exchange) -> bool:
            return b"tools/call" in exchange.request.body

        def response(self, exchange: Exchange) -> Exchange:
            assert exchange.response
            body = exchange.response.body.replace(b"true value", b"other value")
            return replace(exchange, response=to_stdio_response(body, exchange.response.at))

    async def main() -> str:
        async with (
            tees(Bends(), decides=True) as house,
            client(*behind(house, *SMALL)) as small,
        ):
            await small.ask(0, "initialize")
            return await small.call(1, "echo", text="true value")

    assert run_event_loop(main()) == "other value"


def test_a_server_that_breaks_off_is_gone_and_one_that_is_silent_is_not() -> None:
    def broken(exchange: Exchange) -> Exchange:
        if b"silent" in exchange.request.body:
            return replace(exchange, error="timeout: of a fault")
        if b"gone" in exchange.request.body:
            return replace(exchange, error="eof: of a fault")
        return exchange

    async def main() -> tuple[int, list[Exchange]]:
        notes = Notes()
        async with (
            tees(Decides(broken), notes, decides=True) as house,
            client(*behind(house, *SMALL)) as small,
        ):
            await small.send(dumped({"jsonrpc": "2.0", "id": 1, "method": "silent"}))
            assert await small.call(2, "echo", text="still there") == "still there"
            await small.send(dumped({"jsonrpc": "2.0", "id": 3, "method": "gone"}))
            assert await small.line() == b""
            return await small.process.wait(), await over(notes, 4)

    code, (_, silent, said, gone) = run_event_loop(main())
    assert code == 1
    assert (silent.error, silent.response) == ("timeout: of a fault", None)
    assert said.error is None
    assert gone.error == "eof: of a fault"


def test_a_server_that_starts_in_the_middle_gets_the_handshake_that_was_recorded() -> None:
    seen = "import sys\nfor line in sys.stdin: sys.stderr.write(line); sys.stderr.flush()"

    def until_called(exchange: Exchange) -> Exchange:
        return exchange if b"tools/call" in exchange.request.body else recorded(exchange)

    async def main() -> list[dict[str, object]]:
        server = (sys.executable, "-c", seen)
        async with (
            tees(Decides(until_called), decides=True) as house,
            client(*behind(house, *server)) as small,
        ):
            await small.ask(0, "initialize", capabilities={})
            await small.notify("notifications/initialized")
            await small.ask(1, "tools/list")
            await small.send(dumped({"jsonrpc": "2.0", "id": 2, "method": "tools/call"}))
            _, out, errors = await small.rest()
            assert out == b""
            return [json.loads(line) for line in errors.splitlines()]

    methods = [said["method"] for said in run_event_loop(main())]
    assert methods == ["initialize", "notifications/initialized", "tools/call"]


def test_the_answer_to_a_handshake_that_is_repeated_is_for_nobody() -> None:
    def until_called(exchange: Exchange) -> Exchange:
        return exchange if b"tools/call" in exchange.request.body else recorded(exchange)

    async def main() -> str:
        async with (
            tees(Decides(until_called), decides=True) as house,
            client(*behind(house, *SMALL)) as small,
        ):
            await small.ask(0, "initialize")
            return await small.call(2, "echo", text="live at last")

    assert run_event_loop(main()) == "live at last"


def test_what_was_said_unasked_comes_again_where_it_came() -> None:
    def from_tape(exchange: Exchange) -> Exchange:
        if exchange.request.method != "START":
            return recorded(exchange)
        chunks = tuple(Chunk(at=0.0, data=data) for data in (b"first", b"progress", b"last"))
        return replace(exchange, response=Response(status=200, chunks=chunks, ended=0.0))

    async def main() -> list[bytes]:
        async with (
            tees(
                Decides(from_tape),
                decides=True,
                way_out=False,
                cues=lambda start: ((0, 0, 0.0), (2, 1, 0.0), (2, 2, 0.0)),
            ) as house,
            client(*behind(house, *SMALL)) as small,
        ):
            heard = []
            for id in (1, 2):
                await small.send(dumped({"jsonrpc": "2.0", "id": id, "method": "ping"}))
                heard += [await small.line()]
            _, out, _ = await small.rest()
            return [*heard, *out.splitlines()]

    answer = result("recorded")
    assert run_event_loop(main()) == [b"first", answer, b"progress", answer, b"last"]


def test_what_was_said_unasked_keeps_its_time_and_comes_before_what_came_after_it() -> None:
    """The second word is due only after the answer, so the answer brings it along."""

    def from_tape(exchange: Exchange) -> Exchange:
        if exchange.request.method != "START":
            return recorded(exchange).with_delay(0.3)
        chunks = tuple(Chunk(at=0.0, data=data) for data in (b"progress", b"more"))
        return replace(exchange, response=Response(status=200, chunks=chunks, ended=0.0))

    async def main() -> tuple[list[bytes], list[Exchange]]:
        notes = Notes()
        async with (
            tees(
                Decides(from_tape),
                notes,
                decides=True,
                way_out=False,
                cues=lambda start: ((1, 0, 0.1), (1, 0, 60.0)),
            ) as house,
            client(*behind(house, *SMALL)) as small,
        ):
            await small.send(dumped({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
            _, out, _ = await small.rest()
            return out.splitlines(), await over(notes, 2)

    said, noted = run_event_loop(main())
    assert said == [b"progress", b"more", result("recorded")]
    start, call = sorted(noted, key=lambda x: x.seq)
    assert start.response
    assert call.response
    first, second = (chunk.at - call.started for chunk in start.response.chunks)
    assert 0.1 <= first < 0.3 <= second
    assert call.response.chunks[0].at - call.started >= 0.3


def test_what_comes_before_a_response_is_said_on_time() -> None:
    """A response of three messages: the client has two of them while the third is not due yet."""

    async def main() -> tuple[list[bytes], list[Exchange]]:
        notes, gate = Notes(), 3600.0

        def late(exchange: Exchange) -> Exchange:
            answered = recorded(exchange)
            if exchange.request.method == "START" or answered.response is None:
                return answered
            at = exchange.started
            said = (Chunk(at=at, data=b"1"), Chunk(at=at + 0.01, data=b"2"))
            last = Chunk(at=at + gate, data=result("never"))
            answer = replace(answered.response, chunks=(*said, last), at=at, ended=at + gate)
            return replace(answered, response=answer)

        async with (
            tees(Decides(late), notes, decides=True, way_out=False) as house,
            client(*behind(house, *SMALL)) as small,
        ):
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
            await small.send(dumped(call))
            async with asyncio.timeout(BOUND / 4):
                heard = [await small.line(), await small.line()]
            small.process.kill()
            return heard, await over(notes, 2)

    heard, (start, call) = run_event_loop(main())
    assert heard == [b"1", b"2"]
    assert start.response is not None
    assert [chunk.data for chunk in start.response.chunks] == [b"1", b"2"]
    assert call.error == "cancelled"


def test_an_answer_comes_no_earlier_than_a_tap_says() -> None:
    def late(exchange: Exchange) -> Exchange:
        return recorded(exchange).with_delay(0.2)

    async def main() -> list[Exchange]:
        notes = Notes()
        async with (
            tees(Decides(late), notes, decides=True, way_out=False) as house,
            client(*behind(house, *SMALL)) as small,
        ):
            await small.call(1, "echo")
            await small.rest()
            return await over(notes, 2)

    _, call = run_event_loop(main())
    assert call.response
    assert call.response.chunks[0].at >= call.started + 0.2


def test_a_call_that_the_client_gives_up_is_over_at_once() -> None:
    async def main() -> list[Exchange]:
        notes = Notes()
        async with tees(notes) as house, client(*behind(house, *SMALL)) as small:
            await small.ask(1, "initialize")
            call = {"method": "tools/call", "params": {"name": "hang", "arguments": {}}}
            await small.send(dumped({"jsonrpc": "2.0", "id": 2} | call))
            gives_up = {"method": "notifications/cancelled", "params": {"requestId": 2}}
            await small.send(dumped({"jsonrpc": "2.0"} | gives_up))
            assert await small.call(3, "echo", text="on") == "on"
            return await over(notes, 4)

    errors = [exchange.error for exchange in run_event_loop(main())]
    assert errors == [None, "cancelled: by the agent", None, None]


def test_a_call_that_the_server_does_not_live_to_answer_says_so() -> None:
    async def main() -> list[Exchange]:
        notes = Notes()
        async with tees(notes) as house, client(*behind(house, *SMALL)) as small:
            call = {"name": "die", "arguments": {"code": 3}}
            said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            await small.send(dumped(said))
            assert await small.process.wait() == 3
            return await over(notes, 2)

    start, call = run_event_loop(main())
    assert (call.response, call.error) == (None, "eof: the server ended with 3")
    assert start.error is None


@pytest.mark.parametrize(
    ("message", "sorted_as"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"ping"}', ("ping", "7")),
        (b'{"jsonrpc":"2.0","id":"7","result":{}}', (None, '"7"')),
        (b'{"jsonrpc":"2.0","method":"notifications/x"}', ("notifications/x", None)),
        (b'{"jsonrpc":"2.0","id":null,"error":{}}', (None, None)),
        (b'{"jsonrpc":"2.0","id":true,"result":{}}', (None, None)),
        (b'[{"id":1}]', (None, None)),
        (b"no json", (None, None)),
        (b"", (None, None)),
    ],
)
def test_a_message_is_sorted_by_method_and_id(
    message: bytes, sorted_as: tuple[str | None, str | None]
) -> None:
    assert parse_method_and_id(message) == sorted_as


def test_a_refusal_is_an_answer_that_the_client_can_read() -> None:
    said = {"error": {"type": "diverged", "message": "nothing recorded"}}
    refusal = replace(to_stdio_response(json.dumps(said).encode(), 0.0), status=422)

    def refuses(exchange: Exchange) -> Exchange:
        start = exchange.request.method == "START"
        return recorded(exchange) if start else replace(exchange, response=refusal)

    async def main() -> dict[str, object]:
        async with (
            tees(Decides(refuses), decides=True, way_out=False) as house,
            client(*behind(house, *SMALL)) as small,
        ):
            return await small.ask("x", "tools/list")

    answer = run_event_loop(main())
    assert answer["id"] == "x"
    assert answer["error"] == {"code": -32001, "message": "nothing recorded"}
