"""Trial run of a command with a stub proxy, to find out which traffic a recording would contain.

The stub answers every request without an upstream: model calls get a final answer, all else is
refused. With namespaces the agent reaches nothing but the stub, and its connection attempts that
bypass the proxy are counted.
"""

import json
import time
from collections.abc import Iterator, Mapping
from copy import replace
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from recorder.agent.isolation import find_missing_capabilities
from recorder.agent.unseen_traffic import UnseenTrafficWatch
from stumble.doctor.static_checks import check_agent_program, check_agent_variables
from stumble.runs.launcher import ColdLauncher
from stumble.runs.session import AgentResult, RunOptions, open_replay_session, run_agent
from stumble.runs.summary import describe_unread_models
from stumble.runs.unseen_traffic import (
    describe_connections,
    describe_earlier_servers,
    describe_unteed_servers,
)
from traces.bodies.content_encoding import read_content
from traces.bodies.websocket import WebSocketDeclineTap
from traces.conversation.classify import classify_request
from traces.conversation.noise_hosts import classify_noise
from traces.conversation.tracker import ConversationTap
from traces.dialects import find_dialect, mcp
from traces.dialects.errors import is_streaming_request
from traces.dialects.types import ModelAnswer
from traces.model import Chunk, Exchange, Headers, Response, Trajectory
from traces.tape.writer import TapeWriter

NO_SUCH_METHOD = -32601
"""The error code of JSON-RPC 2.0."""
STUB_ANSWER = "There is nothing to do."


class DoctorFinding(Struct, frozen=True, kw_only=True):
    """Traffic that a recording would contain (`seen`) or miss, or for which this is unknown."""

    what: str
    """`model`, `requests`, `mcp`, `certificate`, `proxy`, `program` or `settings`."""
    seen: bool | None
    text: str


class DoctorResult(Struct, frozen=True, kw_only=True):
    """The findings, the exit code of the agent and the last lines it printed."""

    findings: tuple[DoctorFinding, ...]
    exit: int
    printed: tuple[str, ...]

    @property
    def is_recordable(self) -> bool:
        """Whether model calls would be recorded and nothing is known to be missed."""
        recorded = [finding.seen for finding in self.findings]
        called = any(finding.what == "model" and finding.seen for finding in self.findings)
        return called and False not in recorded


class StubAnswerTap:
    """A tap that answers model calls with a text, telemetry with 204 and the rest with 503."""

    def __init__(self) -> None:
        self.asked: list[Exchange] = []

    def request(self, exchange: Exchange) -> Exchange:
        """Return the exchange with an answer; leave one that has an answer."""
        self.asked.append(exchange)
        if exchange.response is not None:
            return exchange
        request, at = exchange.request, exchange.started
        dialect = find_dialect(request)
        if mcp.read_client_message(request) is not None:
            return replace(
                exchange, response=_answer_unknown_method(exchange), answered_by="simulated"
            )
        if dialect is None:
            status = 204 if classify_noise(request.url) else 503
            headers: Headers = () if status == 204 else (("content-length", "0"),)
            response = Response(status=status, headers=headers, at=at, ended=at)
            return replace(exchange, response=response, answered_by="simulated")
        body = read_content(request)
        answer = ModelAnswer(
            message=STUB_ANSWER, model=dialect.read_model_name(body), finish="stop"
        )
        headers, chunks = dialect.write_model_answer(
            answer, stream=is_streaming_request(request), id="doctor", created=0
        )
        chunks = tuple(replace(chunk, at=at) for chunk in chunks)
        response = Response(status=200, headers=headers, chunks=chunks, at=at, ended=at)
        return replace(exchange, response=response, answered_by="simulated")


def _answer_unknown_method(exchange: Exchange) -> Response:
    """Return the answer of an MCP server without methods; 202 to a notification."""
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


