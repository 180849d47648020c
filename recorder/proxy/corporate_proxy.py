"""The upstream (corporate) proxy that the user's own settings name for outgoing connections.

The agent gets the recording proxy only; the recorder uses the values of its user's HTTPS_PROXY,
HTTP_PROXY, ALL_PROXY and NO_PROXY. Programs read them differently; these are the rules that curl,
Go and Python's requests share, where they agree: lower case precedes upper case; each scheme has
its own proxy, with ALL_PROXY for the rest; a name in NO_PROXY also matches its subdomains, with or
without a leading dot; a port narrows an entry; networks are in CIDR notation and match addresses
only; `*` matches everything. Loopback is never sent to another machine.
"""

import asyncio
import errno
import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

from traces.model import Chunk, Headers, Response, find_header

DEFAULT_PORTS = {"http": 80, "https": 443}
PROXY_TIMEOUT = 60.0
"""Seconds that an upstream proxy gets to dial and to answer a CONNECT."""

_MAX_HEAD_BYTES, _MAX_BODY_BYTES = 1 << 16, 1 << 16
_HOP_BY_HOP_HEADERS = frozenset(
    {"connection", "keep-alive", "proxy-connection", "transfer-encoding"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamProxy:
    """An HTTP proxy, reached without or with TLS."""

    scheme: str
    host: str
    port: int
    login: str | None = field(default=None, repr=False)
    """The `Proxy-Authorization` value; it must not reach a tape, an agent or a message."""

    @property
    def public_url(self) -> str:
        """Its URL without the login."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """Which upstream proxy leads to which server."""

    proxies: Mapping[str, UpstreamProxy] = field(default_factory=dict)
    """By the server's scheme, `http` or `https`."""
    no_proxy: tuple[str, ...] = ()
    """The entries of NO_PROXY."""

    def find_proxy(self, scheme: str, host: str, port: int) -> UpstreamProxy | None:
        """Return the proxy for a server; None if it is dialled directly."""
        proxy = self.proxies.get(scheme)
        if proxy is None or _is_loopback_host(host):
            return None
        return None if any(_matches_no_proxy(each, host, port) for each in self.no_proxy) else proxy


class ProxyRefusedError(ConnectionRefusedError):
    """The upstream proxy refused to connect to a server; `answer` is its response."""

    def __init__(self, outer: UpstreamProxy, answer: Response) -> None:
        message = f"the proxy {outer.public_url} said {answer.status} {answer.reason}"
        super().__init__(errno.ECONNREFUSED, message)
        self.outer, self.answer = outer, answer


def read_proxy_settings(base: Mapping[str, str]) -> ProxySettings:
    """Read proxy settings from an environment. Raises ValueError for an unusable proxy URL."""
    proxies = {}
    for scheme in DEFAULT_PORTS:
        for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY"):
            if base.get(name):
                proxies[scheme] = _parse_proxy_url(name, base[name])
                break
    exclusions = base.get("no_proxy") or base.get("NO_PROXY") or ""
    return ProxySettings(proxies=proxies, no_proxy=tuple(exclusions.replace(",", " ").split()))


def _parse_proxy_url(name: str, url: str) -> UpstreamProxy:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or port == -1:
        raise ValueError(
            f"{name} names no proxy that can be used: it must be http://HOST:PORT or "
            f"https://HOST:PORT, with USER:PASSWORD@ where a login is needed"
        )
    login = None
    if parts.username is not None:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        login = f"Basic {b64encode(credentials).decode()}"
    return UpstreamProxy(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or DEFAULT_PORTS[parts.scheme],
        login=login,
    )


def _is_loopback_host(host: str) -> bool:
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _matches_no_proxy(entry: str, host: str, port: int) -> bool:
    """Return whether an entry of NO_PROXY matches a server."""
    if entry == "*":
        return True
    host = host.rstrip(".").lower()
    try:
        return ip_address(host) in ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass  # one of them is a name, or the entry has a port
    name, colon, number = entry.rpartition(":")
    if colon and number.isdecimal():
        return int(number) == port and _matches_no_proxy(name, host, port)
    name = entry.lower().removeprefix("*").removeprefix(".").rstrip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


async def connect_through_proxy(
    outer: UpstreamProxy, host: str, port: int, trust: ssl.SSLContext, *, tunnel: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a server through the proxy, or with `tunnel` False to the proxy itself.

    Raises ProxyRefusedError if the proxy answered with an error, else OSError.
    """
    try:
        async with asyncio.timeout(PROXY_TIMEOUT):
            reader, writer = await asyncio.open_connection(
                outer.host, outer.port, ssl=trust if outer.scheme == "https" else None
            )
            if tunnel:
                try:
                    await _request_tunnel(outer, host, port, reader, writer)
                except BaseException:
                    writer.transport.abort()
                    raise
    except TimeoutError:
        message = f"the proxy {outer.public_url} led nowhere within {PROXY_TIMEOUT:g} s"
        raise TimeoutError(errno.ETIMEDOUT, message) from None
    except ProxyRefusedError:
        raise
    except OSError as error:
        error.strerror = f"{error.strerror or error} (the proxy {outer.public_url})"
        raise
    return reader, writer


async def _request_tunnel(
    outer: UpstreamProxy,
    host: str,
    port: int,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    authority = f"[{host}]:{port}" if ":" in host else f"{host.encode('idna').decode()}:{port}"
    login = f"Proxy-Authorization: {outer.login}\r\n" if outer.login else ""
    request = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{login}\r\n"
    writer.write(request.encode("latin-1"))
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        answer = _parse_connect_answer(head)
        if 200 <= answer.status < 300:
            return
        length = int(find_header(answer.headers, "content-length") or 0)
        body = await reader.readexactly(min(length, _MAX_BODY_BYTES))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        raise ConnectionResetError("no whole answer to CONNECT") from None
    raise ProxyRefusedError(outer, _complete_connect_answer(answer, body))


def _parse_connect_answer(head: bytes) -> Response:
    """Parse the head of an answer. Raises ValueError if it is not one."""
    status_line, *lines = head.decode("latin-1").split("\r\n")
    version, status, *reason = status_line.split(" ", 2)
    if not version.startswith("HTTP/1"):
        raise ValueError("no answer of HTTP/1")
    pairs = (line.partition(":") for line in lines if line)
    headers = tuple((name, value.strip()) for name, _, value in pairs)
    return Response(status=int(status), reason="".join(reason), headers=headers)


def _complete_connect_answer(answer: Response, body: bytes) -> Response:
    retained: Headers = tuple(
        (name, value)
        for name, value in answer.headers
        if name.lower() not in _HOP_BY_HOP_HEADERS and name.lower() != "content-length"
    )
    headers = (*retained, ("Content-Length", str(len(body))))
    chunks = (Chunk(at=0.0, data=body),) if body else ()
    return Response(status=answer.status, reason=answer.reason, headers=headers, chunks=chunks)


def explain_proxy_login(outer: UpstreamProxy, wanted: str | None) -> str:
    """Explain a failed login and what to do; `wanted` is the proxy's `Proxy-Authenticate` value."""
    example_url = outer.public_url.replace("://", "://USER:PASSWORD@", 1)
    message = f"the proxy {outer.public_url} "
    message += "did not take the login it was given" if outer.login else "wants a login"
    if wanted and not wanted.lower().startswith("basic"):
        kind = wanted.split(maxsplit=1)[0]
        return (
            f"{message} by {kind}, which is not spoken here: name a helper that speaks it instead"
        )
    return f"{message} (407): say HTTPS_PROXY={example_url} and the like, special characters as %XX"
