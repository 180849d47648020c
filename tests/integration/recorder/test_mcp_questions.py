"""MCP servers that ask their client in the middle of a call, on the official SDK over HTTP.

Recorded live, with and without a fault in the call, and replayed without the servers: the client is
asked before its call is answered, and the answer it gets follows its own.
"""

import asyncio
import itertools
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest

from faults.injector.injector import FaultInjector, RunSeeds
from faults.targeting.bound_fault import bind_without_recording
from recorder.proxy.recording import start_recording_proxy
from recorder.proxy.server import ProxyServer
from replay.player import TapePlayer
from scenarios.practice.mcp_server import serve_mcp_on_loopback
from tests.support.agents import asked_agent
from tests.support.servers import asking_model, asking_server
from tests.support.servers.raw_servers import BOUND, confdir
from traces.conversation.tracker import ConversationTap
from traces.dialects import mcp
from traces.model import Chunk, Exchange, Fault, Injection, Trajectory
from traces.tape.reader import Tape, read_tape
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

pytestmark = pytest.mark.filterwarnings("ignore:The .* capability is deprecated")

type Mode = Literal["auto", "legacy"]

HEARD = {"sample": "sampled 8641", "elicit": "{'city': 'Ulm'}", "roots": "file:///desk"}
CASES: Sequence[tuple[str, Mode, bool]] = (
    ("sample", "legacy", False),
    ("sample", "legacy", True),
    ("sample", "auto", False),
    ("elicit", "legacy", False),
    ("elicit", "auto", False),
    ("roots", "legacy", False),
)
"""The tool, the version of the protocol, and whether it asks on the session's own stream."""


@pytest.fixture(autouse=True)
def _no_exceptions_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


class Session:
    """One tool of the asking server, and the addresses that its recording has."""

    def __init__(self, folder: Path, tool: str, mode: Mode, *, apart: bool = False) -> None:
        self.tape, self.tool, self.mode, self.apart = folder / "a.tape", tool, mode, apart
        self.at: tuple[str, str] = ("", "")
        self.asked: list[list[dict[str, Any]]] = []

    def record(self, patch: pytest.MonkeyPatch, *taps: object) -> list[str]:
        """Run the agent against the servers; return what it said."""
        watch = next((tap for tap in taps if isinstance(tap, ConversationTap)), ConversationTap())
        others = [tap for tap in taps if tap is not watch]

        async def run() -> list[str]:
            server, events = asking_server.build(), asking_server.Events()
            with (
                asking_model.serving(self.asked, apart=self.apart) as model,
                TapeWriter(self.tape, Trajectory(id="r", recorded_at=0.0)) as writer,
            ):
                async with (
                    serve_mcp_on_loopback(server, events=events) as port,
                    start_recording_proxy(
                        TapChain((watch, *others, writer)),
                        confdir=confdir(),
                        began=time.monotonic(),
                        seqs=itertools.count(),
                    ) as proxy,
                ):
                    self.at = model, f"http://127.0.0.1:{port}/mcp"
                    return await self._converse(patch, proxy.url)

        return asyncio.run(run())

    def replay(
        self, patch: pytest.MonkeyPatch, *others: object, watch: ConversationTap | None = None
    ) -> tuple[list[str], TapePlayer]:
        """Run the agent against the recording."""
        watch = watch or ConversationTap()
        player = TapePlayer(read_tape(self.tape), watch)

        async def run() -> list[str]:
            listener = ProxyServer(confdir=confdir()).create_listener(
                TapChain((watch, *others, player)),
                began=time.monotonic(),
                seqs=itertools.count(),
                is_due=player.is_chunk_due,
            )
            async with listener as stage:
                return await self._converse(patch, stage.url)

        return asyncio.run(run()), player

    async def _converse(self, patch: pytest.MonkeyPatch, proxy: str) -> list[str]:
        for name in ("HTTP_PROXY", "http_proxy"):
            patch.setenv(name, proxy)
        model, server = self.at
        async with asyncio.timeout(BOUND):
            return await asked_agent.main(model, self.tool, self.mode, server)


def injector(watch: ConversationTap, *faults: Fault) -> tuple[FaultInjector, list[Injection]]:
    injected: list[Injection] = []
    armed = [bind_without_recording(fault) for fault in faults]
    seeds = RunSeeds(run="r", trace="t")
    return FaultInjector(armed, watch, injected.append, seeds=seeds), injected