async def examine_agent(
    command: tuple[str, ...], env: Mapping[str, str], *, ca: Path, scratch: Path, budget: float
) -> DoctorResult:
    """Start the agent once, for at most `budget` seconds, and return the findings.

    It works in the current folder, and its output goes to a file in `scratch`.
    """
    began, stub, printed = time.monotonic(), StubAnswerTap(), scratch / "printed"
    unseen = UnseenTrafficWatch(lambda: True)
    not_alone = find_missing_capabilities().alone
    printed.touch()
    head = Trajectory(id="doctor", recorded_at=time.time())
    with TapeWriter(scratch / "doctor.tape", head) as tape:
        async with open_replay_session(ca=ca, scratch=scratch, hosts={}, out=False) as session:
            result = await run_agent(
                session,
                ColdLauncher(command=command, budget=budget, output=printed),
                (ConversationTap(), WebSocketDeclineTap(), stub),
                tape,
                RunOptions(alone=not_alone is None, unseen=unseen),
                began=began,
            )
    exchanges = tuple(stub.asked)
    findings = (
        *_find_model_calls(exchanges),
        *_find_other_traffic(exchanges),
        *_find_missed_traffic(result, not_alone),
        *(
            DoctorFinding(what="mcp", seen=False, text=text)
            for text in describe_unteed_servers(unseen.servers)
        ),
        *(
            DoctorFinding(what="proxy", seen=False, text=text)
            for text in describe_earlier_servers((x.request for x in exchanges), command)
        ),
        *(
            DoctorFinding(what="program", seen=seen, text=text)
            for seen, text in check_agent_program(command, env)
        ),
        *(
            DoctorFinding(what="settings", seen=seen, text=text)
            for seen, text in check_agent_variables(env)
        ),
    )
    lines = printed.read_text("utf-8", "replace").splitlines()
    return DoctorResult(findings=findings, exit=result.exit.code, printed=tuple(lines[-5:]))


def _find_model_calls(exchanges: tuple[Exchange, ...]) -> Iterator[DoctorFinding]:
    counted: dict[tuple[str, str], int] = {}
    for exchange in exchanges:
        if (dialect := find_dialect(exchange.request)) is not None:
            where = (_get_request_host(exchange), dialect.NAME)
            counted[where] = counted.get(where, 0) + 1
    for (host, name), count in counted.items():
        text = f"{_pluralize(count, 'model call')} to {host} ({name})"
        yield DoctorFinding(what="model", seen=True, text=text)
    unread = list(describe_unread_models(exchange.request for exchange in exchanges))
    for text in unread:
        yield DoctorFinding(what="model", seen=True, text=text)
    if not counted and not unread:
        text = "no model call came, neither by the proxy nor by a base URL"
        yield DoctorFinding(what="model", seen=False, text=text)


def _find_other_traffic(exchanges: tuple[Exchange, ...]) -> Iterator[DoctorFinding]:
    servers = {x.connection for x in exchanges if x.transport == "stdio"}
    if servers:
        text = f"{_pluralize(len(servers), 'stdio MCP server')} behind a tee"
        yield DoctorFinding(what="mcp", seen=True, text=text)
    for word, kind in (("request", "tool"), ("known side request", "other")):
        matches = [
            x for x in exchanges if x.transport != "stdio" and classify_request(x.request) == kind
        ]
        if matches:
            hosts = ", ".join(sorted({_get_request_host(x) for x in matches}))
            text = f"{_pluralize(len(matches), word)} to {hosts}"
            yield DoctorFinding(what="requests", seen=True, text=text)


def _find_missed_traffic(acted: AgentResult, not_alone: str | None) -> Iterator[DoctorFinding]:
    for host, why in acted.untrusted.items():
        text = f"{host}: the agent does not trust our certificate ({why}); it may pin its own"
        yield DoctorFinding(what="certificate", seen=False, text=text)
    for warning in acted.warnings:
        yield DoctorFinding(what="mcp", seen=False, text=warning)
    if not_alone is not None:
        text = f"what goes past the proxy cannot be told here: {not_alone}"
        yield DoctorFinding(what="proxy", seen=None, text=text)
    for text in describe_connections(acted.attempts):
        yield DoctorFinding(what="proxy", seen=False, text=text)


def _get_request_host(exchange: Exchange) -> str:
    return urlsplit(exchange.request.url).netloc


def _pluralize(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"
