"""What a recording of a command would hold: its agent is started once, alone with a stand-in.

The stand-in is the proxy of a recording with nobody behind it: a model says that it is done, all
else is refused. Where namespaces can be had the agent reaches nothing besides, and what it tries
to reach past the proxy is counted.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from recorder.attempts import Attempt
from recorder.cage import lacks
from stumble.launch import Cold
from stumble.theatre import Acted, act, theatre
from stumble.unseen import programs, settings
from traces.conversation import Watch
from traces.dialects import lens, mcp
from traces.dialects.failing import streams
from traces.encoding import plain
from traces.kind import kind
from traces.model import Chunk, Exchange, Headers, Response, Trajectory
from traces.noise import noise
from traces.step import Answer
from traces.tape import Writer
from traces.websocket import NoWebSocket

NO_SUCH_METHOD = -32601
"""By JSON-RPC."""
SAYS = "There is nothing to do."


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a recording would hold (`seen`), would miss, or of which nobody knows."""

    what: str
    """`model`, `requests`, `mcp`, `certificate`, `proxy`, `program` or `settings`."""
    seen: bool | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What came of it, and what the agent itself printed last."""

    findings: tuple[Finding, ...]
    exit: int
    printed: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """True where model calls would be recorded, and nothing is known to be missed."""
        seen = [found.seen for found in self.findings]
        called = any(found.what == "model" and found.seen for found in self.findings)
        return called and False not in seen


class StandIn:
    """A tap that answers everything: models with a word, telemetry with none, the rest with 503."""

    def __init__(self) -> None:
        self.asked: list[Exchange] = []

    def request(self, exchange: Exchange) -> Exchange:
        """The exchange with an answer, if it has none yet."""
        self.asked.append(exchange)
        if exchange.response is not None:
            return exchange
        request, at = exchange.request, exchange.started
        dialect = lens(request)
        if mcp.message(request) is not None:
            return replace(exchange, response=_no_server(exchange), answered_by="simulated")
        if dialect is None:
            status = 204 if noise(request.url) else 503
            headers: Headers = () if status == 204 else (("content-length", "0"),)
            said = Response(status=status, headers=headers, at=at, ended=at)
            return replace(exchange, response=said, answered_by="simulated")
        body = plain(request.headers, request.body) or b""
        answer = Answer(message=SAYS, model=dialect.model(body), finish="stop")
        headers, chunks = dialect.write(answer, stream=streams(request), id="doctor", created=0)
        chunks = tuple(replace(chunk, at=at) for chunk in chunks)
        said = Response(status=200, headers=headers, chunks=chunks, at=at, ended=at)
        return replace(exchange, response=said, answered_by="simulated")


def _no_server(exchange: Exchange) -> Response:
    """The answer of an MCP server that knows no method at all; none to what wants no answer."""
    try:
        id = json.loads(exchange.request.body).get("id")
    except (ValueError, AttributeError):
        id = None
    error = {"code": NO_SUCH_METHOD, "message": "Method not found"}
    body = json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode()
    headers = (("content-type", "application/json"), ("content-length", str(len(body))))
    at = exchange.started
    return Response(
        status=202 if id is None else 200,
        headers=() if id is None else headers,
        chunks=() if id is None else (Chunk(at=at, data=body),),
        at=at,
        ended=at,
    )


async def examine(
    command: tuple[str, ...], env: Mapping[str, str], *, ca: Path, scratch: Path, budget: float
) -> Examined:
    """Start the agent once, for at most `budget` seconds, and say what was seen of it.

    It works in the current folder, and its output goes nowhere.
    """
    began, stand_in, printed = time.monotonic(), StandIn(), scratch / "printed"
    alone = lacks().alone
    printed.touch()
    head = Trajectory(id="doctor", recorded_at=time.time())
    with Writer(scratch / "doctor.tape", head) as tape:
        async with theatre(ca=ca, scratch=scratch, hosts={}, out=False) as house:
            acted = await act(
                house,
                Cold(command=command, budget=budget, output=printed),
                (Watch(), NoWebSocket(), stand_in),
                tape,
                began=began,
                out=False,
                upstreams=(),
                alone=alone is None,
            )
    asked = tuple(stand_in.asked)
    findings = (
        *_models(asked),
        *_others(asked),
        *_around(acted, alone),
        *(Finding(what="program", seen=seen, text=text) for seen, text in programs(command, env)),
        *(Finding(what="settings", seen=seen, text=text) for seen, text in settings(env)),
    )
    lines = printed.read_text("utf-8", "replace").splitlines()
    return Examined(findings=findings, exit=acted.exit.code, printed=tuple(lines[-5:]))


def _models(asked: tuple[Exchange, ...]) -> Iterator[Finding]:
    counted: dict[tuple[str, str], int] = {}
    for exchange in asked:
        if (dialect := lens(exchange.request)) is not None:
            where = (_host(exchange), dialect.NAME)
            counted[where] = counted.get(where, 0) + 1
    for (host, name), count in counted.items():
        text = f"{_many(count, 'model call')} to {host} ({name})"
        yield Finding(what="model", seen=True, text=text)
    if not counted:
        text = "no model call came, neither by the proxy nor by a base URL"
        yield Finding(what="model", seen=False, text=text)


def _others(asked: tuple[Exchange, ...]) -> Iterator[Finding]:
    servers = {x.connection for x in asked if x.transport == "stdio"}
    if servers:
        text = f"{_many(len(servers), 'stdio MCP server')} behind a tee"
        yield Finding(what="mcp", seen=True, text=text)
    for word, wanted in (("request", "tool"), ("known side request", "other")):
        found = [x for x in asked if x.transport != "stdio" and kind(x.request) == wanted]
        if found:
            hosts = ", ".join(sorted({_host(x) for x in found}))
            text = f"{_many(len(found), word)} to {hosts}"
            yield Finding(what="requests", seen=True, text=text)


def _around(acted: Acted, not_alone: str | None) -> Iterator[Finding]:
    for host, why in acted.untrusted.items():
        text = f"{host}: the agent does not trust our certificate ({why}); it may pin its own"
        yield Finding(what="certificate", seen=False, text=text)
    for warning in acted.warnings:
        yield Finding(what="mcp", seen=False, text=warning)
    if not_alone is not None:
        text = f"what goes past the proxy cannot be told here: {not_alone}"
        yield Finding(what="proxy", seen=None, text=text)
    for attempt, count in acted.attempts.items():
        yield Finding(what="proxy", seen=False, text=_past(attempt, count))


def _past(attempt: Attempt, count: int) -> str:
    return f"past the proxy: {attempt}" + (f", {count} times" if count > 1 else "")


def _host(exchange: Exchange) -> str:
    return urlsplit(exchange.request.url).netloc


def _many(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"
