"""Runs on the performer: taps, stages, what ends, and real clients."""

import asyncio
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from copy import replace
from itertools import count
from pathlib import Path

import httpx
import openai
import pytest

from recorder.proxy.connection import AgentConnection
from recorder.proxy.server import ProxyServer, RunListener
from tests.support.servers.replay_server_thread import (
    GET,
    INSIDE,
    WAIT,
    Script,
    dial,
    ending,
    heard,
    on_stage,
    rest,
    say,
    secure,
    trusting,
)
from traces.model import Exchange
from traces.taps import TapChain


@pytest.fixture(scope="module")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ca")


@pytest.fixture(scope="module")
def performer(confdir: Path) -> ProxyServer:
    return ProxyServer(confdir=confdir)


def test_a_tap_that_raises_ends_the_run(performer: ProxyServer) -> None:
    class Wrong:
        def response(self, exchange: Exchange) -> Exchange:
            raise ZeroDivisionError("a tap is wrong")

        def holds(self, exchange: Exchange) -> bool:
            return exchange.request.method == "POST"

    script = Script(say(b"one", b"two", gap=5))

    def late(stage: RunListener) -> None:
        with dial(stage) as end:
            rest(end)

    def run() -> None:
        with (
            on_stage(performer, Wrong(), script) as stage,
            dial(stage) as other,
            dial(stage) as end,
        ):
            other.sendall(GET)
            heard(other, b"\r\n\r\n")
            end.sendall(GET.replace(b"GET", b"POST"))
            assert ending(end) == (b"", "reset")
            assert ending(other) == (b"", "reset")
            assert stage.failed.is_set()
            with pytest.raises(ConnectionResetError):
                late(stage)

    with pytest.raises(ZeroDivisionError, match="a tap is wrong"):
        run()
    assert script.got == []


@pytest.mark.parametrize("method", ["request", "holds", "head", "chunk", "done"])
def test_whichever_method_of_a_tap_raises(performer: ProxyServer, method: str) -> None:
    def wrong(*_: object) -> None:
        raise LookupError(method)

    bad = type("Bad", (), {method: staticmethod(wrong)})()
    script = Script(say(b"hi", gap=0.01))

    def run() -> None:
        with on_stage(performer, script, bad) as stage, dial(stage) as end:
            end.sendall(GET)
            assert ending(end)[1] == "reset"

    with pytest.raises(LookupError, match=method):
        run()


@pytest.mark.parametrize("gap", [0.0, 0.02], ids=["whole", "in pieces"])
def test_no_chunk_is_later_on_the_tape_than_the_agent_had_it(
    performer: ProxyServer, monkeypatch: pytest.MonkeyPatch, gap: float
) -> None:
    write = AgentConnection.write

    def write_and_lose_the_processor(connection: AgentConnection, data: bytes) -> None:
        write(connection, data)
        time.sleep(0.05)

    monkeypatch.setattr(AgentConnection, "write", write_and_lose_the_processor)
    script = Script(say(b"one", b"two", gap=gap))
    with on_stage(performer, script) as stage, dial(stage) as end:
        end.sendall(GET)
        heard(end, b"two")
        had = stage.now()
        heard(end, b"0\r\n\r\n")
    (exchange,) = script.got
    assert exchange.response is not None
    assert exchange.response.at <= exchange.response.chunks[-1].at <= had


def test_what_is_held_back_is_bent_before_it_is_performed(performer: ProxyServer) -> None:
    class Bend:
        def holds(self, exchange: Exchange) -> bool:
            return exchange.request.url.endswith("/x")

        def response(self, exchange: Exchange) -> Exchange:
            return replace(say(b"bent")(exchange), answered_by="fault")

    script = Script(say(b"hi"))
    with on_stage(performer, Bend(), script) as stage, dial(stage) as end:
        end.sendall(GET + GET.replace(b"/x", b"/y"))
        assert heard(end, b"0\r\n\r\n").endswith(b"4\r\nbent\r\n0\r\n\r\n")
        assert heard(end, b"0\r\n\r\n").endswith(b"2\r\nhi\r\n0\r\n\r\n")
    assert [x.answered_by for x in script.got] == ["fault", "recorded"]


def test_without_a_way_out_what_no_tap_answers_is_refused(performer: ProxyServer) -> None:
    script = Script()
    with on_stage(performer, script) as stage, dial(stage) as end:
        for _ in range(2):
            end.sendall(GET)
            assert heard(end, b"refused: no way out\n").startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    for x in script.got:
        assert (x.answered_by, x.error) == ("refused", "refused: no way out")
        assert x.response is not None
        assert (x.response.status, x.response.body) == (502, b"refused: no way out\n")
        assert x.response.ended is not None


def test_strict_replay_does_not_even_load_the_way_out() -> None:
    code = "import recorder.proxy.server, sys; print('recorder.proxy.upstream' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert ran.stdout == b"False\n"


def test_leaving_the_stage_ends_everything(performer: ProxyServer, confdir: Path) -> None:
    script = Script(say(b"one", b"two", gap=300))
    threads = threading.active_count()
    with on_stage(performer, script) as stage:
        idle, busy = dial(stage), dial(stage)
        half = secure(stage, confdir)
        busy.sendall(GET)
        heard(busy, b"\r\n\r\n")
        port = stage.port
    with idle, busy, half:
        assert ending(idle)[0] == ending(busy)[0] == ending(half)[0] == b""
    assert [(x.error, x.response and x.response.body) for x in script.got] == [("cancelled", b"")]
    assert threading.active_count() == threads
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=WAIT)


