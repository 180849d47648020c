"""How the proxy reaches servers: replaced addresses, trusted CAs, upstream proxies."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct, field

from recorder.proxy.corporate_proxy import DEFAULT_PORTS, ProxySettings, UpstreamProxy

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


class Origin(NamedTuple):
    """A server as a URL names it."""

    scheme: str
    host: str
    """A name, or an address without brackets."""
    port: int


class UpstreamRoute(Struct, frozen=True, kw_only=True):
    """How the proxy reaches servers."""

    hosts: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Each replaced host's actual address."""
    ca_file: Path | None = None
    """The trusted CAs as PEM, by default certifi's."""
    proxies: ProxySettings = ProxySettings()  # noqa: RUF009
    insecure: frozenset[str] = frozenset()
    """Names of hosts whose certificates are not verified."""
    client_cert: Path | None = None
    """A PEM file with the certificate, and its key, for servers that want one."""

    def find_address(self, host: str, port: int) -> tuple[str, int]:
        """Return the address at which a server is dialled."""
        return self.hosts.get(host, (host, port))

    def find_proxy(self, scheme: str, host: str, port: int) -> UpstreamProxy | None:
        """Return the upstream proxy for a server; None if it or its real address is direct."""
        actual = self.find_address(host, port)
        return self.proxies.find_proxy(scheme, host, port) and self.proxies.find_proxy(
            scheme, *actual
        )


DIRECT_ROUTE = UpstreamRoute()


@lru_cache(maxsize=1024)
def split_origin(url: str) -> Origin:
    """Return the origin of a URL. Raises ValueError for a port or scheme that cannot be dialled."""
    parts = urlsplit(url)
    port, host = parts.port, parts.netloc.rpartition("@")[2]
    if port is not None:
        host = host.rpartition(":")[0]
    port = port or DEFAULT_PORTS.get(parts.scheme)
    if port is None or not parts.hostname:
        raise ValueError(f"{parts.scheme}://{parts.netloc} is no server that can be dialled")
    return Origin(
        parts.scheme, host.removesuffix(":").strip("[]"), port
    )  # `hostname` would be in lower case
