"""The recording forward proxy: mitmproxy's core in this process, on 127.0.0.1 only."""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from recorder.proxy.corporate_proxy import ProxySettings
from recorder.proxy.mitm.connection import MitmConnection, ProxyContext, split_origin
from recorder.proxy.mitm.flows import MitmFlows, make_run_clock
from recorder.proxy.mitm.tls import ProxyTls
from traces.taps import TapChain

HOST = "127.0.0.1"
PROXY_CLOSING_TIMEOUT = 5.0
"""Seconds that connections get to close after the request to."""

# Otherwise Python prints mitmproxy's warnings to standard error.
logging.getLogger("mitmproxy").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingProxy:
    """A listening proxy."""

    port: int
    certificate: Path
    """The CA certificate as PEM."""
    origins: Mapping[str, int] = field(default_factory=dict)
    """Each origin's local port."""
    mistrusted: Mapping[str, str] = field(default_factory=dict)
    """Hosts whose traffic is not recorded, as the agent rejected the certificate; and why."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Upstream proxies that rejected the login; and what to do."""

    @property
    def url(self) -> str:
        """The value of the agent's proxy variables."""
        return f"http://{HOST}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRoute:
    """How the proxy reaches servers."""

    hosts: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Each replaced host's actual address."""
    ca_file: Path | None = None
    """The trusted CAs as PEM, by default certifi's."""
    proxies: ProxySettings = ProxySettings()  # noqa: RUF009


DIRECT_ROUTE = UpstreamRoute()


@asynccontextmanager
async def start_recording_proxy(
    taps: TapChain,
    *,
    confdir: Path,
    port: int = 0,
    began: float,
    seqs: Iterator[int],
    upstream: UpstreamRoute = DIRECT_ROUTE,
    origins: Mapping[str, int] = {},
    inner: bool = False,
) -> AsyncIterator[RecordingProxy]:
    """Run a recording proxy while the block runs; everything it opened is closed afterwards.

    `confdir` contains the CA (created if missing, key with mode 0600). `began` is the
    time.monotonic() from which all times count. `origins` (`https://api.openai.com`) maps each
    origin that gets a port of its own to that port (0 for any); clients reach it there without a
    proxy. An exception from a tap cancels the block and is raised here; agents' connections are
    reset.

    An `inner` proxy runs behind a replay server: if there is no response at all, not even a head,
    it sends status 502 with the reason in the header `x-stumble-error` instead of a reset.
    """
    task = asyncio.current_task()
    assert task is not None
    failures: list[BaseException] = []

    def fail(error: BaseException) -> None:
        failures.append(error)
        if len(failures) == 1:
            task.cancel()

    distrusting_hosts, refusals = dict[str, str](), dict[str, str]()
    tls = ProxyTls(confdir, upstream.ca_file)
    origin_at: dict[int, tuple[str, str, int]] = {}
    context = ProxyContext(
        origins=origin_at,
        tls=tls,
        hosts=upstream.hosts,
        inner=inner,
        proxy_settings=upstream.proxies,
        refusals=refusals,
        mistrusted=distrusting_hosts,
        fail=fail,
    )
    connections: dict[MitmConnection, asyncio.Task[None]] = {}
    numbers, clock = itertools.count(1), make_run_clock(began)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        flows = MitmFlows(taps, clock, seqs, next(numbers))
        connection = MitmConnection(reader, writer, context, flows)
        handler = asyncio.current_task()
        assert handler is not None
        connections[connection] = handler
        try:
            await connection.handle_client()
        finally:
            del connections[connection]

    servers = dict[str, asyncio.Server]()
    try:
        for origin, requested_port in (("", port), *origins.items()):
            servers[origin] = await asyncio.start_server(accept, HOST, requested_port)
        ports = {name: int(each.sockets[0].getsockname()[1]) for name, each in servers.items()}
        origin_at |= {ports[origin]: split_origin(origin) for origin in origins}
        yield RecordingProxy(
            port=ports.pop(""),
            origins=ports,
            certificate=tls.certificate,
            mistrusted=distrusting_hosts,
            refusals=refusals,
        )
    except asyncio.CancelledError:
        if not failures or task.uncancel() > 0:
            raise
    finally:
        for server in servers.values():
            server.close()
        await _close_agent_connections(connections, reset=bool(failures))
    if failures:
        raise failures[0]


async def _close_agent_connections(
    connections: Mapping[MitmConnection, asyncio.Task[None]], *, reset: bool
) -> None:
    tasks = list(connections.values())
    for connection in list(connections):
        connection.hang_up(reset=reset)
    if tasks:
        _, unfinished = await asyncio.wait(tasks, timeout=PROXY_CLOSING_TIMEOUT)
        if unfinished:
            raise TimeoutError(f"{len(unfinished)} connections of the proxy did not end")
