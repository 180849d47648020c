"""The proxy of a recording: the own server, with servers behind it and mitmproxy beside it."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct, field

from recorder.ca import ensure_ca_certificate
from recorder.proxy.http1 import parse_authority_host
from recorder.proxy.mitm.fallback import MitmFallback
from recorder.proxy.route import DIRECT_ROUTE, Origin, UpstreamRoute, split_origin
from recorder.proxy.server import ProxyServer, RunListener
from recorder.proxy.upstream import OriginClient
from traces.clock import RunClock
from traces.taps import TapChain


class RecordingProxy(Struct, frozen=True, kw_only=True):
    """A listening proxy."""

    listener: RunListener
    certificate: Path
    """The CA certificate as PEM."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Upstream proxies that rejected the login; and what to do."""

    @property
    def port(self) -> int:
        """The port that clients use as a proxy."""
        return self.listener.port

    @property
    def origins(self) -> Mapping[str, int]:
        """Each origin's local port."""
        return self.listener.origins

    @property
    def mistrusted(self) -> Mapping[str, str]:
        """Hosts whose traffic is not recorded, as the agent rejected the certificate; and why."""
        return {parse_authority_host(k): why for k, why in self.listener.untrusted.items()}

    @property
    def url(self) -> str:
        """The value of the agent's proxy variables."""
        return self.listener.url


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
    server: ProxyServer | None = None,
) -> AsyncIterator[RecordingProxy]:
    """Run a recording proxy while the block runs; everything it opened is closed afterwards.

    `confdir` contains the CA (created if missing, key with mode 0600). `began` is the
    time.monotonic() from which all times count. `origins` (`https://api.openai.com`) maps each
    origin that gets a port of its own to that port (0 for any); clients reach it there without a
    proxy. `server` is one with this CA, if there is one already. An exception from a tap cancels
    the block and is raised here; agents' connections are reset.
    """
    task = asyncio.current_task()
    assert task is not None
    certificate, refusals = ensure_ca_certificate(confdir), dict[str, str]()
    origin_at: dict[int, Origin] = {}
    async with OriginClient(upstream, began, refusals) as client:
        server = server or ProxyServer(confdir=confdir)
        listener = server.create_listener(
            taps, began=began, seqs=seqs, upstream=client, port=port, origins=origins
        )
        listener.on_failure = task.cancel
        listener.fallback = MitmFallback(
            confdir=confdir,
            route=upstream,
            taps=taps,
            clock=RunClock(began).now,
            seqs=seqs,
            origins=origin_at,
            refusals=refusals,
            untrusted=listener.untrusted,
            fail=listener.fail_run,
        )
        try:
            async with listener:
                origin_at |= {at: split_origin(name) for name, at in listener.origins.items()}
                yield RecordingProxy(listener=listener, certificate=certificate, refusals=refusals)
        except asyncio.CancelledError:
            if listener.failure is None or task.uncancel() > 0:
                raise
    if listener.failure is not None:
        raise listener.failure