def test_one_performer_serves_many_stages_at_once(performer: ProxyServer, confdir: Path) -> None:
    first, second = Script(say(b"first")), Script(say(b"second"))
    with on_stage(performer, first) as one, on_stage(performer, second) as two:
        for stage, said in ((one, b"first"), (two, b"second"), (one, b"first")):
            with secure(stage, confdir) as end:
                end.sendall(INSIDE)
                assert heard(end, b"0\r\n\r\n").splitlines()[-3] == said
    assert [x.seq for x in first.got] == [1, 2]
    assert [x.seq for x in second.got] == [1]


def test_the_stock_event_loop_will_do(performer: ProxyServer) -> None:
    async def run() -> bytes:
        script = Script(say(b"hi", gap=0.01))
        began = time.monotonic()
        async with performer.create_listener(
            TapChain([script]), began=began, seqs=count(1)
        ) as stage:
            reader, writer = await asyncio.open_connection("127.0.0.1", stage.port)
            writer.write(GET)
            answer = await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), WAIT)
            writer.close()
            await writer.wait_closed()
        return answer

    assert asyncio.run(run()).endswith(b"2\r\nhi\r\n0\r\n\r\n")


SSE = (("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))


@pytest.mark.parametrize("url", ["http://a.example/v1", "https://a.example/v1"])
def test_httpx_by_way_of_the_proxy(performer: ProxyServer, confdir: Path, url: str) -> None:
    script = Script(say(b'{"a":', b"1}", headers=(("content-type", "application/json"),)))
    with (
        on_stage(performer, script) as stage,
        httpx.Client(proxy=stage.url, verify=trusting(confdir), timeout=WAIT) as client,
    ):
        assert [client.post(url, json={"q": n}).json() for n in range(3)] == [{"a": 1}] * 3
    assert [x.request.body for x in script.asked] == [b'{"q":0}', b'{"q":1}', b'{"q":2}']
    assert {x.connection for x in script.asked} == {1}


@pytest.mark.gate
def test_the_openai_client_streams(performer: ProxyServer, confdir: Path) -> None:
    said = ["Hel", "lo"]
    parts = [
        b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":'
        b'[{"index":0,"delta":{"content":"%b"},"finish_reason":null}]}\n\n' % text.encode()
        for text in said
    ]
    script = Script(say(*parts, b"data: [DONE]\n\n", headers=SSE, gap=0.01))
    with (
        on_stage(performer, script) as stage,
        httpx.Client(proxy=stage.url, verify=trusting(confdir), timeout=WAIT) as client,
        openai.OpenAI(api_key="x", base_url="https://a.example/v1", http_client=client) as sdk,
    ):
        stream = sdk.chat.completions.create(
            model="m", stream=True, messages=[{"role": "user", "content": "hi"}]
        )
        assert [part.choices[0].delta.content for part in stream] == said
    assert script.got[0].request.url == "https://a.example/v1/chat/completions"


@pytest.mark.programs
@pytest.mark.parametrize(
    ("error", "code"), [(None, 0), ("eof", 18), ("reset", 56)], ids=["whole", "eof", "reset"]
)
@pytest.mark.parametrize("options", [(), ("--http2",), ("-p",)], ids=["plain", "http2", "tunnel"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_curl_tells_an_end_from_a_reset(
    performer: ProxyServer,
    confdir: Path,
    scheme: str,
    options: tuple[str, ...],
    error: str | None,
    code: int,
) -> None:
    curl = ["curl", "-sN", "--noproxy", "", "--cacert", str(confdir / "mitmproxy-ca-cert.pem")]
    with on_stage(performer, Script(say(b"one", b"two", gap=0.02, error=error))) as stage:
        ran = subprocess.run(
            [*curl, "-x", stage.url, *options, "-d", "q=1", f"{scheme}://a.example/"],
            capture_output=True,
            timeout=WAIT,
            check=False,
        )
    assert (ran.returncode, ran.stdout) == (code, b"onetwo")


HALF_REQUESTS = [
    b"G",
    b"GET http://h/ HTTP/1.1\r\nhost: h\r\n",
    b"CONNECT h:443 HTTP/1.1\r\nhost: h:443\r\n\r\n\x16\x03\x01\x02",
]


@pytest.mark.parametrize("half", HALF_REQUESTS)
def test_a_head_that_stays_incomplete_is_ended(performer: ProxyServer, half: bytes) -> None:
    with (
        on_stage(performer, Script(say(b"one"))) as stage,
        dial(stage) as end,
        dial(stage) as idle,
    ):
        end.sendall(half)
        idle.sendall(GET)
        heard(idle, b"one")
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and len(stage.connections) > 1:
            end.settimeout(0.2)
            stage.loop.call_soon_threadsafe(stage.close_stale, 0.1, 9)
            try:
                if not end.recv(999):
                    break
            except TimeoutError:
                continue
        assert time.monotonic() < deadline
        idle.sendall(GET)
        heard(idle, b"HTTP/1.1 ")  # an idle connection is no half request


def test_only_so_many_idle_connections_are_held(performer: ProxyServer) -> None:
    with on_stage(performer, Script(say(b"one"))) as stage, ExitStack() as stack:
        ends = [stack.enter_context(dial(stage)) for _ in range(6)]
        for end in ends:
            end.sendall(GET)
            heard(end, b"0\r\n\r\n")
        time.sleep(0.05)
        stage.loop.call_soon_threadsafe(stage.close_stale, 60, 2)
        for end in ends[:4]:  # the longest idle ones
            assert rest(end) == b""
        for end in ends[4:]:
            end.settimeout(0.1)
            with pytest.raises(TimeoutError):
                end.recv(1)