def find_answered(tape: Tape) -> list[float]:
    """When the client answered each request of the server."""
    client_message = [(x.started, mcp.read_client_message(x.request)) for x in tape.exchanges]
    return [at for at, message in client_message if message is not None and message.role == "reply"]


@pytest.mark.gate
@pytest.mark.parametrize(("tool", "mode", "apart"), CASES)
def test_a_call_in_which_the_server_asks_is_recorded_and_replayed(
    tool: str, mode: Mode, apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(tmp_path, tool, mode, apart=apart)
    said = session.record(monkeypatch)
    assert said == [f"DONE: amount {asking_server.AMOUNT}, {HEARD[tool]}"]
    assert len(find_answered(read_tape(session.tape))) == (0 if mode == "auto" else 1)
    session.asked.clear()
    played, player = session.replay(monkeypatch)
    assert played == said
    assert (player.diverged, player.list_unasked(), session.asked) == ([], (), [])


@pytest.mark.gate
@pytest.mark.parametrize(("tool", "mode", "apart"), CASES)
def test_a_faulted_call_in_which_the_server_asks_gets_its_changed_result(
    tool: str, mode: Mode, apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, watch = Session(tmp_path, tool, mode, apart=apart), ConversationTap()
    nemesis, injected = injector(watch, Fault(name="digit"))
    (said,) = session.record(monkeypatch, watch, nemesis)
    (injection,) = injected
    assert injection.place == "mcp"
    assert injection.mutated is not None
    assert said == f"DONE: {injection.mutated.decode()}"
    assert injection.original == f"amount {asking_server.AMOUNT}, {HEARD[tool]}".encode()
    assert nemesis.no_site == []


@pytest.mark.gate
@pytest.mark.parametrize("fault", [Fault(name="cut"), Fault(name="truncate"), Fault(name="delay")])
def test_each_failure_after_a_question_ends_the_call(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, watch = Session(tmp_path, "elicit", "legacy"), ConversationTap()
    nemesis, injected = injector(watch, fault)
    with suppress(BaseExceptionGroup):  # how the SDK ends a client whose call failed
        session.record(monkeypatch, watch, nemesis)
    (injection,) = injected
    struck = next(x for x in read_tape(session.tape).exchanges if x.seq == injection.seq)
    assert struck.response is not None
    assert b"elicitation/create" in struck.response.body
    assert (struck.error == "reset") == (fault.name == "cut")


@pytest.mark.gate
def test_a_closed_stream_is_resumed_and_its_result_is_faulted_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(tmp_path, "resume", "legacy")
    said = session.record(monkeypatch)
    assert said == ["progress 1", "progress 2", f"DONE: amount {asking_server.AMOUNT}, resumed"]
    played, player = session.replay(monkeypatch)
    assert played == said
    assert (player.diverged, player.list_unasked()) == ([], ())
    session.tape.unlink()
    watch = ConversationTap()
    nemesis, injected = injector(watch, Fault(name="digit"))
    faulted = session.record(monkeypatch, watch, nemesis)
    (injection,) = injected
    assert injection.mutated is not None
    assert injection.original == f"amount {asking_server.AMOUNT}, resumed".encode()
    assert faulted == ["progress 1", "progress 2", f"DONE: {injection.mutated.decode()}"]


def test_a_client_that_answers_otherwise_than_recorded_has_left_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(tmp_path, "elicit", "legacy")
    session.record(monkeypatch)
    monkeypatch.setattr(asked_agent, "CITY", "Bonn")
    _, player = session.replay(monkeypatch)
    (why,) = player.diverged
    assert "Ulm" in why
    assert "Bonn" in why


def test_the_result_of_a_call_follows_the_answer_of_a_slow_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(tmp_path, "elicit", "legacy")
    session.record(monkeypatch)
    monkeypatch.setattr(asked_agent, "PAUSE", 0.4)
    order = Order()
    session.replay(monkeypatch, order)
    assert order.seen == ["tools/call", "reply", "the result"]


class Order:
    """A tap that notes when a client answers, and when its call is answered."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def request(self, exchange: Exchange) -> Exchange:
        message = mcp.read_client_message(exchange.request)
        if message is not None and message.role in ("call", "reply"):
            self.seen.append(message.method if message.call else message.role)
        return exchange

    def chunk(self, exchange: Exchange, chunk: Chunk) -> None:
        message = mcp.read_client_message(exchange.request)
        if message is not None and message.call is not None and b'"result"' in chunk.data:
            self.seen.append("the result")
