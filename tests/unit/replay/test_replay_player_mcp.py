"""A recorded MCP session is played to a client that numbers its messages otherwise."""

import json
from copy import replace

from replay.player import REFUSED_STATUS, PlaybackOptions, TapePlayer
from tests.unit.replay.test_replay_player import tape
from traces.conversation.classify import ExchangeKind
from traces.conversation.tracker import ConversationTap
from traces.dialects import mcp
from traces.model import Chunk, Exchange, Headers, Request, Response
from traces.taps import TapChain

URL = "http://shop/mcp"
SESSION: Headers = (("mcp-session-id", "s1"),)


def post(method: str, id: int | None = None, params: object = None) -> Request:
    said = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    body = json.dumps({key: value for key, value in said.items() if value is not None})
    return Request(method="POST", url=URL, headers=SESSION, body=body.encode())


def call(id: int, **arguments: object) -> Request:
    return post("tools/call", id, {"name": "get", "arguments": arguments})


def said(request: Request, id: int, text: str, *, stream: bool = False) -> Exchange:
    reply = mcp.McpReply(id=str(id), text=text, is_error=False)
    headers, chunks = mcp.write_mcp_reply(reply, stream=stream)
    answer = Response(status=200, headers=headers, chunks=chunks, ended=0.0)
    return Exchange(seq=0, request=request, response=answer)


def listening(*chunks: bytes) -> Exchange:
    headers = (("content-type", "text/event-stream"),)
    pieces = tuple(Chunk(at=0.0, data=data) for data in chunks)
    answer = Response(status=200, headers=headers, chunks=pieces, ended=0.0)
    return Exchange(seq=0, request=Request(method="GET", url=URL, headers=SESSION), response=answer)


def playing(*recorded: Exchange, speed: float = 0) -> tuple[TapePlayer, TapChain]:
    watch = ConversationTap()
    player = TapePlayer(tape(*recorded), watch, options=PlaybackOptions(speed=speed))
    return player, TapChain((watch, player))


def ask(taps: TapChain, request: Request, seq: int = 0) -> Exchange:
    return taps.request(Exchange(seq=seq, request=request))


def text(exchange: Exchange) -> tuple[str, str]:
    assert exchange.response is not None
    reply = mcp.parse_mcp_reply(exchange.response.headers, exchange.response.body)
    assert reply is not None
    return reply.id, reply.text


def test_equal_calls_get_their_answers_in_order_whatever_their_ids() -> None:
    player, taps = playing(
        said(call(4, a=1), 4, "first"), said(call(5, a=1), 5, "second", stream=True)
    )
    assert text(ask(taps, call(5, a=1), 0)) == ("5", "first")
    assert text(ask(taps, call(6, a=1), 1)) == ("6", "second")
    assert (player.diverged, player.list_unasked()) == ([], ())


def test_parallel_calls_that_swapped_their_ids_keep_their_answers() -> None:
    _, taps = playing(said(call(2, a=1), 2, "one"), said(call(3, a=2), 3, "two"))
    assert text(ask(taps, call(2, a=2), 0)) == ("2", "two")
    assert text(ask(taps, call(3, a=1), 1)) == ("3", "one")


def test_another_call_and_another_list_are_refused() -> None:
    player, taps = playing(said(call(2, a=1), 2, "one"))
    for seq, request in enumerate([call(2, a=2), post("tools/list", 3)]):
        refused = ask(taps, request, seq).response
        assert refused is not None
        assert refused.status == REFUSED_STATUS
    assert len(player.diverged) == 2
    assert "params.arguments.a" in player.diverged[0]
    assert len(player.list_unasked()) == 1


def test_what_nobody_waits_for_neither_diverges_nor_is_missed() -> None:
    hello = Exchange(
        seq=0, request=post("notifications/initialized"), response=Response(status=202, ended=0.0)
    )
    player, taps = playing(hello, listening())
    statuses = []
    for seq, request in enumerate(
        [
            post("notifications/cancelled", params={"requestId": 3}),
            Request(method="DELETE", url=URL, headers=SESSION),
            Request(method="GET", url=URL, headers=SESSION),
            Request(method="GET", url=URL, headers=SESSION),
        ]
    ):
        answer = ask(taps, request, seq).response
        assert answer is not None
        statuses.append(answer.status)
    assert statuses == [202, 200, 200, 405]
    assert (player.diverged, player.list_unasked()) == ([], ())


def test_at_full_speed_the_last_stream_to_listen_to_is_held_with_all_its_events() -> None:
    get = Request(method="GET", url=URL, headers=SESSION)
    _, taps = playing(listening(b"data: 1\n\n"), listening(b"data: 2\n\n", b"data: 3\n\n"))
    first, last = ask(taps, get, 0), ask(taps, get, 1)
    assert first.error is None
    assert first.response is not None
    assert first.response.ended is not None, "the client asked again when this one ended"
    assert last.error == "cancelled: by the agent"
    assert last.response is not None
    assert last.response.ended is None
    assert last.response.body == b"data: 2\n\ndata: 3\n\n"

    _, taps = playing(listening(b"data: 1\n\n"), speed=1)
    paced = ask(taps, get, 0)
    assert paced.error is None
    assert paced.response is not None
    assert paced.response.ended == 0.6


def test_a_live_session_is_compared_by_its_responses() -> None:
    watch = ConversationTap()
    recorded = said(call(2, a=1), 2, "one", stream=True)
    live: tuple[ExchangeKind, ...] = ("tool",)
    player = TapePlayer(
        tape(recorded, said(call(3, a=2), 3, "two")), watch, options=PlaybackOptions(live=live)
    )
    taps = TapChain((watch, player))
    ask(taps, call(7, a=1), 0)
    now = replace(said(call(7, a=1), 7, "one"), error="cancelled: eof by the agent")
    taps.done(now)
    assert player.diverged == []
    ask(taps, call(8, a=2), 1)
    taps.done(replace(said(call(8, a=2), 8, "another"), seq=1))
    assert len(player.diverged) == 1
    assert 'was "two" at result.content[0].text' in player.diverged[0]
