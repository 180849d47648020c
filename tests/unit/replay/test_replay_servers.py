"""A recorded MCP server over the other transport: the same messages, at the same times."""

import gzip
import json
from pathlib import Path

import pytest

from replay.mcp.defaults import McpDefaults
from replay.mcp.servers import group_by_mcp_server, to_http_server, to_stdio_server
from traces.model import Chunk, Exchange, Headers, Request, Response, Trajectory
from traces.tape.reader import Tape

URL = "http://shop.example/mcp"
PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
RESULT = {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}
CALL = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "x"}})


def asked(
    body: str, *said: bytes, headers: Headers = (), status: int = 200, over: str = URL
) -> Exchange:
    chunks = tuple(Chunk(at=float(at), data=data) for at, data in enumerate(said, 1))
    method = "POST" if over.startswith("http") else "MESSAGE"
    return Exchange(
        seq=1,
        request=Request(method=method, url=over, body=body.encode()),
        response=Response(status=status, headers=headers, chunks=chunks, ended=9.0),
        started=0.5,
    )


def event(message: object) -> bytes:
    return b"event: message\r\ndata: " + json.dumps(message).encode() + b"\r\n\r\n"


def told(exchange: Exchange) -> list[tuple[float, object]]:
    assert exchange.response is not None
    return [(chunk.at, json.loads(chunk.data)) for chunk in exchange.response.chunks]


def test_a_stream_of_http_is_messages_of_stdio_each_when_it_was_whole() -> None:
    stream = event(PROGRESS) + event(RESULT)
    pieces = (stream[:20], stream[20:140], stream[140:])
    (message,) = to_stdio_server([asked(CALL, *pieces)], "stdio://shop/")
    assert (message.request.method, message.transport) == ("MESSAGE", "stdio")
    assert told(message) == [(2.0, PROGRESS), (3.0, RESULT)]


def test_json_on_many_lines_and_compressed_is_one_line() -> None:
    packed = gzip.compress(json.dumps(RESULT, indent=2).encode())
    headers = (("content-encoding", "gzip"),)
    (message,) = to_stdio_server(
        [asked(CALL, packed[:9], packed[9:], headers=headers)], "stdio://x/"
    )
    assert told(message) == [(2.0, RESULT)]
    assert message.response is not None
    assert b"\n" not in message.response.body
    assert message.response.headers == ()


def test_an_error_of_http_stays_one() -> None:
    (message,) = to_stdio_server([asked(CALL, b"no such session", status=404)], "stdio://shop/")
    assert message.response is not None
    assert (message.response.status, message.response.body) == (404, b"no such session")


def test_a_message_of_stdio_is_a_post_and_a_notification_is_accepted() -> None:
    said = json.dumps(RESULT).encode()
    call = asked(CALL, said, over="stdio://shop/")
    note = Exchange(seq=2, request=Request(method="MESSAGE", url="stdio://shop/", body=b"{}"))
    start = Exchange(seq=0, request=Request(method="START", url="stdio://shop/"))
    post, accepted = to_http_server([start, call, note], URL)
    assert (post.request.method, post.request.url, post.transport) == ("POST", URL, "http")
    assert post.response is not None
    assert post.response.headers == (
        ("content-type", "application/json"),
        ("content-length", str(len(said))),
    )
    assert accepted.response is not None
    assert (accepted.response.status, accepted.response.body) == (202, b"")


def test_the_servers_of_a_tape_are_told_apart_and_what_is_no_mcp_is_none() -> None:
    one, two = asked(CALL), asked(CALL, over="stdio://two/")
    other = Exchange(seq=3, request=Request(method="GET", url="http://shop.example/orders"))
    tape = Tape(
        path=Path("a.tape"),
        trajectory=Trajectory(id="a", recorded_at=0.0),
        exchanges=(one, two, other, one),
        spans={},
    )
    assert group_by_mcp_server(tape) == {URL: (one, one), "stdio://two/": (two,)}


@pytest.mark.parametrize(
    ("method", "says"), [("ping", '"result": {}'), ("server/discover", '"code": -32601')]
)
def test_what_another_client_asks_is_answered_where_the_recorded_one_did_not(
    method: str, says: str
) -> None:
    question = json.dumps({"jsonrpc": "2.0", "id": "q", "method": method})
    exchange = Exchange(
        seq=1, request=Request(method="MESSAGE", url="stdio://shop/", body=question.encode())
    )
    answered = McpDefaults([]).request(exchange)
    assert answered.response is not None
    assert answered.answered_by == "simulated"
    assert says in answered.response.body.decode()
    assert McpDefaults([exchange]).request(exchange) == exchange
    call = asked(CALL)
    assert McpDefaults([]).request(call) == call
