"""The same recordings for every replayer, in each one's format.

Requests of 2 KB and answers of 1.5 KB, all different and of varying length, each answer with an id
in its headers; seeded by their number. `calls` are POSTs to a service, `chat` are requests to a
model, the only kind that aimock answers.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from mitmproxy import http
from mitmproxy.io import FlowWriter
from mitmproxy.test.tflow import tclient_conn, tserver_conn

from tests.bench.traffic import SOURCES
from traces.model import Chunk, Exchange, Request, Response, RunEnding, Trajectory
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter

HOST = "model.example"
PATHS = {"calls": "/v1/orders", "chat": "/v1/chat/completions"}
ASKED, ANSWERED = 2_000, 1_500
HEADERS = (("host", HOST), ("accept", "*/*"), ("content-type", "application/json"))


def question(number: int) -> str:
    """Return text that is unique to one request."""
    return f"question {number:07d}?"


def asked(kind: str, number: int) -> bytes:
    """Return the body of one request."""
    at = number * 37 % 4_000
    filler, said = SOURCES[at : at + 1_400], question(number)
    value: dict[str, object] = {"order": said, "note": filler}
    if kind == "chat":
        system = {"role": "system", "content": filler}
        value = {"model": "m", "messages": [system, {"role": "user", "content": said}]}
    return json.dumps(value).encode().ljust(ASKED + number % 64)


def content(number: int) -> str:
    """Return text that is unique to one answer."""
    at = number * 53 % 4_000
    return f"answer {number:07d}: {SOURCES[at : at + 900]}"


def answered(kind: str, number: int) -> bytes:
    """Return the body of one answer."""
    value: dict[str, object] = {"said": content(number)}
    if kind == "chat":
        message = {"role": "assistant", "content": content(number)}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        value = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "m"}
        value |= {"choices": choices}
    return json.dumps(value).encode().ljust(ANSWERED + number % 64)


def exchanges(kind: str, count: int, scheme: str = "http") -> Iterator[Exchange]:
    """Yield complete exchanges, one per second."""
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
    """Write stumble's format, closed and sealed as by a run."""
    with TapeWriter(path, Trajectory(id="bench", recorded_at=0.0), redact=False) as writer:
        for exchange in recorded:
            writer.write_exchange(exchange)
        writer.write_ending(RunEnding(ended="final"))
    seal_tape(path)


def flows(path: Path, recorded: Iterable[Exchange]) -> None:
    """Write the format of `mitmdump -S`."""
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
    """Write vcrpy's format with its JSON serializer, the faster one."""
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
    """Write the requests and answers that cassetter records by itself."""
    said = [
        (each.request.body.decode(), each.response.body.decode())
        for each in recorded
        if each.response is not None
    ]
    path.write_text(json.dumps(said))


def fixtures(path: Path, count: int) -> None:
    """Write aimock's format, which identifies a request by its last user message."""
    said = [
        {"match": {"userMessage": question(number)}, "response": {"content": content(number)}}
        for number in range(count)
    ]
    path.write_text(json.dumps({"fixtures": said}))
