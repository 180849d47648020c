"""MCP servers that ask their client in a call, behind a server of Node that speaks HTTP/2.

What is recorded is HTTP/2 on both sides. A run with faults and a replay are served by the own
server: over HTTP/1.1 to a client that speaks it too, over HTTP/2 to one that speaks nothing else.
"""

import asyncio
import itertools
import ssl
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from faults.injector.injector import FaultInjector, RunSeeds
from faults.targeting.bound_fault import bind_without_recording
from recorder.ca import ensure_ca_certificate
from recorder.event_loop import run_event_loop
from recorder.proxy.route import UpstreamRoute
from recorder.proxy.server import ProxyServer
from recorder.proxy.upstream import OriginClient
from replay.player import TapePlayer
from scenarios.practice.mcp_server import serve_mcp_on_loopback
from tests.support.agents import asked_agent
from tests.support.servers import asking_model, asking_server
from tests.support.servers.asking_server import AMOUNT
from tests.support.servers.raw_servers import BOUND, confdir, recording, server_ca, write_server_pem
from traces.conversation.tracker import ConversationTap
from traces.model import Fault, Injection, Trajectory
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

pytestmark = [
    pytest.mark.programs,
    pytest.mark.filterwarnings("ignore:The .* capability is deprecated"),
]

HEARD = {"sample": "sampled 8641", "elicit": "{'city': 'Ulm'}", "resume": "resumed"}
FRONT = """
const [fs, http, http2] = ['fs', 'http', 'http2'].map(name => require(name))
const [pem, port] = process.argv.slice(2)
const key = fs.readFileSync(pem)
http2.createSecureServer({key, cert: key, allowHTTP1: true}, (asked, answer) => {
  const fields = Object.entries(asked.headers).filter(([name]) => !name.startsWith(':'))
  const headers = {host: asked.authority, ...Object.fromEntries(fields)}
  const {method, url: path} = asked
  const on = http.request({port, host: '127.0.0.1', method, path, headers}, came => {
    for (const name of ['connection', 'keep-alive', 'transfer-encoding']) delete came.headers[name]
    answer.writeHead(came.statusCode, came.headers)
    came.pipe(answer)
  })
  on.on('error', () => answer.stream ? answer.stream.close() : answer.destroy())
  answer.on('close', () => on.destroy())
  asked.pipe(on)
}).listen(0, '127.0.0.1', function () { console.log(this.address().port) })
"""


class Http2Alone(ssl.SSLContext):
    """TLS of a client that offers HTTP/2 and nothing else, whatever its library asks for."""

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:
        super().set_alpn_protocols(["h2"])


def make_client_of_http2_alone() -> httpx2.AsyncClient:
    tls = Http2Alone(ssl.PROTOCOL_TLS_CLIENT)
    tls.load_verify_locations(ensure_ca_certificate(confdir()))
    return httpx2.AsyncClient(http2=True, verify=tls, timeout=60)


@asynccontextmanager
async def serve_http2(folder: Path) -> AsyncIterator[str]:
    """Run the server that asks, and Node in front of it; yield the URL."""
    script = folder / "front.cjs"
    script.write_text(FRONT)
    pem = write_server_pem("localhost")
    events = asking_server.Events()
    async with serve_mcp_on_loopback(asking_server.build(), events=events) as port:
        front = await asyncio.create_subprocess_exec(
            "node", str(script), str(pem), str(port), stdout=asyncio.subprocess.PIPE
        )
        assert front.stdout is not None
        try:
            yield f"https://localhost:{int(await front.stdout.readline())}/mcp"
        finally:
            front.kill()
            await front.wait()


@asynccontextmanager
async def own_server(
    *taps: object, upstream: OriginClient | None = None, player: TapePlayer | None = None
) -> AsyncIterator[str]:
    """Serve a run with faults, or a replay; yield the proxy's URL."""
    listener = ProxyServer(confdir=confdir()).create_listener(
        TapChain(taps), began=time.monotonic(), seqs=itertools.count(), upstream=upstream
    )
    if player is not None:
        listener.is_due = player.is_chunk_due
    async with listener:
        yield listener.url


async def converse(proxy: str, model: str, tool: str, server: str) -> list[str]:
    """Run the agent behind the proxy; return what it said."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
            patch.setenv(name, proxy)
        for name in ("NO_PROXY", "no_proxy"):
            patch.delenv(name, raising=False)
        patch.setenv("SSL_CERT_FILE", str(ensure_ca_certificate(confdir())))
        async with asyncio.timeout(BOUND):
            return await asked_agent.main(model, tool, "legacy", server)


@pytest.mark.parametrize("alone", [False, True], ids=["http1-too", "http2-alone"])
@pytest.mark.parametrize("tool", ["sample", "resume"])
def test_a_faulted_call_over_http2_asks_the_client_and_gets_its_changed_result(
    tool: str, alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if alone:
        monkeypatch.setattr(asked_agent, "make_http2_client", make_client_of_http2_alone)
    watch, injected = ConversationTap(), list[Injection]()
    armed, seeds = [bind_without_recording(Fault(name="digit"))], RunSeeds(run="r", trace="t")
    injector = FaultInjector(armed, watch, injected.append, seeds=seeds)

    async def main() -> list[str]:
        route = UpstreamRoute(ca_file=server_ca())
        with asking_model.serving([]) as model:
            async with (
                serve_http2(tmp_path) as server,
                OriginClient(route, time.monotonic(), {}) as upstream,
                own_server(watch, injector, upstream=upstream) as proxy,
            ):
                return await converse(proxy, model, tool, server)

    said = run_event_loop(main())
    (injection,) = injected
    assert injection.original == f"amount {AMOUNT}, {HEARD[tool]}".encode()
    assert injection.mutated is not None
    assert said[-1] == f"DONE: {injection.mutated.decode()}"


@pytest.mark.parametrize("alone", [False, True], ids=["http1-too", "http2-alone"])
def test_a_call_over_http2_in_which_the_server_asks_is_recorded_and_replayed(
    alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if alone:
        monkeypatch.setattr(asked_agent, "make_http2_client", make_client_of_http2_alone)
    tape = tmp_path / "a.tape"

    async def record(model: str) -> tuple[list[str], str]:
        with TapeWriter(tape, Trajectory(id="r", recorded_at=0.0)) as writer:
            async with serve_http2(tmp_path) as server, recording(writer) as proxy:
                return await converse(proxy.url, model, "elicit", server), server

    async def main() -> tuple[list[str], list[str], TapePlayer]:
        with asking_model.serving([]) as model:
            said, server = await record(model)
            watch = ConversationTap()
            player = TapePlayer(read_tape(tape), watch)
            async with own_server(watch, player, player=player) as proxy:
                return said, await converse(proxy, model, "elicit", server), player

    said, played, player = run_event_loop(main())
    assert played == said == [f"DONE: amount {AMOUNT}, {HEARD['elicit']}"]
    assert (player.diverged, player.list_unasked()) == ([], ())
    spoken = {x.response.version for x in read_tape(tape).exchanges if x.response is not None}
    assert spoken == {"HTTP/1.1", "HTTP/2.0"}
