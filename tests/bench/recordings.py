"""The same recordings for every replayer, in the form that each of them reads.

Requests of 2 KB and answers of 1.5 KB, no two alike and not all of one length, each answer with an
id in its head; seeded by their number. `calls` are POSTs to a service, `chat` are requests to a
model, which is all that aimock answers.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from mitmproxy import http
from mitmproxy.io import FlowWriter
from mitmproxy.test.tflow import tclient_conn, tserver_conn

from tests.bench.conversation import SOURCES
from traces.model import Chunk, Ending, Exchange, Request, Response, Trajectory
from traces.tape import Writer, seal

HOST = "model.example"
PATHS = {"calls": "/v1/orders", "chat": "/v1/chat/completions"}
ASKED, ANSWERED = 2_000, 1_500
HEADERS = (("host", HOST), ("accept", "*/*"), ("content-type", "application/json"))


def question(number: int) -> str:
    """What one request asks and no other does."""
    return f"question {number:07d}?"


def asked(kind: str, number: int) -> bytes:
    """The body of one request."""
    at = number * 37 % 4_000
    filler, said = SOURCES[at : at + 1_400], question(number)
    value: dict[str, object] = {"order": said, "note": filler}
    if kind == "chat":
        system = {"role": "system", "content": filler}
        value = {"model": "m", "messages": [system, {"role": "user", "content": said}]}
    return json.dumps(value).encode().ljust(ASKED + number % 64)


def content(number: int) -> str:
    """What one answer says and no other does."""
    at = number * 53 % 4_000
    return f"answer {number:07d}: {SOURCES[at : at + 900]}"


def answered(kind: str, number: int) -> bytes:
    """The body of one answer."""
    value: dict[str, object] = {"said": content(number)}
    if kind == "chat":
        message = {"role": "assistant", "content": content(number)}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        value = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "m"}
        value |= {"choices": choices}
    return json.dumps(value).encode().ljust(ANSWERED + number % 64)


def exchanges(kind: str, count: int, scheme: str = "http") -> Iterator[Exchange]:
    """Whole exchanges, one a second."""
    for number in range(count):
        body, said, at = asked(kind, number), answered(kind, number), float(number)
        headers = (*HEADERS, ("content-length", str(len(body))))
        url = f"{scheme}://{HOST}{PATHS[kind]}"
        fields = (
            ("content-type", "application/json"),
            ("content-length", str(len(said))),
            ("x-request-id", f"req_{number:07d}"),
        )
        yield Exchange(
            seq=number,
            started=at,
            request=Request(method="POST", url=url, headers=headers, body=body),
            response=Response(
                status=200,
                reason="OK",
                headers=fields,
                chunks=(Chunk(at=at, data=said),),
                at=at,
                ended=at,
            ),
        )


def tape(path: Path, recorded: Iterable[Exchange]) -> None:
    """What ours reads, closed and sealed as a run leaves it."""
    with Writer(path, Trajectory(id="bench", recorded_at=0.0), redact=False) as writer:
        for exchange in recorded:
            writer.exchange(exchange)
        writer.ending(Ending(ended="final"))
    seal(path)


def flows(path: Path, recorded: Iterable[Exchange]) -> None:
    """What `mitmdump -S` reads."""
    with path.open("wb") as file:
        writer = FlowWriter(file)  # type: ignore[no-untyped-call]
        for exchange in recorded:
            asked, answer = exchange.request, exchange.response
            assert answer is not None
            flow = http.HTTPFlow(tclient_conn(), tserver_conn())
            flow.request = http.Request.make("POST", asked.url, asked.body, _fields(asked.headers))
            flow.response = http.Response.make(200, answer.body, _fields(answer.headers))
            writer.add(flow)


def _fields(headers: Iterable[tuple[str, str]]) -> http.Headers:
    return http.Headers([(name.encode(), value.encode()) for name, value in headers])


def cassette(path: Path, recorded: Iterable[Exchange]) -> None:
    """What vcrpy reads with its JSON serializer, which is its quicker one."""
    interactions = []
    for exchange in recorded:
        asked, answer = exchange.request, exchange.response
        assert answer is not None
        request = {
            "method": "POST",
            "uri": asked.url,
            "body": asked.body.decode(),
            "headers": {name: [value] for name, value in asked.headers},
        }
        response = {
            "status": {"code": 200, "message": "OK"},
            "headers": {name: [value] for name, value in answer.headers},
            "body": {"string": answer.body.decode()},
        }
        interactions.append({"request": request, "response": response})
    path.write_text(json.dumps({"version": 1, "interactions": interactions}))


def pairs(path: Path, recorded: Iterable[Exchange]) -> None:
    """What cassetter records by itself: what is asked, and what is answered."""
    said = [
        (each.request.body.decode(), each.response.body.decode())
        for each in recorded
        if each.response is not None
    ]
    path.write_text(json.dumps(said))


def fixtures(path: Path, count: int) -> None:
    """What aimock reads: it knows a request by its last user message."""
    said = [
        {"match": {"userMessage": question(number)}, "response": {"content": content(number)}}
        for number in range(count)
    ]
    path.write_text(json.dumps({"fixtures": said}))
