"""The forward proxy that records: mitmproxy's core in this process, on 127.0.0.1 only."""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from recorder.connection import AgentConnection, Wiring, split
from recorder.flows import Flows, since
from recorder.outer import WayOut
from recorder.tls import Tls
from traces.taps import Taps

HOST = "127.0.0.1"
DIRECT = WayOut()
CLOSING = 5.0
"""Seconds that connections get to end once they were told to."""

# Otherwise Python prints what mitmproxy warns of on standard error.
logging.getLogger("mitmproxy").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A proxy that listens."""

    port: int
    certificate: Path
    """The certificate of our CA, as PEM."""
    origins: Mapping[str, int] = field(default_factory=dict)
    """Origins and the ports that stand for them."""
    mistrusted: Mapping[str, str] = field(default_factory=dict)
    """Hosts for which the agent did not take our certificate, so nothing was recorded; and why."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Proxies on the way out that did not take our login; and what to do."""

    @property
    def url(self) -> str:
        """What the agent's proxy variables are set to."""
        return f"http://{HOST}:{self.port}"


@asynccontextmanager
async def proxy(
    taps: Taps,
    *,
    confdir: Path,
    port: int = 0,
    began: float,
    seqs: Iterator[int],
    hosts: Mapping[str, tuple[str, int]] = {},
    upstream_ca: Path | None = None,
    way: WayOut = DIRECT,
    origins: Mapping[str, int] = {},
    inner: bool = False,
) -> AsyncIterator[Proxy]:
    """A proxy that answers, for as long as the block runs; everything it opened is closed then.

    `confdir` holds the CA (made where it is missing, key of mode 0600), `began` is the time of
    time.monotonic() from which all times count, `hosts` says where a host really is, and
    `upstream_ca` (PEM) which servers are trusted, by default those of certifi, and `way` by
    which proxies they are reached. `origins` are those (`https://api.openai.com`) that have a port
    of their own (0 for any), at which they are asked without a proxy. What a tap raises cancels
    the block and is raised here; agents see their connections reset.

    An `inner` proxy stands behind a performer: where there is no answer at all, not even a head,
    it says so with status 502 and why in the header `x-stumble-error`, and does not reset.
    """
    task = asyncio.current_task()
    assert task is not None
    failures: list[BaseException] = []

    def fail(error: BaseException) -> None:
        failures.append(error)
        if len(failures) == 1:
            task.cancel()

    mistrusted, refusals = dict[str, str](), dict[str, str]()
    tls = Tls(confdir, upstream_ca)
    origin_at: dict[int, tuple[str, str, int]] = {}
    wiring = Wiring(
        origins=origin_at,
        tls=tls,
        hosts=hosts,
        inner=inner,
        way=way,
        refusals=refusals,
        mistrusted=mistrusted,
        fail=fail,
    )
    connections: dict[AgentConnection, asyncio.Task[None]] = {}
    numbers, clock = itertools.count(1), since(began)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        flows = Flows(taps, clock, seqs, next(numbers))
        connection = AgentConnection(reader, writer, wiring, flows)
        current = asyncio.current_task()
        assert current is not None
        connections[connection] = current
        try:
            await connection.handle_client()
        finally:
            del connections[connection]

    servers, numbered = list[asyncio.Server](), dict[str, int]()
    try:
        for origin, wanted in (("", port), *origins.items()):
            server = await asyncio.start_server(accept, HOST, wanted)
            servers.append(server)
            numbered[origin] = server.sockets[0].getsockname()[1]
            if origin:
                origin_at[numbered[origin]] = split(origin)
        yield Proxy(
            port=numbered.pop(""),
            origins=numbered,
            certificate=tls.certificate,
            mistrusted=mistrusted,
            refusals=refusals,
        )
    except asyncio.CancelledError:
        if not failures or task.uncancel() > 0:
            raise
    finally:
        for server in servers:
            server.close()
        await _close(connections, reset=bool(failures))
    if failures:
        raise failures[0]


async def _close(connections: Mapping[AgentConnection, asyncio.Task[None]], *, reset: bool) -> None:
    tasks = list(connections.values())
    for connection in list(connections):
        connection.hang_up(reset=reset)
    if tasks:
        _, left = await asyncio.wait(tasks, timeout=CLOSING)
        if left:
            raise TimeoutError(f"{len(left)} connections of the proxy did not end")
